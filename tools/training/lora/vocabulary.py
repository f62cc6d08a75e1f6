"""Which tokens training chooses among, where the vocabulary is so large that all of it would be half of a step.

Invariant: every answer's tokens are among them at every step; the others are drawn anew for each step, so that no
token stays unseen. Held-out losses are over the whole vocabulary.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from tools.training.lora.examples import Example

LARGE = 100_000
"""Vocabularies from this size on are sampled."""
EXTRA = 6144
"""Tokens drawn for each step."""


class Vocabulary:
    """The tokens of each step."""

    def __init__(self, size: int, examples: Sequence[Example], *, seed: int) -> None:
        """Keep the tokens of all answers and prompts if the vocabulary is large."""
        used = {token_id for example in examples for token_id in (*example.prompt_ids, *example.answer_ids)}
        self._used = torch.tensor(sorted(used)) if size >= LARGE else None
        self._size = size
        self._seed = seed

    def at(self, step: int) -> Int[Tensor, " some"] | None:
        """The tokens of a step, ascending; None for all."""
        if self._used is None:
            return None
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + step)
        drawn = torch.randint(self._size, (EXTRA,), generator=generator)
        tokens: Tensor = torch.unique(torch.cat([self._used, drawn]))
        return tokens
