"""The files of a run: a claims folder with its hidden companions.

Invariant: everything is a function of the records and the seed, so a run that was killed and finished writes the same
bytes as one that was not; nothing hidden stands in a file that a predictor or a tool may read.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from claims.atomic import json_lines
from claims.build.wild.engine import Engine, Response
from claims.build.wild.extract import Drafted
from claims.build.wild.filters import Columns
from claims.build.wild.money import Entry, totals
from claims.build.wild.records import INVESTIGATED, Batch, Experiment, Investigated
from claims.build.wild.reproduce import Reproduction
from claims.labels import Evidence, Label, Verdict
from claims.prompts.filters import group_key
from claims.prompts.record import Prompt
from claims.schema import Claim, Transcript, message_rows

GROUP_CHARS = 100
"""Prompts whose user text starts with the same characters are one cluster."""


@dataclass(frozen=True)
class Finished:
    """One claim with everything that is known of it."""

    draft: Drafted
    """The claim."""
    columns: Columns
    """The filters."""
    reproduction: Reproduction | None
    """The second implementation, when it was tried."""
    fresh: tuple[Response, ...]
    """Responses to its edited prompt that are behind no label."""


def cluster_of(prompt: Prompt) -> str:
    """The cluster of a prompt: the group of prompts that start alike."""
    return f"group-{hashlib.sha256(group_key(prompt, GROUP_CHARS).encode()).hexdigest()[:12]}"


def claim_of(one: Finished) -> Claim:
    """What a predictor may see."""
    draft = one.draft
    baseline = draft.one.measured
    assert baseline.rate is not None
    prompt = draft.one.prompt
    return Claim(
        claim_id=draft.claim_id,
        cluster_id=cluster_of(prompt),
        investigation_id=prompt.prompt_id,
        transcript_id=prompt.prompt_id,
        behaviour=draft.one.screened.classifier,
        baseline_rate=float(baseline.rate),
        intervention=draft.description.text,
    )


def label_of(one: Finished) -> Label:
    """What it may not."""
    draft = one.draft
    baseline, edited = draft.one.measured, draft.experiment.batch
    return Label(draft.claim_id, draft.label, baseline.n_yes, baseline.n, edited.n_yes, edited.n)


def evidence_of(one: Finished) -> Evidence:
    """The edited prompt and its responses; responses without a usable verdict are behind no label and stay out."""
    batch = one.draft.experiment.batch
    pairs = zip(batch.responses, batch.verdicts, strict=True)
    verdicts = tuple(Verdict(response.text, verdict) for response, verdict in pairs if verdict is not None)
    fresh = tuple(response.text for response in one.fresh)
    return Evidence(one.draft.claim_id, one.draft.experiment.messages, verdicts, fresh)


async def transcript_of(engine: Engine, one: Investigated, seed: int) -> Transcript:
    """The prompt with one response that shows the behaviour, drawn by the seed."""
    shown = {
        hashlib.sha256(f"{seed}\ntranscript\n{one.prompt.prompt_id}\n{index}".encode()).hexdigest(): response
        for index, (response, verdict) in enumerate(zip(one.measured.responses, one.measured.verdicts, strict=True))
        if verdict is True
    }
    response = shown[min(shown)]
    note = "" if response.sampled_ids else " (token ids of the response made from its text)"
    return Transcript(
        transcript_id=one.prompt.prompt_id,
        messages=one.prompt.messages,
        reasoning=response.reasoning,
        response=response.text,
        token_ids=(*await engine.prompt_ids(one.prompt.messages), *response.token_ids),
        source=f"{one.prompt.source}{note}",
    )


def screening_lines(all_prompts: Iterable[Investigated]) -> str:
    """What became of every prompt, one a line."""
    return json_lines(_screening_row(one) for one in all_prompts)


def _screening_row(one: Investigated) -> dict[str, object]:
    return {
        "prompt_id": one.prompt.prompt_id,
        "source": one.prompt.source,
        "outcome": one.outcome,
        "detail": one.detail,
        "screening": asdict(one.screening) if one.screening else None,
        "baseline": _counts(one.baseline) if one.baseline else None,
    }


def investigation_lines(
    all_prompts: Iterable[Investigated],
    verified: frozenset[str],
    claims: Sequence[Finished],
    entries: Sequence[Entry],
) -> str:
    """Everything about every investigation, one a line, for the gallery and for whoever checks a label."""
    made: dict[str, list[Finished]] = {}
    for claim in claims:
        made.setdefault(claim.draft.one.prompt.prompt_id, []).append(claim)
    paid: dict[str, list[Entry]] = {}
    for entry in entries:
        paid.setdefault(entry.item, []).append(entry)
    rows = []
    for one in all_prompts:
        name = one.prompt.prompt_id
        if one.outcome in INVESTIGATED:
            kept = {"verified": name in verified, "claims": [_claim_row(claim) for claim in made.get(name, [])]}
            rows.append({**_investigation_row(one), **kept, "cost": _cost(paid.get(name, []))})
    return json_lines(rows)


def _investigation_row(one: Investigated) -> dict[str, object]:
    average = one.scores.average
    report = one.report
    return {
        "investigation_id": one.prompt.prompt_id,
        "cluster_id": cluster_of(one.prompt),
        "source": one.prompt.source,
        "outcome": one.outcome,
        "detail": one.detail,
        "messages": message_rows(one.prompt.messages),
        "screening": asdict(one.screened),
        "baseline": _batch_row(one.measured),
        "experiments": [_experiment_row(one, experiment) for experiment in one.experiments],
        "report": asdict(report) if report else None,
        "scores": list(one.scores.given),
        "score": None if average is None else float(average),
        "n_turns": one.n_turns,
    }


def _experiment_row(one: Investigated, experiment: Experiment) -> dict[str, object]:
    change = one.change(experiment)
    return {
        "number": experiment.number,
        "note": experiment.note,
        "description": one.report.lines[experiment.number] if one.report else None,
        "messages": message_rows(experiment.messages),
        **_batch_row(experiment.batch),
        "change": None if change is None else float(change),
    }


def _claim_row(claim: Finished) -> dict[str, object]:
    again = claim.reproduction
    return {
        **asdict(claim.columns),
        "experiment": claim.draft.experiment.number,
        **asdict(claim.draft.description),
        "reproduction": None
        if again is None
        else {"messages": message_rows(again.messages), **_batch_row(again.batch)},
    }


def _cost(entries: Sequence[Entry]) -> dict[str, object]:
    rows = totals(entries, "stage")
    return {
        stage: {**usage.as_row(), "dollars": None if math.isnan(dollars) else round(dollars, 6)}
        for stage, (usage, dollars) in sorted(rows.items())
    }


def _counts(batch: Batch) -> dict[str, object]:
    return {"yes": batch.n_yes, "n": batch.n, "unusable": batch.n_unusable}


def _batch_row(batch: Batch) -> dict[str, object]:
    pairs = zip(batch.responses, batch.verdicts, strict=True)
    shown = [
        {"response": response.text, "reasoning": response.reasoning, "yes": verdict} for response, verdict in pairs
    ]
    return {**_counts(batch), "responses": shown}
