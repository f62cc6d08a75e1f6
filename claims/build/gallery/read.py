"""Read the cards of a claims folder.

Invariant: `investigations.jsonl` is read where there is one, else what transcripts, claims, labels and evidence hold;
a folder that has neither is refused with what is missing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from claims.build.gallery.records import Batch, Card, ClaimNote, Experiment, Explanation, Reply
from claims.labels import Evidence, Label, load_evidence, load_labels
from claims.load import ClaimSet, load_claims
from claims.schema import Claim, ClaimsError, Row, read_messages, read_rows

FILE = "investigations.jsonl"


def read_cards(folder: Path) -> tuple[Card, ...]:
    """Every investigation of a claims folder, in the order of its file.

    Raises:
        ClaimsError: A file is absent or broken.
    """
    cards = tuple(_from_file(folder / FILE) if (folder / FILE).is_file() else _from_claims(folder))
    twice = [name for name, n in Counter(card.investigation_id for card in cards).items() if n > 1]
    if twice:
        raise ClaimsError(f"{folder / FILE}: the investigation {twice[0]!r} comes twice. Keep one line of it.")
    return cards


def _from_file(path: Path) -> Iterator[Card]:
    for row in read_rows(path):
        screening = _part(row, "screening")
        baseline = _part(row, "baseline")
        if screening is None or baseline is None:
            raise ClaimsError(f"{row.place}: expected the objects 'screening' and 'baseline'. Make the file again.")
        behaviour = screening.text("classifier")
        batch = _batch(baseline)
        claims = {one.count("experiment"): _claim(one) for one in _parts(row, "claims")}
        verified = row.values.get("verified", True)
        score = row.values.get("score")
        yield Card(
            investigation_id=row.text("investigation_id"),
            source=row.optional_text("source") or "",
            cause=row.optional_text("cause") or "",
            question=screening.optional_text("question") or behaviour,
            behaviour=behaviour,
            messages=read_messages(row),
            baseline=batch,
            experiments=tuple(_experiment(one, batch, claims) for one in _parts(row, "experiments")),
            explanation=_explanation(_part(row, "report")),
            score=float(score) if isinstance(score, int | float) else None,
            verified=verified is not False,
            outcome=row.optional_text("outcome") or "",
        )


def _part(row: Row, name: str) -> Row | None:
    value = row.values.get(name)
    return Row(value, f"{row.place}, {name}") if isinstance(value, dict) else None


def _parts(row: Row, name: str) -> tuple[Row, ...]:
    return row.rows(name) if row.values.get(name) else ()


def _batch(row: Row) -> Batch:
    given = [
        (one.any_text("response"), one.optional_text("reasoning"), _verdict(one)) for one in _parts(row, "responses")
    ]
    unusable = row.count("unusable") if "unusable" in row.values else 0
    return Batch(row.count("yes"), row.count("n"), unusable, _replies(given))


def _verdict(row: Row) -> bool | None:
    return None if row.values.get("yes") is None else row.flag("yes")


def _replies(given: Iterable[tuple[str, str | None, bool | None]]) -> tuple[Reply, ...]:
    return tuple(Reply(*reply, n) for reply, n in Counter(given).items())


def _claim(row: Row) -> ClaimNote:
    confounded = row.values.get("confounded")
    return ClaimNote(
        claim_id=row.text("claim_id"),
        label=row.flag("label"),
        text=row.text("text"),
        confounded=confounded if isinstance(confounded, bool) else None,
    )


def _experiment(row: Row, baseline: Batch, claims: dict[int, ClaimNote]) -> Experiment:
    number = row.count("number")
    claim = claims.get(number)
    batch = _batch(row)
    described = row.optional_text("description") or (claim.text if claim else None) or row.optional_text("note")
    return Experiment(
        number=number,
        description=described or "an edit that nobody described",
        messages=read_messages(row),
        batch=batch,
        change=_change(baseline, batch),
        claim=claim,
    )


def _change(before: Batch, after: Batch) -> float | None:
    return None if before.rate is None or after.rate is None else after.rate - before.rate


def _explanation(row: Row | None) -> Explanation | None:
    return Explanation(row.text("answer"), row.texts("causes"), row.texts("refuted")) if row else None


def _from_claims(folder: Path) -> Iterator[Card]:
    claim_set = load_claims(folder)
    if not (folder / "evidence.jsonl").is_file():
        raise ClaimsError(
            f"{folder} has neither {FILE} nor evidence.jsonl, so there is no experiment to show. "
            "Give a folder with one of them."
        )
    labels, evidence = load_labels(claim_set), load_evidence(claim_set)
    groups: dict[str, list[Claim]] = {}
    for claim in claim_set.claims:
        groups.setdefault(claim.investigation_id, []).append(claim)
    for claims in groups.values():
        yield _card_of(claim_set, claims, labels, evidence)


def _card_of(claim_set: ClaimSet, claims: list[Claim], labels: dict[str, Label], evidence: dict[str, Evidence]) -> Card:
    first = claims[0]
    transcript = claim_set.transcripts[first.transcript_id]
    label = labels[first.claim_id]
    # A transcript's response is drawn among those that show the behaviour; the others were not kept.
    baseline = Batch(label.baseline_yes, label.baseline_n, 0, (Reply(transcript.response, transcript.reasoning, True),))
    return Card(
        investigation_id=first.investigation_id,
        source=transcript.source,
        cause="",
        question=first.behaviour,
        behaviour=first.behaviour,
        messages=transcript.messages,
        baseline=baseline,
        experiments=tuple(
            _experiment_of(number, claim, labels[claim.claim_id], evidence.get(claim.claim_id), baseline)
            for number, claim in enumerate(claims, start=1)
        ),
        explanation=None,
        score=None,
        verified=True,
        outcome="",
    )


def _experiment_of(number: int, claim: Claim, label: Label, evidence: Evidence | None, baseline: Batch) -> Experiment:
    given = [(one.response, None, one.yes) for one in evidence.responses] if evidence else []
    batch = Batch(label.edited_yes, label.edited_n, 0, _replies(given))
    note = ClaimNote(claim.claim_id, label.label, claim.intervention, None)
    messages = evidence.messages if evidence else ()
    return Experiment(number, claim.intervention, messages, batch, _change(baseline, batch), note)
