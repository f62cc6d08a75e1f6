"""Many callers of one server: clients that go away, queues that are full, readings asked for at once."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from mcp.server.mcpserver import MCPServer
from starlette.types import ASGIApp

from agents import connect as connecting
from agents.connect import ToolServer, ToolServerGone, connect
from tests.tool_bench import ask, fault_of, readings_of
from tests.tool_servers import about, build, serving
from tools import TOOLS, batching
from tools import readings as readings_module
from tools.activation_cache import CachedReader, DiskCache
from tools.activations import PlainHookReader
from tools.batching import Batcher, BusyError
from tools.hangup import CancelOnHangup
from tools.model import Loaded
from tools.owner import ModelThread
from tools.server import make_server


def run(steps: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(steps())


class Held:
    """A model that works when it is told to."""

    def __init__(self) -> None:
        self.started = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.ran: list[int] = []

    def work(self, items: Sequence[int]) -> list[int]:
        self.started.release()
        assert self.go.acquire(timeout=20)
        self.ran += items
        return list(items)


class Queued(MCPServer):
    """A server whose tool stands in a queue."""

    def __init__(self, model: Held, *, max_queue: int = 100) -> None:
        super().__init__("queued", log_level="CRITICAL")
        self.queue = Batcher(model.work, thread=ModelThread("held"), max_batch=1, max_wait_s=0, max_queue=max_queue)

        async def read_features(transcript_id: str, positions: list[int]) -> str:
            return str(await self.queue.submit(positions))

        async def facts() -> str:
            return json.dumps(about())

        self.add_tool(read_features, name="read_features", structured_output=False)
        self.add_tool(facts, name="about", structured_output=False)

    def streamable_http_app(self, **options: Any) -> ASGIApp:  # type: ignore[override]
        return CancelOnHangup(super().streamable_http_app(**options))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("leave", ["cancelled", "timed out"])
def test_a_client_who_goes_away_leaves_the_servers_queue(leave: str) -> None:
    model = Held()

    async def steps() -> None:
        (tool,) = await connect(running.url).tools()
        first = asyncio.create_task(connect(running.url).call(tool, {"positions": [1]}, "t"))
        await until(lambda: model.started.acquire(blocking=False))
        impatient = ToolServer(running.url, timeout_s=0.3 if leave == "timed out" else 60)
        gone = asyncio.create_task(impatient.call(tool, {"positions": [2, 3]}, "t"))
        await until(lambda: server.queue.n_waiting == 2 or gone.done())
        if leave == "cancelled":
            gone.cancel()
        await until(lambda: server.queue.n_waiting == 0)
        with pytest.raises(asyncio.CancelledError if leave == "cancelled" else ToolServerGone):
            await gone
        model.go.release(2)
        assert await first == "[1]"
        assert await connect(running.url).call(tool, {"positions": [4]}, "t") == "[4]"

    server = Queued(model)
    with serving(server) as running:
        run(steps)
    assert model.ran == [1, 4]


def test_a_full_queue_is_waited_for_and_no_predictor_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connecting.BUSY == batching.BUSY
    monkeypatch.setattr(connecting, "BUSY_WAITS_S", (0.02,) * 500)
    model = Held()
    model.go.release(40)

    async def steps() -> None:
        server = connect(running.url)
        (tool,) = await server.tools()
        calls = [server.call(tool, {"positions": [3 * i, 3 * i + 1, 3 * i + 2]}, "t") for i in range(12)]
        answers = await asyncio.gather(*calls)
        assert answers == [str([3 * i, 3 * i + 1, 3 * i + 2]) for i in range(12)]

    with serving(Queued(model, max_queue=4)) as running:
        run(steps)
    assert sorted(model.ran) == list(range(36))


def test_a_server_that_stays_busy_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "BUSY_WAITS_S", (0.0,) * 3)
    asked = []

    def busy(transcript_id: str, positions: list[int]) -> str:
        asked.append(positions)
        raise BusyError(9, 8)

    async def steps() -> None:
        (tool,) = await connect(running.url).tools()
        with pytest.raises(ToolServerGone, match="9 items are waiting for the model. Expected at most 8"):
            await connect(running.url).call(tool, {"positions": [1]}, "t")

    with serving(build(busy)) as running:
        run(steps)
    assert len(asked) == 4


def test_without_the_hangup_watch_the_same_request_gets_the_same_answer() -> None:
    class Watched(MCPServer):
        def streamable_http_app(self, **options: Any) -> ASGIApp:  # type: ignore[override]
            return CancelOnHangup(super().streamable_http_app(**options))

    async def steps() -> None:
        (tool,) = await connect(running.url).tools()
        answers.append(await connect(running.url).call(tool, {"positions": list(range(12)) * 3000}, "t"))

    answers: list[str] = []
    plain = build()
    watched = build()
    watched.__class__ = Watched
    for server in (plain, watched):
        with serving(server) as running:
            run(steps)
    assert answers[0] == answers[1]
    assert len(answers[0]) > 500_000


class Slow(PlainHookReader):
    """Waits to be told before it reads."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.go = threading.Semaphore(0)
        self.n_read = 0

    def read(self, *args: Any, **kwargs: Any) -> Any:
        assert self.go.acquire(timeout=20)
        self.n_read += 1
        return super().read(*args, **kwargs)


