"""Texts of the stages, and their foreign parts under one fence.

Invariant: every foreign text of a stage stands in a fence of `claims.fence`.
"""

from collections.abc import Sequence
from pathlib import Path

from claims.fence import Texts, code_for, part, section
from claims.schema import Message

FOLDER = Path(__file__).parent / "prompts"
CUT = "[cut here]"
"""Marks where a long text was cut."""

TEXTS = Texts(FOLDER)
text, fill = TEXTS.text, TEXTS.fill


def fenced(name: str, parts: Sequence[tuple[str, str]]) -> str:
    """A section `name` of named parts, all under one code that occurs in none of them.

    Args:
        name: What the section is, in our words.
        parts: Title (ours) and body (foreign) of each part.
    """
    code = code_for([body for _, body in parts])
    return section(code, name, "\n".join(part(code, title, body) for title, body in parts))


def message_parts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Messages as parts, numbered from 1."""
    return [(f"message {number}, {one.role}", one.content) for number, one in enumerate(messages, start=1)]


def shortened(body: str, limit: int) -> str:
    """`body`, or its beginning and its end with a mark between when it is longer than `limit` characters."""
    if len(body) <= limit:
        return body
    head = limit * 2 // 3
    return f"{body[:head]}\n{CUT}\n{body[len(body) - (limit - head) :]}"
