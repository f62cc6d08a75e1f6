"""The label wall: what a predictor may not see. Imported by `harness` and `claims.build`, by nothing else.

Invariant: every claim has exactly one label, measured by counts; evidence is never shown outside the ceiling arm.
"""

from dataclasses import dataclass

from claims.load import ClaimSet
from claims.schema import ClaimsError, Message, Row, read_messages, read_rows


@dataclass(frozen=True)
class Label:
    """The measured truth of one claim."""

    claim_id: str
    """The claim."""
    label: bool
    """True when the edit moved the rate by at least 50 points, false when by at most 15."""
    baseline_yes: int
    """Responses to the original prompt that show the behaviour."""
    baseline_n: int
    """Responses to the original prompt."""
    edited_yes: int
    """Responses to the edited prompt that show the behaviour."""
    edited_n: int
    """Responses to the edited prompt."""


@dataclass(frozen=True)
class Verdict:
    """One response to the edited prompt and whether it shows the behaviour."""

    response: str
    """As sampled."""
    yes: bool
    """The classifier's answer."""


@dataclass(frozen=True)
class Evidence:
    """What was sampled from the edited prompt of one claim."""

    claim_id: str
    """The claim."""
    messages: tuple[Message, ...]
    """The edited prompt."""
    responses: tuple[Verdict, ...]
    """The responses behind the label."""
    fresh: tuple[str, ...]
    """Responses sampled again with another seed, never behind the label; the ceiling arm shows some."""


def load_labels(claim_set: ClaimSet) -> dict[str, Label]:
    """Labels by claim id, exactly one for every claim.

    Raises:
        ClaimsError: A label without a claim, a claim without a label, an id twice, or counts that cannot be.
    """
    known = {claim.claim_id for claim in claim_set.claims}
    labels: dict[str, Label] = {}
    for row in read_rows(claim_set.path / "labels.jsonl"):
        label = _read_label(row)
        _check_known(label.claim_id, known, labels, row)
        labels[label.claim_id] = label
    missing = sorted(known - set(labels))
    if missing:
        raise ClaimsError(
            f"labels.jsonl: {len(missing)} of {len(known)} claims have no label, the first is {missing[0]!r}. "
            "Every claim needs one: add the labels or remove the claims."
        )
    return labels


def load_evidence(claim_set: ClaimSet) -> dict[str, Evidence]:
    """Evidence by claim id; a claim may have none.

    Raises:
        ClaimsError: The file is absent or broken, or a row names an unknown claim or one that came before.
    """
    known = {claim.claim_id for claim in claim_set.claims}
    evidence: dict[str, Evidence] = {}
    for row in read_rows(claim_set.path / "evidence.jsonl"):
        claim_id = row.text("claim_id")
        _check_known(claim_id, known, evidence, row)
        verdicts = tuple(Verdict(item.any_text("response"), item.flag("yes")) for item in row.rows("responses"))
        evidence[claim_id] = Evidence(claim_id, read_messages(row), verdicts, row.texts("fresh"))
    return evidence


def _check_known(claim_id: str, known: set[str], seen: dict[str, Label] | dict[str, Evidence], row: Row) -> None:
    if claim_id not in known:
        raise ClaimsError(f"{row.place}: no claim has the id {claim_id!r}. Mend the id or remove the line.")
    if claim_id in seen:
        raise ClaimsError(f"{row.place}: claim_id {claim_id!r} comes twice. Keep one line a claim.")


def _read_label(row: Row) -> Label:
    label = Label(
        claim_id=row.text("claim_id"),
        label=row.flag("label"),
        baseline_yes=row.count("baseline_yes"),
        baseline_n=row.count("baseline_n"),
        edited_yes=row.count("edited_yes"),
        edited_n=row.count("edited_n"),
    )
    if label.baseline_yes > label.baseline_n or label.edited_yes > label.edited_n:
        raise ClaimsError(
            f"{row.place}: more yes than responses. Expected baseline_yes <= baseline_n, edited_yes <= edited_n."
        )
    return label
