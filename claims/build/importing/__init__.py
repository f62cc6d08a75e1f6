"""Take in a set of claims that others published: their file, and a map that says which column is what.

Invariant: the folder is written whole and checked, or not at all; its card says where every number came from.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from claims.build.check import Check, check_claims
from claims.build.folder import write_folder
from claims.build.importing.convert import Converted, Encode, convert
from claims.build.importing.mapping import ImportMap, read_map
from claims.prompts.record import PromptsError
from claims.prompts.rows import read_table
from claims.schema import ClaimsError, Message, Row
from tools.targets import Target, get_target

__all__ = ["import_claims"]


def import_claims(file: Path, map_toml: Path, out: Path, *, encode: Encode | None = None, seed: int = 0) -> Check:
    """Make a claims folder from a published file.

    Args:
        file: CSV, JSON, JSON Lines or Parquet; a row is a claim (or holds a list of them, see `each` in the map).
        map_toml: The map.
        out: The folder to make; must not exist.
        encode: Makes token ids where the file has none; None takes the target's tokenizer, if it is on this machine.
        seed: Draws the response that a transcript shows, where the file has several.

    Returns:
        The check of the finished folder.

    Raises:
        ClaimsError: The map or a row is wrong, the number of claims is not the one expected, or the set breaks a
            promise of a claim set. Nothing is written then.
        UserError: The map's target is unknown.
    """
    mapping = read_map(map_toml)
    target = get_target(mapping.target)
    done = convert(_rows(file), mapping, encode or _when_needed(target), seed=seed)
    _check_count(done, mapping, file)
    write_folder(
        out,
        claims=done.claims,
        labels=done.labels,
        transcripts=done.transcripts.values(),
        evidence=done.evidence,
        card=_card(done, mapping, target, file, map_toml, seed),
        check=_refuse_problems,
    )
    return check_claims(out)


def _rows(file: Path) -> Iterator[Row]:
    try:
        yield from read_table(file)
    except PromptsError as error:
        raise ClaimsError(str(error)) from None


def _when_needed(target: Target) -> Encode:
    made: list[Encode] = []

    def encode(messages: tuple[Message, ...], response: str) -> tuple[int, ...]:
        if not made:
            from claims.build.importing.tokens import make_encode  # seconds of transformers, for files without ids only

            made.append(make_encode(target))
        return made[0](messages, response)

    return encode


def _check_count(done: Converted, mapping: ImportMap, file: Path) -> None:
    steps = "; ".join(f"{row['reason']} {row['dropped']}, left {row['left']}" for row in done.funnel(mapping).rows())
    if not done.claims:
        raise ClaimsError(f"{file.name}: no claim is left ({steps}). Mend the [[keep]] tables of the map.")
    if mapping.expect_claims not in (None, len(done.claims)):
        raise ClaimsError(
            f"{file.name}: {len(done.claims):,} claims came out, the map expects {mapping.expect_claims:,} ({steps}). "
            "Another version of the file, or a filter that the map does not apply as its authors did."
        )


def _refuse_problems(folder: Path) -> None:
    problems = check_claims(folder).problems
    if problems:
        raise ClaimsError(
            "The imported claims break what a claim set promises: " + "; ".join(problems) + ". "
            "Mend the map (cluster_by = 'prompt' joins investigations on one prompt) or the file."
        )


def _card(
    done: Converted, mapping: ImportMap, target: Target, file: Path, map_toml: Path, seed: int
) -> dict[str, object]:
    return {
        "target": target.name,
        "checkpoint": target.checkpoint,
        "revision": mapping.sampling.get("revision", "not stated"),
        "sampling": dict(mapping.sampling),
        "origin": "imported",
        "source": {"file": file.name, "sha256": _sha256(file), "map": map_toml.name, "map_sha256": _sha256(map_toml)},
        "labels": mapping.labels,
        "token_ids": "as published" if "token_ids" in mapping.columns else "made at import from the texts",
        "seed": seed,
        "n_claims": len(done.claims),
        "funnel": done.funnel(mapping).rows(),
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
