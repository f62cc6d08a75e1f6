"""`python -m tests.fakes`: the fake providers in a process of their own.

It ends with Ctrl-C, or with the pipe that is its standard input.
"""

import argparse
import json
import os
import stat
import sys
import threading

from tests.fakes.faults import Faults, parse_rates
from tests.fakes.script import SCRIPTS
from tests.fakes.server import serving


def main() -> None:
    parser = argparse.ArgumentParser(description="Fake providers. Export what `env` says, then run anything.")
    parser.add_argument("--port", type=int, default=0, help="0 takes any that is free")
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="reader", help="what every model says")
    parser.add_argument("--faults", type=parse_rates, default={}, help="429=0.05,500=0.02,reset=0.01,hang=0.01,...")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--retry-after", type=float, default=0.02, help="seconds that a 429 names")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every reply")
    given = parser.parse_args()
    faults = Faults(given.faults, given.seed, given.retry_after)
    with serving(given.script, faults=faults, latency_s=given.latency, port=given.port) as server:
        sys.stdout.write(json.dumps({"url": server.url, "env": server.env()}) + "\n")
        sys.stdout.flush()
        try:
            _wait()
        except KeyboardInterrupt:
            return


def _wait() -> None:
    """Wait for whoever started us to go, or for Ctrl-C; in the background there is nothing to read from."""
    if stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        sys.stdin.read()
    else:
        threading.Event().wait()


if __name__ == "__main__":
    main()
