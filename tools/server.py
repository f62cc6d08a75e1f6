"""The MCP server that every tool shares: what it is (`about`), what can be pointed at (`list_tokens`), the tool.

Invariant: read-only. A server answers questions about registered transcripts and takes no other text or token.
A predictor's mistake is an error result; a fault of ours is a JSON-RPC error, never text for a predictor.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Protocol

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from tools.readings import Readings
from tools.sham import ShamReadings

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Offer:
    """One MCP tool that a predictor may call."""

    name: str
    """Its name on the wire."""
    description: str
    """What a predictor is told about it."""
    function: Callable[..., Awaitable[str]]
    """Takes `transcript_id` (bound by the host) and flat plain arguments, returns text."""


@dataclass(frozen=True)
class Facts:
    """What a tool says about itself, whatever the transcripts."""

    layer: int
    """Residual stream after this block, from 0."""
    weights_sha256: str
    """Of everything trained that an answer depends on, labels included."""
    fidelity: str
    """`released` for published weights, `demo` for what is trained here."""
    card: str | None
    """Where the quality card is, if there is one."""
    description: str
    """What a predictor is told about the tool."""


class Tool(Protocol):
    """A tool with its weights loaded, before it meets a model."""

    facts: Facts

    def attach(self, readings: Readings) -> tuple[Offer, ...]:
        """The calls it offers over `readings`.

        Raises:
            UserError: The tool was made for another model.
        """
        ...


@dataclass(frozen=True)
class About:
    """What `about` answers: enough for a host to refuse the wrong server."""

    tool: str
    """Name in `tools.TOOLS`."""
    target: str
    """Name in `tools.targets.TARGETS`."""
    target_revision: str
    """Which weights of the target."""
    layer: int
    """Residual stream after this block, from 0."""
    weights_sha256: str
    """Of the tool's own weights and labels."""
    transcripts_sha256: str
    """Of the registered transcripts' file."""
    n_transcripts: int
    """How many are registered."""
    max_positions: int
    """Most positions in one call that this server answers."""
    donors_sha256: str | None
    """Of a sham, whose activations it shows; None for the tool itself."""
    fidelity: str
    """`released` or `demo`."""
    card: str | None
    """Where the quality card is."""
    offers: tuple[str, ...]
    """MCP tools meant for the predictor."""
    description: str
    """What a predictor is told about the tool."""


class ToolServer(MCPServer[None]):
    """An MCP server whose error results are a predictor's mistakes and nothing else."""

    async def call_tool(
        self, name: str, arguments: dict[str, object], context: Context[None, object] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; the SDK's prefixes are stripped, and a crash becomes a JSON-RPC error.

        Raises:
            ToolError: A mistake of the caller, in our words alone.
            MCPError: A fault of ours.
        """
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            logger.exception("%s failed", name)
            cause = error.__cause__
            raise MCPError(INTERNAL_ERROR, f"{name} failed on the server: {type(cause).__name__}: {cause}") from error
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_bad_arguments(name, error.__cause__)) from None
            raise ToolError(str(error.__cause__ or error)) from None


def _bad_arguments(name: str, error: ValidationError) -> str:
    faults = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
    return f"{name} was called with wrong arguments ({faults}). Expected those of its description. Call it again."


def make_server(name: str, tool: Tool, readings: Readings) -> ToolServer:
    """The server of `tool` over `readings`: `about`, `list_tokens`, and what the tool offers.

    Raises:
        UserError: The tool was made for another model.
    """
    offers = tool.attach(readings)
    about = _about(name, tool.facts, readings, tuple(offer.name for offer in offers))
    server = ToolServer(f"uplift-{name}", log_level="WARNING")
    read_only = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    async def about_() -> str:
        return json.dumps(asdict(about), ensure_ascii=False)

    async def list_tokens(transcript_id: str) -> str:
        return await _list_tokens(readings, transcript_id)

    def add(function: Callable[..., Awaitable[str]], name: str, description: str) -> None:
        server.add_tool(function, name, description=description, annotations=read_only, structured_output=False)

    add(about_, "about", "For the host: what this server is, as JSON.")
    add(list_tokens, "list_tokens", "For the host: the numbered tokens of one transcript, as JSON.")
    for offer in offers:
        add(offer.function, offer.name, offer.description)
    return server


def _about(name: str, facts: Facts, readings: Readings, offers: tuple[str, ...]) -> About:
    target = readings.loaded.target
    return About(
        tool=name,
        target=target.name,
        target_revision=readings.loaded.weights,
        layer=facts.layer,
        weights_sha256=facts.weights_sha256,
        transcripts_sha256=readings.registered.sha256,
        n_transcripts=len(readings.registered.transcripts),
        max_positions=readings.max_positions,
        donors_sha256=readings.donors_sha256 if isinstance(readings, ShamReadings) else None,
        fidelity=facts.fidelity,
        card=facts.card,
        offers=offers,
        description=facts.description,
    )


async def _list_tokens(readings: Readings, transcript_id: str) -> str:
    reading = await readings.get(transcript_id)
    tokens = [
        {"index": index, "text": text, "role": role}
        for index, (text, role) in enumerate(zip(reading.texts, reading.roles, strict=True))
    ]
    return json.dumps({"tokens": tokens, "masked": list(reading.masked)}, ensure_ascii=False)
