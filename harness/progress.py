"""Progress of a run on standard error: claims done per arm, and the time that is left.

Invariant: nothing is written to standard output, and a file or a pipe gets whole lines instead of a moving bar.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_LINE_EVERY_S = 10.0
_FEW = 20
"""Answers before which the time that is left is anybody's guess: models are loading, nothing is batched yet."""

Advance = Callable[[str], None]
"""Call it with an arm's name when one more of its claims is done."""


@contextmanager
def progress(totals: Mapping[str, int], done: Mapping[str, int]) -> Iterator[Advance]:
    """Show how far each arm is.

    Args:
        totals: Claims by arm.
        done: Claims by arm that an earlier run finished.
    """
    if sys.stderr.isatty():
        with _bars(totals, done) as advance:
            yield advance
    else:
        yield _Lines(totals, done).advance


@contextmanager
def _bars(totals: Mapping[str, int], done: Mapping[str, int]) -> Iterator[Advance]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {arm: bars.add_task(arm, total=total, completed=done.get(arm, 0)) for arm, total in totals.items()}
        yield lambda arm: bars.advance(tasks[arm])


class _Lines:
    """One line every few seconds, and one at the end."""

    def __init__(self, totals: Mapping[str, int], done: Mapping[str, int]) -> None:
        self._totals = totals
        self._done = {arm: done.get(arm, 0) for arm in totals}
        self._before = sum(self._done.values())
        self._start = self._last = time.monotonic()

    def advance(self, arm: str) -> None:
        self._done[arm] += 1
        now = time.monotonic()
        n_left = sum(self._totals.values()) - sum(self._done.values())
        if n_left > 0 and now - self._last < _LINE_EVERY_S:
            return
        self._last = now
        elapsed = now - self._start
        n_new = sum(self._done.values()) - self._before
        left = f", about {elapsed / n_new * n_left:.0f} s left" if n_new >= _FEW else ""
        counts = ", ".join(f"{name} {count}/{self._totals[name]}" for name, count in self._done.items())
        sys.stderr.write(f"{counts}; {elapsed:.0f} s so far{left}\n")
        sys.stderr.flush()
