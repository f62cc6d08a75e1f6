"""Stage 3: an agent that edits the prompt, sees what the target then does, and files a report.

Invariants: the number of responses is the run's, whatever is asked; an experiment is charged when its edit can be run
and changes something, and never otherwise; every call is answered before the next turn; turns are bounded, and whoever
never files is `unfiled`, never guessed at.
"""

from dataclasses import dataclass

from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser
from inspect_ai.tool import ToolCall, ToolChoice, ToolFunction, ToolInfo

from claims.build.wild.classify import Classifier
from claims.build.wild.clerk import Clerk, Question
from claims.build.wild.edits import EDITS, apply_edits
from claims.build.wild.engine import Engine, PromptRefusedError
from claims.build.wild.fence import fenced, fill, message_parts, shortened, text
from claims.build.wild.forms import Fields, FormError, answer, said, tool_info
from claims.build.wild.records import Batch, Experiment, Investigated, Outcome, Report, Screening
from claims.build.wild.report import FILE_REPORT, report_form
from claims.build.wild.roles import Regime
from claims.prompts.record import Prompt

RESAMPLE = "resample"
SPARE_TURNS = 8
"""Turns beyond one for each experiment: for mistakes, thoughts and the report."""
FORCED_TURNS = 2
"""Turns in which the report is forced, when the others are spent."""
MAX_BAD_REPORTS = 4
"""Reports that may be refused."""
SHOWN = 8
"""Responses of a batch that are shown with their verdicts; the rate is that of all."""
RESPONSE_CHARS = 2500
"""Longest response shown whole."""
# Names under which models ask for a number of responses; the tool takes none.
_COUNTS = ("n", "samples", "num_samples", "n_samples", "count")


@dataclass(frozen=True)
class Lab:
    """What every stage of a run works with."""

    clerk: Clerk
    """Asks models."""
    engine: Engine
    """Asks the target."""
    classifier: Classifier
    """Answers frozen questions."""
    regime: Regime
    """How much is spent on each prompt."""
    seed: int
    """Of the responses behind the labels, and of every choice by chance."""


async def investigate(lab: Lab, prompt: Prompt, screening: Screening, baseline: Batch) -> Investigated:
    """The experiments on one prompt and the report about them."""
    session = _Session(lab, prompt, screening, baseline)
    outcome, detail = await session.run()
    return Investigated(
        prompt=prompt,
        outcome=outcome,
        detail=detail,
        screening=screening,
        baseline=baseline,
        experiments=tuple(session.experiments),
        report=session.report,
        n_turns=session.n_turns,
    )


