"""Load what a predictor may see of a claim set, and refuse one that is not whole.

Invariant: a `ClaimSet` never holds a label; every claim in it has its transcript and every id is unique.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from claims.schema import Claim, ClaimsError, Transcript, read_rows, read_transcripts

FILES = ("transcripts.jsonl", "claims.jsonl", "labels.jsonl", "evidence.jsonl", "card.json")
"""The files of a claims folder; `evidence.jsonl` is needed by the `ceiling` arm only."""


@dataclass(frozen=True)
class ClaimSet:
    """The claims of one target."""

    target: str
    """Name of the target that was sampled."""
    claims: tuple[Claim, ...]
    """In the order of the file."""
    transcripts: dict[str, Transcript]
    """By transcript id; holds every transcript that a claim names."""
    temperature: float
    """At which the target was sampled; the claim text states it."""
    sha256: str
    """Of all files of the folder, so that a changed set is never taken for the old one."""
    path: Path
    """The folder."""


def load_claims(folder: Path, *, target: str | None = None) -> ClaimSet:
    """Read and check the claims folder.

    Args:
        folder: Holds `transcripts.jsonl`, `claims.jsonl`, `labels.jsonl` and `card.json`.
        target: Name of the target to be evaluated; None accepts any.

    Raises:
        ClaimsError: A file is absent or broken, an id comes twice, a claim names no transcript,
            or the set was made with another target.
    """
    card = read_card(folder)
    made_with = _card_text(card, "target", folder)
    if target is not None and made_with != target:
        raise ClaimsError(
            f"{folder}: these claims were measured on {made_with!r}, not on {target!r}. "
            f"A claim holds for one target only: give --claims a folder made for {target!r}."
        )
    transcripts = read_transcripts(folder / "transcripts.jsonl")
    claims = tuple(_read_claims(folder / "claims.jsonl"))
    _check_references(claims, transcripts)
    return ClaimSet(made_with, claims, transcripts, _temperature(card, folder), hash_folder(folder), folder)


def read_card(folder: Path) -> dict[str, object]:
    """The card of a claims folder: how it was built.

    Raises:
        ClaimsError: The folder or its card is absent, or the card is not a JSON object.
    """
    path = folder / "card.json"
    if not folder.is_dir():
        raise ClaimsError(f"{folder} is not a folder. Expected a claims folder with {', '.join(FILES)}.")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ClaimsError(f"{path} does not exist. Expected a claims folder with {', '.join(FILES)}.") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ClaimsError(f"{path}: not JSON ({error}). Mend the card.") from None
    if not isinstance(card, dict):
        raise ClaimsError(f"{path}: expected a JSON object, found {type(card).__name__}.")
    return card


def hash_folder(folder: Path) -> str:
    """The sha256 over the names and bytes of the files in `FILES` that exist."""
    digest = hashlib.sha256()
    for name in FILES:
        path = folder / name
        if path.exists():
            content = path.read_bytes()
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _card_text(card: dict[str, object], name: str, folder: Path) -> str:
    value = card.get(name)
    if not isinstance(value, str) or not value:
        raise ClaimsError(f"{folder / 'card.json'}: {name!r} must be a non-empty string, found {value!r}.")
    return value


def _temperature(card: dict[str, object], folder: Path) -> float:
    sampling = card.get("sampling")
    value = sampling.get("temperature") if isinstance(sampling, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ClaimsError(
            f"{folder / 'card.json'}: sampling.temperature must be a number above 0, found {value!r}. "
            "Write the temperature at which the target was sampled."
        )
    return float(value)


def _read_claims(path: Path) -> Iterable[Claim]:
    seen: set[str] = set()
    for row in read_rows(path):
        claim = Claim(
            claim_id=row.text("claim_id"),
            cluster_id=row.text("cluster_id"),
            investigation_id=row.text("investigation_id"),
            transcript_id=row.text("transcript_id"),
            behaviour=row.text("behaviour"),
            baseline_rate=row.share("baseline_rate"),
            intervention=row.text("intervention"),
        )
        if claim.claim_id in seen:
            raise ClaimsError(f"{row.place}: claim_id {claim.claim_id!r} comes twice. Ids must be unique.")
        seen.add(claim.claim_id)
        yield claim
    if not seen:
        raise ClaimsError(f"{path} holds no claim.")


def _check_references(claims: tuple[Claim, ...], transcripts: dict[str, Transcript]) -> None:
    clusters: dict[str, str] = {}
    for claim in claims:
        if claim.transcript_id not in transcripts:
            raise ClaimsError(
                f"claims.jsonl: claim {claim.claim_id!r} names the transcript {claim.transcript_id!r}, "
                f"which is not among the {len(transcripts)} of transcripts.jsonl. Add it or mend the id."
            )
        cluster = clusters.setdefault(claim.investigation_id, claim.cluster_id)
        if cluster != claim.cluster_id:
            raise ClaimsError(
                f"claims.jsonl: investigation {claim.investigation_id!r} stands in two clusters, {cluster!r} and "
                f"{claim.cluster_id!r}. Claims of one investigation are dependent: give them one cluster_id."
            )
