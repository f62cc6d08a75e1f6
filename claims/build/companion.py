"""`investigations.jsonl`: every experiment behind a bank's claims, hidden like the labels.

Invariant: the rows have the fields that claims from the wild have, with null where no judge was asked and nobody wrote
a report; every edit that was sampled is in them, whether a claim came of it or not.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from claims.atomic import json_lines
from claims.build.measure import Batch, Measured
from claims.build.second import Checked
from claims.build.spec import Edit
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
    return json_lines(rows)


def _row(claims: Sequence[Checked]) -> Mapping[str, object]:
    one = claims[0].candidate.measured
    investigation = one.investigation
    sampled = [edit for edit in investigation.edits if edit.edit_id in one.edits]
    number = {edit.edit_id: place for place, edit in enumerate(sampled, start=1)}
    return {
        "investigation_id": investigation.investigation_id,
        "cluster_id": investigation.template,
        "cause": investigation.cause,
        "source": investigation.source,
        "outcome": "filed",
        "detail": f"checked program: {investigation.program.text}",
        "messages": message_rows(investigation.messages),
        "screening": {
            "interest": None,
            "behaviour": None,
            "question": None,
            "self_question": None,
            "classifier": investigation.behaviour,
        },
        "baseline": _batch_row(one.baseline),
        "experiments": [_experiment_row(one, edit, number[edit.edit_id]) for edit in sampled],
        "report": None,
        "scores": [],
        "score": None,
        "n_turns": 0,
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
