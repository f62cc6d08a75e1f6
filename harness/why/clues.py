"""From outputs and verdicts to one number a claim: the clues.

Invariant: a clue is a number from 0 to 1 that knows nothing of the label; a claim about which a tool said nothing, or
of which no verdict could be read, has none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from claims.schema import Claim
from harness.why.judge import Judged, Verdict
from harness.why.lexical import lexical_share
from harness.why.outputs import Output
from harness.why.questions import EDITED

LEXICAL, STATED, HINTED = "lexical", "stated", "hinted"
CLUES = {
    LEXICAL: "share of the edit's content words among all that the tool said",
    STATED: "whether an output states that the factor causes the behaviour",
    HINTED: "share of the outputs that point at the edited factor, not at the decoy",
}
"""What each clue is, in words."""
_UNREAD = Verdict(None, None)


@dataclass(frozen=True)
class Weighed:
    """One output with what is made of it."""

    output: Output
    """What the tool said."""
    lexical: float
    """Share of the edit's content words in it."""
    verdict: Verdict | None
    """The judge's; None without a judge."""

    @property
    def states(self) -> bool:
        """Whether the judge says that it states the cause."""
        return bool(self.verdict and self.verdict.quote)

    @property
    def points_at(self) -> str | None:
        """`edited`, `decoy`, `neither`, or None."""
        return self.verdict.points_at if self.verdict else None

    @property
    def strength(self) -> tuple[bool, bool, float]:
        """Order of outputs by how much they have to do with the edit."""
        return self.states, self.points_at == EDITED, self.lexical


@dataclass(frozen=True)
class ClaimClues:
    """What a tool said about one claim."""

    claim: Claim
    """The claim."""
    weighed: tuple[Weighed, ...]
    """All outputs, repetitions and calls in order; at least one."""

    @property
    def read_statements(self) -> list[bool]:
        """Whether it states the cause, for every output with a verdict."""
        return [one.states for one in self.weighed if one.verdict and one.verdict.quote is not None]

    @property
    def read_hints(self) -> list[str]:
        """What it points at, for every output with a verdict."""
        return [one.points_at for one in self.weighed if one.points_at is not None]

    def clue(self, name: str) -> float | None:
        """One of `CLUES`; None where it is not known."""
        if name == LEXICAL:
            return lexical_share(self.claim.intervention, *(one.output.text for one in self.weighed))
        if name == STATED:
            return float(any(self.read_statements)) if self.read_statements else None
        pointed = self.read_hints
        return sum(word == EDITED for word in pointed) / len(pointed) if pointed else None

    def pointed(self, at: str) -> float:
        """Share of the outputs with a verdict that point at `edited`, `decoy` or `neither`."""
        return sum(word == at for word in self.read_hints) / len(self.read_hints)


def weigh(outputs: Iterable[Output], claims: Mapping[str, Claim], judged: Judged | None) -> dict[str, ClaimClues]:
    """The clues of one arm and budget, by claim."""
    of_claim: dict[str, list[Weighed]] = {}
    for output in outputs:
        verdict = judged.verdicts.get(output.content, _UNREAD) if judged else None
        share = lexical_share(claims[output.claim_id].intervention, output.text)
        of_claim.setdefault(output.claim_id, []).append(Weighed(output, share, verdict))
    return {name: ClaimClues(claims[name], tuple(found)) for name, found in sorted(of_claim.items())}


def clue_names(judged: Judged | None) -> Sequence[str]:
    """The clues that there are with a judge, or without one."""
    return tuple(CLUES) if judged else (LEXICAL,)
