"""What becomes of a request whose client has gone: it is cancelled, so that nobody computes what nobody reads.

Invariant: the application sees the same request and sends the same answer as without this; only the wait ends earlier.
"""

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class CancelOnHangup:
    """Wraps an application; mcp's JSON answers would otherwise be computed to the end for a closed connection."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = await _whole(receive)
        gone = anyio.Event()
        answered = False

        async def replay() -> Message:
            if request:
                return request.pop(0)
            await gone.wait()
            return {"type": "http.disconnect"}

        async def note(message: Message) -> None:
            nonlocal answered
            await send(message)
            answered = message["type"] == "http.response.body" and not message.get("more_body", False)

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()
            # A finished answer reads as a disconnect too, and leaves the application to tidy up.
            if not answered:
                serving.cancel_scope.cancel()

        async with anyio.create_task_group() as serving:
            serving.start_soon(watch)
            await self._app(scope, replay, note)
            serving.cancel_scope.cancel()


async def _whole(receive: Receive) -> list[Message]:
    """Every part of the body; what comes after it can only be the end of the connection."""
    parts: list[Message] = []
    while True:
        part = await receive()
        parts.append(part)
        if part["type"] != "http.request" or not part.get("more_body", False):
            return parts
