"""The process of a tool server: `python -m tools.serve sae --target gemma-3-270m --transcripts DIR`.

Invariant: standard output carries one line of JSON, printed when the server answers; everything else that anyone
prints goes to standard error. The process ends with its parent (standard input reaches its end) or on a signal.
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from claims.schema import UserError
from tools import TOOLS, get_tool
from tools.donors import read_donors
from tools.engines import ENGINES, check_engine
from tools.engines.address import check_address
from tools.engines.app import Wanted, build_app
from tools.registered import register
from tools.targets import get_target

MAX_POSITIONS = 128
"""Most positions in one call that a server answers, whatever a run allows."""


_endings: list[Callable[[], None]] = []
"""What an engine wants done before the process ends."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until standard input ends or a signal comes; status 2 when the user must mend something first."""
    # Read when torch is imported: left-over threads that spin would slow down whoever shares the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    ready = _keep_stdout()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    _take_signals()
    options = _parser().parse_args(arguments)
    if not options.ignore_stdin:
        threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        _serve(options, lambda urls: _announce(ready, urls))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


def _take_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)


def _keep_stdout() -> int:
    # Libraries print and draw progress bars on standard output, from C too: give them standard error instead.
    ready = os.dup(1)
    os.dup2(2, 1)
    return ready


def _announce(ready: int, urls: Mapping[str, str]) -> None:
    os.write(ready, (json.dumps(dict(urls)) + "\n").encode())
    os.close(ready)


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    # uvicorn raises the signal again once its connections are closed. Nothing is left to save then, and taking
    # torch down in order takes a second or more.
    for end in _endings:
        end()
    os._exit(0)


def _leave_with_parent() -> None:
    # A raw read: buffered ones hold a lock that the interpreter wants at exit.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.serve", description=__doc__)
    parser.add_argument("tool", help=f"one of: {', '.join(TOOLS)}")
    parser.add_argument("--target", required=True, help="name in tools.targets, such as gemma-3-270m")
    parser.add_argument("--transcripts", required=True, type=Path, help="folder with transcripts.jsonl only")
    parser.add_argument("--port", type=int, default=0, help="0 (default) takes a free one")
    parser.add_argument(
        "--reader", "--activations", dest="reader", help="activation backend; default: the one that measured best"
    )
    parser.add_argument("--engine", default="local", help=f"one of: {', '.join(ENGINES)}")
    parser.add_argument("--vllm-url", help="of the engine vllm: the server's address, such as http://127.0.0.1:8000")
    parser.add_argument("--vllm-model", help="of the engine vllm: the oracle's or autoencoder's name there")
    parser.add_argument("--replicas", type=int, default=2, help="of the engine ray: most at a time")
    parser.add_argument("--min-replicas", type=int, default=1, help="of the engine ray: kept when nobody calls")
    parser.add_argument("--device", help="default: the fastest present")
    parser.add_argument("--max-positions", type=int, default=MAX_POSITIONS, help="most positions in one call")
    parser.add_argument("--donors", type=Path, help="JSON file of donors: serve the tool's sham too, at /sham/mcp")
    parser.add_argument("--show-masked", action="store_true", help="read BOS and norm outliers too")
    parser.add_argument("--ignore-stdin", action="store_true", help="do not end when standard input does")
    return parser


def _serve(options: argparse.Namespace, announce: Callable[[Mapping[str, str]], None]) -> None:
    spec = get_tool(options.tool)
    target = get_target(options.target)
    check_engine(options.engine)
    vllm = check_address(options.vllm_url, options.vllm_model or spec.name) if options.engine == "vllm" else None
    registered = register(options.transcripts)
    donors = read_donors(options.donors, registered) if options.donors else None
    listener = _listen(options.port)

    wanted = Wanted(
        tool=spec.name,
        target=target.name,
        registered=registered,
        donors=donors,
        reader=options.reader,
        device=options.device,
        max_positions=options.max_positions,
        show_masked=options.show_masked,
        vllm=vllm,
    )
    app = _start(options, wanted)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2, lifespan="on")
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    urls = dict(zip(("url", "sham_url"), (origin + path for path in wanted.paths), strict=False))
    asyncio.run(_Server(config, lambda: announce(urls)).serve(sockets=[listener]))


def _start(options: argparse.Namespace, wanted: Wanted) -> ASGIApp:
    if options.engine == "ray":
        from tools.engines import on_ray

        app, end = on_ray.start(wanted, replicas=options.replicas, least=options.min_replicas)
        _endings.append(end)
        # Ray has put handlers of its own in the place of ours.
        _take_signals()
        return app
    return build_app(wanted)


def _listen(port: int) -> socket.socket:
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it every answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise UserError(
            f"Port {port} cannot be used ({error}). Expected a free one. Leave out --port to take any that is free."
        ) from None
    return listener


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self._ready()


if __name__ == "__main__":
    main()
