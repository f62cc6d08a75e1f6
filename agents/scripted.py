"""Predictors that follow a script: for tests and smoke runs, offline, with usage set.

Invariant: a script sees what a model sees (messages, tools, tool choice) and nothing else.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolFunction, ToolInfo

from claims.schema import UserError

_CLUE = re.compile(r"evidence: (\d(?:\.\d+)?)")


@dataclass(frozen=True)
class Turn:
    """What a script is shown."""

    messages: list[ChatMessage]
    """The conversation so far."""
    readers: tuple[str, ...]
    """Names of the tools on offer besides `submit`."""
    forced: bool
    """Whether `submit` is forced."""

    @property
    def number(self) -> int:
        """Turns the predictor has had before this one."""
        return sum(message.role == "assistant" for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """What a script says."""

    text: str = ""
    """Prose."""
    calls: tuple[tuple[str, dict[str, object]], ...] = ()
    """Tool calls: name and arguments."""
    stop: StopReason = "stop"
    """Why it ended."""
    parse_error: str | None = None
    """Set to make the calls' arguments count as broken JSON."""


def _submit(value: object) -> Reply:
    return Reply(calls=(("submit", {"p_true": value}),))


def _read(turn: Turn, positions: object, times: int = 1) -> Reply:
    return Reply(calls=tuple((turn.readers[0], {"positions": positions}) for _ in range(times)))


def _reader(turn: Turn) -> Reply:
    """Call the first tool once, submit the number behind "evidence:", 0.5 where there is none."""
    answers = [message.text for message in turn.messages if isinstance(message, ChatMessageTool)]
    if turn.readers and not answers:
        return _read(turn, [1, 2])
    clue = _CLUE.search("\n".join(answers))
    return _submit(float(clue.group(1)) if clue else 0.5)


def _asker(turn: Turn) -> Reply:
    """Ask the first tool one question about one segment, submit 0.5."""
    if turn.readers and turn.number == 0:
        return Reply(calls=((turn.readers[0], {"question": "What is said here?", "start": 6, "end": 9}),))
    return _submit(0.5)


def _greedy(turn: Turn) -> Reply:
    return _submit(0.6) if turn.forced or not turn.readers else _read(turn, [1], times=20)


def _never(turn: Turn) -> Reply:
    return _read(turn, [1]) if turn.readers else Reply("Let me think about it some more.")


def _bad_arguments(turn: Turn) -> Reply:
    tries: list[object] = ["first", [1.5], [-1], list(range(999))]
    if not turn.readers or turn.number >= len(tries):
        return _submit(0.4)
    return _read(turn, tries[turn.number])


def _broken_json(_: Turn) -> Reply:
    return Reply(calls=(("submit", {}),), parse_error="Expecting value: line 1 column 1")


def _late(turn: Turn) -> Reply:
    return _submit(0.9) if turn.forced else Reply("I am not sure yet.")


def _mends(turn: Turn) -> Reply:
    return _submit(1.7) if turn.number == 0 else _submit(0.17)


SCRIPTS: dict[str, Callable[[Turn], Reply]] = {
    "reader": _reader,
    "asker": _asker,
    "steady": lambda _: _submit(0.7),
    "greedy": _greedy,
    "never": _never,
    "late": _late,
    "mends": _mends,
    "bad_arguments": _bad_arguments,
    "broken_json": _broken_json,
    "unknown_tool": lambda turn: _submit(0.3) if turn.number else Reply(calls=(("steer", {"by": 3}),)),
    "both": lambda turn: Reply(calls=((turn.readers[0], {"positions": [1]}), ("submit", {"p_true": 0.8}))),
    "torn": lambda _: Reply(calls=(("submit", {"p_true": 0.2}), ("submit", {"p_true": 0.8}))),
    "nan": lambda _: _submit(float("nan")),
    "over_one": lambda _: _submit(1.7),
    "percent": lambda _: _submit("85%"),
    "prose": lambda _: Reply("I'd say 70%."),
    "refuses": lambda _: Reply("I can't help with that."),
    "empty": lambda _: Reply(),
    "truncated": lambda _: Reply(stop="max_tokens"),
    "cut": lambda _: Reply("The claim has a probability of 0.8 if we first", stop="max_tokens"),
    "blocked": lambda _: Reply(stop="content_filter"),
    "overflow": lambda _: Reply(stop="model_length"),
}
"""What each scripted predictor does, by name."""


class ScriptedAPI(ModelAPI):
    """A model that follows the script of its name."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
    ) -> None:
        """Look up the script.

        Raises:
            UserError: There is none of this name.
        """
        super().__init__(model_name, base_url, api_key, [], config)
        if model_name not in SCRIPTS:
            raise UserError(f"Unknown script {model_name!r}. Known scripts: {', '.join(SCRIPTS)}. Choose one of them.")
        self.script = SCRIPTS[model_name]

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's own name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,  # noqa: ARG002 - Inspect's own signature
    ) -> ModelOutput:
        """Say what the script says."""
        readers = tuple(tool.name for tool in tools if tool.name != "submit")
        reply = self.script(Turn(input, readers, isinstance(tool_choice, ToolFunction)))
        number = sum(message.role == "assistant" for message in input)
        calls = [
            ToolCall(
                id=f"call-{number}-{index}", function=name, arguments=dict(arguments), parse_error=reply.parse_error
            )
            for index, (name, arguments) in enumerate(reply.calls)
        ]
        message = ChatMessageAssistant(content=reply.text, tool_calls=calls or None, source="generate")
        choice = ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else reply.stop)
        usage = ModelUsage(input_tokens=len(input), output_tokens=1, total_tokens=len(input) + 1)
        return ModelOutput(model=self.model_name, choices=[choice], usage=usage)


@modelapi(name="scripted")
def scripted() -> type[ModelAPI]:
    """Register `scripted/<name>` with Inspect."""
    return ScriptedAPI
