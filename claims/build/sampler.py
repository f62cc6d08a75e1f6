"""Samples of prompts by way of the store: only what is missing is drawn.

Invariant: sample i of a prompt is the same whether it was drawn with the first ten or later, today or after a kill.
"""

import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from claims.build.store import SampleStore, sample_key
from claims.schema import Message
from tools.chat import encode_prompt
from tools.model import Loaded
from tools.sampling import Request, Sample, sample
from tools.targets import Sampling

logger = logging.getLogger(__name__)

PROMPTS_AT_A_TIME = 24
"""Prompts given to the sampler in one call: a kill loses at most the batch it is in."""

Prompt = tuple[Message, ...]
"""The messages of one prompt."""


class Sampler(Protocol):
    """What the builder needs of a target."""

    def prompt_ids(self, prompt: Prompt) -> tuple[int, ...]:
        """Token ids of the prompt as the target sees it."""
        ...

    def draw(self, prompts: Sequence[Prompt], n: int, seed: int) -> dict[Prompt, tuple[Sample, ...]]:
        """The first `n` samples of every prompt under `seed`."""
        ...


class StoredSampler:
    """The target's own sampler behind the store."""

    def __init__(self, loaded: Loaded, sampling: Sampling, folder: Path) -> None:
        """Sample `loaded` with these settings and keep the samples in `folder`."""
        self.loaded = loaded
        self.sampling = sampling
        self.store = SampleStore(folder)

    def prompt_ids(self, prompt: Prompt) -> tuple[int, ...]:
        """Token ids of the prompt as the target sees it."""
        thinking = self.sampling.max_thinking is not None
        return encode_prompt(self.loaded.tokenizer, self.loaded.target, prompt, thinking=thinking)

    def draw(self, prompts: Sequence[Prompt], n: int, seed: int) -> dict[Prompt, tuple[Sample, ...]]:
        """The first `n` samples of every prompt under `seed`, drawn where they are missing."""
        prompts = list(dict.fromkeys(prompts))
        keys = {prompt: self._key(prompt, seed) for prompt in prompts}
        missing = []
        for prompt in prompts:
            held = len(self.store.read(keys[prompt]))
            if held < n:
                missing.append(Request(prompt, n - held, keys[prompt], seed, first=held))
        self._draw_missing(missing)
        return {prompt: self.store.read(keys[prompt])[:n] for prompt in prompts}

    def _key(self, prompt: Prompt, seed: int) -> str:
        loaded = self.loaded
        return sample_key(loaded.weights, str(loaded.dtype), self.prompt_ids(prompt), self.sampling, seed)

    def _draw_missing(self, requests: list[Request]) -> None:
        requests.sort(key=lambda request: (len(self.prompt_ids(request.messages)), request.key))
        total = sum(request.n for request in requests)
        done, start = 0, time.monotonic()
        for at in range(0, len(requests), PROMPTS_AT_A_TIME):
            chunk = requests[at : at + PROMPTS_AT_A_TIME]
            sample(
                self.loaded,
                chunk,
                sampling=self.sampling,
                progress=partial(self._keep, chunk),
            )
            done += sum(request.n for request in chunk)
            left = (time.monotonic() - start) / done * (total - done)
            logger.info("%d of %d responses, %.0f min left", done, total, left / 60)

    def _keep(self, requests: Sequence[Request], place: int, samples: list[Sample]) -> None:
        request = requests[place]
        self.store.extend(request.key, request.first, samples)
