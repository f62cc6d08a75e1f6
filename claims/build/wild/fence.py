"""Texts of the stages, and the fence around everything in them that was not written by us.

Invariant: foreign text stands between lines that carry a code which the text cannot contain, so nothing inside can
end its own section or start another. `agents.prompts` has its own copy of the four smallest functions: `claims` may
not import `agents`.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from string import Template

from claims.schema import Message

FOLDER = Path(__file__).parent / "prompts"
CUT = "[cut here]"
"""Marks where a long text was cut."""


@cache
def text(name: str) -> str:
    """The file `name` of the prompts folder, without its last line break."""
    return (FOLDER / name).read_text(encoding="utf-8").removesuffix("\n")


def fill(name: str, **values: str) -> str:
    """The file `name` with its `$placeholders` filled in; every placeholder must be given."""
    return Template(text(name)).substitute(values)


def code_for(contents: Sequence[str]) -> str:
    """Twelve hexadecimal digits, a function of `contents`, that occur in none of them."""
    digest = hashlib.sha256("\x00".join(contents).encode("utf-8", "surrogatepass")).hexdigest()
    while any(digest[:12] in content for content in contents):
        digest = hashlib.sha256(digest.encode("ascii")).hexdigest()
    return digest[:12]


def fenced(name: str, parts: Sequence[tuple[str, str]]) -> str:
    """A section `name` of named parts, all under one code that occurs in none of them.

    Args:
        name: What the section is, in our words.
        parts: Title (ours) and body (foreign) of each part.
    """
    code = code_for([body for _, body in parts])
    lines = [line for title, body in parts for line in (f"--- {code} {title} ---", body)]
    return "\n".join([f"=== {code} {name} begins ===", *lines, f"=== {code} {name} ends ==="])


def message_parts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Messages as parts, numbered from 1."""
    return [(f"message {number}, {one.role}", one.content) for number, one in enumerate(messages, start=1)]


def shortened(body: str, limit: int) -> str:
    """`body`, or its beginning and its end with a mark between when it is longer than `limit` characters."""
    if len(body) <= limit:
        return body
    head = limit * 2 // 3
    return f"{body[:head]}\n{CUT}\n{body[len(body) - (limit - head) :]}"
