"""Why a tool helped or not: from a run's folder to `why/` in it.

Invariants: the same run, judge and replies give the same bytes; nothing that was paid for or written by hand is lost.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from inspect_ai.model import Model

from harness.files import write_text
from harness.why.clues import CLUES, clue_names
from harness.why.hand_labels import NAME, Agreement, agreement, candidates, read_labels, write_labels
from harness.why.judge import NONE, Allowance, Judged, ask_judge, check_judge
from harness.why.material import Material, read_material
from harness.why.page import flagged_page, why_page
from harness.why.questions import prompts_sha256
from harness.why.rates import nulled
from harness.why.summary import Summary, summaries

FOLDER = "why"
"""In the run's folder."""


@dataclass(frozen=True)
class Wanted:
    """What to look at."""

    judge: str = NONE
    """`none`, or an Inspect model."""
    claims: Path | None = None
    """Claims folder; None takes the run's."""
    arms: Sequence[str] = ()
    """Arms; empty takes all that read a tool at chosen positions."""
    every_position: bool = False
    """Look at arms that were shown every position, too."""
    limit: int | None = None
    """Most claims, the first by id."""
    allowance: Allowance = field(default_factory=Allowance)
    """What the judge may cost."""


def explain(
    folder: Path, wanted: Wanted, *, model: Model | None = None, say: Callable[[str], None] = lambda _: None
) -> str:
    """Write `why.md`, `why.json` and, with a judge, `flagged.md` and `hand_labels.csv`; return the page.

    Args:
        folder: Of the run.
        wanted: What to look at.
        model: A ready judge; None builds the one that is named.
        say: Shows one line to the user.

    Raises:
        UserError: There is nothing to look at, or the judge cannot be had.
        UnfinishedError: The judge stopped answering.
    """
    if model is None:
        check_judge(wanted.judge)
    material = read_material(
        folder, claims=wanted.claims, arms=wanted.arms, every_position=wanted.every_position, limit=wanted.limit
    )
    out = folder / FOLDER
    labels = read_labels(out / NAME)
    judged = _judged(material, wanted, out, model, say) if wanted.judge != NONE else None
    found = summaries(material, judged)
    agreed = None
    if judged:
        known = candidates(clues for summary in found for clues in summary.clues.values())
        agreed = agreement(known, labels, seed=material.seed)
        write_labels(out / NAME, known, labels, seed=material.seed)
        write_text(out / "flagged.md", flagged_page(material.manifest.run, found))
    page = why_page(material.manifest.run, found, judged, agreed)
    write_text(out / "why.json", _json(material, found, judged, agreed))
    write_text(out / "why.md", page)
    return page


def _judged(material: Material, wanted: Wanted, out: Path, model: Model | None, say: Callable[[str], None]) -> Judged:
    say(f"Asking {wanted.judge} about {len({one.content for one in material.outputs})} different outputs.")
    return ask_judge(
        material.outputs,
        material.claims,
        name=wanted.judge,
        folder=out / "replies",
        seed=material.seed,
        allowance=wanted.allowance,
        model=model,
    )


def _json(material: Material, found: Sequence[Summary], judged: Judged | None, agreed: Agreement | None) -> str:
    values = {
        "run": material.manifest.run,
        "judge": _judge_row(judged),
        "clues": {name: CLUES[name] for name in clue_names(judged)},
        "hand_labels": _agreement_row(agreed),
        "arms": [_arm_row(summary) for summary in found],
    }
    return json.dumps(values, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _judge_row(judged: Judged | None) -> dict[str, object] | None:
    if judged is None:
        return None
    kept = ("model", "n_questions", "n_unread", "n_without_decoy")
    row = {name: getattr(judged, name) for name in kept} | {"dollars": round(judged.dollars, 6)}
    return nulled({**row, "prompts_sha256": prompts_sha256()})


def _agreement_row(agreed: Agreement | None) -> dict[str, object] | None:
    if agreed is None or not agreed.n_labelled:
        return None
    return {**nulled(vars(agreed)), "raw": agreed.raw.as_row()}


def _arm_row(summary: Summary) -> dict[str, object]:
    claims = {
        claim_id: {name: clues.clue(name) for name in CLUES} | {"n_outputs": len(clues.weighed)}
        for claim_id, clues in summary.clues.items()
    }
    return {
        "setting": {name: value for name, value in asdict(summary.setting).items() if name != "epoch"},
        "n_asked": summary.n_asked,
        "n_silent": summary.n_silent,
        "n_outputs": summary.n_outputs,
        "counted": [one.as_row() for one in summary.counted],
        "predicts": [one.as_row() for one in summary.predicts],
        "claims": claims,
        "moves": [move.as_row() for move in summary.moves],
    }
