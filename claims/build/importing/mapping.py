"""The map of a foreign set of claims: a TOML file that says which of its columns is what.

Invariant: every field that is needed is given, every field that is given is known, and no column is overlooked:
what the map does not name, it must say that it ignores.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from claims.build.importing.fields import FIELDS
from claims.schema import ClaimsError

KEYS = {
    "target": "name of the target that was sampled",
    "labels": "counts, rates or given: what the labels are made from",
    "rates": "share (0 to 1) or percent: how rates and changes are written",
    "dataset": "short for constants.dataset",
    "cluster_by": "optional: 'prompt' makes claims on the same messages one cluster",
    "expect_claims": "optional: how many claims must come out",
    "each": "optional: a column with a list of objects, each of them one claim of the row",
    "label_words": "optional: the two words for true and false",
    "ignore": "columns that are not needed, or 'rest'",
    "sampling": "table: temperature, and whatever else is known of the sampling",
    "columns": "table: our field = their column",
    "constants": "table: our field = the value of every row",
    "keep": "list of tables: column with equals, at_least or at_most",
}
"""What a map may hold."""

LABELS = {
    "counts": ("baseline_yes", "baseline_n", "edited_yes", "edited_n"),
    "rates": ("baseline_rate", "baseline_n", "edited_n"),
    "given": ("label", "baseline_rate"),
}
"""The fields that each way of giving labels needs; `rates` needs edited_rate or change too."""


@dataclass(frozen=True)
class Keep:
    """A filter of the published set that is a column of it."""

    column: str
    """The column."""
    how: str
    """`equals`, `at_least` or `at_most`."""
    value: object
    """What the column is compared with."""

    @property
    def reason(self) -> str:
        """Why a row is dropped, for the counts."""
        words = {"equals": "is not", "at_least": "is below", "at_most": "is above"}
        return f"{self.column} {words[self.how]} {self.value}"


@dataclass(frozen=True)
class ImportMap:
    """A map that has been checked."""

    target: str
    """Name of the target that was sampled."""
    labels: str
    """`counts`, `rates` or `given`."""
    percent: bool
    """Whether rates and changes are written from 0 to 100."""
    columns: Mapping[str, str]
    """Their column of each of our fields."""
    constants: Mapping[str, object]
    """Fields that are the same in every row."""
    sampling: Mapping[str, object]
    """How the target was sampled; holds at least its temperature."""
    keeps: tuple[Keep, ...]
    """Filters, in order."""
    ignore: frozenset[str] | None
    """Columns that are not needed; None ignores the rest."""
    each: str | None
    """Column with a list of claims, or None when a row is a claim."""
    label_words: tuple[str, str] | None
    """Words for true and false."""
    cluster_by_prompt: bool
    """Whether the same messages make one cluster."""
    expect_claims: int | None
    """How many claims must come out."""

    def check_columns(self, found: Collection[str], place: str) -> None:
        """Raise when a row has a column that the map neither uses nor ignores.

        Raises:
            ClaimsError: The text lists those columns and the fields that the map does not give.
        """
        if self.ignore is None:
            return
        used = {name.split(".")[0] for name in (*self.columns.values(), *(keep.column for keep in self.keeps))}
        unmapped = sorted(set(found) - used - set(self.columns.values()) - self.ignore)
        if unmapped:
            free = [name for name in FIELDS if name not in self.columns and name not in self.constants]
            raise ClaimsError(
                f"{place}: the map says nothing about the columns {', '.join(unmapped)}. Map them to one of our fields "
                f"that it does not give yet ({', '.join(free)}), or list them under ignore (ignore = 'rest' for all)."
            )


def read_map(path: Path) -> ImportMap:
    """Read and check a map.

    Raises:
        ClaimsError: Not TOML, a key or field that is unknown, or one that is needed and not given.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ClaimsError(f"{path} does not exist. Give --map a TOML file.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ClaimsError(f"{path.name}: not TOML ({error}). Mend the map.") from None
    _only(given, KEYS, f"{path.name}")
    columns = {name: str(column) for name, column in _table(given, "columns", path).items()}
    constants = {**({"dataset": given["dataset"]} if "dataset" in given else {}), **_table(given, "constants", path)}
    _only(columns, FIELDS, f"{path.name} [columns]")
    _only(constants, FIELDS, f"{path.name} [constants]")
    labels = _choice(given, "labels", tuple(LABELS), path)
    fields = set(columns) | set(constants)
    _check_needed(fields, labels, path)
    rated = bool(fields & {"baseline_rate", "edited_rate", "change"})
    return ImportMap(
        target=_text(given, "target", path),
        labels=labels,
        percent=rated and _choice(given, "rates", ("share", "percent"), path) == "percent",
        columns=columns,
        constants=constants,
        sampling=_sampling(given, path),
        keeps=tuple(_keep(item, path) for item in given.get("keep", [])),
        ignore=_ignore(given, path),
        each=_text(given, "each", path) if "each" in given else None,
        label_words=_words(given, path),
        cluster_by_prompt="cluster_by" in given and bool(_choice(given, "cluster_by", ("prompt",), path)),
        expect_claims=_expected(given, path),
    )


def _only(given: Mapping[str, object], known: Mapping[str, str], place: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ClaimsError(f"{place}: unknown {', '.join(unknown)}. Expected any of: {', '.join(known)}.")


def _check_needed(fields: set[str], labels: str, path: Path) -> None:
    needed = ["dataset", "investigation_id", "behaviour", "intervention", *LABELS[labels]]
    missing = [name for name in needed if name not in fields]
    either = [("messages", "prompt"), ("response", "responses")]
    either += [("edited_rate", "change")] if labels == "rates" else []
    missing += [f"{one} (or {other})" for one, other in either if not fields & {one, other}]
    pairs = [("responses", "verdicts"), ("edited_responses", "edited_verdicts")]
    missing += [two for one, two in pairs if one in fields and two not in fields]
    if "edited_responses" in fields and not fields & {"edited_messages", "edited_prompt"}:
        missing.append("edited_messages (or edited_prompt)")
    if missing:
        explained = "; ".join(f"{name}: {FIELDS[name.split()[0]]}" for name in missing)
        raise ClaimsError(
            f"{path.name}: with labels = {labels!r} the map must also give {', '.join(missing)} ({explained}). "
            f"Found: {', '.join(sorted(fields))}. Add them under [columns] or [constants]."
        )


def _table(given: Mapping[str, object], name: str, path: Path) -> Mapping[str, object]:
    value = given.get(name, {})
    if not isinstance(value, dict):
        raise ClaimsError(f"{path.name}: {name} must be a table, found {value!r}.")
    return value


def _text(given: Mapping[str, object], name: str, path: Path) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise ClaimsError(f"{path.name}: {name} must be a text ({KEYS[name]}), found {value!r}.")
    return value


def _choice(given: Mapping[str, object], name: str, choices: tuple[str, ...], path: Path) -> str:
    value = given.get(name)
    if value not in choices:
        raise ClaimsError(
            f"{path.name}: {name} must be one of {', '.join(choices)} ({KEYS[name]}), found {value!r}. Add it."
        )
    return str(value)


def _sampling(given: Mapping[str, object], path: Path) -> Mapping[str, object]:
    sampling = _table(given, "sampling", path)
    temperature = sampling.get("temperature")
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or temperature <= 0:
        raise ClaimsError(f"{path.name} [sampling]: temperature must be a number above 0, found {temperature!r}.")
    return sampling


def _keep(item: object, path: Path) -> Keep:
    if isinstance(item, dict) and isinstance(item.get("column"), str) and len(item) == 2:
        how = next(name for name in item if name != "column")
        if how in ("equals", "at_least", "at_most"):
            return Keep(item["column"], how, item[how])
    raise ClaimsError(f"{path.name} [[keep]]: expected column and one of equals, at_least, at_most, found {item!r}.")


def _ignore(given: Mapping[str, object], path: Path) -> frozenset[str] | None:
    value = given.get("ignore", [])
    if value == "rest":
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ClaimsError(f"{path.name}: ignore must be a list of columns or 'rest', found {value!r}.")
    return frozenset(value)


def _words(given: Mapping[str, object], path: Path) -> tuple[str, str] | None:
    value = given.get("label_words")
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or value[0] == value[1]:
        raise ClaimsError(f"{path.name}: label_words must be two words, for true and for false, found {value!r}.")
    return str(value[0]), str(value[1])


def _expected(given: Mapping[str, object], path: Path) -> int | None:
    value = given.get("expect_claims")
    if value is not None and (type(value) is not int or value <= 0):
        raise ClaimsError(f"{path.name}: expect_claims must be a whole number above 0, found {value!r}.")
    return value
