"""The layouts of prompt files as a table: which columns hold what, and by which columns a layout is known.

Invariant: the table is data; adding a layout that has turns in a column is adding a row.
"""

from collections.abc import Collection
from dataclasses import dataclass

from claims.prompts.record import PromptsError


@dataclass(frozen=True)
class Shape:
    """One layout of a prompt file."""

    name: str
    """What `--format` calls it, and what the source of each prompt starts with."""
    turns: str
    """Column with the list of turns, or with the one user turn as text."""
    known_by: tuple[frozenset[str], ...]
    """Sets of columns; a first row that has all of one of them is of this layout. Empty: only by `--format`."""
    ids: tuple[str, ...]
    """Columns that may hold the row's id in its source, best first."""
    system: str | None = None
    """Column with the system prompt, where it stands apart from the turns."""
    tools: str | None = None
    """Column with the tools' definitions, where the turns do not hold them."""


def _sets(*columns: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(names.split()) for names in columns)


SHAPES = (
    Shape("prompts", "messages", _sets("prompt_id messages source"), ids=("source",)),
    Shape(
        "wildchat",
        "conversation",
        _sets("conversation conversation_hash", "conversation toxic"),
        ids=("conversation_hash", "conversation_id"),
    ),
    Shape("lmsys", "conversation", _sets("conversation conversation_id"), ids=("conversation_id",)),
    Shape("toolace", "conversations", _sets("conversations system"), ids=("id",), system="system"),
    Shape(
        "hermes",
        "conversations",
        _sets("conversations tools", "conversations subcategory", "conversations schema"),
        ids=("id",),
    ),
    Shape("sharegpt", "conversations", _sets("conversations"), ids=("id",)),
    Shape("systemchat", "messages", (), ids=("id",)),
    Shape("messages", "messages", _sets("messages"), ids=("id", "prompt_id", "uid"), tools="tools"),
    Shape("question", "prompt", _sets("uid prompt"), ids=("uid",)),
)
"""All layouts, in the order in which a first row is tried. SystemChat's columns are those of plain messages."""

UNREAD = ("openai_moderation", "detoxify_moderation")
"""Columns that weigh most of a file of WildChat or LMSYS and that nothing here needs."""

FORMATS = (*(shape.name for shape in SHAPES), "petri")
"""What `--format` accepts; `petri` are logs of the package inspect-petri."""


def get_shape(name: str) -> Shape:
    """The layout of that name.

    Raises:
        PromptsError: There is none.
    """
    for shape in SHAPES:
        if shape.name == name:
            return shape
    raise PromptsError(f"Unknown format {name!r}. Expected one of {', '.join(FORMATS)}.")


def detect(columns: Collection[str], place: str) -> Shape:
    """The layout of a file by the columns of its first row.

    Raises:
        PromptsError: No layout has these columns.
    """
    for shape in SHAPES:
        if any(marks <= set(columns) for marks in shape.known_by):
            return shape
    raise PromptsError(
        f"{place}: no known layout has the columns {sorted(columns)}. Expected turns under conversation, conversations "
        f"or messages, or uid and prompt. Rename a column, or give --format ({', '.join(FORMATS)})."
    )
