"""The second sampling, and the bank on disk.

Invariant: a bank is written as a whole or not at all, and its card holds the sha256 of every file beside it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from claims.build.measure import N_FULL, Batch, judge
from claims.build.sampler import Sampler
from claims.build.select import Candidate, seeded
from claims.build.store import replace_all
from claims.schema import UserError, message_rows

SIDE = 0.3
"""A change of at least this is on the side of true: the threshold that a claim states."""


@dataclass(frozen=True)
class Checked:
    """A claim with its second sampling."""

    candidate: Candidate
    """The claim."""
    baseline: Batch
    """The original prompt, sampled again."""
    edited: Batch
    """The edited prompt, sampled again: never behind the label."""

    @property
    def agrees(self) -> bool:
        """Whether the second change is on the label's side of 30 points."""
        return (round(abs(self.edited.rate - self.baseline.rate), 9) >= SIDE) == self.candidate.label


def sample_again(sampler: Sampler, candidates: Sequence[Candidate], seed: int) -> list[Checked]:
    """Thirty new responses of every claim's two prompts."""
    prompts = [one.measured.investigation.messages for one in candidates] + [one.edit.messages for one in candidates]
    drawn = sampler.draw(prompts, N_FULL, seed)
    checked = []
    for one in candidates:
        program = one.measured.investigation.program
        baseline = judge(drawn[one.measured.investigation.messages], program)
        checked.append(Checked(one, baseline, judge(drawn[one.edit.messages], program)))
    return checked


def write_bank(
    folder: Path, checked: Sequence[Checked], *, sampler: Sampler, seed: int, card: dict[str, object]
) -> None:
    """Write transcripts, claims, labels, evidence and card.

    Args:
        folder: Made if need be; `hand_check.json` in it, if there is one, goes into the card.
        checked: The claims.
        sampler: Renders the prompts of the transcripts.
        seed: Draws each transcript's response.
        card: What the caller knows of how the bank was made; counts and hashes are added.

    Raises:
        UserError: There is no claim, or the folder cannot be written.
    """
    if not checked:
        raise UserError(
            f"{folder}: no claim came out, so nothing was written. Expected at least one true and one false claim; "
            "read the report (--report) and mend the investigations."
        )
    texts = {
        "transcripts.jsonl": _lines(_transcripts(checked, sampler, seed)),
        "claims.jsonl": _lines([_claim(one.candidate) for one in checked]),
        "labels.jsonl": _lines([_label(one.candidate) for one in checked]),
        "evidence.jsonl": _lines([_evidence(one) for one in checked]),
    }
    full_card = {
        **card,
        **_bank_counts(checked),
        "hand_check": _hand_check(folder),
        "sha256": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
    }
    texts["card.json"] = json.dumps(full_card, indent=2, ensure_ascii=False) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_all({folder / name: text for name, text in texts.items()})
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written: {error.strerror}. What was there is unchanged; free some space or choose "
            "another folder with --out, then run again: no response is paid for twice."
        ) from error


def _lines(rows: Sequence[dict[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _transcripts(checked: Sequence[Checked], sampler: Sampler, seed: int) -> list[dict[str, object]]:
    measured = {one.candidate.investigation_id: one.candidate.measured for one in checked}
    rows: list[dict[str, object]] = []
    for investigation_id, one in measured.items():
        shown = [
            (seeded(seed, f"{investigation_id} {index}"), sample)
            for index, (sample, yes) in enumerate(zip(one.baseline.samples, one.baseline.verdicts, strict=True))
            if yes and sample.token_ids
        ]
        _, sample = min(shown, key=lambda pair: pair[0])
        rows.append(
            {
                "transcript_id": investigation_id,
                "messages": message_rows(one.investigation.messages),
                "reasoning": None,
                "response": sample.text,
                "token_ids": [*sampler.prompt_ids(one.investigation.messages), *sample.token_ids],
                "source": "written for this bank",
            }
        )
    return rows


def _claim(one: Candidate) -> dict[str, object]:
    return {
        "claim_id": one.claim_id,
        "cluster_id": one.cluster_id,
        "investigation_id": one.investigation_id,
        "transcript_id": one.investigation_id,
        "behaviour": one.measured.investigation.behaviour,
        "baseline_rate": round(one.measured.baseline.rate, 4),
        "intervention": one.edit.description,
    }


def _label(one: Candidate) -> dict[str, object]:
    baseline, edited = one.measured.baseline, one.edited
    return {
        "claim_id": one.claim_id,
        "label": one.label,
        "baseline_yes": baseline.n_yes,
        "baseline_n": baseline.n,
        "edited_yes": edited.n_yes,
        "edited_n": edited.n,
    }


def _evidence(one: Checked) -> dict[str, object]:
    edited = one.candidate.edited
    return {
        "claim_id": one.candidate.claim_id,
        "messages": message_rows(one.candidate.edit.messages),
        "responses": [
            {"response": sample.text, "yes": yes} for sample, yes in zip(edited.samples, edited.verdicts, strict=True)
        ],
        "fresh": [sample.text for sample in one.edited.samples],
    }


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
        "second_sampling": {"n_agree": n_agree, "n": len(checked), "agreement": round(n_agree / len(checked), 4)},
        "programs": {one.investigation_id: one.measured.investigation.program.text for one in claims},
    }


def _by_kind(claims: Sequence[Candidate]) -> dict[str, dict[str, int]]:
    kinds = sorted({one.edit.kind for one in claims})
    counts = Counter((one.edit.kind, one.label) for one in claims)
    return {kind: {"true": counts[kind, True], "false": counts[kind, False]} for kind in kinds}


def _hand_check(folder: Path) -> object:
    try:
        return json.loads((folder / "hand_check.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise UserError(f"{folder / 'hand_check.json'}: not JSON ({error}). Mend or remove it.") from None
