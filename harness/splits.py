"""Two halves of a claim set that share no cluster: one to tune prompts and budgets on, one to evaluate on.

Invariant: a cluster's half depends on its id and the split's seed alone, so claims that are added later, a limit or
another order move nothing from one half to the other.
"""

from collections.abc import Sequence

from claims.schema import Claim, UserError
from harness.seeding import digest

TUNE, EVAL = "tune", "eval"
SPLITS = (TUNE, EVAL)
TUNE_SHARE = 0.3
"""Expected share of the clusters that tuning may see."""
_ALL = 2**256


def split_of(cluster_id: str, seed: int) -> str:
    """The half that a cluster belongs to."""
    return TUNE if digest("split", seed, cluster_id) < TUNE_SHARE * _ALL else EVAL


def check_split(split: str) -> None:
    """Refuse a name that is none.

    Raises:
        UserError: Neither empty nor one of `SPLITS`.
    """
    if split and split not in SPLITS:
        raise UserError(f"Unknown split {split!r}. Known splits: {', '.join(SPLITS)}. Leave it out for all claims.")


def split_claims(claims: Sequence[Claim], split: str, *, seed: int) -> tuple[Claim, ...]:
    """The claims of one half, in their order; all of them for no split.

    Raises:
        UserError: The half holds no claim.
    """
    check_split(split)
    if not split:
        return tuple(claims)
    kept = tuple(claim for claim in claims if split_of(claim.cluster_id, seed) == split)
    if not kept:
        n_clusters = len({claim.cluster_id for claim in claims})
        raise UserError(
            f"The split {split!r} (seed {seed}) holds none of the {n_clusters} clusters. Give another --split-seed, or "
            "a larger claim set."
        )
    return kept
