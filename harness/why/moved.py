"""Wins and losses: where the answer with the tool lies nearer to the truth than without, and where farther away.

Invariant: a claim is ranked by its two answers and its label alone; which output is shown beside it is chosen by what
the output has to do with the edit, whichever way the answer moved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from claims.schema import Claim
from harness.outcomes import Outcome
from harness.why.clues import ClaimClues, Weighed

SHOWN = 3
"""Outputs beside a claim."""


@dataclass(frozen=True)
class Move:
    """One claim under one arm and budget."""

    claim: Claim
    """The claim."""
    label: bool
    """The measured truth."""
    p_baseline: float
    """Mean answer of the baseline."""
    p_tool: float
    """Mean answer with the tool."""
    outputs: tuple[Weighed, ...]
    """The `SHOWN` outputs with most to do with the edit; none where the tool said nothing."""

    @property
    def gain(self) -> float:
        """How much nearer to the truth the answer is with the tool: in [-1, 1], above 0 for a win."""
        return abs(self.p_baseline - self.label) - abs(self.p_tool - self.label)

    @property
    def flipped(self) -> bool:
        """Whether the answer crossed 0.5."""
        return (self.p_baseline - 0.5) * (self.p_tool - 0.5) < 0

    def as_row(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "claim_id": self.claim.claim_id,
            "cluster_id": self.claim.cluster_id,
            "label": self.label,
            "p_baseline": self.p_baseline,
            "p_tool": self.p_tool,
            "gain": round(self.gain, 12),
            "flipped": self.flipped,
            "outputs": [output_row(one) for one in self.outputs],
        }


def output_row(one: Weighed) -> dict[str, object]:
    """An output as JSON."""
    output = one.output
    return {
        "call": output.call,
        "position": output.position,
        "asked": output.asked,
        "text": output.text,
        "lexical": one.lexical,
        "states": one.states if one.verdict and one.verdict.quote is not None else None,
        "points_at": one.points_at,
    }


def moves(
    baseline: Mapping[str, Sequence[Outcome]],
    arm: Mapping[str, Sequence[Outcome]],
    clues: Mapping[str, ClaimClues],
    claims: Mapping[str, Claim],
) -> tuple[Move, ...]:
    """Every claim that both arms answered, the largest win first and the largest loss last; equals by id."""
    made = []
    for claim_id, rows in arm.items():
        p_baseline, p_tool = _mean(baseline.get(claim_id, ())), _mean(rows)
        if p_baseline is not None and p_tool is not None:
            said = clues[claim_id].weighed if claim_id in clues else ()
            # A stable sort: of outputs that are equal the first one said stays first.
            nearest = tuple(sorted(said, key=lambda one: one.strength, reverse=True)[:SHOWN])
            made.append(Move(claims[claim_id], rows[0].label, p_baseline, p_tool, nearest))
    return tuple(sorted(made, key=lambda move: (-round(move.gain, 12), move.claim.claim_id)))


def _mean(rows: Sequence[Outcome]) -> float | None:
    """Mean answer over repetitions; None unless all of them answered."""
    answers = [row.p_true for row in rows if row.p_true is not None]
    return sum(answers) / len(answers) if answers and len(answers) == len(rows) else None
