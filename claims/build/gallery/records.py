"""What a card of the gallery shows.

Invariant: a rate is the share of yes among the verdicts that can be used, and undefined (None) without one.
"""

from dataclasses import dataclass

from claims.schema import Message

TRUE_AT = 0.5
"""Change of the rate that makes a claim true."""
FALSE_AT = 0.15
"""Change of the rate up to which a claim is false."""


@dataclass(frozen=True)
class Reply:
    """A response, and how often it came word by word."""

    text: str
    """As sampled."""
    reasoning: str | None
    """The visible chain of thought, where the target has one."""
    yes: bool | None
    """Whether it shows the behaviour; None where no verdict could be read."""
    n: int = 1
    """How many responses are this one."""


@dataclass(frozen=True)
class Batch:
    """The responses to one prompt."""

    yes: int
    """Those that show the behaviour."""
    n: int
    """Usable verdicts."""
    unusable: int
    """Verdicts that could not be read."""
    replies: tuple[Reply, ...]
    """Equal responses once, in the order of their first; empty where they were not kept."""

    @property
    def rate(self) -> float | None:
        """Share of yes; None without a usable verdict."""
        return self.yes / self.n if self.n else None


@dataclass(frozen=True)
class ClaimNote:
    """What became of an experiment as a claim."""

    claim_id: str
    """The claim."""
    label: bool
    """Whether it is true."""
    text: str
    """The edit in the words that a predictor reads."""
    confounded: bool | None
    """Whether the describing judge saw more than one factor changed; None where nobody said."""


@dataclass(frozen=True)
class Experiment:
    """One edited prompt and what it did."""

    number: int
    """Unique in its investigation."""
    description: str
    """The edit in words."""
    messages: tuple[Message, ...]
    """The edited prompt; empty where it was not kept."""
    batch: Batch
    """The responses to it."""
    change: float | None
    """Rate after minus rate before; None when either is undefined."""
    claim: ClaimNote | None
    """The claim made of it, if any."""


@dataclass(frozen=True)
class Explanation:
    """What the investigation found, in words."""

    answer: str
    """The answer to the question."""
    causes: tuple[str, ...]
    """Core causes."""
    refuted: tuple[str, ...]
    """What the experiments speak against."""


@dataclass(frozen=True)
class Card:
    """One investigation."""

    investigation_id: str
    """Unique in its set."""
    source: str
    """Where the prompt came from; may be empty."""
    cause: str
    """Kind of cause, where the set names one; else empty."""
    question: str
    """What the investigation asks."""
    behaviour: str
    """The frozen yes/no question about one response."""
    messages: tuple[Message, ...]
    """The original prompt."""
    baseline: Batch
    """Responses to it."""
    experiments: tuple[Experiment, ...]
    """In order."""
    explanation: Explanation | None
    """None where nobody filed one."""
    score: float | None
    """The judges' average, 1 to 10."""
    verified: bool
    """Whether the judges accepted it; True where nobody judged."""
    outcome: str
    """What came of it: `filed`, or why there is no report; empty where the set does not say."""
