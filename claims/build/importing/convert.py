"""From the rows of a foreign set to claims, labels, transcripts and evidence.

Invariant: ids carry the name of their data set; one investigation has one transcript; every row that is left out is
counted with its reason.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from claims.build.importing.fields import Fields, pick
from claims.build.importing.labelling import Measured, measure
from claims.build.importing.mapping import ImportMap, Keep
from claims.labels import Evidence, Label, Verdict
from claims.prompts.record import Funnel, funnel, prompt_id
from claims.schema import Claim, ClaimsError, Message, Row, Transcript, UserError

Encode = Callable[[tuple[Message, ...], str], tuple[int, ...]]
"""From a prompt and its response to their token ids."""

UNUSED = "the change lies between 15 and 50 points"
"""Why a claim is not used."""


@dataclass
class Converted:
    """The set so far."""

    claims: list[Claim] = field(default_factory=list)
    """In the order of the file."""
    labels: list[Label] = field(default_factory=list)
    """One a claim."""
    transcripts: dict[str, Transcript] = field(default_factory=dict)
    """By id, in the order of their first claim."""
    evidence: list[Evidence] = field(default_factory=list)
    """Of the claims that have any."""
    n_read: int = 0
    """Rows seen."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Rows left out, by reason."""

    def funnel(self, mapping: ImportMap) -> Funnel:
        """The counts, filters of the map first."""
        reasons = [*(keep.reason for keep in mapping.keeps), UNUSED]
        return funnel(self.n_read, [(reason, self.dropped[reason]) for reason in reasons])


def convert(rows: Iterable[Row], mapping: ImportMap, encode: Encode, *, seed: int) -> Converted:
    """Convert every row.

    Args:
        rows: The file's.
        mapping: What its columns are.
        encode: Makes token ids where the file has none; called only then.
        seed: Draws the response of a transcript, where the file has several.

    Raises:
        ClaimsError: A row that is not as the map says; the text names the place.
    """
    done = Converted()
    for row in _each(rows, mapping):
        done.n_read += 1
        mapping.check_columns(row.values, row.place)
        refused = next((keep.reason for keep in mapping.keeps if not _passes(row, keep)), None)
        fields = Fields(row, mapping.columns, mapping.constants)
        measured = measure(fields, mapping) if refused is None else None
        if measured is None or measured.label is None:
            done.dropped[refused or UNUSED] += 1
            continue
        _add(done, fields, mapping, measured, encode, seed)
    return done


def _each(rows: Iterable[Row], mapping: ImportMap) -> Iterable[Row]:
    if mapping.each is None:
        yield from rows
        return
    for row in rows:
        items = row.values.get(mapping.each)
        if not isinstance(items, list):
            raise ClaimsError(
                f"{row.place}: each = {mapping.each!r} must be a column with a list of claims "
                f"(found the columns {', '.join(sorted(row.values))}). Mend the map."
            )
        for number, item in enumerate(items, start=1):
            yield Row({**row.values, mapping.each: item}, f"{row.place}, {mapping.each}[{number}]")


def _passes(row: Row, keep: Keep) -> bool:
    value = pick(row, keep.column)
    if keep.how == "equals":
        return value == keep.value or (isinstance(value, str) and value.strip().lower() == str(keep.value).lower())
    fields = Fields(row, {keep.column: keep.column}, {"limit": keep.value})
    number, limit = fields.number(keep.column), fields.number("limit")
    return number >= limit if keep.how == "at_least" else number <= limit


def _add(done: Converted, fields: Fields, mapping: ImportMap, measured: Measured, encode: Encode, seed: int) -> None:
    dataset = fields.text("dataset")
    messages = fields.messages("messages", "prompt")
    investigation = f"{dataset}/{fields.text('investigation_id')}"
    transcript_id = f"{dataset}/{fields.text('transcript_id')}" if fields.has("transcript_id") else investigation
    claim = Claim(
        claim_id=_claim_id(fields, dataset, investigation),
        cluster_id=_cluster(fields, mapping, dataset, investigation, messages),
        investigation_id=investigation,
        transcript_id=transcript_id,
        behaviour=fields.text("behaviour"),
        baseline_rate=measured.baseline_rate,
        intervention=fields.text("intervention"),
    )
    _add_transcript(done, fields, transcript_id, messages, encode, seed)
    done.claims.append(claim)
    done.labels.append(_label(claim.claim_id, measured))
    if fields.has("edited_responses"):
        done.evidence.append(_evidence(fields, claim.claim_id))


