"""The seven things that can come of one (claim, arm, predictor).

Invariant: an outcome says something about the predictor. A fault of ours, of a tool server or of a provider has no
outcome: it raises, the sample ends in an error, and a resumed run repeats it.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

Outcome = Literal["answered", "truncated", "blocked", "malformed", "no_answer", "overflow", "limit"]
"""`answered`: a usable probability. `truncated`: the output cap ate the answer. `blocked`: a content filter or a
refusal by the provider. `malformed`: submitted values that could not be read, until the tries were spent.
`no_answer`: nothing submitted and no number in the prose. `overflow`: the conversation did not fit the context.
`limit`: a limit of the run (tokens, time, cost) ended the sample."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""All outcomes, in the order in which tables count them."""

How = Literal["submitted", "forced", "prose"]
"""How an answer came: through `submit` on the soft ask, through a forced `submit`, or as a number read from prose."""


@dataclass(frozen=True)
class CallRecord:
    """One tool call, as asked and as charged."""

    name: str
    """Tool called."""
    arguments: dict[str, object]
    """What the predictor passed; the bound transcript id is not among it."""
    charged: bool
    """Whether it cost one call of the budget."""
    output_chars: int
    """Length of what came back."""


@dataclass(frozen=True)
class Prediction:
    """What a predictor made of one claim under one arm."""

    outcome: Outcome
    """What came of it."""
    p_true: float | None = None
    """The stated probability in [0, 1]; None unless `outcome` is `answered`."""
    how: How | None = None
    """How the answer came; None unless `outcome` is `answered`."""
    detail: str = ""
    """One line for a reader of the outcomes table."""
    tool_calls: tuple[CallRecord, ...] = field(default=())
    """Every tool call in order, charged or not."""

    @property
    def calls(self) -> int:
        """Number of charged calls."""
        return sum(record.charged for record in self.tool_calls)

    def as_metadata(self) -> dict[str, object]:
        """JSON-ready form, stored as `state.metadata["prediction"]`."""
        return {
            "outcome": self.outcome,
            "p_true": self.p_true,
            "calls": self.calls,
            "how": self.how,
            "detail": self.detail,
            "tool_calls": [vars(record) for record in self.tool_calls],
        }
