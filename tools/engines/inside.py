"""An application that is called without a socket: requests come as objects, and answers go back as objects.

Invariant: the application cannot tell the difference; its lifespan is entered once, before the first request.
"""

import asyncio
from dataclasses import dataclass

import anyio
from starlette.applications import Starlette
from starlette.types import Message, Scope


@dataclass(frozen=True)
class Request:
    """One HTTP request, whole."""

    method: str
    """Such as POST."""
    path: str
    """Without the query."""
    headers: tuple[tuple[bytes, bytes], ...]
    """As they came."""
    body: bytes
    """All of it."""


@dataclass(frozen=True)
class Answer:
    """One HTTP answer, whole."""

    status: int
    """Such as 200."""
    headers: tuple[tuple[bytes, bytes], ...]
    """As they go."""
    body: bytes
    """All of it."""


class Inside:
    """An application and the event loop that first asks it."""

    def __init__(self, app: Starlette) -> None:
        """Start nothing yet."""
        self._app = app
        self._started: asyncio.Future[None] | None = None
        self._life: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Answer:
        """What the application answers; cancelling the call cancels its work."""
        await self._start()
        parts: list[Message] = [{"type": "http.request", "body": request.body, "more_body": False}]
        sent: list[Message] = []

        async def receive() -> Message:
            if not parts:
                # After the body there is only the end of the connection, which a cancelled call stands for.
                await anyio.sleep_forever()
            return parts.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        await self._app(_scope(request), receive, send)
        start = next(message for message in sent if message["type"] == "http.response.start")
        body = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
        return Answer(start["status"], tuple((bytes(k), bytes(v)) for k, v in start.get("headers", ())), body)

    async def _start(self) -> None:
        if self._started is None:
            self._started = asyncio.get_running_loop().create_future()
            self._life = asyncio.create_task(self._live(self._started))
        await asyncio.shield(self._started)

    async def _live(self, started: "asyncio.Future[None]") -> None:
        # One task enters and leaves, as anyio's task groups demand.
        async with self._app.router.lifespan_context(self._app):
            started.set_result(None)
            await anyio.sleep_forever()


def _scope(request: Request) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": list(request.headers),
        "client": None,
        "server": None,
    }
