"""Tool servers that others wrote: what one says over plain MCP, as the account and the tools of an arm.

Invariants: a tool that its server marks as writing or destroying is refused, never offered; what such a server is
comes from its name, version and words alone, so the same server on another port is the same arm.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcp_types import Tool, ToolAnnotations

from agents.served import About, ServedTool, served_tool
from claims.schema import UserError

PREFIX = "mcp:"
"""What stands before the URL in `--tool mcp:http://host:port/mcp`."""
ARM = "mcp"
"""Name of the arm of such a tool."""
FIDELITY = "foreign"
"""Nobody here can vouch for its weights."""
HOST_TOOLS = ("about", "list_tokens")
"""Tools for the host: never offered to a predictor."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What every family accepts as the name of a tool."""
_OURS = "submit"
_UNBOUNDED = 10**9


@dataclass(frozen=True)
class Account:
    """Everything that a server says of itself without being asked for anything of ours."""

    name: str
    """Its name."""
    version: str
    """Its version; may be empty."""
    instructions: str
    """How it wants to be used; may be empty."""
    tools: tuple[Tool, ...]
    """What it lists."""


def is_foreign(tool: str) -> bool:
    """Whether `tool` names a server of somebody else's."""
    return tool.startswith(PREFIX)


def foreign_url(tool: str) -> str:
    """The URL in `mcp:http://host:port/mcp`.

    Raises:
        UserError: It is no plain http(s) URL, or holds a secret that a run's files would keep.
    """
    url = tool.removeprefix(PREFIX)
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname:
        raise UserError(
            f"{PREFIX}{_shown(url)} names no server. Expected {PREFIX}http://host:port/mcp, the address of an MCP "
            "server that speaks streamable HTTP."
        )
    if split.username or split.password or split.query or split.fragment:
        raise UserError(
            f"The address {_shown(url)} carries a user name, a query or a fragment. A run keeps the address in its "
            "files, so it must hold no secret: give the bare one, and put a proxy in front where a key is needed."
        )
    return url


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    return re.sub(r"//[^/@]*@", "//", re.split(r"[?#]", url)[0])[:80]


def foreign_about(account: Account) -> About:
    """A server's account of itself, in the form that our own give.

    Raises:
        UserError: It offers nothing, or something that is not read-only or that no predictor could call.
    """
    offered = [tool for tool in account.tools if tool.name not in HOST_TOOLS]
    if not offered:
        raise UserError(f"The MCP server {account.name!r} lists no tool. Expected one at least that a predictor calls.")
    _refuse_writers(account.name, offered)
    _refuse_names(account.name, offered)
    listed = [
        {"name": tool.name, "description": tool.description or "", "input_schema": tool.input_schema}
        for tool in account.tools
    ]
    identity = json.dumps([account.name, account.version, account.instructions, listed], sort_keys=True)
    raw = {
        "tool": account.name,
        "version": account.version,
        "fidelity": FIDELITY,
        "instructions": account.instructions,
        "tools": listed,
        "not_marked": [tool.name for tool in offered if not _marks(tool).read_only_hint],
    }
    return About(
        tool=account.name,
        target="",
        weights_sha256=hashlib.sha256(identity.encode("utf-8")).hexdigest(),
        transcripts_sha256="",
        n_transcripts=0,
        max_positions=_UNBOUNDED,
        fidelity=FIDELITY,
        offers=tuple(tool.name for tool in offered),
        description=account.instructions,
        raw=raw,
    )


def _marks(tool: Tool) -> ToolAnnotations:
    return tool.annotations or ToolAnnotations()


def _refuse_writers(server: str, tools: Sequence[Tool]) -> None:
    writers = [tool.name for tool in tools if _writes(_marks(tool))]
    if writers:
        raise UserError(
            f"The MCP server {server!r} marks {', '.join(writers)} as not read-only. An arm may only read: a predictor "
            "decides what is called, and nobody looks at it first. Serve the reading tools alone."
        )


def _writes(marks: ToolAnnotations) -> bool:
    if marks.read_only_hint is not None:
        return not marks.read_only_hint
    return bool(marks.destructive_hint)


def _refuse_names(server: str, tools: Sequence[Tool]) -> None:
    bad = [tool.name for tool in tools if not _NAME.fullmatch(tool.name) or tool.name == _OURS]
    if bad:
        raise UserError(
            f"The MCP server {server!r} has tools called {', '.join(bad)}. Expected names of letters, digits, _ and -, "
            f"at most 64 of them, and not {_OURS!r}, which is ours. Rename them."
        )


def foreign_tools(tools: Sequence[Tool]) -> tuple[ServedTool, ...]:
    """The tools as a predictor sees them.

    Raises:
        UserError: A parameter is nested.
    """
    return tuple(
        served_tool(tool.name, tool.description or "", _without_null(tool.input_schema))
        for tool in tools
        if tool.name not in HOST_TOOLS
    )


def _without_null(schema: dict[str, object]) -> dict[str, object]:
    """`schema` with every parameter that may also be null as its plain kind: an optional one is left out instead."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {name: _plain(value) for name, value in properties.items()}}


def _plain(schema: dict[str, object]) -> dict[str, object]:
    choices = schema.get("anyOf")
    if not isinstance(choices, list):
        return schema
    kinds = [choice for choice in choices if choice != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("anyOf", "default") or value is not None}
    kept.pop("anyOf")
    return {**kept, **kinds[0]}
