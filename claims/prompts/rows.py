r"""Rows of JSON, JSON Lines, Parquet and CSV files, one at a time, each with the place it came from.

Invariant: JSON Lines are split on the byte `\n` only; a broken line stops the reading with file and line.
"""

import csv
import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from claims.prompts.record import PromptsError
from claims.schema import Row

SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".csv")
"""File names that can be read, by their ending."""

_BOM = b"\xef\xbb\xbf"


def read_table(path: Path, *, skip: Collection[str] = ()) -> Iterator[Row]:
    """Yield the rows of a file as objects; the kind of file is taken from its ending.

    A `.json` file holds one array of objects, or JSON Lines (the hub has both under that name).

    Args:
        path: The file.
        skip: Columns of a Parquet file that need not be read.

    Raises:
        PromptsError: The file is absent, of an unknown kind, or broken; the text names the line or row.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise PromptsError(f"{path}: cannot read a {suffix or 'nameless'} file. Expected one of {', '.join(SUFFIXES)}.")
    if not path.is_file():
        raise PromptsError(f"{path} is not a file. Give the path of a {', '.join(SUFFIXES)} file.")
    if suffix == ".parquet":
        return _parquet(path, frozenset(skip))
    if suffix == ".csv":
        return _csv(path)
    if suffix == ".json" and _starts_array(path):
        return _array(path)
    return _lines(path)


def _starts_array(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4096).removeprefix(_BOM).lstrip().startswith(b"[")


def _lines(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            content = (line.removeprefix(_BOM) if number == 1 else line).rstrip(b"\r\n")
            if content.strip():
                place = f"{path.name} line {number}"
                yield _row(_decode(content, place), place)


def _decode(content: bytes, place: str) -> object:
    try:
        return json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise PromptsError(f"{place}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from None
    except json.JSONDecodeError as error:
        where = place if error.lineno == 1 else f"{place}, line {error.lineno}"
        raise PromptsError(f"{where}: not JSON ({error.msg} at column {error.colno}). Mend or remove it.") from None


def _array(path: Path) -> Iterator[Row]:
    items = _decode(path.read_bytes().removeprefix(_BOM), path.name)
    if isinstance(items, list):  # always: the text starts with a bracket
        for number, item in enumerate(items, start=1):
            place = f"{path.name} item {number}"
            yield _row(item, place)


def _row(item: object, place: str) -> Row:
    if not isinstance(item, dict):
        raise PromptsError(f"{place}: expected a JSON object, found {type(item).__name__}. Mend or remove it.")
    return Row(item, place)


def _parquet(path: Path, skip: frozenset[str]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name not in skip]
            for batch in file.iter_batches(batch_size=256, columns=columns):
                for item in batch.to_pylist():
                    number += 1
                    yield Row(item, f"{path.name} row {number}")
    except (pa.ArrowException, OSError) as error:
        where = f"{path.name} after row {number}" if number else str(path)
        raise PromptsError(f"{where}: not a whole Parquet file ({error}). Fetch or write it again.") from None


def _csv(path: Path) -> Iterator[Row]:
    # A transcript in one cell is longer than the default limit of 131,072 characters.
    csv.field_size_limit(sys.maxsize)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for item in reader:
                place = f"{path.name} line {reader.line_num}"
                if None in item or None in item.values():
                    raise PromptsError(
                        f"{place}: expected {len(reader.fieldnames or ())} cells as in the header. Mend the line."
                    )
                yield Row(item, place)
    except UnicodeDecodeError as error:
        raise PromptsError(f"{path.name}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from None
    except csv.Error as error:
        raise PromptsError(f"{path.name} line {reader.line_num}: not CSV ({error}). Mend the line.") from None
