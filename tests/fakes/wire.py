"""What the four wires have in common: requests, refusals, replies, and the schemas of tools."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tests.fakes.bill import PromptCache, Usage, tokens
from tests.fakes.script import Say, Turn

Json = dict  # whatever JSON holds: the fakes look at every field themselves


class RefusedError(Exception):
    """The provider answers an error, because of the request or in place of a reply."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


def refuse(message: str, status: int = 400, code: str = "") -> None:
    raise RefusedError(status, message, code)


def need(holds: object, message: str, status: int = 400, code: str = "") -> None:
    """Refuse unless something holds."""
    if not holds:
        refuse(message, status, code)


@dataclass(frozen=True)
class Request:
    """One POST."""

    path: str
    """Below the family's base path, without the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Json
    raw: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()


@dataclass(frozen=True)
class Answer:
    """What goes back."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> "Answer":
        return Answer(status, json.dumps(value, ensure_ascii=False).encode("utf-8"), headers=headers or {})


def sse(events: Iterator[Json] | list[Json], *, named: bool, end: str = "") -> Answer:
    """Server-sent events."""
    lines = [(f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in events]
    return Answer(200, ("".join(lines) + end).encode("utf-8"), "text/event-stream")


class Wire(Protocol):
    """One family."""

    name: str

    def free(self, request: Request) -> Answer | None:
        """The answer to a request that costs nothing (counting tokens, listing models); None for any other."""

    def check(self, request: Request) -> Turn:
        """What the script is shown, once every rule holds; else RefusedError."""

    def usage(self, request: Request, cache: PromptCache, say: Say) -> Usage:
        """What the request costs."""

    def answer(self, request: Request, say: Say, usage: Usage) -> Answer:
        """The reply."""

    def error(self, refused: RefusedError, retry_after_s: float | None) -> Answer:
        """An error as the family words it."""


SECRET = b"fake provider"


def sign(*parts: str) -> str:
    """A signature that only the provider can make."""
    return hmac.new(SECRET, "\x00".join(parts).encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def written(say: Say, reasons: bool, calls: str) -> tuple[int, int]:
    """Visible tokens and tokens of reasoning; what a reply spends beyond its words is reasoning where there is any."""
    visible = tokens(say.text) + tokens(calls)
    thought = tokens(say.thought) if reasons else 0
    return (visible, thought + say.spent) if reasons else (visible + say.spent, 0)


def retry_header(retry_after_s: float | None) -> dict[str, str]:
    return {} if retry_after_s is None else {"retry-after": f"{retry_after_s:g}"}


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PLAIN = ("string", "integer", "number", "boolean", "array", "object")


def check_name(name: object, place: str) -> None:
    need(isinstance(name, str) and _NAME.fullmatch(name), f"{place}: String should match pattern '{_NAME.pattern}'")


def walk(schema: Json, path: str = "parameters") -> Iterator[tuple[str, Json]]:
    """A JSON schema and all schemas in it, each with its path."""
    yield path, schema
    for name, inner in (schema.get("properties") or {}).items():
        yield from walk(inner, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        yield from walk(schema["items"], f"{path}.items")
    for key in ("anyOf", "oneOf", "allOf"):
        for place, inner in enumerate(schema.get(key) or []):
            yield from walk(inner, f"{path}.{key}[{place}]")


def check_object(schema: object, place: str) -> None:
    """A tool's parameters are an object whose required names exist and whose arrays have items."""
    need(isinstance(schema, dict) and schema.get("type") in ("object", "OBJECT"), f"{place}: Input should be 'object'")
    assert isinstance(schema, dict)
    for path, inner in walk(schema, place):
        missing = [name for name in inner.get("required") or [] if name not in (inner.get("properties") or {})]
        need(not missing, f"{path}: required names {missing}, which properties lacks")
        is_array = str(inner.get("type", "")).lower() == "array"
        need(not is_array or isinstance(inner.get("items"), dict), f"{path}: array schema missing items")
