"""Callers of a tool server in this process, and how long they wait.

Invariant: a call goes through everything that a call over HTTP goes through but the socket, so that what is timed is
the server's own time.
"""

import asyncio
import random
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from claims.schema import Message, Transcript
from tools.activation_cache import CachedReader, DiskCache
from tools.activations import DEFAULT_READER, make_reader
from tools.chat import encode_prompt
from tools.model import Loaded
from tools.readings import Readings
from tools.registered import Registered
from tools.server import Tool, ToolServer, make_server

_WORDS = ("the", "sea", "is", "calm", "and", "a", "red", "boat", "leaves", "its", "harbour", "before", "the", "storm")


def transcripts_of(loaded: Loaded, *, n: int, n_tokens: int) -> Registered:
    """`n` different transcripts of `n_tokens` tokens each, or a little more where the prompt is longer."""
    made = {}
    for number in range(n):
        rng = random.Random(number)  # noqa: S311 - no secret
        messages = (Message("user", f"Number {number}: write about the sea."),)
        prompt_ids = encode_prompt(loaded.tokenizer, loaded.target, messages)
        text = " ".join(rng.choice(_WORDS) for _ in range(n_tokens))
        answer = loaded.tokenizer.encode(text, add_special_tokens=False)[: max(1, n_tokens - len(prompt_ids))]
        response = str(loaded.tokenizer.decode(answer))
        made[f"t{number}"] = Transcript(f"t{number}", messages, None, response, (*prompt_ids, *answer), "bench")
    return Registered(made, "bench")


@dataclass(frozen=True)
class Caller:
    """One call of a tool."""

    transcript_id: str
    """About which transcript."""
    positions: tuple[int, ...]
    """Tokens; for the oracle a segment from the first to the last."""


class Workload:
    """A tool server and those who call it."""

    def __init__(self, tool: Tool, name: str, loaded: Loaded, registered: Registered, *, disk: Path) -> None:
        """Start the server in memory.

        Args:
            tool: What is served.
            name: In `tools.TOOLS`.
            loaded: The target.
            registered: The transcripts.
            disk: Folder for activations.
        """
        reader = CachedReader(make_reader(DEFAULT_READER, loaded), DiskCache(disk))
        self._name = name
        self.readings = Readings(
            loaded, reader, registered, layer=tool.facts.layer, max_positions=128, show_masked=True
        )
        self.server: ToolServer = make_server(name, tool, self.readings)

    def one_by_one(self, callers: Sequence[Caller]) -> float:
        """Seconds that the calls take, each after the one before it."""

        async def run() -> None:
            for caller in callers:
                await self._call(caller)

        return _seconds(run())

    def together(self, callers: Sequence[Caller]) -> float:
        """Seconds that the calls take when all are made at once."""

        async def run() -> None:
            await asyncio.gather(*(self._call(caller) for caller in callers))

        return _seconds(run())

    async def _call(self, caller: Caller) -> None:
        arguments = {"transcript_id": caller.transcript_id, **self._arguments(caller.positions)}
        name = _OFFERS[self._name]
        answer = await self.server.call_tool(name, arguments)
        assert not getattr(answer, "is_error", False), answer

    def _arguments(self, positions: tuple[int, ...]) -> Mapping[str, object]:
        if self._name == "ao":
            return {"question": "What is this text about?", "start": positions[0], "end": positions[-1]}
        return {"positions": list(positions)}


_OFFERS = {"sae": "read_features", "ao": "ask_oracle", "nla": "describe_activations"}


def _seconds(work: Coroutine[None, None, None]) -> float:
    start = time.perf_counter()
    asyncio.run(work)
    return time.perf_counter() - start


def resident_mb() -> float:
    """Memory of this process, in 10^6 bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6
