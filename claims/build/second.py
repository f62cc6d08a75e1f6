"""The second sampling: every claim's two prompts again, under another seed.

Invariant: nothing of it is behind a label; it tells how far a label repeats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from claims.build.measure import Batch, judge
from claims.build.sampler import Sampler
from claims.build.select import Candidate

N_AGAIN = 20
"""Responses of a prompt in the second sampling."""
SIDE = Fraction(30, 100)
"""A change of at least this is on the side of true: the threshold that a claim states."""


@dataclass(frozen=True)
class Checked:
    """A claim with its second sampling."""

    candidate: Candidate
    """The claim."""
    baseline: Batch
    """The original prompt, sampled again."""
    edited: Batch
    """The edited prompt, sampled again: never behind the label."""

    @property
    def agrees(self) -> bool:
        """Whether the second change is on the label's side of 30 points."""
        return (abs(self.edited.rate - self.baseline.rate) >= SIDE) == self.candidate.label


def sample_again(sampler: Sampler, candidates: Sequence[Candidate], seed: int) -> list[Checked]:
    """`N_AGAIN` new responses of every claim's two prompts."""
    prompts = [one.measured.investigation.messages for one in candidates] + [one.edit.messages for one in candidates]
    drawn = sampler.draw(prompts, N_AGAIN, seed)
    checked = []
    for one in candidates:
        program = one.measured.investigation.program
        baseline = judge(drawn[one.measured.investigation.messages], program)
        checked.append(Checked(one, baseline, judge(drawn[one.edit.messages], program)))
    return checked
