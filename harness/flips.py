"""Flips: claims on which an arm's yes or no differs from the baseline's, and which way they went.

An answer of exactly 0.5 is neither side: a pair with one is counted as undecided and cannot flip. Invariant: repeated
arms are compared repetition by repetition, so that an A/A arm shows the noise floor of the very same count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats import Flags, Floats


@dataclass(frozen=True)
class FlipCounts:
    """Flips among the claims of one label."""

    n_answers: int
    """Pairs of answers that both took a side."""
    flipped: int
    """Pairs on different sides."""
    toward_no_effect: int
    """Flips in which the arm went below 0.5: toward the edit having no effect."""
    right_before: int
    """Of the pairs, those where the baseline was right."""

    @property
    def share(self) -> float:
        """Flips per pair; nan without a pair."""
        return self.flipped / self.n_answers if self.n_answers else float("nan")

    @property
    def share_toward_no_effect(self) -> float:
        """Flips toward no effect, of all flips; nan without a flip."""
        return self.toward_no_effect / self.flipped if self.flipped else float("nan")


@dataclass(frozen=True)
class Flips:
    """Flips of one arm against the baseline."""

    of_true: FlipCounts
    """Claims whose edit changes the behaviour."""
    of_false: FlipCounts
    """Claims whose edit does not."""
    undecided: int
    """Pairs with an answer of exactly 0.5."""


def count_flips(arm: Sequence[Floats], base: Sequence[Floats], labels: Flags) -> Flips:
    """Count the flips of an arm against the baseline.

    Args:
        arm: One array of probabilities a repetition, each of shape (n_claims,), without nan.
        base: As many for the baseline.
        labels: Shape (n_claims,).
    """
    here = np.concatenate([np.asarray(p) for p in arm]) if arm else np.array([])
    there = np.concatenate([np.asarray(p) for p in base]) if base else np.array([])
    truth = np.tile(labels, len(arm))
    sided = (here != 0.5) & (there != 0.5)
    return Flips(
        of_true=_counts(here, there, sided & truth, right=True),
        of_false=_counts(here, there, sided & ~truth, right=False),
        undecided=int((~sided).sum()),
    )


def _counts(here: Floats, there: Floats, which: Flags, *, right: bool) -> FlipCounts:
    above, before = here[which] > 0.5, there[which] > 0.5
    return FlipCounts(
        n_answers=int(which.sum()),
        flipped=int((above != before).sum()),
        toward_no_effect=int((before & ~above).sum()),
        right_before=int((before == right).sum()),
    )


def accuracy_after(before: float, share: float, toward_no_effect: float, *, label: bool) -> float:
    """Accuracy that an arm ends with when it flips some of the baseline's answers, by arithmetic alone.

    A flip toward no effect is right on a false claim and wrong on a true one.

    Args:
        before: Accuracy of the baseline on claims of this label.
        share: Flips per claim.
        toward_no_effect: Flips toward no effect, of all flips.
        label: Of the claims.
    """
    toward_right = 1 - toward_no_effect if label else toward_no_effect
    return before + share * (2 * toward_right - 1)
