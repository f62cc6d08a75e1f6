"""The application behind an address: a tool over registered transcripts, and its sham if there are donors.

Invariant: whatever is needed to build it is in its `Wanted`, so that it can be built in another process or on another
machine and answers the same there.
"""

import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette

from claims.schema import UserError
from tools import get_tool
from tools.engines.address import VllmAddress
from tools.hangup import CancelOnHangup
from tools.registered import Registered
from tools.targets import get_target

TOOL_PATH = "/mcp"
"""Where the tool answers."""
GENERATING = ("ao", "nla")
"""Tools that write answers with a model."""
SHAM_PATH = "/sham/mcp"
"""Where its sham does."""


@dataclass(frozen=True)
class Wanted:
    """What is to be served."""

    tool: str
    """Name in `tools.TOOLS`."""
    target: str
    """Name in `tools.targets.TARGETS`."""
    registered: Registered
    """The transcripts."""
    donors: Mapping[str, str] | None = None
    """Of the sham, by transcript id; None serves no sham."""
    reader: str | None = None
    """Activation backend; None takes the one that measured best."""
    device: str | None = None
    """None takes the fastest present."""
    max_positions: int = 128
    """Most positions in one call."""
    show_masked: bool = False
    """Read BOS and norm outliers too."""
    vllm: VllmAddress | None = None
    """Where answers are generated; None for the models in this process."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it answers."""
        return (TOOL_PATH,) if self.donors is None else (TOOL_PATH, SHAM_PATH)


def build_app(wanted: Wanted) -> Starlette:
    """Load the target and the tool, and make the application.

    Raises:
        UserError: Something that the user can mend.
    """
    # Imported late: torch takes seconds, and a mistyped name should be answered at once.
    from tools.activation_cache import CachedReader
    from tools.activations import DEFAULT_READER, REMOTE_READER, make_reader
    from tools.model import load
    from tools.readings import Readings
    from tools.server import make_server
    from tools.sham import ShamReadings

    target = get_target(wanted.target)
    if wanted.reader == REMOTE_READER and wanted.tool in GENERATING:
        raise UserError(
            f"The tool {wanted.tool} writes its answers with the target's own weights, which --activations "
            f"{REMOTE_READER} leaves elsewhere. Expected the tool sae. Choose it, or read on this machine."
        )
    if wanted.reader == REMOTE_READER:
        from tools.ndif import load_hollow

        loaded = load_hollow(target)
    else:
        loaded = load(target, device=wanted.device)
    tool = importlib.import_module(get_tool(wanted.tool).module).load(target)
    readings = Readings(
        loaded,
        CachedReader(make_reader(wanted.reader or DEFAULT_READER, loaded)),
        wanted.registered,
        layer=tool.facts.layer,
        max_positions=wanted.max_positions,
        show_masked=wanted.show_masked,
        vllm=wanted.vllm,
    )
    servers = {TOOL_PATH: make_server(wanted.tool, tool, readings)}
    if wanted.donors is not None:
        servers[SHAM_PATH] = make_server(wanted.tool, tool, ShamReadings(readings, wanted.donors))
    return together(servers)


def together(servers: Mapping[str, MCPServer[None]]) -> Starlette:
    """One application that answers for each server at its path and drops a request whose client has gone."""
    apps = [
        server.streamable_http_app(json_response=True, stateless_http=True, streamable_http_path=path)
        for path, server in servers.items()
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in apps:
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    app = Starlette(routes=[route for app in apps for route in app.routes], lifespan=lifespan)
    app.add_middleware(CancelOnHangup)
    return app
