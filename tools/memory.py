"""What to do when memory runs out: do half of the work at a time.

Invariant: items keep their order, and a failed attempt leaves nothing behind but the memory it had taken.
"""

import gc
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")
"""How torch says it in errors that have no class of their own."""


class OutOfMemory(RuntimeError):  # noqa: N818 - named for what happened
    """A single item is too much for this machine's memory."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that memory ran out, on any device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)


def halving(
    run: Callable[[Sequence[_Item]], Sequence[_Result]],
    items: Sequence[_Item],
    *,
    forget: Callable[[], None] = lambda: None,
) -> list[_Result]:
    """The results of `run` over `items`, in halves where all at once do not fit.

    Args:
        run: Gives one result for each item.
        items: All of them.
        forget: Drops what a failed attempt may have left in buffers.

    Raises:
        OutOfMemory: One item alone does not fit.
    """
    try:
        return list(run(items))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        found = f"{type(error).__name__}: {error}"
    # Outside the handler, since the error's traceback holds every tensor of the attempt.
    forget()
    _release()
    if len(items) == 1:
        raise OutOfMemory(
            f"Memory ran out on one item alone ({found:.300}). Expected room for it. Shorten the transcript or the "
            "answer, or use a device with more memory."
        )
    middle = len(items) // 2
    return halving(run, items[:middle], forget=forget) + halving(run, items[middle:], forget=forget)


def _release() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
