"""The paper's filters as columns beside the claims, and the sets that a reader may ask for.

Invariant: nothing is ever deleted: a folder always holds the unfiltered set, and a filtered one is a view of it that
is made when it is read.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from claims.atomic import json_lines
from claims.load import FILES, read_card
from claims.schema import ClaimsError, Row, UserError, read_rows

COLUMNS_FILE = "filters.jsonl"
"""Beside the claims; not shown to predictors."""
CONCRETE_AT_LEAST = 3


@dataclass(frozen=True)
class Columns:
    """What every filter says of one claim."""

    claim_id: str
    """The claim."""
    label: bool
    """Its label, which the balance needs."""
    concreteness: int | None
    """Grade of the mechanism, 1 to 4; None when none could be read."""
    balanced: bool
    """Whether it was drawn into the balanced, capped set of concrete claims."""
    reproduced: bool | None
    """Whether the edit made again from its description agrees; None when that was not tried."""
    reproduced_yes: int
    """Of the second implementation's responses, those that show the behaviour."""
    reproduced_n: int
    """Usable verdicts on them."""
    single_factor: bool
    """Whether the describing judge saw one factor changed."""


FILTERS: dict[str, Callable[[Columns], bool]] = {
    "concrete": lambda one: (one.concreteness or 0) >= CONCRETE_AT_LEAST,
    "balanced": lambda one: one.balanced,
    "reproduced": lambda one: one.reproduced is True,
    "single-factor": lambda one: one.single_factor,
}
"""In the paper's order; what fails the first is not asked about the others."""

SETS: dict[str, tuple[str, ...]] = {"none": (), "paper": tuple(FILTERS)}
"""Names for combinations."""


def parse_filters(names: str) -> tuple[str, ...]:
    """The filters that `names` asks for: `none`, `paper`, or some of `FILTERS` separated by commas.

    Raises:
        UserError: A name is unknown.
    """
    if names in SETS:
        return SETS[names]
    chosen = tuple(name.strip() for name in names.split(",") if name.strip())
    unknown = [name for name in chosen if name not in FILTERS]
    if unknown or not chosen:
        raise UserError(f"Unknown filters {names!r}. Expected {', '.join(SETS)}, or some of {', '.join(FILTERS)}.")
    return tuple(name for name in FILTERS if name in chosen)


def choose_balanced(claims: Sequence[tuple[str, bool]], cap: int, seed: int) -> frozenset[str]:
    """Ids of a set that is half true, half false and at most `cap` large, drawn by the seed.

    Args:
        claims: Id and label of every claim that may be drawn.
        cap: Most claims.
        seed: Of the draw.
    """
    sides = {
        label: sorted((name for name, is_true in claims if is_true is label), key=lambda name: _order(seed, name))
        for label in (True, False)
    }
    size = min(len(sides[True]), len(sides[False]), cap // 2)
    return frozenset(sides[True][:size] + sides[False][:size])


def _order(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}\nbalance\n{name}".encode()).hexdigest()


def column_lines(columns: Iterable[Columns]) -> str:
    """The file's text."""
    return json_lines(asdict(one) for one in columns)


def read_columns(folder: Path) -> dict[str, Columns]:
    """The columns of a claims folder by claim id.

    Raises:
        ClaimsError: The folder has none, or a line is broken.
    """
    path = folder / COLUMNS_FILE
    if not path.is_file():
        raise ClaimsError(f"{folder} has no {COLUMNS_FILE}: its claims were not made with filters. Use --filters none.")
    return {one.claim_id: one for one in map(_columns, read_rows(path))}


def _columns(row: Row) -> Columns:
    return Columns(
        claim_id=row.text("claim_id"),
        label=row.flag("label"),
        concreteness=None if row.values.get("concreteness") is None else row.count("concreteness"),
        balanced=row.flag("balanced"),
        reproduced=None if row.values.get("reproduced") is None else row.flag("reproduced"),
        reproduced_yes=row.count("reproduced_yes"),
        reproduced_n=row.count("reproduced_n"),
        single_factor=row.flag("single_factor"),
    )


def kept_ids(columns: Iterable[Columns], names: Sequence[str]) -> frozenset[str]:
    """Ids of the claims that pass every named filter."""
    return frozenset(one.claim_id for one in columns if all(FILTERS[name](one) for name in names))


def view(folder: Path, filters: str, cache: Path) -> Path:
    """The folder that holds the claims of `folder` that pass `filters`; `folder` itself for `none`.

    Args:
        folder: A claims folder with columns.
        filters: As `parse_filters` takes them.
        cache: Where views are kept; the same claims and filters are the same view.

    Raises:
        UserError: Unknown filters, no columns, or nothing passes.
    """
    names = parse_filters(filters)
    if not names:
        return folder
    kept = kept_ids(read_columns(folder).values(), names)
    if not kept:
        raise ClaimsError(f"{folder}: no claim passes the filters {', '.join(names)}. Use --filters none.")
    texts = {name: _kept_lines(folder / name, kept) for name in ("claims.jsonl", "labels.jsonl", "evidence.jsonl")}
    texts["transcripts.jsonl"] = (folder / "transcripts.jsonl").read_text(encoding="utf-8")
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    card = {**read_card(folder), "filters": list(names), "n_unfiltered": len(read_columns(folder)), "files": sums}
    texts["card.json"] = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
    out = cache / f"{folder.name}-{'-'.join(names)}-{digest[:16]}"
    if not out.exists():
        _put(out, texts)
    return out


def _kept_lines(path: Path, kept: frozenset[str]) -> str:
    if not path.exists():
        return ""
    rows = (row for row in read_rows(path) if row.text("claim_id") in kept)
    return json_lines(row.values for row in rows)


def _put(out: Path, texts: dict[str, str]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        draft.chmod(0o755)
        for name in FILES:
            if texts[name]:
                (draft / name).write_text(texts[name], encoding="utf-8", newline="\n")
        draft.replace(out)
    except OSError:
        # Another process may have put the same view there first.
        if not out.exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
