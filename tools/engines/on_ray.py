"""The same tool behind Ray Serve: replicas that hold the model each, one address in front of them.

Invariant: no call is lost. A tool only reads, so what a replica had not answered when it died is asked again of
another one; a caller sees the delay and nothing else. Callers who go away are cancelled on the replica as well.
"""

import asyncio
import json
import logging
import os
from collections.abc import Callable
from typing import Any, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from claims.schema import UserError
from tools.batching import BUSY
from tools.engines.app import Wanted, build_app
from tools.engines.inside import Answer, Inside, Request
from tools.hangup import CancelOnHangup

ATTEMPTS = 6
"""Replicas that one call is tried on before its caller is told."""
MAX_ONGOING = 64
"""Calls sent to one replica at a time; they share its batches."""
TARGET_ONGOING = 16
"""Calls a replica should have: with more of them another replica is started, up to the limit."""
MAX_QUEUED = 1024
"""Calls that wait for a replica; a further one is told to come again."""
INTERNAL_ERROR = -32603

_log = logging.getLogger(__name__)


class Replica:
    """One copy of the model with its tool, in a process of Ray's."""

    def __init__(self, wanted: Wanted) -> None:
        """Load everything."""
        self._inside = Inside(build_app(wanted))

    async def answer(self, request: Request) -> Answer:
        """Answer one HTTP request."""
        return await self._inside.answer(request)

    def pid(self) -> int:
        """Of the replica's process."""
        return os.getpid()


class Ask(Protocol):
    """Sends a request to some replica."""

    async def __call__(self, request: Request) -> Answer:
        """The replica's answer; cancelling the call cancels it there."""
        ...


class Front:
    """The application at the address: it holds no model and passes every request on."""

    def __init__(self, ask: Ask, *, died: tuple[type[Exception], ...], full: tuple[type[Exception], ...]) -> None:
        """Stand before the replicas.

        Args:
            ask: Sends a request to one of them.
            died: Errors that say that the replica was lost; the call is tried on another one.
            full: Errors that say that too many calls wait.
        """
        self._ask = ask
        self._died = died
        self._full = full

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await _no_lifespan(receive, send)
            return
        headers = tuple((bytes(name), bytes(value)) for name, value in scope["headers"])
        answer = await self._answer(Request(scope["method"], scope["path"], headers, await _body(receive)))
        await send({"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)})
        await send({"type": "http.response.body", "body": answer.body, "more_body": False})

    async def _answer(self, request: Request) -> Answer:
        for attempt in range(ATTEMPTS):
            try:
                return await self._ask(request)
            except self._full as error:
                return _rpc_error(request, BUSY, f"Every replica is busy ({error}). Ask again in a few seconds.")
            except self._died as error:
                _log.warning("a replica was lost (%s); its call is tried again", type(error).__name__)
                await asyncio.sleep(0.1 * 2**attempt)
        return _rpc_error(request, INTERNAL_ERROR, f"{ATTEMPTS} replicas were lost on this call, one after another.")


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _rpc_error(request: Request, code: int, message: str) -> Answer:
    try:
        number = json.loads(request.body)["id"]
    except (ValueError, KeyError, TypeError):
        number = None
    body = json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}).encode()
    return Answer(200, ((b"content-type", b"application/json"),), body)


async def _no_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def start(wanted: Wanted, *, replicas: int, least: int) -> tuple[ASGIApp, Callable[[], None]]:
    """Start replicas and return the application for the one address, and what ends them.

    Args:
        wanted: What each replica serves.
        replicas: Most of them at a time.
        least: Fewest of them, also when nobody calls.

    Raises:
        UserError: Ray is not installed, the numbers make no sense, or no replica comes up.
    """
    if not 1 <= least <= replicas:
        raise UserError(f"{least} to {replicas} replicas were asked for. Expected at least one, and no fewer at most.")
    ray, serve = _import_ray()
    _start_cluster(ray, serve)
    name = f"uplift-{wanted.tool}-{wanted.target}-{os.getpid()}"
    deployment = serve.deployment(Replica).options(
        name="replica",
        max_ongoing_requests=MAX_ONGOING,
        max_queued_requests=MAX_QUEUED,
        autoscaling_config={
            "min_replicas": least,
            "max_replicas": replicas,
            "initial_replicas": least,
            "target_ongoing_requests": TARGET_ONGOING,
        },
        ray_actor_options=_resources(ray.cluster_resources(), replicas),
        health_check_period_s=2,
        health_check_timeout_s=30,
        max_constructor_retry_count=1,
    )
    try:
        handle = serve.run(deployment.bind(wanted), name=name, route_prefix=None)
    except Exception as error:
        ray.shutdown()
        raise UserError(f"No replica of {wanted.tool} came up: {error}") from error

    def end() -> None:
        serve.delete(name)
        ray.shutdown()

    errors = ray.exceptions, serve.exceptions
    front = Front(
        lambda request: _ask(handle, request),
        died=(errors[0].RayActorError, errors[1].DeploymentUnavailableError, errors[1].ReplicaUnavailableError),
        full=(errors[1].BackPressureError,),
    )
    return CancelOnHangup(front), end


def _start_cluster(ray: Any, serve: Any) -> None:
    try:
        ray.init(include_dashboard=False, logging_level=logging.WARNING, log_to_driver=True)
        serve.start(proxy_location="Disabled")
    except Exception as error:
        ray.shutdown()
        raise UserError(
            f"Ray did not start on this machine ({error!s:.200}). It waits half a minute for its own processes. Try "
            "again when the machine is less busy, or name a running cluster in RAY_ADDRESS."
        ) from error


async def _ask(handle: Any, request: Request) -> Answer:
    response = handle.answer.remote(request)
    try:
        answer: Answer = await response
    except asyncio.CancelledError:
        response.cancel()
        raise
    return answer


def _resources(cluster: dict[str, float], replicas: int) -> dict[str, float]:
    """What one replica takes, so that all of them find room: a share of the GPUs, else of the cores."""
    gpus = cluster.get("GPU", 0.0)
    if gpus >= 1:
        return {"num_gpus": 1 if gpus >= replicas else gpus / replicas}
    return {"num_cpus": min(1.0, cluster.get("CPU", 1.0) / replicas)}


def _import_ray() -> tuple[Any, Any]:
    # What Ray reports home is nobody's business; the variable is read at import.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        from ray import serve
    except ImportError:
        raise UserError(
            "Ray is not installed. Expected it for --engine ray. Install the extra: "
            "`.venv/bin/pip install -c constraints.txt -e '.[ray]'`."
        ) from None
    return ray, serve
