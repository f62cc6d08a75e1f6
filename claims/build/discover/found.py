"""Discovered investigations as rows of a file.

Invariant: a row holds all that its investigation is made of, and how often its habit was seen when it was found.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from claims.atomic import json_lines, write_atomically
from claims.build.discover.habits import FORMS, Habit
from claims.build.spec import KINDS, Edit, Investigation
from claims.schema import ClaimsError, Message, Row, message_rows, read_messages, read_rows

FILE = "discovered.jsonl"
"""In the package of a target's investigations."""


@dataclass(frozen=True)
class Found:
    """One habit of one prompt with the edits to try."""

    prompt_id: str
    """Of the prompt; two habits of one prompt share it."""
    messages: tuple[Message, ...]
    """The prompt."""
    habit: Habit
    """The behaviour."""
    edits: tuple[Edit, ...]
    """What to try."""
    n_yes: int
    """Responses that showed the habit when it was found."""
    n: int
    """Responses it was found in."""
    seed: int
    """Under which they were sampled; the bank uses others."""
    source: str
    """Where the prompt is from."""

    def investigation(self) -> Investigation:
        """As the builder measures it; its prompt is its cluster."""
        name = f"auto-{self.prompt_id[:10]}"
        return Investigation(
            investigation_id="-".join([name, self.habit.form, *self.habit.words]).lower().replace(" ", "-"),
            template=name,
            cause=FORMS[self.habit.form].cause,
            messages=self.messages,
            behaviour=self.habit.question,
            program=self.habit.program,
            edits=self.edits,
            source=f"discovered; {self.source}",
        )


def save_found(found: Iterable[Found], path: Path) -> None:
    """Write the file as a whole."""
    write_atomically(path, json_lines(_row(one) for one in found))


def _row(one: Found) -> dict[str, object]:
    edits = [{**asdict(edit), "messages": message_rows(edit.messages)} for edit in one.edits]
    rest = {name: getattr(one, name) for name in ("prompt_id", "n_yes", "n", "seed", "source")}
    return {**rest, **asdict(one.habit), "messages": message_rows(one.messages), "edits": edits}


def read_found(path: Path) -> tuple[Found, ...]:
    """Read the file; an absent file holds nothing.

    Raises:
        ClaimsError: A row is not what `save_found` writes.
    """
    return tuple(_found(row) for row in read_rows(path)) if path.exists() else ()


def _found(row: Row) -> Found:
    form = row.text("form")
    if form not in FORMS:
        raise ClaimsError(f"{row.place}: unknown form of habit {form!r}. Expected one of {', '.join(FORMS)}.")
    return Found(
        prompt_id=row.text("prompt_id"),
        messages=read_messages(row),
        habit=Habit(form, row.texts("words")),
        edits=tuple(_edit(edit) for edit in row.rows("edits")),
        n_yes=row.count("n_yes"),
        n=row.count("n"),
        seed=row.count("seed"),
        source=row.text("source"),
    )


def _edit(row: Row) -> Edit:
    kind = row.text("kind")
    if kind not in KINDS:
        raise ClaimsError(f"{row.place}: unknown kind of edit {kind!r}. Expected one of {', '.join(KINDS)}.")
    return Edit(row.text("edit_id"), kind, row.text("description"), read_messages(row))
