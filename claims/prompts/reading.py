"""From a file to prompts that end at a user turn: detects the layout, cuts what follows, counts what is no prompt.

Invariant: one row gives one reading (a PETRI log gives one a target turn), in the order of the file.
"""

from collections.abc import Iterator
from pathlib import Path

from claims.prompts.petri import is_petri, read_petri
from claims.prompts.record import Prompt, PromptsError, Reading, make_prompt
from claims.prompts.rows import read_table
from claims.prompts.shapes import UNREAD, Shape, detect, get_shape
from claims.prompts.turns import UnusableError, end_at_user, message, read_turns, with_tools
from claims.schema import Message, Row


def read_prompts(path: Path, *, format_name: str | None = None) -> Iterator[Reading]:
    """Read a file of conversations, or a log of inspect-petri.

    Args:
        path: The file.
        format_name: One of `FORMATS`; None detects it from the first row's columns.

    Raises:
        PromptsError: The file is broken, its layout is unknown, or a row has another layout than the first.
    """
    if format_name == "petri" or (format_name is None and is_petri(path)):
        return read_petri(path)
    return _read_rows(path, None if format_name is None else get_shape(format_name))


def _read_rows(path: Path, shape: Shape | None) -> Iterator[Reading]:
    for row in read_table(path, skip=UNREAD):
        shape = shape or detect(row.values, row.place)
        if shape.turns not in row.values:
            raise PromptsError(
                f"{row.place}: found the columns {sorted(row.values)}, but a {shape.name} row has {shape.turns!r}. "
                "Keep one layout a file, or give --format."
            )
        yield _reading(row, shape)


def _reading(row: Row, shape: Shape) -> Reading:
    try:
        whole = _messages(row, shape)
        messages = end_at_user(whole)
    except UnusableError as reason:
        return Reading(None, str(reason))
    cut = len(messages) < len(whole)
    source = _source(row, shape) + (f" turns 1-{len(messages)} of {len(whole)}" if cut else "")
    return Reading(make_prompt(messages, source), cut=cut)


def _messages(row: Row, shape: Shape) -> tuple[Message, ...]:
    turns = row.values[shape.turns]
    if isinstance(turns, str):
        turns = [{"role": "user", "content": turns}]
    messages = read_turns(turns, row.place)
    system = row.values.get(shape.system) if shape.system else None
    if isinstance(system, str) and system.strip():
        messages = (message("system", system), *messages)
    tools = row.values.get(shape.tools) if shape.tools else None
    if isinstance(tools, list):
        messages = with_tools(messages, [tool for tool in tools if isinstance(tool, dict)])
    return messages


def _source(row: Row, shape: Shape) -> str:
    found = next((row.values[name] for name in shape.ids if row.values.get(name) is not None), row.place)
    return str(found) if shape.name == "prompts" else f"{shape.name} {found}"


def read_all(paths: list[Path], *, format_name: str | None = None) -> Iterator[Reading]:
    """The readings of several files, one file after the other."""
    for path in paths:
        yield from read_prompts(path, format_name=format_name)


def read_saved(path: Path) -> tuple[Prompt, ...]:
    """The prompts of a file written by `save_prompts`.

    Raises:
        PromptsError: The file is broken, or a row's id is not that of its messages.
    """
    prompts = []
    for row in read_table(path):
        reading = _reading(row, get_shape("prompts"))
        if reading.prompt is None or reading.prompt.prompt_id != row.values.get("prompt_id"):
            raise PromptsError(
                f"{row.place}: prompt_id is not that of the messages. "
                "Prompts are never edited in place: collect them again."
            )
        prompts.append(reading.prompt)
    return tuple(prompts)
