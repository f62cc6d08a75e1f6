"""The client of a tool server: one shared MCP connection per event loop and URL.

Invariant: two failures, never merged. `ToolMistake` is the predictor's (the server looked at the call and declined
it, in words for the predictor); everything else is `ToolServerGone`, ours, and leaves the sample to be run again.
"""

import asyncio
import json
import random
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult, TextContent, Tool
from pydantic import ValidationError

from agents.foreign import PREFIX, Account, foreign_about, foreign_tools, foreign_url, is_foreign
from agents.served import (
    BOUND,
    About,
    ServedTool,
    ServerAnswerError,
    TokenList,
    parse_about,
    parse_tokens,
    served_tool,
)
from claims.schema import UserError

TIMEOUT_S = 300.0
"""Longest wait for one answer; a slow reader with a full queue needs a minute or two."""

MAX_PAGES = 20
"""Of a list of tools: more than any predictor could choose from."""

BUSY = -32050
"""JSON-RPC code of a server whose queue is full (`tools.batching.BUSY`): nothing is wrong, ask again."""
BUSY_WAITS_S = (0.5, 1, 2, 4, 8, 15, 30, 60, 60, 60, 60)
"""Waits before asking a busy server again, five minutes in all; after the last it counts as gone."""

_MASKED = "Error executing tool {name}"
"""What mcp 2.3 answers when a tool crashed; a mistake has a colon and the tool's words after it."""


class ToolMistake(Exception):  # noqa: N818 - an event in the conversation, no error of the program
    """The predictor's call was declined; the text says what was found, what was expected, what to do."""


class ToolServerGone(Exception):  # noqa: N818 - named for what happened, beside ToolMistake
    """The server is not there, died, hung, crashed inside a tool, or broke its contract."""


class ToolServer:
    """A live connection to one tool server. Use `connect`, which shares it."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        """Start connecting to `url`, and wait `timeout_s` for each answer; needs a running event loop.

        A URL behind `mcp:` is a server of somebody else's, which owes us no account of itself and no token list.
        """
        self.url = url
        self._foreign = is_foreign(url)
        self._timeout_s = timeout_s
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # A connection that breaks cancels the task that opened it, so that must not be the task of some sample.
        self._owner = asyncio.get_running_loop().create_task(self._own())
        self._owner.add_done_callback(lambda task: None if task.cancelled() else task.exception())
        self._about: About | None = None
        self._tools_listed: dict[str, Tool] | None = None
        self._tools: tuple[ServedTool, ...] | None = None

    @property
    def broken(self) -> bool:
        """Whether the connection has ended."""
        return self._owner.done()

    async def _own(self) -> None:
        address = foreign_url(self.url) if self._foreign else self.url
        async with Client(address, read_timeout_seconds=TIMEOUT_S) as client:
            self._client.set_result(client)
            await asyncio.Event().wait()

    def _gone(self, why: str) -> ToolServerGone:
        return ToolServerGone(f"The tool server at {self.url} failed: {why}. The sample will be run again on resume.")

    async def _ready(self) -> Client:
        either: set[asyncio.Future[Any]] = {self._owner, self._client}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self._owner.done():
            error = None if self._owner.cancelled() else self._owner.exception()
            raise self._gone(f"no connection ({innermost(error)})") from error
        return self._client.result()

    async def _ask(self, name: str, arguments: Mapping[str, object]) -> tuple[str, bool]:
        """The text that tool `name` answers, and whether it is an error."""
        try:
            answer = await self._answer(name, arguments)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                _forget(self)
                # A loop that is closed while the transport unwinds hangs (mcp 2.3, anyio 4), so let it unwind first.
                await asyncio.wait({self._owner}, timeout=5)
            raise self._gone(error.message) from error
        except (ValidationError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise self._gone(f"an answer out of contract ({type(error).__name__})") from error
        texts = [item.text for item in answer.content if isinstance(item, TextContent)]
        if len(texts) != len(answer.content):
            raise self._gone(f"{name} answered something else than text")
        return "\n".join(texts), bool(answer.is_error)

    async def _answer(self, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        """What tool `name` answers, asked again while its queue is full."""
        client = await self._ready()
        for wait_s in BUSY_WAITS_S:
            try:
                return await client.call_tool(name, dict(arguments), read_timeout_seconds=self._timeout_s)
            except MCPError as error:
                if error.code != BUSY:
                    raise
            # Spread, so that callers who were told at the same time do not come back at the same time.
            await asyncio.sleep(wait_s * (0.5 + random.random()))  # noqa: S311 - no secret
        return await client.call_tool(name, dict(arguments), read_timeout_seconds=self._timeout_s)

    async def _facts(self, name: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """A JSON answer meant for the host; an error here is never the predictor's."""
        text, is_error = await self._ask(name, arguments)
        if is_error:
            raise self._gone(f"{name} answered: {text:.200}")
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            raise self._gone(f"{name} did not answer JSON") from error
        if not isinstance(row, dict):
            raise self._gone(f"{name} did not answer a JSON object")
        return row

    async def about(self) -> About:
        """The server's account of itself, asked once."""
        if self._about is None:
            self._about = await (self._foreign_about() if self._foreign else self._own_about())
        return self._about

    async def _own_about(self) -> About:
        row = await self._facts("about", {})
        try:
            return parse_about(row)
        except ServerAnswerError as error:
            raise self._gone(str(error)) from error

    async def _foreign_about(self) -> About:
        client = await self._ready()
        listed = await self._listed()
        info = client.server_info
        name, version = (info.name, info.version) if info else ("unnamed", "")
        account = Account(name, version, client.instructions or "", tuple(listed.values()))
        return foreign_about(account)

    async def _listed(self) -> dict[str, Tool]:
        """Every tool that the server lists, by name, asked once."""
        if self._tools_listed is None:
            client = await self._ready()
            tools: list[Tool] = []
            cursor: str | None = None
            try:
                for _ in range(MAX_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    tools += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        break
            except MCPError as error:
                raise self._gone(error.message) from error
            self._tools_listed = {tool.name: tool for tool in tools}
            if cursor is not None or len(self._tools_listed) < len(tools):
                raise self._gone("its list of tools has no end, or names one twice")
        return self._tools_listed

    async def tools(self) -> tuple[ServedTool, ...]:
        """The tools on offer to a predictor, in the server's order, asked once."""
        if self._tools is None:
            offers = (await self.about()).offers
            listed = await self._listed()
            missing = [name for name in offers if name not in listed]
            if missing:
                raise self._gone(f"it offers {', '.join(missing)} but does not list it")
            offered = [listed[name] for name in offers]
            self._tools = foreign_tools(offered) if self._foreign else tuple(map(_served, offered))
        return self._tools

    async def list_tokens(self, transcript_id: str) -> TokenList | None:
        """The numbered tokens of a transcript; None where a server of somebody else's lists none."""
        if self._foreign and "list_tokens" not in await self._listed():
            return None
        row = await self._facts("list_tokens", {BOUND: transcript_id})
        try:
            return parse_tokens(row)
        except ServerAnswerError as error:
            raise self._gone(str(error)) from error

    async def call(self, tool: ServedTool, arguments: Mapping[str, object], transcript_id: str) -> str:
        """Call `tool` on a transcript.

        Raises:
            ToolMistake: The server declined the arguments.
            ToolServerGone: Anything else went wrong.
        """
        bound = {BOUND: transcript_id} if tool.binds_transcript else {}
        text, is_error = await self._ask(tool.name, {**arguments, **bound})
        masked = _MASKED.format(name=tool.name)
        if is_error and text.strip() == masked:
            raise self._gone(f"{tool.name} crashed (its log says why)")
        if is_error:
            raise ToolMistake(text.removeprefix(f"{masked}: "))
        return text


def _served(tool: Tool) -> ServedTool:
    return served_tool(tool.name, tool.description or "", tool.input_schema)


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, ToolServer]] = WeakKeyDictionary()


