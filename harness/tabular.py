"""A table as data, and its four forms: Markdown, CSV, LaTeX and JSON.

Invariants: the forms hold the same rows in the same order, and the same table gives the same bytes; a cell carries its
values beside its text, so that CSV and JSON lose no digit; what is not defined is an empty field or null.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.files import write_text

Value = str | int | float | None


@dataclass(frozen=True)
class Column:
    """One column."""

    head: str
    """As people read it."""
    keys: tuple[str, ...]
    """Names of the values of its cells, in CSV and JSON."""


@dataclass(frozen=True)
class Cell:
    """One cell."""

    text: str
    """As people read it."""
    values: tuple[Value, ...]
    """One a key of the column; None where not defined."""


@dataclass(frozen=True)
class Table:
    """A table of the paper's kind."""

    name: str
    """Of its files."""
    title: str
    """One sentence."""
    columns: tuple[Column, ...]
    """In order."""
    rows: tuple[tuple[Cell, ...], ...]
    """As many cells as columns."""
    notes: tuple[str, ...] = ()
    """What a reader must know."""


def words(text: str) -> Cell:
    """A cell of text."""
    return Cell(text, (text,))


def count(number: int) -> Cell:
    """A cell with a whole number."""
    return Cell(str(number), (number,))


def number(value: float) -> Cell:
    """A cell with three decimals."""
    return Cell(number_text(value), (defined(value),))


def interval(value: float, low: float, high: float, *, signed: bool, mark: str = "") -> Cell:
    """A cell with a value and its interval behind it; `mark` stands between the two."""
    show = signed_text if signed else number_text
    bounds = "" if math.isnan(low) else f" ({show(low)} to {show(high)})"
    return Cell(f"{show(value)}{mark}{bounds}", (defined(value), defined(low), defined(high)))


def share(part: int, whole: int) -> Cell:
    """A cell with a percentage and what it is of."""
    if not whole:
        return Cell("undefined", (None, part, whole))
    return Cell(f"{part / whole:.0%} ({part} of {whole})", (part / whole, part, whole))


def nothing(n_values: int = 1) -> Cell:
    """A cell for what does not apply."""
    return Cell("-", (None,) * n_values)


def number_text(value: float) -> str:
    """Three decimals, or a word."""
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def signed_text(value: float) -> str:
    """Three decimals with a sign, or a word."""
    return "undefined" if math.isnan(value) else f"{value:+.3f}"


def defined(value: float) -> float | None:
    """The value, None for nan."""
    return None if math.isnan(value) else value


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table with aligned columns."""
    shown = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in (head, *shown)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, shown)]


def markdown(table: Table) -> str:
    """Title, table, notes."""
    body = grid([column.head for column in table.columns], [[cell.text for cell in row] for row in table.rows])
    notes = ["", *(f"- {note}" for note in table.notes)] if table.notes else []
    return "\n".join([f"## {table.title}", "", *body, *notes]) + "\n"


def csv_text(table: Table) -> str:
    """One line of keys, then one a row; what is not defined is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_keys(table))
    writer.writerows(list(_values(row)) for row in table.rows)
    return out.getvalue()


def json_text(table: Table) -> str:
    """Title, rows as objects, notes."""
    rows = [dict(zip(_keys(table), _values(row), strict=True)) for row in table.rows]
    held = {"table": table.name, "title": table.title, "rows": rows, "notes": list(table.notes)}
    return json.dumps(held, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def latex(table: Table) -> str:
    """A `table` environment with booktabs rules."""
    body = [" & ".join(_escaped(cell.text) for cell in row) + r" \\" for row in table.rows]
    notes = " ".join(f"{note[0].upper()}{note[1:]}." for note in table.notes)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(_escaped(column.head) for column in table.columns) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{_escaped(f'{table.title}. {notes}'.strip())}}}",
        rf"\label{{tab:{table.name}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(char, char) for char in text)


def _keys(table: Table) -> list[str]:
    return [key for column in table.columns for key in column.keys]


def _values(row: Sequence[Cell]) -> Iterator[Value]:
    for cell in row:
        yield from cell.values


def write_tables(tables: Sequence[Table], folder: Path) -> None:
    """Write every table in its four forms."""
    for table in tables:
        forms = {"md": markdown, "csv": csv_text, "tex": latex, "json": json_text}
        for suffix, form in forms.items():
            write_text(folder / f"{table.name}.{suffix}", form(table))
