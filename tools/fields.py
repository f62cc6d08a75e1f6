"""Facts in a file that somebody else wrote, taken out one by one and checked on the way.

Invariant: what comes out has the type asked for; what does not fit is named with its place in the file.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from claims.schema import UserError


class Fields:
    """Facts by their path in a parsed file. An alternative path is taken where the first holds nothing."""

    def __init__(self, stored: object, path: Path) -> None:
        """Hold what was parsed from `path`."""
        self._stored = stored
        self._path = path

    def get(self, path: str) -> object:
        """Whatever is at the dotted `path`; None where there is nothing."""
        value = self._stored
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def has(self, path: str) -> bool:
        """Whether anything is there."""
        return self.get(path) is not None

    def _first(self, paths: Sequence[str]) -> object:
        return next((value for path in paths if (value := self.get(path)) is not None), None)

    def _wrong(self, paths: Sequence[str], kind: str) -> UserError:
        return UserError(
            f"{self._path}: {' or '.join(paths)} is {self._first(paths)!r:.60}. Expected {kind}. The checkpoint is not "
            "whole or of another format: download or train it again."
        )

    def text(self, *paths: str) -> str:
        """A text that is not empty.

        Raises:
            UserError: It is none.
        """
        value = self._first(paths)
        if not isinstance(value, str) or not value:
            raise self._wrong(paths, "a text")
        return value

    def whole(self, *paths: str, least: int = 0) -> int:
        """A whole number from `least`.

        Raises:
            UserError: It is none.
        """
        value = self._first(paths)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(paths, f"a whole number from {least}")
        return value

    def number(self, *paths: str) -> float:
        """A number from 0.

        Raises:
            UserError: It is none.
        """
        value = self._first(paths)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise self._wrong(paths, "a number from 0")
        return float(value)

    def positive(self, *paths: str) -> float:
        """A number above 0.

        Raises:
            UserError: It is none.
        """
        value = self.number(*paths)
        if value == 0:
            raise self._wrong(paths, "a number above 0")
        return value

    def wholes(self, path: str) -> tuple[int, ...]:
        """A list of whole numbers from 0, at least one.

        Raises:
            UserError: It is none.
        """
        value = self.get(path)
        if not isinstance(value, list) or not value or not all(type(item) is int and item >= 0 for item in value):
            raise self._wrong((path,), "a list of whole numbers from 0")
        return tuple(value)


def read_fields(path: Path, what: str) -> Fields:
    """Parse a JSON or YAML file.

    Args:
        path: The file; its name says which format.
        what: What it should be, for the error.

    Raises:
        UserError: It is absent or cannot be parsed.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return Fields(json.loads(text) if path.suffix == ".json" else yaml.safe_load(text), path)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(
            f"{path} cannot be read ({str(error).splitlines()[0]}). Expected {what}. Download or train it again."
        ) from error
