"""The queue in front of a model: batches, turns, cancellation, limits, whose error it is."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
import torch

from tools.batching import BUSY, Batcher, BusyError
from tools.memory import OutOfMemory, halving, is_out_of_memory
from tools.owner import ModelThread


class Model:
    """Doubles numbers, one batch at a time, each of which waits until it is let go."""

    def __init__(self, *, held: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.threads: set[str] = set()
        self.started = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.held = held

    def run(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.threads.add(threading.current_thread().name)
        self.started.release()
        if self.held:
            assert self.go.acquire(timeout=20)
        if 13 in items:
            raise ValueError("13 is no good")
        return [2 * item for item in items]

    async def begun(self) -> None:
        assert await asyncio.to_thread(self.started.acquire, timeout=20)


def batcher(model: Model, *, max_batch: int = 4, max_wait_s: float = 0.0, max_queue: int = 100) -> Batcher[int, int]:
    thread = ModelThread("model")
    return Batcher(model.run, thread=thread, max_batch=max_batch, max_wait_s=max_wait_s, max_queue=max_queue)


def run(steps: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(steps())


def test_concurrent_callers_share_a_batch_and_get_their_own_results_in_order() -> None:
    model = Model()

    async def steps() -> None:
        queue = batcher(model, max_wait_s=20)
        answers = await asyncio.gather(queue.submit([1, 2]), queue.submit([3]), queue.submit([4]))
        assert answers == [[2, 4], [6], [8]]

    run(steps)
    assert [sorted(batch) for batch in model.batches] == [[1, 2, 3, 4]]
    assert model.threads == {"model_0"}


def test_a_lone_caller_waits_no_longer_than_the_limit_and_nothing_asked_is_nothing_answered() -> None:
    model = Model()

    async def steps() -> None:
        queue = batcher(model, max_wait_s=0.01)
        async with asyncio.timeout(10):
            assert await queue.submit([5]) == [10]
            assert await queue.submit([6]) == [12]
            assert await queue.submit([]) == []

    run(steps)
    assert model.batches == [[5], [6]]


def test_a_short_list_is_not_kept_waiting_by_a_long_one() -> None:
    model = Model(held=True)

    async def steps() -> None:
        queue = batcher(model)
        first = asyncio.create_task(queue.submit([0]))
        await model.begun()
        long = asyncio.create_task(queue.submit(list(range(10, 20))[:3] + list(range(14, 21))))
        await asyncio.sleep(0)
        short = asyncio.create_task(queue.submit([1, 2]))
        await asyncio.sleep(0)
        model.go.release(2)
        assert await short == [2, 4]
        assert not long.done()
        model.go.release(3)
        assert (await first, len(await long)) == ([0], 10)

    run(steps)
    assert model.batches[1] == [10, 1, 11, 2]
    assert [len(batch) for batch in model.batches] == [1, 4, 4, 4]


def test_turns_go_on_where_the_last_batch_stopped() -> None:
    model = Model(held=True)

    async def steps() -> None:
        queue = batcher(model, max_batch=2)
        tasks = [asyncio.create_task(queue.submit([0]))]
        await model.begun()
        for first in (10, 20, 30):
            tasks.append(asyncio.create_task(queue.submit([first, first + 1])))
            await asyncio.sleep(0)
        model.go.release(4)
        await asyncio.gather(*tasks)

    run(steps)
    assert model.batches == [[0], [10, 20], [30, 11], [21, 31]]


def test_a_caller_who_goes_away_leaves_the_queue() -> None:
    model = Model(held=True)

    async def steps() -> None:
        queue = batcher(model)
        first = asyncio.create_task(queue.submit([0]))
        await model.begun()
        gone = asyncio.create_task(queue.submit([1, 2, 3]))
        kept = asyncio.create_task(queue.submit([4]))
        await asyncio.sleep(0)
        assert queue.n_waiting == 4
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert queue.n_waiting == 1
        first.cancel()  # its batch is running: the result is dropped
        model.go.release(2)
        assert await kept == [8]

    run(steps)
    assert model.batches == [[0], [4]]


def test_a_full_queue_says_so_and_takes_more_when_it_has_room() -> None:
    model = Model(held=True)

    async def steps() -> None:
        queue = batcher(model, max_queue=3)
        running = asyncio.create_task(queue.submit([0]))
        await model.begun()
        waiting = asyncio.create_task(queue.submit([1, 2]))
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="2 items are waiting for the model. Expected at most 3. Ask again") as busy:
            await queue.submit([3, 4])
        assert busy.value.code == BUSY
        model.go.release(4)
        assert (await running, await waiting) == ([0], [2, 4])
        # Longer than the whole queue, but nobody is before it.
        assert await queue.submit([1, 2, 3, 4]) == [2, 4, 6, 8]

    run(steps)


def test_an_error_reaches_the_caller_whose_item_it_is_and_the_queue_goes_on() -> None:
    model = Model()

    async def steps() -> None:
        queue = batcher(model, max_wait_s=20)
        answers = await asyncio.gather(
            queue.submit([1]), queue.submit([13]), queue.submit([2, 3]), return_exceptions=True
        )
        assert answers[0] == [2]
        assert isinstance(answers[1], ValueError)
        assert answers[2] == [4, 6]
        assert await queue.submit([4, 5, 6, 7]) == [8, 10, 12, 14]

    run(steps)


def test_a_batch_with_too_few_results_is_an_error() -> None:
    async def steps() -> None:
        queue = Batcher[int, int](lambda items: [], thread=ModelThread("m"), max_batch=1, max_wait_s=0, max_queue=1)
        with pytest.raises(RuntimeError, match="1 items gave 0 results"):
            await queue.submit([1])

    run(steps)


def test_one_batcher_serves_one_event_loop_after_the_other() -> None:
    model = Model()
    queue = batcher(model, max_wait_s=0.01)

    async def steps() -> None:
        assert await asyncio.gather(queue.submit([1]), queue.submit([2])) == [[2], [4]]

    run(steps)
    run(steps)


def test_results_do_not_depend_on_who_else_asks() -> None:
    """A law: whatever the limits and callers, everyone gets twice his numbers."""
    model = Model()

    async def steps() -> None:
        for max_batch in (1, 2, 3, 7):
            queue = batcher(model, max_batch=max_batch, max_wait_s=0.001)
            lists = [list(range(100 * i, 100 * i + i % 6)) for i in range(1, 30)]
            answers = await asyncio.gather(*map(queue.submit, lists))
            assert answers == [[2 * item for item in one] for one in lists]
            assert queue.n_waiting == 0

    run(steps)


def test_what_counts_as_memory_that_ran_out() -> None:
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(RuntimeError) as real:
        torch.empty(2**55)
    assert is_out_of_memory(real.value)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert not is_out_of_memory(ValueError("out of memory"))


def test_halves_keep_the_order_and_other_errors_pass() -> None:
    forgotten: list[None] = []
    sizes: list[int] = []

    def fits_three(items: Sequence[int]) -> list[int]:
        sizes.append(len(items))
        if len(items) > 3:
            raise MemoryError
        return [-item for item in items]

    assert halving(fits_three, range(10), forget=lambda: forgotten.append(None)) == [-item for item in range(10)]
    assert sizes == [10, 5, 2, 3, 5, 2, 3]
    assert len(forgotten) == 3

    def never(items: Sequence[int]) -> list[int]:
        raise MemoryError("no")

    with pytest.raises(OutOfMemory, match="on one item alone .MemoryError: no"):
        halving(never, [1, 2])
    with pytest.raises(ZeroDivisionError):
        halving(lambda items: [1 // 0], [1, 2])