def _forget(server: ToolServer) -> None:
    servers = _shared.get(asyncio.get_running_loop(), {})
    if servers.get(server.url) is server:
        del servers[server.url]


def connect(url: str) -> ToolServer:
    """The connection to `url` that this event loop shares; a new one where the last has ended."""
    servers = _shared.setdefault(asyncio.get_running_loop(), {})
    if url not in servers or servers[url].broken:
        servers[url] = ToolServer(url)
    return servers[url]


def innermost(error: BaseException | None) -> str:
    """The first leaf of nested exception groups, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return "it ended" if error is None else f"{type(error).__name__}: {error}"


async def check_server(url: str, *, tool: str, target: str, positions: int) -> About:
    """Ask a server who it is, before anything is run against it.

    Raises:
        UserError: Nothing answers, or what answers serves another tool or target, or fewer positions than asked for.
    """
    server = connect(url)
    try:
        about = await server.about()
        await server.tools()
    except ToolServerGone as error:
        raise UserError(
            f"No usable tool server at {url}: {innermost(error.__cause__ or error)}. Expected a server of the tool "
            f"{tool!r} for {target!r}. Start one with `make serve TOOL={tool} TARGET={target}` and pass its URL."
        ) from error
    if (about.tool, about.target) != (tool, target):
        raise UserError(
            f"The server at {url} serves the tool {about.tool!r} for the target {about.target!r}; expected {tool!r} "
            f"for {target!r}. Pass another URL, or leave it out to have a server started."
        )
    if positions > about.max_positions:
        raise UserError(
            f"The server at {url} reads at most {about.max_positions} positions in one call, but {positions} were "
            f"asked for. Use --positions {about.max_positions} or fewer."
        )
    return about


async def check_foreign(url: str) -> About:
    """Ask a server of somebody else's what it offers, before anything is run against it.

    Args:
        url: Behind `mcp:`.

    Raises:
        UserError: Nothing answers there, or what it offers cannot be an arm.
    """
    server = connect(url)
    try:
        about = await server.about()
        await server.tools()
    except ToolServerGone as error:
        address = url.removeprefix(PREFIX)
        raise UserError(
            f"No usable MCP server at {address}: {innermost(error.__cause__ or error)}. Expected one that speaks "
            "streamable HTTP; start it first, and give its address with the path, such as /mcp."
        ) from error
    return about
