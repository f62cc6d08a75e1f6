"""Tools over tiny targets in memory: transcripts, readings, a client that is connected without a socket."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from mcp import Client, MCPError
from mcp.server.mcpserver import MCPServer

from claims.schema import Message, Transcript, message_rows
from tools.activations import ActivationReader, make_reader
from tools.chat import encode_prompt
from tools.engines.address import VllmAddress
from tools.model import Loaded
from tools.readings import Readings
from tools.registered import register

Result = TypeVar("Result")

TALKS = {
    "first": ("What is the capital of Australia?", "It is Canberra."),
    "second": ("Is it safe to eat raw chicken? I think it is fine.", "Yes, it is."),
}


def transcript(loaded: Loaded, name: str, prompt: str, response: str) -> Transcript:
    messages = (Message("user", prompt),)
    answer = loaded.tokenizer.encode(response, add_special_tokens=False)
    token_ids = (*encode_prompt(loaded.tokenizer, loaded.target, messages), *answer)
    return Transcript(name, messages, None, response, token_ids, "test")


def write_transcripts(folder: Path, loaded: Loaded) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, (prompt, response) in TALKS.items():
        made = transcript(loaded, name, prompt, response)
        rows.append(
            {
                "transcript_id": name,
                "messages": message_rows(made.messages),
                "reasoning": None,
                "response": response,
                "token_ids": list(made.token_ids),
                "source": "test",
            }
        )
    (folder / "transcripts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def readings_of(
    folder: Path,
    loaded: Loaded,
    *,
    layer: int = 1,
    max_positions: int = 16,
    show_masked: bool = False,
    reader: ActivationReader | None = None,
    cache_bytes: int = 2**20,
    vllm: VllmAddress | None = None,
) -> Readings:
    write_transcripts(folder, loaded)
    return Readings(
        loaded,
        reader or make_reader("nnsight", loaded),
        register(folder),
        layer=layer,
        max_positions=max_positions,
        show_masked=show_masked,
        cache_bytes=cache_bytes,
        vllm=vllm,
    )


def with_client(server: MCPServer, work: Callable[[Client], Awaitable[Result]]) -> Result:
    async def connected() -> Result:
        async with Client(server) as client:
            return await work(client)

    return asyncio.run(connected())


async def call(client: Client, name: str, **arguments: object) -> tuple[bool, str]:
    """Whether it is the caller's mistake, and the text."""
    result = await client.call_tool(name, arguments)
    return bool(result.is_error), "".join(part.text for part in result.content)


def ask(server: MCPServer, name: str, **arguments: object) -> tuple[bool, str]:
    return with_client(server, lambda client: call(client, name, **arguments))


def fault_of(server: MCPServer, name: str, **arguments: object) -> str:
    """The text of the protocol error that a call ends in."""

    async def failing(client: Client) -> str:
        try:
            answer = await call(client, name, **arguments)
        except MCPError as error:
            return error.message
        raise AssertionError(f"no fault, but {answer}")

    return with_client(server, failing)
