"""What the tools that generate text have in common: seeds, and how an answer is shown.

Invariant: an answer is one line of bounded length, and whatever is not as it should be is said before its text.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tools.readings import Reading

TOKEN_CHARS = 40
"""A longer token, such as a run of blanks, is cut."""


@dataclass(frozen=True)
class Line:
    """Text on one line."""

    text: str
    """Every stretch of white space is one blank; what cannot be printed is its escape."""
    shortened: bool
    """Whether its end is missing."""


def one_line(text: str, *, limit: int) -> Line:
    """`text` on one line of at most `limit` characters."""
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in " ".join(text.split()))
    return Line(line if len(line) <= limit else line[: limit - 3] + "...", len(line) > limit)


def notes(*, cut: bool, max_tokens: int, shortened: bool, raw: bool = False) -> str:
    """What a reader must know about an answer, in brackets; nothing if all is well.

    Args:
        cut: Whether decoding ran into its limit.
        max_tokens: That limit.
        shortened: Whether its line was cut.
        raw: Whether it was not in the form that it should have.
    """
    said = [
        *(["not in the expected form, shown as it came"] if raw else []),
        *([f"cut off after {counted(max_tokens, 'token')}"] if cut else []),
        *(["shortened"] if shortened else []),
    ]
    return f" ({'; '.join(said)})" if said else ""


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 token, 5 tokens."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown_token(reading: Reading, position: int) -> str:
    """A token as every tool shows it: `[5] " Paris"`."""
    text = reading.texts[position]
    return f'[{position}] "{text if len(text) <= TOKEN_CHARS else text[: TOKEN_CHARS - 3] + "..."}"'


def seed_of(transcript_id: str, layer: int, positions: Sequence[int], question: str = "") -> int:
    """The seed of one answer: a function of what was asked, and of nothing else."""
    key = f"{transcript_id}\n{layer}\n{','.join(map(str, positions))}\n{question}"
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big")
