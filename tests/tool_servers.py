"""Tool servers for the tests of the loop: small, over real HTTP, on a free port, in a thread."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

N_TOKENS = 12


def about(**changes: object) -> dict[str, object]:
    return {
        "tool": "sae",
        "target": "tiny-gemma",
        "target_revision": "r",
        "layer": 1,
        "weights_sha256": "w",
        "transcripts_sha256": "t",
        "n_transcripts": 1,
        "max_positions": 64,
        "fidelity": "demo",
        "card": None,
        "offers": ["read_features"],
        "description": "Reads features of a sparse autoencoder.",
        **changes,
    }


def tokens(transcript_id: str) -> dict[str, object]:
    texts = ["<bos>", "user", "\n", *(f" w{i}" for i in range(3, N_TOKENS))]
    roles = ["template"] * 3 + ["user"] * 5 + ["response"] * (N_TOKENS - 8)
    listed = [{"index": i, "text": text, "role": role} for i, (text, role) in enumerate(zip(texts, roles, strict=True))]
    return {"tokens": listed, "masked": [0]}


def features(transcript_id: str, positions: list[int]) -> str:
    bad = [position for position in positions if not 0 <= position < N_TOKENS]
    if bad:
        raise ToolError(f"Found positions {bad}; expected 0 to {N_TOKENS - 1}. Call again with positions in range.")
    return f"{transcript_id}: " + "; ".join(f"[{position}] feature {position}" for position in positions)


def build(
    read: Callable[[str, list[int]], str] = features, facts: Callable[[], dict[str, object]] = about
) -> MCPServer:
    server = MCPServer("test", log_level="CRITICAL")

    @server.tool(name="about", structured_output=False)
    def _about() -> str:
        return json.dumps(facts())

    @server.tool(name="list_tokens", structured_output=False)
    def _list_tokens(transcript_id: str) -> str:
        return json.dumps(tokens(transcript_id))

    @server.tool(name="read_features", structured_output=False)
    def _read_features(transcript_id: str, positions: list[int]) -> str:
        """Active features at the given positions."""
        return read(transcript_id, positions)

    return server


class Running:
    """A server that is up, and can be stopped in the middle."""

    def __init__(self, server: MCPServer) -> None:
        app = server.streamable_http_app(json_response=True, stateless_http=True)
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=1)
        self.uvicorn = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.uvicorn.run, daemon=True)
        self.thread.start()
        while not self.uvicorn.started:
            time.sleep(0.01)
        self.port = self.uvicorn.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def stop(self) -> None:
        self.uvicorn.should_exit = True
        self.thread.join(10)


@contextmanager
def serving(server: MCPServer) -> Iterator[Running]:
    running = Running(server)
    try:
        yield running
    finally:
        running.stop()
