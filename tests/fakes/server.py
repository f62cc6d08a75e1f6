"""One local server for all wires: plain asyncio, so that a reply can be reset, withheld or broken at will."""

import asyncio
import hashlib
import json
import re
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

from tests.fakes.anthropic import Anthropic
from tests.fakes.bill import Bill, Billed, PromptCache
from tests.fakes.chat import Chat
from tests.fakes.faults import FREE, Faults
from tests.fakes.gemini import Gemini
from tests.fakes.responses import Responses
from tests.fakes.script import SCRIPTS, Script, Turn
from tests.fakes.wire import Answer, Json, RefusedError, Request, Wire

SENTINEL = "sk-SENTINEL-never-to-be-shown"
"""The key that `env` gives to every family."""
_STATUS = {"429_day": 429, "401_echo": 401, "500_echo": 500}


@dataclass(frozen=True)
class Received:
    """One request, as it came."""

    number: int
    family: str
    model: str
    path: str
    headers: Mapping[str, str]
    body: Json
    raw: bytes
    status: int
    """Of the answer; 0 where none was sent."""
    problem: str
    """Why it was refused, or the fault that it met."""
    free: bool
    """Whether it is of a kind that is never billed (counting tokens)."""


@dataclass(frozen=True)
class _Raw:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class FakeServer:
    """Speaks every wire on one port. Use `serving`."""

    def __init__(
        self, script: Script | str = "reader", *, faults: Faults | None = None, latency_s: float = 0.0, keep: int = 2000
    ) -> None:
        self.script = SCRIPTS[script] if isinstance(script, str) else script
        self.faults = faults or Faults()
        self.latency_s = latency_s
        self.bill = Bill()
        self.counts: Counter[str] = Counter()
        self.requests: deque[Received] = deque(maxlen=keep)
        self.turns: deque[Turn] = deque(maxlen=keep)
        self.port = 0
        self._cache = PromptCache()
        self._number = 0
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._ready = threading.Event()
        self._open: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, port: int = 0) -> None:
        self.port = port
        self._thread.start()
        assert self._ready.wait(10), "the fake server did not start"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def env(self) -> dict[str, str]:
        """Environment variables that point every provider here."""
        bases = {
            "ANTHROPIC": "anthropic",
            "OPENAI": "openai/v1",
            "GOOGLE": "google",
            "VLLM": "vllm/v1",
            "OLLAMA": "ollama/v1",
        }
        keys = dict.fromkeys((f"{name}_API_KEY" for name in bases if name != "OLLAMA"), SENTINEL)
        return {f"{name}_BASE_URL": f"{self.url}/{path}" for name, path in bases.items()} | keys

    @property
    def paid(self) -> list[Received]:
        """Requests that were answered with a reply, in order."""
        return [request for request in self.requests if request.status == 200 and not request.free]

    @property
    def refused(self) -> list[Received]:
        """Requests that broke a rule."""
        return [request for request in self.requests if request.status >= 400 and request.problem not in FREE]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=2**26)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while (raw := await _read(reader)) is not None:
                if not await self._handle(raw, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _handle(self, raw: _Raw, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection lives on."""
        if raw.path.split("?")[0] == "/bill":
            _send(writer, Answer.of({**self.bill.as_json(), "counts": dict(self.counts)}))
            await writer.drain()
            return True
        answer, fault = self._answer(raw)
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if fault == "hang":
            with suppress(ConnectionError):
                await reader.read(1)
            return False
        if fault == "reset":
            writer.write(_head(answer) + answer.body[: len(answer.body) // 2])
            await writer.drain()
            writer.transport.abort()
            return False
        _send(writer, answer)
        await writer.drain()
        return True

    def _answer(self, raw: _Raw) -> tuple[Answer, str]:
        found = _route(raw.path)
        if found is None:
            return Answer.of({"error": {"message": f"no such path {raw.path}"}}, 404), ""
        wire, path = found
        self._number += 1
        number = self._number
        try:
            request = Request(path, raw.headers, json.loads(raw.body or b"{}"), raw.body)
        except ValueError:
            return wire.error(RefusedError(400, "The request body is not valid JSON."), None), ""
        try:
            answer, problem, is_free = self._reply(wire, request, number)
        except RefusedError as refused:
            problem = refused.code if refused.code in FREE else refused.message
            answer, is_free = wire.error(refused, self.faults.retry_after_s), False
            self.counts[f"fault {problem}" if problem in FREE else "refused"] += 1
        status = 0 if problem == "hang" else answer.status
        self.requests.append(
            Received(
                number, wire.name, _model(request), path, raw.headers, request.body, raw.body, status, problem, is_free
            )
        )
        return answer, problem

    def _reply(self, wire: Wire, request: Request, number: int) -> tuple[Answer, str, bool]:
        free = wire.free(request)
        if free is not None:
            self.counts["free"] += 1
            return free, "", True
        turn = wire.check(request)
        fault = self.faults.draw(number, f"{wire.name}/{turn.model}")
        if fault in FREE:
            words = f"Incorrect API key provided: {_key(request)}." if "echo" in fault else f"fake {fault}"
            raise RefusedError(_STATUS.get(fault) or int(fault), words, fault)
        say = self.script(turn)
        usage = wire.usage(request, self._cache, say)
        answer = wire.answer(request, say, usage)
        self.turns.append(turn)
        user = "\x00".join(turn.users[:1])
        digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
        self.bill.add(Billed(number, wire.name, turn.model, usage, fault, request.sha256, digest, turn.number))
        self.counts["accepted"] += 1
        if fault:
            self.counts[f"fault {fault}"] += 1
        if fault == "malformed":
            answer = Answer(answer.status, answer.body[: len(answer.body) // 2], answer.kind)
        return answer, fault, False


def _key(request: Request) -> str:
    return next((request.headers[name] for name in ("x-goog-api-key", "x-api-key") if name in request.headers), "") or (
        request.headers.get("authorization", "").removeprefix("Bearer ")
    )


def _model(request: Request) -> str:
    found = re.search(r"/models/([^:/]+):", request.path)
    return str(request.body.get("model", "")) or (found.group(1) if found else "")


def _route(path: str) -> tuple[Wire, str] | None:
    path = path.split("?")[0]
    family, _, rest = path.lstrip("/").partition("/")
    rest = f"/{rest}"
    match family:
        case "anthropic" if rest.startswith("/v1/messages"):
            return Anthropic(), rest
        case "openai" if rest.startswith("/v1/responses"):
            return Responses(), rest
        case "openai" | "vllm" | "ollama" if rest in ("/v1/chat/completions", "/v1/models"):
            return Chat(family), rest
        case "google" if "/models/" in rest:
            return Gemini(), rest
    return None


async def _read(reader: asyncio.StreamReader) -> _Raw | None:
    """One request; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name
    }
    if headers.get("transfer-encoding") == "chunked":
        return _Raw(method, path, headers, await _chunked(reader))
    return _Raw(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


def _head(answer: Answer) -> bytes:
    status = HTTPStatus(answer.status).phrase if answer.status in set(HTTPStatus) else "Status"
    lines = [
        f"HTTP/1.1 {answer.status} {status}",
        f"content-type: {answer.kind}",
        f"content-length: {len(answer.body)}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(_head(answer) + answer.body)


@contextmanager
def serving(
    script: Script | str = "reader", *, faults: Faults | None = None, latency_s: float = 0.0, port: int = 0
) -> Iterator[FakeServer]:
    """A fake server that is up."""
    server = FakeServer(script, faults=faults, latency_s=latency_s)
    server.start(port)
    try:
        yield server
    finally:
        server.stop()
