"""What an edit changed, word by word.

Invariant: the kept and removed words of a diff are the old text, its kept and added words the new one.
"""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from claims.schema import Message

Kind = Literal["same", "removed", "added"]
_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
MAX_CELLS = 4_000_000
"""Above this many pairs of words a diff goes by lines, which takes no time."""


@dataclass(frozen=True)
class Piece:
    """A stretch of a diff."""

    kind: Kind
    """Whether both texts have it, or which."""
    text: str
    """The words."""


@dataclass(frozen=True)
class MessageDiff:
    """One message before and after."""

    role: str
    """Of the message."""
    kind: Kind
    """`same` for a message that both prompts have, changed or not."""
    pieces: tuple[Piece, ...]
    """Its words."""

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return any(piece.kind != "same" for piece in self.pieces)


def diff_words(old: str, new: str) -> tuple[Piece, ...]:
    """The difference of two texts."""
    a, b = _WORD.findall(old), _WORD.findall(new)
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    a_mid, b_mid = a[head : len(a) - tail], b[head : len(b) - tail]
    if len(a_mid) * len(b_mid) > MAX_CELLS:
        a_mid, b_mid = _LINE.findall("".join(a_mid)), _LINE.findall("".join(b_mid))
    pieces = [("same", a[:head]), *_opcodes(a_mid, b_mid), ("same", a[len(a) - tail :])]
    return _joined(pieces)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _opcodes(a: list[str], b: list[str]) -> list[tuple[Kind, list[str]]]:
    found: list[tuple[Kind, list[str]]] = []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        found += [("same", a[a0:a1])] if tag == "equal" else [("removed", a[a0:a1]), ("added", b[b0:b1])]
    return found


def _joined(pieces: Sequence[tuple[Kind, Sequence[str]]]) -> tuple[Piece, ...]:
    joined: list[Piece] = []
    for kind, words in pieces:
        text = "".join(words)
        if text and joined and joined[-1].kind == kind:
            joined[-1] = Piece(kind, joined[-1].text + text)
        elif text:
            joined.append(Piece(kind, text))
    return tuple(joined)


def diff_messages(old: Sequence[Message], new: Sequence[Message]) -> tuple[MessageDiff, ...]:
    """The difference of two prompts: messages paired in order where they are alike, the others removed or added."""
    diffs = []
    for before, after in _paired(old, new):
        if before and after:
            diffs.append(MessageDiff(after.role, "same", diff_words(before.content, after.content)))
        elif before:
            diffs.append(MessageDiff(before.role, "removed", (Piece("removed", before.content),)))
        elif after:
            diffs.append(MessageDiff(after.role, "added", (Piece("added", after.content),)))
    return tuple(diffs)


Pair = tuple[Message | None, Message | None]


def _paired(old: Sequence[Message], new: Sequence[Message]) -> list[Pair]:
    """The pairing in order that shares the most words; leaving a message alone shares none."""
    best: dict[tuple[int, int], tuple[float, list[Pair]]] = {(0, 0): (0.0, [])}
    for i in range(len(old) + 1):
        for j in range(len(new) + 1):
            options = []
            if i and j and old[i - 1].role == new[j - 1].role:
                shared, pairs = best[i - 1, j - 1]
                options.append((shared + _alike(old[i - 1], new[j - 1]), [*pairs, (old[i - 1], new[j - 1])]))
            if j:
                options.append((best[i, j - 1][0], [*best[i, j - 1][1], (None, new[j - 1])]))
            if i:
                options.append((best[i - 1, j][0], [*best[i - 1, j][1], (old[i - 1], None)]))
            if options:
                best[i, j] = max(options, key=lambda option: option[0])
    return best[len(old), len(new)][1]


def _alike(one: Message, other: Message) -> float:
    """Share of words in common; a little above 0 for messages of one role that share none."""
    a, b = Counter(one.content.split()), Counter(other.content.split())
    return 0.01 + 2 * (a & b).total() / max(1, a.total() + b.total())


def n_changed(diffs: Sequence[MessageDiff]) -> int:
    """Characters that were removed or added."""
    return sum(len(piece.text) for diff in diffs for piece in diff.pieces if piece.kind != "same")
