"""A target in this process: the offline builder's sampler, asked by many stages at once.

Invariant: orders that come while the model is busy are drawn together when it is free; what was drawn is kept by the
sampler's own store.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from claims.build.sampler import StoredSampler
from claims.build.wild.engine import Messages, PromptRefusedError, Response
from claims.schema import UserError
from tools.chat import END_OF_THOUGHT
from tools.sampling import Sample


@dataclass
class _Order:
    """A prompt that waits for the model."""

    prompt: Messages
    n: int
    seed: int
    future: "asyncio.Future[tuple[Sample, ...]]"


class LocalEngine:
    """A target in this process. Orders that come while the model is busy are drawn together when it is free."""

    def __init__(self, sampler: StoredSampler) -> None:
        """Draw through the sampler of the offline builder, which keeps every response."""
        self.sampler = sampler
        self._waiting: list[_Order] = []
        self._server: asyncio.Task[None] | None = None

    def identity(self) -> Mapping[str, object]:
        """Weights and settings."""
        loaded = self.sampler.loaded
        return {"engine": "transformers", "weights": loaded.weights, "dtype": str(loaded.dtype).removeprefix("torch.")}

    def check(self, prompt: Messages) -> None:
        """Raise `PromptRefusedError` when roles or length do not suit the target."""
        try:
            n_prompt = len(self.sampler.prompt_ids(prompt))
        except UserError as error:
            raise PromptRefusedError(str(error)) from None
        context = int(self.sampler.loaded.model.config.get_text_config().max_position_embeddings)
        n_response = self.sampler.sampling.max_tokens
        if n_prompt + n_response > context:
            raise PromptRefusedError(
                f"The prompt has {n_prompt} tokens; with a response of {n_response} the target holds {context}."
            )

    async def draw(self, prompt: Messages, n: int, seed: int) -> tuple[Response, ...]:
        """The first `n` responses of the prompt under `seed`."""
        self.check(prompt)
        order = _Order(prompt, n, seed, asyncio.get_running_loop().create_future())
        self._waiting.append(order)
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve())
        samples = await order.future
        return tuple(self._response(one) for one in samples)

    def _response(self, one: Sample) -> Response:
        if self.sampler.sampling.max_thinking is None:
            return Response(one.text, None, one.token_ids, one.finished)
        tokenizer, ids = self.sampler.loaded.tokenizer, list(one.token_ids)
        end = tokenizer.convert_tokens_to_ids(END_OF_THOUGHT)
        n_thought = ids.index(end) if end in ids else len(ids)
        thought = tokenizer.decode(ids[:n_thought]).removeprefix("<think>").strip("\n")
        answer = tokenizer.decode(ids[n_thought + 1 :], skip_special_tokens=True).lstrip("\n")
        return Response(answer, thought, one.token_ids, one.finished)

    async def prompt_ids(self, prompt: Messages) -> tuple[int, ...]:
        """Token ids of the prompt."""
        return self.sampler.prompt_ids(prompt)

    async def _serve(self) -> None:
        # One turn of the loop lets everyone who is ready order, so that a batch is as large as it can be.
        await asyncio.sleep(0)
        while self._waiting:
            first = self._waiting[0]
            together = [one for one in self._waiting if (one.n, one.seed) == (first.n, first.seed)]
            self._waiting = [one for one in self._waiting if (one.n, one.seed) != (first.n, first.seed)]
            await self._fill(together, first.n, first.seed)

    async def _fill(self, orders: Sequence[_Order], n: int, seed: int) -> None:
        try:
            drawn = await asyncio.to_thread(self.sampler.draw, [one.prompt for one in orders], n, seed)
        except BaseException as error:
            for one in orders:
                if not one.future.done():
                    one.future.set_exception(error if isinstance(error, Exception) else asyncio.CancelledError())
            if not isinstance(error, Exception):
                raise
            return
        for one in orders:
            if not one.future.done():
                one.future.set_result(drawn[one.prompt])

    async def close(self) -> None:
        """Nothing is held open."""
