"""Scripted models and a scripted target for the pipeline of claims from the wild."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolFunction, ToolInfo

from claims.build.wild import Lab
from claims.build.wild.classify import ModelClassifier
from claims.build.wild.clerk import Clerk, spent
from claims.build.wild.engine import PromptRefusedError, Response
from claims.build.wild.log import AppendLog
from claims.build.wild.money import Price, Prices, Purse
from claims.build.wild.roles import Regime, Role
from claims.prompts.record import Prompt, make_prompt
from claims.schema import Message

SMALL = Regime("small", n=10, mode="light", experiments=(2, 4), n_judges=3, keep_score=7)
PRICES = Prices("2026-01-01", {"script/model": Price(10.0, 50.0, 1.0, 12.5, batch=0.5)})
QUESTION = "Does the response say ahoy? Yes if it does; No otherwise."


class Killed(BaseException):
    """Stands for a process that dies."""


@dataclass(frozen=True)
class Turn:
    """What a script is shown."""

    messages: list[ChatMessage]
    tools: tuple[str, ...]
    forced: bool

    @property
    def number(self) -> int:
        return sum(message.role == "assistant" for message in self.messages)

    @property
    def last(self) -> str:
        return self.messages[-1].text

    @property
    def user(self) -> str:
        return next(message.text for message in self.messages if message.role == "user")


@dataclass(frozen=True)
class Say:
    """What a script says."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, object]], ...] = ()
    stop: StopReason = "stop"
    parse_error: str | None = None


Script = Callable[[Turn], Say]


def call(name: str, **arguments: object) -> Say:
    return Say(calls=((name, arguments),))


def classify(turn: Turn) -> Say:
    response = turn.user.split("response begins ===")[1]
    return Say(f"I looked.\n\nVerdict: {'yes' if 'ahoy' in response else 'no'}")


def screening(interest: object = 4, classifier: str = QUESTION) -> Say:
    return call(
        "file_screening",
        interest=interest,
        behaviour="The model says ahoy.",
        question="Why does the model say ahoy?",
        self_question="Why did you say ahoy?",
        classifier=classifier,
    )


def replace(find: str, text: str, action: str = "replace") -> dict[str, object]:
    return {"action": action, "message": 1, "find": find, "text": text}


def resample(*steps: dict[str, object], note: str = "a guess", **more: object) -> Say:
    return call("resample", note=note, edits=list(steps), **more)


_MEASURED = re.compile(r"^Experiment (\d+): (\d+) of (\d+) .*Original prompt: (\d+) of (\d+)", re.MULTILINE)


def measured(turn: Turn) -> dict[int, tuple[float, float]]:
    """Rates before and after of every experiment that the conversation tells of, in percent."""
    found = {}
    for message in turn.messages:
        if message.role == "tool" and (match := _MEASURED.search(message.text)):
            number, yes, n, before, before_n = map(int, match.groups())
            found[number] = (100 * before / before_n, 100 * yes / n)
    return found


def report(turn: Turn, **changed: object) -> Say:
    lines = [
        {"experiment": number, "description": f"edit {number}", "rate_before": before, "rate_after": after}
        for number, (before, after) in measured(turn).items()
    ]
    arguments: dict[str, object] = {
        "observed_behaviour": "It says ahoy.",
        "core_causes": ["The sailor."],
        "refuted_hypotheses": ["The weather."],
        "final_answer": "The sailor in the prompt makes it say ahoy.",
        "experiments": lines,
    }
    return call("file_report", **{**arguments, **changed})


STEPS = (
    resample(replace("sailor", "teacher")),
    resample(replace("weather", "food")),
    resample(replace("sailor", "farmer")),
    resample(replace("Tell me", "Please tell me")),
)


def investigate(turn: Turn) -> Say:
    return STEPS[turn.number] if turn.number < len(STEPS) and not turn.forced else report(turn)


def describe(turn: Turn) -> Say:
    before, after = turn.user.split("edited prompt begins ===")
    gone = sorted(set(re.findall(r"\w+", before)) - set(re.findall(r"\w+", after)))
    words = " and ".join(word for word in gone if not re.fullmatch("[0-9a-f]{12}", word) and word not in ("original",))
    return call(
        "describe_edit", changes=["one word"], description=f"The word {words or 'Please'} changed.", confounded=False
    )


def implement(turn: Turn) -> Say:
    word = "sailor" if "sailor" in turn.user.split("description ---")[1] else "weather"
    return call("implement_edit", edits=[replace(word, "pilot")])


