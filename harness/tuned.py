"""What prompts have been tuned on, so that nobody evaluates them on the same claims unawares.

Every tuning leaves two records: one in the results folder, and one beside the prompts of a variant, so that it travels
with them. Invariant: prompts that saw a cluster are not evaluated on it; the house's own, which are never written to,
are, and the run says so.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from agents.prompts import prompt_sha256
from claims.schema import UserError
from harness.files import write_text
from harness.plan import Plan
from harness.splits import TUNE

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


def n_seen(plan: Plan, root: Path) -> int:
    """Clusters of a plan that its prompts were tuned on before; called where those prompts are the active ones.

    A variant is known by its folder, changed since or not; the house's prompts are known by their words.

    Args:
        plan: What is run.
        root: The results folder.

    Raises:
        UserError: A variant would be evaluated on what it has seen.
    """
    variant, clusters = plan.request.prompts, {claim.cluster_id for claim in plan.claims}
    words = prompt_sha256()
    known = [one for one in tunings(root) if one.prompt_sha256 == words] + list(tunings(variant) if variant else ())
    shared = clusters & {cluster for one in known if one.target == plan.target.name for cluster in one.clusters}
    if shared and variant and plan.request.split != TUNE:
        raise UserError(
            f"The prompts in {variant} were tuned on {len(shared)} of these {len(clusters)} clusters: a result on them "
            "would be too good. Give --split eval, with the --split-seed of the tuning."
        )
    return len(shared)


def tuning_of(plan: Plan) -> Tuning:
    """The record of a plan that tries prompts out; called where those prompts are the active ones."""
    clusters = sorted({claim.cluster_id for claim in plan.claims})
    return Tuning(prompt_sha256(), plan.target.name, plan.request.split, plan.request.split_seed, tuple(clusters))
