"""The local predictor: SmolLM2-135M as a model in the same loop as every other, with no key and no network.

Before it answers it looks: one call of a tool that takes positions, or up to three of one that is asked about
segments, with arguments by `reading_policy`, else one call of a tool that needs no argument. Then it answers through
the chance of Yes against No as its next token, after its own shorter rendering of the conversation (`local_prompt`),
and submits that. Longer than its context of 8,192 tokens: an overflow. It reads the messages alone, so it sees what any
predictor sees.
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolFunction, ToolInfo

from agents.local_prompt import LINE_CHARS, question
from agents.prompts import calls_allowed, listed_tokens, positions_allowed, sections
from agents.reading_policy import choose_positions, choose_questions, longest_segment
from agents.served import TokenList
from tools.targets import get_target
from tools.weights import prepare

CONTEXT = 8192
"""Most tokens of a question."""
POSITIONS = 8
"""Positions it reads when the budget allows them."""
QUESTIONS = 3
"""Questions it asks about segments, likewise."""


def policy() -> str:
    """What its answers depend on beside its weights and prompts, for the identity of a run."""
    reads = f"{POSITIONS} positions or {QUESTIONS} segments (topic first)"
    return f"reads {reads}, {LINE_CHARS} characters a line, {CONTEXT} tokens"


def planned_calls(message: str, tools: Sequence[ToolInfo]) -> list[ToolCall]:
    """The calls that the local predictor makes, in order; none where every tool wants what it cannot give."""
    listed = listed_tokens(message)
    if listed is not None:
        for tool in tools:
            if "positions" in tool.parameters.properties:
                return [_positions(message, listed, tool)]
            if {"question", "start", "end"} <= tool.parameters.properties.keys():
                return _questions(message, listed, tool)
    simple = (tool for tool in tools if not tool.parameters.required)
    return [ToolCall(id="read", function=tool.name, arguments={}) for tool in islice(simple, 1)]


def _positions(message: str, listed: TokenList, tool: ToolInfo) -> ToolCall:
    allowed = min(POSITIONS, positions_allowed(message) or POSITIONS)
    positions = choose_positions(listed, sections(message)["claim"].body, allowed)
    return ToolCall(id="read", function=tool.name, arguments={"positions": positions})


def _questions(message: str, listed: TokenList, tool: ToolInfo) -> list[ToolCall]:
    count = min(QUESTIONS, calls_allowed(message) or 1)
    claim = sections(message)["claim"].body
    return [
        ToolCall(id=f"read-{number}", function=tool.name, arguments=asdict(asked))
        for number, asked in enumerate(choose_questions(listed, claim, count, longest_segment(tool.description)))
    ]


def _shown(turns: Sequence[ChatMessage]) -> list[str]:
    """What the tool answered, each answer to a question below the question."""
    calls = [call for turn in turns if isinstance(turn, ChatMessageAssistant) for call in turn.tool_calls or []]
    questions = {call.id: call.arguments["question"] for call in calls if "question" in call.arguments}
    answers = [turn for turn in turns if isinstance(turn, ChatMessageTool) and turn.error is None]
    return [
        f"asked: {questions[turn.tool_call_id]}\n{turn.text}" if turn.tool_call_id in questions else turn.text
        for turn in answers
    ]


class LocalAPI(ModelAPI):
    """SmolLM2-135M behind Inspect's model interface."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
    ) -> None:
        """Prepare the weights of the target `model_name`.

        Raises:
            UserError: They cannot be had.
        """
        super().__init__(model_name, base_url, api_key, [], config)
        # Imported late: torch takes seconds to load, and no other predictor needs it.
        from agents.local_engine import engine

        self.engine = engine(prepare(get_target(model_name)))

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's own name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,  # noqa: ARG002 - Inspect's own signature
    ) -> ModelOutput:
        """One turn: the tool call if it is time for it, else the answer."""
        message = next(turn.text for turn in input if isinstance(turn, ChatMessageUser))
        n_calls = sum(isinstance(turn, ChatMessageTool) for turn in input)
        calls = [] if isinstance(tool_choice, ToolFunction) else planned_calls(message, tools)[n_calls:]
        if calls:
            return self._output(calls[0], tokens=0, metadata=dict(calls[0].arguments))
        prefix, ids = self.engine.encode(*question(message, _shown(input)))
        n_tokens = len(prefix) + len(ids)
        if n_tokens > CONTEXT:
            return self._overflow(n_tokens)
        answer = await self.engine.ask(ids, prefix)
        facts: dict[str, object] = {"p_yes": answer.p_yes, "mass": answer.mass, "yes": answer.yes, "no": answer.no}
        return self._output(
            ToolCall(id="submit", function="submit", arguments={"p_true": answer.p_yes}),
            tokens=n_tokens,
            metadata=facts,
        )

    def _output(self, call: ToolCall, *, tokens: int, metadata: dict[str, object]) -> ModelOutput:
        said = ChatMessageAssistant(content="", tool_calls=[call], source="generate")
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=said, stop_reason="tool_calls")],
            usage=ModelUsage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1),
            metadata=metadata,
        )

    def _overflow(self, tokens: int) -> ModelOutput:
        output = ModelOutput.from_content(self.model_name, "", stop_reason="model_length")
        output.error = f"{tokens} tokens; the local predictor's context holds {CONTEXT}"
        output.usage = ModelUsage(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
        return output


@modelapi(name="local")
def local() -> type[ModelAPI]:
    """Register `local/<target>` with Inspect."""
    return LocalAPI
