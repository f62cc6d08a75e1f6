"""Many callers, one model: what several of them ask for at the same time is run as one batch.

Invariant: callers take turns, an item each, so that nobody waits for another's long list; a caller who is gone leaves
the queue; an error reaches the caller whose items caused it and no other.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mcp.shared.exceptions import MCPError

from tools.owner import ModelThread

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

BUSY = -32050
"""JSON-RPC code of an answer that means: nothing is wrong, ask again in a while."""


class BusyError(MCPError):
    """The queue is full. A host waits and asks again; no predictor sees it."""

    def __init__(self, n_waiting: int, limit: int) -> None:
        """Say how long the queue is."""
        super().__init__(
            BUSY,
            f"{n_waiting} items are waiting for the model. Expected at most {limit}. Ask again in a few seconds, or "
            "with fewer callers at once.",
        )


@dataclass(eq=False)
class _Caller(Generic[_Item, _Result]):
    """One `submit`."""

    items: Sequence[_Item]
    """Asked for."""
    arrived: float
    """Loop time."""
    waiting: deque[int]
    """Places of the items that no batch has taken yet."""
    done: "asyncio.Future[None]"
    """Set when all results are there, or with what went wrong."""
    results: dict[int, _Result] = field(default_factory=dict)
    """By place."""


_Batch = list[tuple[_Caller[_Item, _Result], int]]


class Batcher(Generic[_Item, _Result]):
    """A queue in front of one function of the model. It lives on the event loop that first submits to it."""

    def __init__(
        self,
        run: Callable[[Sequence[_Item]], Sequence[_Result]],
        *,
        thread: ModelThread,
        max_batch: int,
        max_wait_s: float,
        max_queue: int,
    ) -> None:
        """Start idle.

        Args:
            run: Gives one result for each item; called in `thread`.
            thread: The model's owner.
            max_batch: Most items in one call of `run`.
            max_wait_s: Longest that an idle model waits for company after the first item came.
            max_queue: Most items that may wait. A longer list is taken when nobody else waits.
        """
        self._run = run
        self._thread = thread
        self._max_batch = max_batch
        self._max_wait_s = max_wait_s
        self._max_queue = max_queue
        self._callers: deque[_Caller[_Item, _Result]] = deque()
        self._came = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    @property
    def n_waiting(self) -> int:
        """Items that no batch has taken yet."""
        return sum(len(caller.waiting) for caller in self._callers)

    async def submit(self, items: Sequence[_Item]) -> list[_Result]:
        """One result for each item, in order. Cancelling the call takes its items out of the queue.

        Raises:
            BusyError: The queue is full.
        """
        if not items:
            return []
        waiting = self.n_waiting
        if waiting and waiting + len(items) > self._max_queue:
            raise BusyError(waiting, self._max_queue)
        loop = asyncio.get_running_loop()
        caller: _Caller[_Item, _Result] = _Caller(items, loop.time(), deque(range(len(items))), loop.create_future())
        self._callers.append(caller)
        if self._pump is None:
            # An event belongs to the loop that first waits for it, and callers may come from another one by now.
            self._came = asyncio.Event()
            self._pump = loop.create_task(self._serve())
        self._came.set()
        try:
            await caller.done
        finally:
            self._leave(caller)
        return [caller.results[place] for place in range(len(items))]

    async def _serve(self) -> None:
        """Run batches until nobody waits; the next caller starts it again."""
        try:
            while self._callers:
                await self._gather()
                batch = self._take()
                if batch:
                    await self._answer(batch)
        finally:
            self._pump = None

    async def _gather(self) -> None:
        """Wait for a full batch, but not longer than the first caller should."""
        loop = asyncio.get_running_loop()
        while self._callers and self.n_waiting < self._max_batch:
            left = min(caller.arrived for caller in self._callers) + self._max_wait_s - loop.time()
            if left <= 0:
                return
            self._came.clear()
            try:
                await asyncio.wait_for(self._came.wait(), left)
            except TimeoutError:
                return

    def _take(self) -> "_Batch[_Item, _Result]":
        """The next batch: an item from each caller in turn, those who came first being first."""
        batch: _Batch[_Item, _Result] = []
        while self._callers and len(batch) < self._max_batch:
            caller = self._callers.popleft()
            batch.append((caller, caller.waiting.popleft()))
            if caller.waiting:
                self._callers.append(caller)
        # Turns go on where this batch stopped, so that a long list is not served twice before a short one.
        return batch

    async def _answer(self, batch: "_Batch[_Item, _Result]") -> None:
        try:
            results = await self._call(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to a caller
            callers = list(dict.fromkeys(caller for caller, _ in batch))
            if len(callers) == 1:
                self._fail(callers[0], error)
                return
            for one in callers:
                if not one.done.done():
                    await self._answer([(caller, place) for caller, place in batch if caller is one])
            return
        for (caller, place), result in zip(batch, results, strict=True):
            caller.results[place] = result
            if len(caller.results) == len(caller.items) and not caller.done.done():
                caller.done.set_result(None)

    async def _call(self, batch: "_Batch[_Item, _Result]") -> Sequence[_Result]:
        items = [caller.items[place] for caller, place in batch]
        results = await asyncio.wrap_future(self._thread.submit(lambda: self._run(items)))
        if len(results) != len(items):
            raise RuntimeError(f"a batch of {len(items)} items gave {len(results)} results; expected one for each")
        return results

    def _fail(self, caller: _Caller[_Item, _Result], error: Exception) -> None:
        self._leave(caller)
        if not caller.done.done():
            caller.done.set_exception(error)

    def _leave(self, caller: _Caller[_Item, _Result]) -> None:
        caller.waiting.clear()
        if caller in self._callers:
            self._callers.remove(caller)
