"""What prompts have been tuned on, so that nobody evaluates them on the same claims unawares.

Every tuning leaves two records: one in the results folder, and one beside the prompts of a variant, so that it travels
with them. Invariant: prompts that saw a cluster are not evaluated on it; the house's own, which are never written to,
are, and the run says so.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from claims.schema import UserError
from harness.files import write_text

NAME = "tuned.json"


@dataclass(frozen=True)
class Tuning:
    """One variant that was tried on a split."""

    prompt_sha256: str
    """Of all its words."""
    target: str
    """Whose claims it was tried on."""
    split: str
    """Name of the split."""
    split_seed: int
    """Seed of the split."""
    clusters: tuple[str, ...]
    """What it has seen."""


def tunings(folder: Path) -> tuple[Tuning, ...]:
    """The records in a folder; none where nothing was tuned.

    Raises:
        UserError: The file is no record of tunings.
    """
    path = folder / NAME
    if not path.is_file():
        return ()
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Tuning(**{**row, "clusters": tuple(row["clusters"])}) for row in rows)
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} is not a record of what prompts were tuned on ({error}). It keeps tuned prompts off the claims "
            "that they saw: bring it back, or give another folder."
        ) from None


def record(tuning: Tuning, folders: Iterable[Path]) -> None:
    """Add a tuning to the records in some folders; one that is there already is not added twice."""
    for folder in folders:
        known = tunings(folder)
        if tuning not in known:
            rows = [asdict(one) for one in (*known, tuning)]
            write_text(folder / NAME, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


def seen(prompt_sha256: str, target: str, folders: Iterable[Path]) -> Iterator[str]:
    """Clusters of a target that prompts were tuned on, as the records in some folders have it."""
    for folder in folders:
        for tuning in tunings(folder):
            if (tuning.prompt_sha256, tuning.target) == (prompt_sha256, target):
                yield from tuning.clusters


def refuse_seen(overlap: int, n_clusters: int, variant: Path) -> None:
    """Refuse to evaluate a variant on clusters that it was tuned on.

    Raises:
        UserError: There are such clusters.
    """
    if overlap:
        raise UserError(
            f"The prompts in {variant} were tuned on {overlap} of these {n_clusters} clusters: a result on them would "
            "be too good. Give --split eval, with the --split-seed of the tuning."
        )
