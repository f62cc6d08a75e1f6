"""Which turns a template is given: the one policy for messages that it has no place for.

Invariant: nothing is dropped and nothing is reworded. A turn is kept, joined to the next with a blank line, or the
prompt is refused with an error; what was joined is named, so that it can be counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from claims.schema import Message, UserError
from tools.targets import Chat, Target

JOINT = "\n\n"
"""Stands between messages that share a turn."""


@dataclass(frozen=True)
class Turn:
    """One turn as the template sees it."""

    role: str
    """A role that the template renders."""
    members: tuple[int, ...]
    """Indices of the messages whose contents it holds, in order."""


@dataclass(frozen=True)
class Turns:
    """A prompt that the template can render."""

    turns: tuple[Turn, ...]
    """In order; the last is not the assistant's."""
    changes: tuple[str, ...]
    """What was joined, one line each; empty for a prompt that fitted as it was."""


def fit_roles(target: Target, messages: Sequence[Message]) -> Turns:
    """Fit `messages` to the roles that the target's template has.

    - A system message is a turn of its own where the template has that role and it comes first; otherwise it is
      put before the next user message, in the same turn.
    - Neighbours of one role share a turn where the template wants roles to alternate.
    - A role that the template lacks, an assistant's turn in last place, or in first place where roles alternate,
      is refused.

    Raises:
        UserError: The prompt is refused.
    """
    if not messages:
        raise UserError(f"A prompt for {target.name} has no messages. Expected at least one, from the user.")
    turns: list[Turn] = []
    changes: list[str] = []
    waiting: tuple[int, ...] = ()
    for index, message in enumerate(messages):
        _check_role(target.chat, target.name, index, message)
        if message.role == "system" and not (index == 0 and "system" in target.chat.roles):
            waiting = (*waiting, index)
        elif waiting and message.role == "user":
            changes.append(f"system message {', '.join(map(str, waiting))} joined to user message {index}")
            turns.append(Turn("user", (*waiting, index)))
            waiting = ()
        else:
            turns.append(Turn(message.role, (index,)))
    _check_ends(target, turns, waiting)
    if target.chat.alternate:
        turns = _merge_neighbours(turns, changes)
        _check_first(target, turns)
    return Turns(tuple(turns), tuple(changes))


def _check_role(chat: Chat, name: str, index: int, message: Message) -> None:
    allowed = {"system", *chat.roles}
    if message.role not in allowed:
        raise UserError(
            f"Message {index} of a prompt for {name} has the role {message.role!r}, which its template cannot render. "
            f"Expected one of: {', '.join(sorted(allowed))}. Rewrite the message or leave this prompt out."
        )


def _check_ends(target: Target, turns: Sequence[Turn], waiting: tuple[int, ...]) -> None:
    if waiting:
        raise UserError(
            f"System message {waiting[0]} of a prompt for {target.name} has no user message after it to be joined to. "
            "Expected one. Move the system message to the front or add the user's turn."
        )
    if turns[-1].role in ("assistant", "system"):
        raise UserError(
            f"The last message of a prompt for {target.name} is the {turns[-1].role}'s. Expected the user's (or a "
            "tool's), for the target to answer. Remove the last message or add a user's."
        )


def _check_first(target: Target, turns: Sequence[Turn]) -> None:
    if turns[0].role != "user":
        raise UserError(
            f"The first message of a prompt for {target.name} is the {turns[0].role}'s. Its template wants the "
            "user's. Remove the first message or put a user's before it."
        )


def _merge_neighbours(turns: Sequence[Turn], changes: list[str]) -> list[Turn]:
    merged: list[Turn] = []
    for turn in turns:
        if merged and merged[-1].role == turn.role:
            changes.append(f"{turn.role} message {turn.members[0]} joined to message {merged[-1].members[-1]}")
            merged[-1] = Turn(turn.role, merged[-1].members + turn.members)
        else:
            merged.append(turn)
    return merged