class _Session:
    """One conversation with the investigator."""

    def __init__(self, lab: Lab, prompt: Prompt, screening: Screening, baseline: Batch) -> None:
        self.lab = lab
        self.prompt = prompt
        self.classifier_question = screening.classifier
        self.baseline = baseline
        self.experiments: list[Experiment] = []
        self.report: Report | None = None
        self.n_turns = 0
        self.n_bad_reports = 0
        self.problem = ""
        low, high = lab.regime.experiments
        system = fill(f"investigate_{lab.regime.mode}.md", low=str(low), high=str(high), n=str(lab.regime.n))
        self.messages: list[ChatMessage] = [
            ChatMessageSystem(content=f"{text('investigate_system.md')}\n\n{system}"),
            ChatMessageUser(content=_opening(lab.regime, prompt, screening, baseline)),
        ]
        self.tools = (_resample_tool(lab.regime), report_form(baseline, ()).tool)

    async def run(self) -> tuple[Outcome, str]:
        """Turns until a report is filed or the turns are spent."""
        most = self.lab.regime.experiments[1] + SPARE_TURNS
        for number in range(most + FORCED_TURNS):
            forced = number >= most
            if number == most:
                self.messages.append(ChatMessageUser(content=text("investigate_force.md")))
            ended = await self._turn(ToolFunction(name=FILE_REPORT) if forced else "auto")
            if ended is not None:
                return ended, self.problem
            if self.n_bad_reports >= MAX_BAD_REPORTS:
                break
        return ("malformed" if self.n_bad_reports else "unfiled"), self.problem

    async def _turn(self, choice: ToolChoice) -> Outcome | None:
        question = Question(
            "investigate", self.prompt.prompt_id, "investigator", tuple(self.messages), self.tools, choice
        )
        reply = await self.lab.clerk.ask(question)
        self.n_turns += 1
        self.messages.append(reply.message)
        if reply.stop == "content_filter":
            return "blocked"
        if reply.stop == "model_length":
            return "overflow"
        calls = reply.message.tool_calls or []
        for call in calls:
            self.messages.append(answer(call, await self._answer(call)))
            if self.report is not None:
                return "filed"
        if not calls:
            self.messages.append(ChatMessageUser(content=text("investigate_ask.md")))
        return None

    async def _answer(self, call: ToolCall) -> str:
        try:
            if call.function == RESAMPLE:
                return await self._resample(call)
            if call.function == FILE_REPORT:
                return self._file(call)
        except FormError as error:
            return f"Not run, not charged. {error}"
        return f"There is no tool {call.function!r}. The tools are {RESAMPLE} and {FILE_REPORT}."

    def _file(self, call: ToolCall) -> str:
        try:
            self.report = report_form(self.baseline, self.experiments).fill(call)
        except FormError as error:
            self.n_bad_reports += 1
            self.problem = str(error)
            return f"Not filed. {error} Call {FILE_REPORT} again with everything in it."
        return "Filed."

    async def _resample(self, call: ToolCall) -> str:
        if call.parse_error:
            raise FormError(f"Found arguments that are not JSON ({call.parse_error}). Expected note and edits.")
        fields = Fields(call.arguments)
        edited = apply_edits(self.prompt.messages, fields.rows("edits"))
        note = fields.text("note")
        same = next((one for one in self.experiments if one.messages == edited), None)
        if same is not None:
            raise FormError(f"This is the prompt of experiment {same.number} again: {same.batch.shown}.")
        if self._left == 0:
            raise FormError(f"All {len(self.experiments)} experiments are spent. Call {FILE_REPORT}.")
        try:
            responses = await self.lab.engine.draw(edited, self.lab.regime.n, self.lab.seed)
        except PromptRefusedError as error:
            raise FormError(f"The target cannot take this prompt: {error}") from None
        batch = await self.lab.classifier.judge(self.prompt.prompt_id, self.classifier_question, responses)
        self.experiments.append(Experiment(len(self.experiments) + 1, note, edited, batch))
        return self._shown(self.experiments[-1], call.arguments)

    @property
    def _left(self) -> int:
        return self.lab.regime.experiments[1] - len(self.experiments)

    def _shown(self, experiment: Experiment, arguments: dict[str, object]) -> str:
        asked = next((name for name in _COUNTS if name in arguments), None)
        fixed = f"The number of responses is fixed at {self.lab.regime.n} in this run; {asked} was not used."
        return "\n".join(
            [
                f"Experiment {experiment.number}: {experiment.batch.shown}. Original prompt: {self.baseline.shown}.",
                f"Experiments left: {self._left}.",
                *([fixed] if asked else []),
                show_batch(experiment.batch, "responses to the edited prompt"),
            ]
        )


def show_batch(batch: Batch, name: str, *, limit: int = SHOWN) -> str:
    """The first responses of a batch with their verdicts, fenced."""
    words = {True: "yes", False: "no", None: "no usable verdict"}
    pairs = list(zip(batch.responses, batch.verdicts, strict=True))[:limit]
    parts = [
        (f"response {number}, verdict {words[verdict]}", shortened(response.text, RESPONSE_CHARS))
        for number, (response, verdict) in enumerate(pairs, start=1)
    ]
    return fenced(f"{name} (the first {len(parts)} of {len(batch.responses)})", parts)


def _opening(regime: Regime, prompt: Prompt, screening: Screening, baseline: Batch) -> str:
    asked = [
        ("behaviour", screening.behaviour),
        ("question to answer", screening.question),
        ("frozen classifier question", screening.classifier),
    ]
    return fill(
        "investigate_user.md",
        prompt=fenced("original prompt", message_parts(prompt.messages)),
        asked=fenced("question", asked),
        baseline=baseline.shown,
        responses=show_batch(baseline, "responses to the original prompt"),
        n=str(regime.n),
    )


def _resample_tool(regime: Regime) -> ToolInfo:
    return tool_info(
        RESAMPLE,
        fill("resample.md", n=str(regime.n)),
        {"note": said("string", "The hypothesis this tests and what you expect, in a sentence."), "edits": EDITS},
    )