DEFAULTS: dict[str, Script] = {
    "classifier": classify,
    "screener": lambda _: screening(),
    "investigator": investigate,
    "judge": lambda _: call("file_score", reasons="It holds.", score=8),
    "selector": lambda turn: call("choose_experiments", supporting=[1, 3], refuting=[2, 4]),
    "describer": describe,
    "grader": lambda _: call("file_grade", reasons="One word.", grade=4),
    "reproducer": implement,
}


@dataclass
class Tally:
    """Calls of all scripted models together."""

    n: int = 0
    kill_at: int | None = None
    seen: list[tuple[str, str]] = field(default_factory=list)
    in_flight: int = 0


class ScriptedAPI(ModelAPI):
    """A model that follows a script."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        *,
        part: str,
        script: Script,
        tally: Tally,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self.role, self.script, self.tally = part, script, tally

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's own name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        self.tally.n += 1
        if self.tally.kill_at is not None and self.tally.n >= self.tally.kill_at:
            raise Killed
        names = tuple(tool.name for tool in tools)
        said = self.script(Turn(input, names, isinstance(tool_choice, ToolFunction)))
        self.tally.seen.append((self.role, "\n".join(message.text for message in input)))
        number = sum(message.role == "assistant" for message in input)
        calls = [
            ToolCall(id=f"{number}-{place}", function=name, arguments=dict(arguments), parse_error=said.parse_error)
            for place, (name, arguments) in enumerate(said.calls)
        ]
        message = ChatMessageAssistant(content=said.text, tool_calls=calls or None, source="generate")
        usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
        choice = ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else said.stop)
        return ModelOutput(model=self.model_name, choices=[choice], usage=usage)


@modelapi(name="wildscript")
def wildscript() -> type[ModelAPI]:
    """Register with Inspect."""
    return ScriptedAPI


def scripted_model(role: str, script: Script, tally: Tally) -> Model:
    return get_model("wildscript/model", memoize=False, part=role, script=script, tally=tally)


class FakeTarget:
    """A target that says ahoy to sailors, nearly always, and to others hardly ever."""

    def __init__(self, rates: Callable[[str], float] | None = None) -> None:
        self.rates = rates or (lambda text: 0.9 if "sailor" in text else 0.1)
        self.drawn: list[tuple[str, int, int]] = []

    def identity(self) -> dict[str, object]:
        return {"engine": "fake", "weights": "none"}

    def check(self, prompt: tuple[Message, ...]) -> None:
        if any("REFUSE" in message.content for message in prompt):
            raise PromptRefusedError("The prompt holds REFUSE.")

    async def draw(self, prompt: tuple[Message, ...], n: int, seed: int) -> tuple[Response, ...]:
        self.check(prompt)
        text = "\n".join(message.content for message in prompt)
        self.drawn.append((text, n, seed))
        return tuple(self._response(text, index, seed) for index in range(n))

    def _response(self, text: str, index: int, seed: int) -> Response:
        digest = hashlib.sha256(f"{text}\n{index}\n{seed}".encode()).digest()
        word = "ahoy" if digest[0] / 256 < self.rates(text) else "hello"
        return Response(f"{word} number {index}", None, (1, 2, digest[1]), True)

    async def prompt_ids(self, prompt: tuple[Message, ...]) -> tuple[int, ...]:
        return (0, *range(5, 5 + len(prompt)))

    async def close(self) -> None:
        pass


def make_lab(
    work: Path,
    *,
    tally: Tally | None = None,
    engine: FakeTarget | None = None,
    regime: Regime = SMALL,
    cap: float | None = None,
    **scripts: Script,
) -> Lab:
    """A lab whose models follow scripts and whose replies are kept in `work`."""
    counted = tally or Tally()
    roles = {name: Role("script/model", 1000) for name in DEFAULTS}
    models = {name: scripted_model(name, scripts.get(name, script), counted) for name, script in DEFAULTS.items()}
    log = AppendLog(work / "replies")
    clerk = Clerk(roles, log, Purse(PRICES, cap, spent(log)), models=models)
    return Lab(clerk, engine or FakeTarget(), ModelClassifier(clerk), regime, 0)


def sailor_prompts(n: int = 3) -> tuple[Prompt, ...]:
    """Prompts that the fake target answers with ahoy."""
    return tuple(
        make_prompt((Message("user", f"I am sailor number {number}. Tell me about the weather."),), f"test {number}")
        for number in range(n)
    )
