"""The bank on disk.

Invariant: a bank replaces the one before it only when it is complete and passes the check of any claims folder; its
card holds the sha256 of every file beside it.
"""

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from claims.atomic import json_lines
from claims.build import companion
from claims.build.check import check_claims
from claims.build.draw import seeded
from claims.build.predictable import Visible, trivial_aurocs
from claims.build.sampler import Sampler
from claims.build.second import N_AGAIN, Checked
from claims.build.select import Candidate
from claims.labels import Evidence, Label, Verdict
from claims.load import FILES
from claims.schema import Claim, Transcript, UserError

HAND_CHECK = "hand_check.json"
"""Beside the bank's files: how the programs compare with responses read by a person."""


def write_bank(
    folder: Path, checked: Sequence[Checked], *, sampler: Sampler, seed: int, card: Mapping[str, object]
) -> None:
    """Write transcripts, claims, labels, evidence and card.

    Args:
        folder: Made if need be; `hand_check.json` in it, if there is one, goes into the card.
        checked: The claims.
        sampler: Renders the prompts of the transcripts.
        seed: Draws each transcript's response.
        card: What the caller knows of how the bank was made; counts and hashes are added.

    Raises:
        UserError: There is no claim, the bank fails the check, or the folder cannot be written.
    """
    if not checked:
        raise UserError(
            f"{folder}: no claim came out, so nothing was written. Expected at least one true and one false claim; "
            "read the report (--report) and mend the investigations."
        )
    texts = {
        "transcripts.jsonl": json_lines(map(asdict, _transcripts(checked, sampler, seed))),
        "claims.jsonl": json_lines(asdict(_claim(one.candidate)) for one in checked),
        "labels.jsonl": json_lines(asdict(_label(one.candidate)) for one in checked),
        "evidence.jsonl": json_lines(asdict(_evidence(one)) for one in checked),
        companion.FILE: companion.companion(checked),
    }
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    whole = {**card, **_bank_counts(checked), "hand_check": _hand_check(folder), "files": sums}
    texts["card.json"] = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    try:
        _put(folder, texts)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written: {error.strerror}. What was there is unchanged; free some space or choose "
            "another folder with --out, then run again: no response is paid for twice."
        ) from error


def _put(folder: Path, texts: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8", newline="\n")
        problems = check_claims(draft).problems
        if problems:
            raise UserError(f"{folder}: the bank was not written. {'. '.join(problems)}. Mend the investigations.")
        for name in (*FILES, companion.FILE):
            (draft / name).replace(folder / name)
    finally:
        shutil.rmtree(draft)


def _transcripts(checked: Sequence[Checked], sampler: Sampler, seed: int) -> Iterable[Transcript]:
    for investigation_id, one in {one.candidate.investigation_id: one.candidate.measured for one in checked}.items():
        shown = {
            seeded(seed, f"{investigation_id} {index}"): sample
            for index, (sample, yes) in enumerate(zip(one.baseline.samples, one.baseline.verdicts, strict=True))
            if yes
        }
        sample = shown[min(shown)]
        messages = one.investigation.messages
        yield Transcript(
            transcript_id=investigation_id,
            messages=messages,
            reasoning=None,
            response=sample.text,
            token_ids=(*sampler.prompt_ids(messages), *sample.token_ids),
            source=one.investigation.source,
        )


def _claim(one: Candidate) -> Claim:
    return Claim(
        claim_id=one.claim_id,
        cluster_id=one.cluster_id,
        investigation_id=one.investigation_id,
        transcript_id=one.investigation_id,
        behaviour=one.measured.investigation.behaviour,
        baseline_rate=float(one.measured.baseline.rate),
        intervention=one.edit.description,
    )


def _label(one: Candidate) -> Label:
    baseline, edited = one.measured.baseline, one.edited
    return Label(one.claim_id, one.label, baseline.n_yes, baseline.n, edited.n_yes, edited.n)


def _evidence(one: Checked) -> Evidence:
    edited = one.candidate.edited
    return Evidence(
        claim_id=one.candidate.claim_id,
        messages=one.candidate.edit.messages,
        responses=tuple(Verdict(sample.text, yes) for sample, yes in zip(edited.samples, edited.verdicts, strict=True)),
        fresh=tuple(sample.text for sample in one.edited.samples),
    )


def _bank_counts(checked: Sequence[Checked]) -> dict[str, object]:
    n_agree = sum(one.agrees for one in checked)
    claims = [one.candidate for one in checked]
    return {
        "n_claims": len(claims),
        "n_true": sum(one.label for one in claims),
        "n_investigations": len({one.investigation_id for one in claims}),
        "n_clusters": len({one.cluster_id for one in claims}),
        "claims_by_cause": dict(sorted(Counter(one.measured.investigation.cause for one in claims).items())),
        "claims_by_kind_of_edit": _by_kind(claims),
        "second_sampling": {
            "n_agree": n_agree,
            "n": len(checked),
            "agreement": round(n_agree / len(checked), 4),
            "responses_of_a_prompt": N_AGAIN,
        },
        "trivial_predictors_auroc": trivial_aurocs([_visible(one) for one in claims]),
        "investigations_jsonl": f"at most {companion.RESPONSES_KEPT} responses of a prompt; the counts are of all",
        "programs": {one.investigation_id: one.measured.investigation.program.text for one in claims},
    }


def _visible(one: Candidate) -> Visible:
    investigation = one.measured.investigation
    text = f"{investigation.behaviour} {one.edit.description}"
    return Visible(one.cluster_id, one.edit.kind, float(one.measured.baseline.rate), text, one.label)


def _by_kind(claims: Sequence[Candidate]) -> dict[str, dict[str, int]]:
    counts = Counter((one.edit.kind, one.label) for one in claims)
    kinds = sorted({one.edit.kind for one in claims})
    return {kind: {"true": counts[kind, True], "false": counts[kind, False]} for kind in kinds}


def _hand_check(folder: Path) -> dict[str, object] | None:
    """The figures of the comparison by hand; lists of responses become their lengths."""
    try:
        found = json.loads((folder / HAND_CHECK).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise UserError(f"{folder / HAND_CHECK}: not JSON ({error}). Mend or remove it.") from None
    return {name: len(value) if isinstance(value, list) else value for name, value in found.items()}