def test_a_reading_in_memory_does_not_wait_for_the_model(tmp_path: Path, tiny_gemma: Loaded) -> None:
    reader = Slow(tiny_gemma)
    readings = readings_of(tmp_path, tiny_gemma, reader=reader)

    async def steps() -> None:
        reader.go.release()
        first = await readings.get("first")
        other = asyncio.create_task(readings.get("second"))
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            assert await readings.get("first") is first
        assert not other.done()
        reader.go.release()
        await other
        # Eight at once that ask for the same are one pass, which is done already.
        assert len({id(one) for one in await asyncio.gather(*(readings.get("second") for _ in range(8)))}) == 1

    run(steps)
    assert reader.n_read == 2


def test_too_many_waiting_calls_are_told_to_come_again_and_cancelled_ones_are_not_done(
    tmp_path: Path, tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings_module, "MAX_PENDING", 3)
    reader = Slow(tiny_gemma)
    readings = readings_of(tmp_path, tiny_gemma, reader=reader)
    done: list[int] = []

    async def steps() -> None:
        first = asyncio.create_task(readings.get("first"))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(readings.run(lambda i=i: done.append(i))) for i in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="3 items are waiting"):
            await readings.get("second")
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        reader.go.release(2)
        await asyncio.gather(first, waiting[1], readings.get("second"))

    run(steps)
    assert done == [1]
    assert tiny_gemma.thread.n_pending == 0


def test_a_second_server_finds_what_the_first_has_read(tmp_path: Path, tiny_gemma: Loaded) -> None:
    reader = Slow(tiny_gemma)
    reader.go.release(2)

    def serve() -> list[float]:
        cached = CachedReader(reader, DiskCache(tmp_path / "disk"))
        readings = readings_of(tmp_path / "transcripts", tiny_gemma, reader=cached)

        async def both() -> list[float]:
            return [float((await readings.get(name)).residual.sum()) for name in ("first", "second")]

        return asyncio.run(both())

    assert serve() == serve()
    assert reader.n_read == 2


class Cramped(PlainHookReader):
    """Has room for so many rows at a time."""

    room = 1

    def _capture(self, token_ids: torch.Tensor, mask: torch.Tensor, layers: Sequence[int]) -> dict[int, torch.Tensor]:
        if len(token_ids) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
        return super()._capture(token_ids, mask, layers)


def test_sequences_that_do_not_fit_together_are_read_one_at_a_time(tiny_gemma: Loaded) -> None:
    batch = [list(range(10, 40)), [2, 20], list(range(9, 30))]
    for one, other in zip(
        Cramped(tiny_gemma).read(batch, [1]), PlainHookReader(tiny_gemma).read(batch, [1]), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("tool", ["sae", "ao", "nla"])
def test_memory_that_runs_out_is_said_to_the_host_and_the_server_lives(
    tmp_path: Path, tiny_gemma: Loaded, tool: str
) -> None:
    made = import_module(TOOLS[tool].module).load(tiny_gemma.target)
    reader = Cramped(tiny_gemma)
    server = make_server(tool, made, readings_of(tmp_path, tiny_gemma, layer=made.facts.layer, reader=reader))
    name = json.loads(ask(server, "about")[1])["offers"][0]
    arguments = {"question": "What?", "start": 3, "end": 4} if tool == "ao" else {"positions": [3]}
    reader.room = 0
    fault = fault_of(server, name, transcript_id="first", **arguments)
    assert "OutOfMemory: Memory ran out on one item alone" in fault
    reader.room = 1
    assert not ask(server, name, transcript_id="first", **arguments)[0]
