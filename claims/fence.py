"""Texts that models are given, and the fence around everything in them that was not written by us.

Invariant: foreign text stands between lines that carry a code which the text cannot contain, so nothing inside can
end its own section or start another.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").removesuffix("\n")


@dataclass(frozen=True)
class Texts:
    """A folder of texts with `$placeholders`."""

    folder: Path
    """Holds one file a text."""

    def text(self, name: str) -> str:
        """The file `name` of the folder, without its last line break."""
        return _read(self.folder / name)

    def fill(self, name: str, **values: str) -> str:
        """The file `name` with its `$placeholders` filled in; every placeholder must be given."""
        return Template(self.text(name)).substitute(values)


def code_for(contents: Sequence[str]) -> str:
    """Twelve hexadecimal digits, a function of `contents`, that occur in none of them."""
    digest = hashlib.sha256("\x00".join(contents).encode("utf-8", "surrogatepass")).hexdigest()
    while any(digest[:12] in content for content in contents):
        digest = hashlib.sha256(digest.encode("ascii")).hexdigest()
    return digest[:12]


def section(code: str, name: str, body: str) -> str:
    """`body` between two lines that carry `code`."""
    return f"=== {code} {name} begins ===\n{body}\n=== {code} {name} ends ==="


def part(code: str, name: str, body: str) -> str:
    """`body` under a line that carries `code`, inside a section."""
    return f"--- {code} {name} ---\n{body}"
