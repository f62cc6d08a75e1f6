"""Investigations as data: a prompt, a yes/no behaviour with its checked program, and the edits to try.

Invariant: everything here is written before anything is sampled; an edit differs from the prompt by one factor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from claims.build.programs import Program
from claims.schema import Message

CAUSES = (
    "authority",
    "persona",
    "name",
    "number",
    "order",
    "format",
    "language",
    "wording",
    "default",
    "context",
)
"""Kinds of cause that a bank spans: authority hints, persona, names, numbers, order, format, language,
wording of one phrase, default values of tools, missing context."""

KINDS = ("delete", "swap", "add", "reorder")
"""What an edit does to the prompt."""


@dataclass(frozen=True)
class Edit:
    """One counterfactual prompt."""

    edit_id: str
    """Short slug, unique in its investigation."""
    kind: str
    """One of `KINDS`."""
    description: str
    """The edit in words, as a predictor reads it: one factor, no word about its outcome."""
    messages: tuple[Message, ...]
    """The edited prompt."""


@dataclass(frozen=True)
class Investigation:
    """All experiments on one prompt."""

    investigation_id: str
    """Unique in its bank."""
    template: str
    """The family of prompts it grew from; becomes the cluster. At most three investigations share one."""
    cause: str
    """One of `CAUSES`."""
    messages: tuple[Message, ...]
    """The original prompt."""
    behaviour: str
    """The frozen yes/no question about one response."""
    program: Program
    """Answers `behaviour`."""
    edits: tuple[Edit, ...]
    """The experiments, each one factor away from `messages`."""
    source: str = "written for this bank"
    """Where it comes from."""


EditRule = Callable[[tuple[Message, ...]], Edit]
"""Makes an edit from the original messages."""


def investigation(
    investigation_id: str,
    *,
    template: str,
    cause: str,
    prompt: str | Sequence[Message],
    behaviour: str,
    yes: Program,
    edits: Sequence[EditRule],
) -> Investigation:
    """Check and build one investigation.

    Args:
        investigation_id: Unique slug.
        template: Family of prompts, the cluster.
        cause: One of `CAUSES`.
        prompt: One user turn, or the messages.
        behaviour: Yes/no question about one response.
        yes: Program that answers it.
        edits: Results of `delete`, `swap`, `add` or `rewrite`.

    Raises:
        ValueError: An unknown cause, a repeated edit id, or an edit that changes nothing.
    """
    messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
    built = tuple(edit(messages) for edit in edits)
    ids = [edit.edit_id for edit in built]
    if cause not in CAUSES:
        raise ValueError(f"{investigation_id}: unknown cause {cause!r}; expected one of {CAUSES}")
    if len(set(ids)) < len(ids):
        raise ValueError(f"{investigation_id}: edit ids must be unique, found {ids}")
    for edit in built:
        if edit.messages == messages:
            raise ValueError(f"{investigation_id}/{edit.edit_id}: the edit changes nothing")
    return Investigation(investigation_id, template, cause, messages, behaviour, yes, built)


def swap(edit_id: str, old: str, new: str, description: str, *, kind: str = "swap") -> EditRule:
    """Replace the only occurrence of `old` in the whole prompt by `new`."""

    def edit(messages: tuple[Message, ...]) -> Edit:
        count = sum(message.content.count(old) for message in messages)
        if count != 1:
            raise ValueError(f"edit {edit_id!r}: {old!r} must occur once in the prompt, found {count} times")
        edited = tuple(Message(m.role, m.content.replace(old, new)) for m in messages)
        return Edit(edit_id, kind, description, tuple(m for m in edited if m.content.strip()))

    return edit


def delete(edit_id: str, old: str, description: str) -> EditRule:
    """Remove the only occurrence of `old`; a message left empty goes too."""
    return swap(edit_id, old, "", description, kind="delete")


def add(edit_id: str, after: str, new: str, description: str) -> EditRule:
    """Insert `new` right after the only occurrence of `after`."""
    return swap(edit_id, after, after + new, description, kind="add")


def rewrite(edit_id: str, kind: str, prompt: str | Sequence[Message], description: str) -> EditRule:
    """Use a whole new prompt, for reorderings and edits of several turns."""
    messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
    if kind not in KINDS:
        raise ValueError(f"edit {edit_id!r}: unknown kind {kind!r}; expected one of {KINDS}")
    return lambda _original: Edit(edit_id, kind, description, messages)
