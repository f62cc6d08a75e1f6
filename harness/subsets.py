"""Parts of the claims that are looked at on their own: where the baseline is unsure, and what passes the filters.

Invariant: hard claims are chosen on `transcript-2` alone. Chosen on the run that is scored, they would be those where
its noise took it to the middle, and every other arm would gain: +0.04 AUROC in a simulation with no uplift at all.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from harness.arms import REPEAT
from harness.outcomes import Outcome


def hard_claims(outcomes: Sequence[Outcome], low: float, high: float) -> frozenset[str]:
    """Ids of the claims on which the repeated baseline's mean answer lies in [low, high]; empty without that arm."""
    answers: dict[str, list[float]] = defaultdict(list)
    for row in outcomes:
        if row.setting.arm == REPEAT and row.p_true is not None:
            answers[row.claim_id].append(row.p_true)
    return frozenset(name for name, p in answers.items() if low <= sum(p) / len(p) <= high)


def only(outcomes: Sequence[Outcome], claim_ids: Collection[str]) -> list[Outcome]:
    """The outcomes of some claims."""
    return [row for row in outcomes if row.claim_id in claim_ids]
