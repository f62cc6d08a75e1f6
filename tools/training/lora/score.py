"""Whether a tool reads the activations that it is given: its losses with the right ones, others' and none.

Invariant: everything here is about held-out examples; a control differs from the real thing in the vectors alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from tools.training.lora.examples import Example
from tools.training.lora.inject import Hidden
from tools.training.lora.loop import batch_losses

GROUP = 16
"""Examples in one forward pass."""


@dataclass(frozen=True)
class Losses:
    """Mean loss of an answer, in nats a token."""

    right: float
    """With the activations that the question is about."""
    shuffled: float
    """With those of another example."""
    zero: float
    """With none."""
    margin: float
    """shuffled - right, paired by example."""
    margin_low: float
    """Lower end of its 95 % interval (normal)."""
    n: int
    """Examples."""

    @property
    def beats_shuffled(self) -> bool:
        """Whether the right activations help, beyond chance."""
        return self.margin_low > 0


def shuffled(examples: Sequence[Example]) -> list[Example]:
    """The same examples, each with the activations of another one: of the same layer and of like length."""
    order = sorted(range(len(examples)), key=lambda i: (examples[i].layer, len(examples[i].vectors), i))
    donors = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [_given(example, examples[donors[i]]) for i, example in enumerate(examples)]


def _given(example: Example, donor: Example) -> Example:
    n = len(example.vectors)
    repeats = -(-n // len(donor.vectors))
    return replace(example, vectors=donor.vectors.repeat(repeats, 1)[:n])


def zeroed(examples: Sequence[Example]) -> list[Example]:
    """The same examples without activations."""
    return [replace(example, vectors=torch.zeros_like(example.vectors)) for example in examples]


def measure_losses(model: nn.Module, hidden: Hidden, examples: Sequence[Example]) -> Losses:
    """Compare the right activations with the controls."""
    right, other, none = (_each(model, hidden, chosen) for chosen in (examples, shuffled(examples), zeroed(examples)))
    difference = other - right
    n = len(difference)
    spread = float(difference.std()) / math.sqrt(n) if n > 1 else math.nan
    return Losses(
        right=float(right.mean()),
        shuffled=float(other.mean()),
        zero=float(none.mean()),
        margin=float(difference.mean()),
        margin_low=float(difference.mean()) - 1.96 * spread,
        n=n,
    )


@torch.inference_mode()
def _each(model: nn.Module, hidden: Hidden, examples: Sequence[Example]) -> torch.Tensor:
    order = sorted(range(len(examples)), key=lambda i: examples[i].length)
    found = torch.zeros(len(examples), dtype=torch.float64)
    for at in range(0, len(order), GROUP):
        group = order[at : at + GROUP]
        found[group] = batch_losses(model, hidden, [examples[i] for i in group]).double().cpu()
    return found
