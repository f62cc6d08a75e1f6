"""Models that pay: every request of a run goes through its purse.

Invariant: a request is held before it is sent and settled by what the provider reported, whoever sends it; a model is
left as it was found.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any

from inspect_ai.model import Model, ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState
from inspect_ai.tool import ToolDef, ToolInfo
from inspect_ai.util import suspend_working_limit
from pydantic import BaseModel

from claims.build.wild.usage import normalised
from harness.money.purse import Purse

MOST_OUTPUT = 128_000
"""Tokens that no provider exceeds in one reply, for models that state no limit of their own."""
_REFUSED_FROM = 400
"""HTTP status of a request that was turned away, which nobody bills."""


@contextmanager
def paying(models: Iterable[Model], purse: Purse | None) -> Iterator[None]:
    """Let every request of `models` inside the block be paid from `purse`; without one nothing is changed."""
    with ExitStack() as stack:
        if purse is not None:
            for model in {id(model): model for model in models}.values():
                stack.enter_context(_watched(model, purse))
        yield


@contextmanager
def _watched(model: Model, purse: Purse) -> Iterator[None]:
    # Two doors: a request is held where it is asked, retries included, so that waiting is no part of an attempt's time
    # limit; it is paid where it is answered, so that an attempt that fails half way is seen.
    with (
        _replaced(model, _held(model, model.generate, purse)),
        _replaced(model.api, _settled(model.api.generate, purse)),
    ):
        yield


@contextmanager
def _replaced(owner: object, generate: Callable[..., Awaitable[object]]) -> Iterator[None]:
    own = vars(owner)
    before = own.get("generate")
    own["generate"] = generate
    try:
        yield
    finally:
        del own["generate"]
        if before is not None:
            own["generate"] = before


def _held(model: Model, ask: Callable[..., Awaitable[ModelOutput]], purse: Purse) -> Callable[..., Awaitable[object]]:
    @wraps(ask)
    async def generate(input: object, tools: object = (), *args: Any, **more: Any) -> ModelOutput:  # noqa: A002 - Inspect's name
        ticket = await purse.hold(purse.most(_n_bytes(input, tools), _most_output(model)))
        try:
            return await ask(input, tools, *args, **more)
        finally:
            purse.release(ticket)

    return generate


def _settled(attempt: Callable[..., Awaitable[Any]], purse: Purse) -> Callable[..., Awaitable[Any]]:
    @wraps(attempt)
    async def generate(*args: Any, **more: Any) -> Any:
        try:
            result = await attempt(*args, **more)
        except BaseException as error:
            if not _refused(error):
                purse.lose()
            raise
        output = result[0] if isinstance(result, tuple) else result
        if isinstance(output, ModelOutput):
            purse.pay(normalised(output.usage))
        return result

    return generate


def _refused(error: BaseException) -> bool:
    """Whether the provider turned the request away; a cancelled, broken or timed-out one may have been answered."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return isinstance(status, int) and status >= _REFUSED_FROM


def _n_bytes(input: object, tools: object) -> int:  # noqa: A002 - Inspect's name
    messages = input if isinstance(input, list) else [input]
    shown = [one.model_dump_json() if isinstance(one, BaseModel) else str(one) for one in messages]
    for tool in tools if isinstance(tools, list | tuple) else ():
        if isinstance(tool, ToolDef | ToolInfo):
            shown += [tool.name, tool.description, tool.parameters.model_dump_json()]
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in shown)


def _most_output(model: Model) -> int:
    config = model.config
    stated = config.max_tokens or model.api.max_tokens_for_config(config) or model.api.max_tokens()
    return stated or MOST_OUTPUT


def admitting(purse: Purse | None, setting: str, *, batch: bool = False) -> Callable[[Solver], Solver]:
    """A wrapper for the predictor loop of a setting that asks a claim only when the purse lets it in.

    The wrapped solver looks to Inspect exactly as the bare one does: a cap is no part of a run's identity.

    Args:
        purse: Of this start of the run; None lets every claim in.
        setting: Short name of arm and budget.
        batch: Whether replies come in batches, hours later, which is no working time of a claim.
    """

    def wrap(inner: Solver) -> Solver:
        @wraps(inner)
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            async with purse.claim(setting, str(state.sample_id), batch=batch) if purse else nullcontext():
                with suspend_working_limit() if batch else nullcontext():
                    return await inner(state, generate)

        return inner if purse is None and not batch else solve

    return wrap
