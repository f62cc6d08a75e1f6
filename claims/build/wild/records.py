"""What the stages hand on: batches with verdicts, screenings, experiments, reports, investigations.

Invariant: a verdict that nobody could read is None and stays in the record; it is in no rate, and every rate travels
with the number of verdicts behind it.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, get_args

from claims.build.wild.engine import Response
from claims.prompts.record import Prompt
from claims.schema import Message

Outcome = Literal[
    "refused", "unscreened", "expected", "unmeasured", "rare", "filed", "unfiled", "malformed", "blocked", "overflow"
]
"""What came of a prompt. `refused`: the target cannot take it. `unscreened`: the screener never filled in its form.
`expected`: rated below the bar. `unmeasured`: too few usable verdicts. `rare`: the behaviour is below 30 %.
The rest were investigated: `filed` a report, `unfiled` never did, `malformed` filed none that could be used, `blocked`
by a provider's filter, `overflow`: the conversation outgrew the investigator's context."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""All outcomes, in the order of the stages."""
INVESTIGATED: tuple[Outcome, ...] = ("filed", "unfiled", "malformed", "blocked", "overflow")
"""Outcomes of prompts that reached the investigator."""


@dataclass(frozen=True)
class Batch:
    """Responses of one prompt with the verdict on each."""

    responses: tuple[Response, ...]
    """By index."""
    verdicts: tuple[bool | None, ...]
    """Whether each shows the behaviour; None where no verdict could be read."""

    @property
    def n(self) -> int:
        """Usable verdicts."""
        return sum(verdict is not None for verdict in self.verdicts)

    @property
    def n_unusable(self) -> int:
        """Verdicts that could not be read."""
        return len(self.verdicts) - self.n

    @property
    def n_yes(self) -> int:
        """Responses that show the behaviour."""
        return sum(verdict is True for verdict in self.verdicts)

    @property
    def rate(self) -> Fraction | None:
        """Share of yes among the usable verdicts; None when there is none."""
        return Fraction(self.n_yes, self.n) if self.n else None

    @property
    def shown(self) -> str:
        """The rate in words, with its n: `26 of 30 (87 %)`."""
        rate = "undefined" if self.rate is None else f"{float(100 * self.rate):.0f} %"
        unusable = f", {self.n_unusable} without a usable verdict" if self.n_unusable else ""
        return f"{self.n_yes} of {self.n} ({rate}{unusable})"


@dataclass(frozen=True)
class Screening:
    """What the screener says of a prompt."""

    interest: int
    """How unexpected the behaviour is, 1 to 5."""
    behaviour: str
    """What the target does, in a sentence or two."""
    question: str
    """Posed to the investigator."""
    self_question: str
    """The same in the second person, for models that explain themselves."""
    classifier: str
    """The frozen yes/no question about one response."""


@dataclass(frozen=True)
class Experiment:
    """One edited prompt and what it did."""

    number: int
    """From 1."""
    note: str
    """What the investigator wanted to learn."""
    messages: tuple[Message, ...]
    """The edited prompt."""
    batch: Batch
    """The responses to it."""


@dataclass(frozen=True)
class Report:
    """What an investigator files."""

    observed: str
    """The behaviour as the experiments show it."""
    causes: tuple[str, ...]
    """Core causes."""
    refuted: tuple[str, ...]
    """Hypotheses that the experiments speak against."""
    answer: str
    """The final answer to the question."""
    lines: dict[int, str]
    """One line on every experiment, by its number."""


@dataclass(frozen=True)
class Scores:
    """What the judges gave."""

    given: tuple[int | None, ...]
    """1 to 10 each; None where a judge never gave a score that can be used."""

    @property
    def usable(self) -> tuple[int, ...]:
        """Those that count."""
        return tuple(score for score in self.given if score is not None)

    @property
    def average(self) -> Fraction | None:
        """Mean of the usable scores; None when there is none."""
        return Fraction(sum(self.usable), len(self.usable)) if self.usable else None


@dataclass(frozen=True)
class Investigated:
    """Everything about one prompt."""

    prompt: Prompt
    """The prompt."""
    outcome: Outcome
    """What came of it."""
    detail: str = ""
    """Why, where the outcome leaves that open."""
    screening: Screening | None = None
    """The screener's form."""
    baseline: Batch | None = None
    """Responses to the original prompt."""
    experiments: tuple[Experiment, ...] = ()
    """In order."""
    report: Report | None = None
    """The report, when one was filed."""
    scores: Scores = field(default_factory=lambda: Scores(()))
    """The judges'."""
    n_turns: int = 0
    """Turns of the investigator."""

    @property
    def screened(self) -> Screening:
        """The screener's form of a prompt that has one."""
        assert self.screening is not None
        return self.screening

    @property
    def measured(self) -> Batch:
        """The responses to the original prompt, where they were classified."""
        assert self.baseline is not None
        return self.baseline

    @property
    def filed(self) -> Report:
        """The report of an investigation that has one."""
        assert self.report is not None
        return self.report

    def change(self, experiment: Experiment) -> Fraction | None:
        """Rate after the edit minus the rate before; None when either is undefined."""
        before, after = self.baseline.rate if self.baseline else None, experiment.batch.rate
        return None if before is None or after is None else after - before
