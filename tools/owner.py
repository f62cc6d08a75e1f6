"""One thread that owns a model.

Invariant: everything that touches the model's modules goes through `ModelThread.run`, so that concurrent callers are
served one after the other. Hooks on a module that two threads run at once see each other's activations.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

_Result = TypeVar("_Result")


class ModelThread:
    """Runs one call at a time, in one thread, without gradients."""

    def __init__(self, name: str) -> None:
        """Start no thread before the first call; `name` is shown by debuggers."""
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._here = threading.local()
        self._pending: set[Future[object]] = set()

    @property
    def n_pending(self) -> int:
        """Calls that were submitted and have not ended, the running one included."""
        return len(self._pending)

    def submit(self, call: Callable[[], _Result]) -> "Future[_Result]":
        """Queue `call`; its result, or what it raises, is the future's."""
        future = self._executor.submit(self._run, call)
        self._pending.add(future)  # type: ignore[arg-type]  # a set of futures of anything
        future.add_done_callback(self._pending.discard)
        return future

    def run(self, call: Callable[[], _Result]) -> _Result:
        """Run `call` in the model's thread and wait; from inside that thread, run it at once."""
        if getattr(self._here, "inside", False):
            return call()
        return self.submit(call).result()

    def _run(self, call: Callable[[], _Result]) -> _Result:
        self._here.inside = True
        with torch.inference_mode():
            return call()
