"""`investigations.jsonl`: every experiment behind a bank's claims, hidden like the labels.

Invariant: the rows have the fields that claims from the wild have, with null where no judge was asked; whatever stands
in a report is put together from counts, in fixed words.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby

from claims.build.measure import Batch, Measured
from claims.build.second import Checked
from claims.build.spec import Edit
from claims.build.thresholds import measured_label
from claims.schema import message_rows

FILE = "investigations.jsonl"
"""The companion's name in a claims folder."""
RESPONSES_KEPT = 10
"""Responses of one prompt that are kept here; all of a claim's stand in its evidence."""


def companion(checked: Sequence[Checked]) -> str:
    """The text of the file: one investigation a line, in the order of their ids."""
    ordered = sorted(checked, key=lambda one: (one.candidate.investigation_id, one.candidate.claim_id))
    groups = groupby(ordered, key=lambda one: one.candidate.investigation_id)
    rows = (_row(list(group)) for _, group in groups)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _row(claims: Sequence[Checked]) -> Mapping[str, object]:
    one = claims[0].candidate.measured
    investigation = one.investigation
    sampled = [edit for edit in investigation.edits if edit.edit_id in one.edits]
    number = {edit.edit_id: place for place, edit in enumerate(sampled, start=1)}
    return {
        "investigation_id": investigation.investigation_id,
        "cluster_id": investigation.template,
        "source": investigation.source,
        "outcome": "filed",
        "detail": f"checked program: {investigation.program.text}",
        "messages": message_rows(investigation.messages),
        "screening": {
            "interest": None,
            "behaviour": investigation.behaviour,
            "question": "Which edits of the prompt move the rate?",
            "self_question": None,
            "classifier": investigation.behaviour,
        },
        "baseline": _batch_row(one.baseline),
        "experiments": [_experiment_row(one, edit, number[edit.edit_id]) for edit in sampled],
        "report": _report(one, sampled),
        "scores": [],
        "score": None,
        "n_turns": 0,
        "verified": None,
        "claims": [_claim_row(claim, number[claim.candidate.edit.edit_id]) for claim in claims],
        "cost": {},
    }


def _experiment_row(one: Measured, edit: Edit, number: int) -> dict[str, object]:
    return {
        "number": number,
        "note": edit.kind,
        "description": edit.description,
        "messages": message_rows(edit.messages),
        **_batch_row(one.edits[edit.edit_id]),
        "change": float(one.change(edit.edit_id)),
    }


def _batch_row(batch: Batch) -> dict[str, object]:
    pairs = zip(batch.samples[:RESPONSES_KEPT], batch.verdicts[:RESPONSES_KEPT], strict=True)
    shown = [{"response": sample.text, "reasoning": None, "yes": yes} for sample, yes in pairs]
    return {"yes": batch.n_yes, "n": batch.n, "unusable": 0, "responses": shown}


def _report(one: Measured, sampled: Sequence[Edit]) -> dict[str, object]:
    moved, kept = [], []
    for edit in sampled:
        batch = one.edits[edit.edit_id]
        label = measured_label(one.baseline.rate, batch.rate) if one.is_full(edit.edit_id) else None
        line = f"{edit.description} ({batch.n_yes} of {batch.n})"
        moved += [line] if label is True else []
        kept += [line] if label is False else []
    baseline = f"{one.baseline.n_yes} of {one.baseline.n} responses to the prompt as it is"
    answer = [
        f"These edits move the rate by at least 50 points: {' '.join(moved)}" if moved else "",
        f"These leave it within 15 points of where it was: {' '.join(kept)}" if kept else "",
    ]
    return {
        "observed": f"{one.investigation.behaviour} Yes for {baseline}.",
        "causes": moved,
        "refuted": kept,
        "answer": " ".join(filter(None, answer)),
        "lines": {str(place): edit.description for place, edit in enumerate(sampled, start=1)},
    }


def _claim_row(claim: Checked, number: int) -> dict[str, object]:
    return {
        "claim_id": claim.candidate.claim_id,
        "label": claim.candidate.label,
        "concreteness": None,
        "balanced": True,
        "reproduced": None,
        "reproduced_yes": 0,
        "reproduced_n": 0,
        "single_factor": True,
        "experiment": number,
        "text": claim.candidate.edit.description,
        "changes": [],
        "confounded": False,
        "reproduction": None,
        "second_sampling": {
            "baseline_yes": claim.baseline.n_yes,
            "baseline_n": claim.baseline.n,
            "edited_yes": claim.edited.n_yes,
            "edited_n": claim.edited.n,
            "agrees": claim.agrees,
        },
    }