def _claim_id(fields: Fields, dataset: str, investigation: str) -> str:
    if fields.has("claim_id"):
        return f"{dataset}/{fields.text('claim_id')}"
    content = json.dumps([fields.text("behaviour"), fields.text("intervention")])
    return f"{investigation}/{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def _cluster(
    fields: Fields, mapping: ImportMap, dataset: str, investigation: str, messages: tuple[Message, ...]
) -> str:
    if mapping.cluster_by_prompt:
        return f"{dataset}/prompt-{prompt_id(messages)}"
    return f"{dataset}/{fields.text('cluster_id')}" if fields.has("cluster_id") else investigation


def _label(claim_id: str, measured: Measured) -> Label:
    return Label(
        claim_id,
        bool(measured.label),
        measured.baseline_yes,
        measured.baseline_n,
        measured.edited_yes,
        measured.edited_n,
    )


def _add_transcript(
    done: Converted, fields: Fields, transcript_id: str, messages: tuple[Message, ...], encode: Encode, seed: int
) -> None:
    response = _response(fields, transcript_id, seed)
    reasoning = fields.any_text("reasoning") if fields.has("reasoning") else None
    known = done.transcripts.get(transcript_id)
    if known is not None:
        if (known.messages, known.response, known.reasoning) != (messages, response, reasoning):
            raise ClaimsError(
                f"{fields.place}: transcript {transcript_id!r} came before with another prompt or response. Expected "
                "one transcript an investigation: map transcript_id, or mend investigation_id."
            )
        return
    if fields.has("token_ids"):
        token_ids = fields.ids("token_ids")
    elif reasoning is not None:
        raise ClaimsError(
            f"{fields.place}: a transcript with reasoning needs its token_ids as sampled, and none are mapped. "
            "Map a column to token_ids, or leave the reasoning out."
        )
    else:
        token_ids = _encoded(encode, messages, response, fields.place)
    source = fields.text("source") if fields.has("source") else fields.text("dataset")
    done.transcripts[transcript_id] = Transcript(transcript_id, messages, reasoning, response, token_ids, source)


def _encoded(encode: Encode, messages: tuple[Message, ...], response: str, place: str) -> tuple[int, ...]:
    try:
        return encode(messages, response)
    except UserError as error:
        raise ClaimsError(f"{place}: {error} (A [[keep]] in the map can leave such rows out.)") from None


def _response(fields: Fields, transcript_id: str, seed: int) -> str:
    if fields.has("response"):
        return fields.any_text("response")
    responses, verdicts = fields.texts("responses"), fields.flags("verdicts")
    _check_lengths(fields, responses, verdicts, "responses")
    shown = [text for text, yes in zip(responses, verdicts, strict=True) if yes] or list(responses)
    key = hashlib.sha256(f"{seed} {transcript_id}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(key[:8], "big"))
    return shown[int(rng.integers(len(shown)))]


def _check_lengths(fields: Fields, responses: tuple[str, ...], verdicts: tuple[bool, ...], name: str) -> None:
    if not responses or len(responses) != len(verdicts):
        raise ClaimsError(
            f"{fields.place}: found {len(responses)} {name} and {len(verdicts)} verdicts on them. "
            "Expected one verdict a response, and at least one response."
        )


def _evidence(fields: Fields, claim_id: str) -> Evidence:
    responses, verdicts = fields.texts("edited_responses"), fields.flags("edited_verdicts")
    _check_lengths(fields, responses, verdicts, "edited_responses")
    shown = tuple(Verdict(text, yes) for text, yes in zip(responses, verdicts, strict=True))
    fresh = fields.texts("fresh") if fields.has("fresh") else ()
    return Evidence(claim_id, fields.messages("edited_messages", "edited_prompt"), shown, fresh)
