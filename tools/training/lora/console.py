"""Progress of a long training, as bars on a terminal and as lines in a file.

Invariant: standard output stays empty.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from claims.schema import UserError

LINE_EVERY_S = 20.0
"""Seconds between two lines about the same thing."""


class Lines:
    """One line now and then on standard error: what is being done, how much of it, and since when."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()
        self._last = -LINE_EVERY_S

    def show(self, what: str, done: int, n: int) -> None:
        """Say it, if it is the end of something or long since the last line."""
        now = time.monotonic()
        if done < n and now - self._last < LINE_EVERY_S:
            return
        self._last = now
        sys.stderr.write(f"{now - self._began:7.0f} s  {what}: {done} of {n}\n")
        sys.stderr.flush()


class Train(Protocol):
    """What a command line starts."""

    def __call__(self, name: str, *, out: Path | None, n_steps: int | None, minutes: float | None) -> Path:
        """Train for the target called `name`; return the folder that was written."""
        ...


def command(tool: str, description: str | None, train: Train, arguments: Sequence[str] | None) -> None:
    """Train for the target that is named; status 2 when the user must mend something first."""
    options = _parser(tool, description).parse_args(arguments)
    try:
        train(options.target, out=options.out, n_steps=options.steps, minutes=options.minutes)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


def _parser(tool: str, description: str | None) -> argparse.ArgumentParser:
    """The options that both trainings have."""
    options = argparse.ArgumentParser(prog=f"python -m tools.training {tool}", description=description)
    options.add_argument("target", help="such as gemma-3-270m")
    options.add_argument("--out", type=Path, help="folder to write; default: the one that is shipped")
    options.add_argument("--steps", type=int, help="training steps; default: the plan's")
    options.add_argument("--minutes", type=float, help="longest training; the schedule is shortened to end properly")
    return options
