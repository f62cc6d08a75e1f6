"""Engines without an engine: the application in another process's place, and the front that passes calls on."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import httpx
import pytest

from agents import connect as connecting
from agents.connect import ToolMistake, ToolServerGone, connect
from claims.schema import UserError
from tests.tool_bench import write_transcripts
from tests.tool_servers import serving
from tools.donors import read_donors
from tools.engines import ENGINES, check_engine, on_ray
from tools.engines.app import Wanted, build_app
from tools.engines.inside import Answer, Inside, Request
from tools.engines.on_ray import Front
from tools.hangup import CancelOnHangup
from tools.model import Loaded
from tools.registered import register


class LostError(Exception):
    pass


class FullError(Exception):
    pass


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory, tiny_gemma: Loaded) -> Wanted:
    folder = write_transcripts(tmp_path_factory.mktemp("transcripts"), tiny_gemma)
    donors = tmp_path_factory.mktemp("donors") / "donors.json"
    donors.write_text(json.dumps({"first": "second", "second": "first"}), encoding="utf-8")
    registered = register(folder)
    return Wanted("sae", "tiny-gemma", registered, read_donors(donors, registered), device="cpu")


class Fronted:
    """Looks like an MCP server to `serving`."""

    def __init__(self, ask: Callable[[Request], Awaitable[Answer]]) -> None:
        self.ask = ask

    def streamable_http_app(self, **options: Any) -> Any:
        return CancelOnHangup(Front(self.ask, died=(LostError,), full=(FullError,)))  # type: ignore[arg-type]


def run(steps: Coroutine[Any, Any, None]) -> None:
    asyncio.run(steps)


def test_a_front_answers_as_the_server_behind_it_does(wanted: Wanted) -> None:
    inside = Inside(build_app(wanted))

    class Direct:
        def streamable_http_app(self, **options: Any) -> Any:
            return build_app(wanted)

    async def steps(url: str, sham: str, answers: list[object]) -> None:
        for address in (url, sham):
            (tool,) = await connect(address).tools()
            answers.append((await connect(address).about()).raw)
            answers.append(await connect(address).list_tokens("first"))
            answers.append(await connect(address).call(tool, {"positions": [3, 9]}, "first"))
            for positions, fault in (([10_000], ToolMistake), ([3], ToolServerGone)):
                with pytest.raises(fault) as error:
                    await connect(address).call(
                        tool, {"positions": positions}, "first" if fault is ToolMistake else "x"
                    )
                answers.append(str(error.value).replace(address, "ADDRESS"))

    fronted: list[object] = []
    direct: list[object] = []
    for server, answers in ((Fronted(inside.answer), fronted), (Direct(), direct)):
        with serving(server) as running:  # type: ignore[arg-type]
            run(steps(running.url, f"{running.url.removesuffix('/mcp')}/sham/mcp", answers))
    assert fronted == direct
    assert len(direct) == 10


def test_a_call_whose_replica_dies_is_asked_of_another_and_is_not_lost(wanted: Wanted) -> None:
    inside = Inside(build_app(wanted))
    deaths = [LostError(), LostError()]

    async def ask(request: Request) -> Answer:
        if b"read_features" in request.body and deaths:
            raise deaths.pop()
        return await inside.answer(request)

    async def steps() -> None:
        (tool,) = await connect(running.url).tools()
        assert "[3]" in await connect(running.url).call(tool, {"positions": [3]}, "first")

    with serving(Fronted(ask)) as running:  # type: ignore[arg-type]
        run(steps())
    assert deaths == []


async def post(front: Front, body: bytes) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://127.0.0.1") as client:
        return await client.post("/mcp", content=body)


def test_a_call_that_kills_every_replica_ends_in_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "ATTEMPTS", 2)
    tried = []

    async def ask(request: Request) -> Answer:
        tried.append(request)
        raise LostError

    async def steps() -> None:
        front = Front(ask, died=(LostError,), full=(FullError,))
        for body, number in ((b'{"jsonrpc": "2.0", "id": 7, "method": "x"}', 7), (b"no JSON", None)):
            answer = (await post(front, body)).json()
            assert answer["id"] == number
            assert answer["error"] == {
                "code": -32603,
                "message": "2 replicas were lost on this call, one after another.",
            }

    run(steps())
    assert len(tried) == 4


def test_full_replicas_are_told_as_busy_and_the_host_comes_back(
    wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "BUSY_WAITS_S", (0.0,) * 5)
    inside = Inside(build_app(wanted))
    full = [FullError("1024 wait"), FullError("1024 wait")]

    async def ask(request: Request) -> Answer:
        if b"read_features" in request.body and full:
            raise full.pop()
        return await inside.answer(request)

    async def steps() -> None:
        (tool,) = await connect(running.url).tools()
        assert "[3]" in await connect(running.url).call(tool, {"positions": [3]}, "first")

    with serving(Fronted(ask)) as running:  # type: ignore[arg-type]
        run(steps())
    assert full == []


def test_a_caller_who_leaves_is_cancelled_on_the_replica() -> None:
    async def steps() -> None:
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def ask(request: Request) -> Answer:
            asked.set()
            try:
                return await asyncio.Future()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        parts = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.request", "body": b"}"}]

        async def receive() -> dict[str, object]:
            if parts:
                return parts.pop(0)
            await asked.wait()
            return {"type": "http.disconnect"}

        async def send(message: object) -> None:
            raise AssertionError(message)

        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
        async with asyncio.timeout(10):
            await CancelOnHangup(Front(ask, died=(), full=()))(scope, receive, send)  # type: ignore[arg-type]
            await cancelled.wait()

    run(steps())


@pytest.mark.parametrize(("replicas", "least"), [(0, 0), (2, 3), (2, 0)])
def test_a_number_of_replicas_that_makes_no_sense_is_refused(wanted: Wanted, replicas: int, least: int) -> None:
    with pytest.raises(UserError, match=f"{least} to {replicas} replicas were asked for"):
        on_ray.start(wanted, replicas=replicas, least=least)


def test_without_ray_the_user_is_told_how_to_get_it(wanted: Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(UserError, match=r"Ray is not installed. .*-e '\.\[ray\]'"):
        on_ray.start(wanted, replicas=2, least=1)


def test_replicas_share_what_there_is() -> None:
    assert on_ray._resources({"CPU": 2.0}, 4) == {"num_cpus": 0.5}
    assert on_ray._resources({"CPU": 64.0, "GPU": 8.0}, 4) == {"num_gpus": 1}
    assert on_ray._resources({"CPU": 64.0, "GPU": 1.0}, 4) == {"num_gpus": 0.25}


def test_an_unknown_engine_is_named_with_the_known_ones() -> None:
    assert [check_engine(name) for name in ENGINES] == list(ENGINES)
    with pytest.raises(UserError, match="Unknown engine 'tpu'. Known engines: local, ray, vllm"):
        check_engine("tpu")
