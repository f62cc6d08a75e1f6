"""The records every package shares: messages, transcripts, claims, and the error a user can act on.

Invariant: nothing here can hold a label. What a predictor may see has a field; what it may not, has none.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


class UserError(Exception):
    """A mistake that the user can mend; the text says what was found, what was expected, what to do.

    The command line prints the text and exits with status 2. It is never shown as a traceback.
    """


class ClaimsError(UserError):
    """A claims folder that cannot be used as it is."""


@dataclass(frozen=True)
class Message:
    """One turn of a prompt."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str
    """The text of the turn."""


@dataclass(frozen=True)
class Transcript:
    """The prompt messages plus one response that the target sampled."""

    transcript_id: str
    """Unique in its claim set."""
    messages: tuple[Message, ...]
    """The prompt; its last turn is the one the target answered."""
    reasoning: str | None
    """The visible chain of thought of a thinking target, else None."""
    response: str
    """The sampled answer, without special tokens."""
    token_ids: tuple[int, ...]
    """Prompt and response as the target saw and sampled them; positions index into this."""
    source: str
    """Where the prompt came from."""


@dataclass(frozen=True)
class Claim:
    """What a predictor may see of one experiment."""

    claim_id: str
    """Unique in its claim set."""
    cluster_id: str
    """What is resampled and held out together: the family of prompts that this one grew from."""
    investigation_id: str
    """All experiments on one transcript share it."""
    transcript_id: str
    """The transcript the claim is about."""
    behaviour: str
    """A yes/no question about one response."""
    baseline_rate: float
    """Share of yes on the original prompt, in [0, 1]."""
    intervention: str
    """The edit of the prompt, described without its outcome."""


class Row:
    """One JSON object of a JSON Lines file, read field by field with errors that name the place."""

    def __init__(self, values: Mapping[str, object], place: str) -> None:
        """Hold `values`, found at `place` ("claims.jsonl line 3")."""
        self.values = values
        self.place = place

    def _get(self, name: str) -> object:
        if name not in self.values:
            found = ", ".join(sorted(self.values)) or "nothing"
            raise ClaimsError(f"{self.place}: the field {name!r} is missing (found: {found}). Add it.")
        return self.values[name]

    def _wrong(self, name: str, expected: str) -> ClaimsError:
        found = json.dumps(self.values[name], ensure_ascii=False, default=str)[:80]
        return ClaimsError(f"{self.place}: {name!r} must be {expected}, but it is {found}.")

    def text(self, name: str) -> str:
        """A non-empty string."""
        value = self._get(name)
        if not isinstance(value, str) or not value:
            raise self._wrong(name, "a non-empty string")
        return value

    def any_text(self, name: str) -> str:
        """A string, the empty one included."""
        value = self._get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def optional_text(self, name: str) -> str | None:
        """A string or null; null when the field is absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a string or null")
        return value

    def share(self, name: str) -> float:
        """A number in [0, 1]."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise self._wrong(name, "a number from 0 to 1")
        return float(value)

    def count(self, name: str) -> int:
        """An integer of at least 0."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._wrong(name, "an integer of at least 0")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def ids(self, name: str) -> tuple[int, ...]:
        """A non-empty list of token ids."""
        value = self._get(name)
        if not isinstance(value, list) or not value or not all(_is_id(item) for item in value):
            raise self._wrong(name, "a non-empty list of token ids")
        return tuple(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings, the empty list included."""
        value = self._get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of strings")
        return tuple(value)

    def rows(self, name: str) -> tuple["Row", ...]:
        """A non-empty list of objects."""
        value = self._get(name)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self._wrong(name, "a non-empty list of objects")
        return tuple(Row(item, f"{self.place}, {name}[{i}]") for i, item in enumerate(value))


def _is_id(item: object) -> bool:
    return isinstance(item, int) and not isinstance(item, bool) and item >= 0


def read_rows(path: Path) -> Iterator[Row]:
    r"""Yield the objects of a JSON Lines file, split on the byte `\n` only.

    `str.splitlines` would also break at U+2028 and U+0085, which are legal inside JSON strings.

    Raises:
        ClaimsError: The file is absent, not UTF-8, or a line is not a JSON object.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise ClaimsError(f"{path} does not exist. Expected a claims folder with {path.name} in it.") from None
    except OSError as error:
        raise ClaimsError(f"{path} cannot be read: {error.strerror}.") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield Row(_parse(line, f"{path.name} line {number}"), f"{path.name} line {number}")


def _parse(line: bytes, place: str) -> dict[str, object]:
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ClaimsError(f"{place}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from None
    except json.JSONDecodeError as error:
        raise ClaimsError(
            f"{place}: not JSON ({error.msg} at column {error.colno}). Mend or remove the line."
        ) from None
    if not isinstance(values, dict):
        raise ClaimsError(f"{place}: expected a JSON object, found {type(values).__name__}.")
    return values


def message_rows(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    """Messages as JSON-ready dictionaries, the inverse of `read_messages`."""
    return [{"role": message.role, "content": message.content} for message in messages]


def read_messages(row: Row, name: str = "messages") -> tuple[Message, ...]:
    """The messages stored under `name`.

    Raises:
        ClaimsError: The field is absent, empty, or a message lacks its role or content.
    """
    return tuple(Message(item.text("role"), item.any_text("content")) for item in row.rows(name))


def read_transcripts(path: Path) -> dict[str, Transcript]:
    """Read `transcripts.jsonl` into a mapping from transcript id.

    Raises:
        ClaimsError: A line is broken, a field is missing or of the wrong kind, or an id comes twice.
    """
    transcripts: dict[str, Transcript] = {}
    for row in read_rows(path):
        transcript = Transcript(
            transcript_id=row.text("transcript_id"),
            messages=read_messages(row),
            reasoning=row.optional_text("reasoning"),
            response=row.any_text("response"),
            token_ids=row.ids("token_ids"),
            source=row.text("source"),
        )
        if transcript.transcript_id in transcripts:
            raise ClaimsError(
                f"{row.place}: transcript_id {transcript.transcript_id!r} comes twice. Ids must be unique."
            )
        transcripts[transcript.transcript_id] = transcript
    return transcripts
