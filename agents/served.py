"""What a tool server says about itself, and the records that the loop keeps of it.

Invariant: whatever comes off the wire is checked here once; past this door it has a type.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from inspect_ai.tool import ToolParams

from claims.schema import UserError

BOUND = "transcript_id"
"""The parameter that the host fills in; no predictor sees it."""


class ServerAnswerError(Exception):
    """A tool server answered something that its contract does not allow. A fault of ours or of the server."""


@dataclass(frozen=True)
class About:
    """A server's account of itself."""

    tool: str
    """Name of the tool, also the name of its arm."""
    target: str
    """Name of the target whose activations it reads."""
    weights_sha256: str
    """Hash of the tool's own weights."""
    transcripts_sha256: str
    """Hash of the transcripts it serves."""
    n_transcripts: int
    """How many it serves."""
    max_positions: int
    """Most positions it answers in one call."""
    fidelity: str
    """`demo` or `released`: whether the tool's weights are a small demonstration or published ones; `foreign` for a
    server of somebody else's."""
    offers: tuple[str, ...]
    """Names of the tools that a predictor may call."""
    description: str
    """What the tool is and what its output means, for the predictor."""
    raw: Mapping[str, object]
    """Everything the server said, for the manifest."""


@dataclass(frozen=True)
class Token:
    """One token of a transcript."""

    index: int
    """Its position."""
    text: str
    """Its printable text."""
    role: str
    """Which message it belongs to: `system`, `user`, `assistant`, `response` or `template`."""


@dataclass(frozen=True)
class TokenList:
    """The numbered tokens of one transcript."""

    tokens: tuple[Token, ...]
    """In order, from 0."""
    masked: tuple[int, ...]
    """Positions that the tool does not read (the first token, norm outliers)."""


@dataclass(frozen=True)
class ServedTool:
    """One tool as a predictor sees it."""

    name: str
    """Its name."""
    description: str
    """Its description, as served."""
    parameters: ToolParams
    """Its parameters without the bound one."""
    binds_transcript: bool
    """Whether the host must pass the transcript id."""


def _field(row: Mapping[str, object], name: str, kind: type, place: str) -> object:
    value = row.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ServerAnswerError(f"{place}: expected {name!r} to be a {kind.__name__}, found {value!r:.60}.")
    return value


def parse_about(row: Mapping[str, object]) -> About:
    """Check the answer of `about`.

    Raises:
        ServerAnswerError: A field is missing or of the wrong kind.
    """
    offers = _field(row, "offers", list, "about")
    if not isinstance(offers, list) or not offers or not all(isinstance(name, str) for name in offers):
        raise ServerAnswerError(f"about: expected 'offers' to be a list of tool names, found {offers!r:.60}.")

    def text(name: str) -> str:
        return str(_field(row, name, str, "about"))

    def count(name: str) -> int:
        return int(str(_field(row, name, int, "about")))

    return About(
        tool=text("tool"),
        target=text("target"),
        weights_sha256=text("weights_sha256"),
        transcripts_sha256=text("transcripts_sha256"),
        n_transcripts=count("n_transcripts"),
        max_positions=count("max_positions"),
        fidelity=text("fidelity"),
        offers=tuple(offers),
        description=text("description"),
        raw=row,
    )


def parse_tokens(row: Mapping[str, object]) -> TokenList:
    """Check the answer of `list_tokens`.

    Raises:
        ServerAnswerError: A field is missing or of the wrong kind, or indices do not count from 0.
    """
    tokens, masked = _field(row, "tokens", list, "list_tokens"), _field(row, "masked", list, "list_tokens")
    if not isinstance(tokens, list) or not isinstance(masked, list):
        raise ServerAnswerError("list_tokens: expected two lists.")
    parsed = []
    for index, item in enumerate(tokens):
        place = f"list_tokens, token {index}"
        if not isinstance(item, dict) or item.get("index") != index:
            raise ServerAnswerError(f"{place}: expected an object whose index is {index}, found {item!r:.60}.")
        parsed.append(Token(index, str(_field(item, "text", str, place)), str(_field(item, "role", str, place))))
    if not all(isinstance(index, int) and 0 <= index < len(parsed) for index in masked):
        raise ServerAnswerError(f"list_tokens: expected masked positions within the transcript, found {masked!r:.60}.")
    return TokenList(tuple(parsed), tuple(masked))


_PLAIN = frozenset({"string", "integer", "number", "boolean"})
_KEPT = frozenset({"type", "description", "enum", "minimum", "maximum", "default"})


def _plain_parameter(name: str, tool: str, schema: Mapping[str, object]) -> dict[str, object]:
    """Keep what every provider accepts; refuse what none of them would pass on unharmed."""
    items = schema.get("items")
    is_list = schema.get("type") == "array" and isinstance(items, Mapping) and items.get("type") in _PLAIN
    if schema.get("type") not in _PLAIN and not is_list:
        raise UserError(
            f"The tool {tool!r} has a parameter {name!r} that is neither plain nor a list of plain values: "
            f"{dict(schema)!r:.120}. Give its server flat parameters (strings, numbers, lists of them)."
        )
    kept: dict[str, object] = {key: value for key, value in schema.items() if key in _KEPT}
    kept.setdefault("description", name)
    if isinstance(items, Mapping):
        kept["items"] = {"type": items["type"]}
    return kept


def served_tool(name: str, description: str, schema: Mapping[str, object]) -> ServedTool:
    """A served tool as the predictor will see it: flat parameters, the bound one hidden.

    Raises:
        UserError: A parameter is nested.
    """
    properties = schema.get("properties") or {}
    required = schema.get("required") or []
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        raise ServerAnswerError(f"The tool {name!r} has no readable parameters: {dict(schema)!r:.120}.")
    shown = {key: _plain_parameter(key, name, value) for key, value in properties.items() if key != BOUND}
    parameters = ToolParams.model_validate(
        {"properties": shown, "required": [key for key in required if key != BOUND], "additionalProperties": False}
    )
    return ServedTool(name, description.strip(), parameters, BOUND in properties)
