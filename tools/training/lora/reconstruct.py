"""From a description back to the activation: ridge regression on hashed words.

Invariant: it reads the description's words only. What it rebuilds is what the verbaliser is given: the activation less
the centre, at norm 1.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from tools.training.lora.describing import plain_words

BUCKETS = 1536
"""Words and places of words share so many features."""
PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Tried on a tenth of the examples."""


@dataclass(frozen=True)
class Reconstructor:
    """A linear map from a description's features to an activation."""

    weight: Float[Tensor, "buckets d_model"]
    """One row a feature."""
    bias: Float[Tensor, " d_model"]
    """The mean."""
    penalty: float
    """Of the ridge."""

    def rebuild(self, descriptions: Sequence[str]) -> Float[Tensor, "n d_model"]:
        """The activations that the descriptions stand for."""
        return features(descriptions) @ self.weight + self.bias

    def as_shipped(self) -> "Reconstructor":
        """With the values that a float16 file keeps."""
        return Reconstructor(self.weight.half().float(), self.bias.half().float(), self.penalty)


def features(descriptions: Sequence[str]) -> Float[Tensor, "n buckets"]:
    """Hashed words: of the whole, and of the token, what comes before and what comes after, counted apart."""
    found = torch.zeros(len(descriptions), BUCKETS)
    for row, description in enumerate(descriptions):
        for name in _names(description):
            found[row, _bucket(name)] += 1
    return found


def _names(description: str) -> list[str]:
    # The places of the quotation marks say which words are which; a description without them has words alone.
    parts = re.split(r'" after "|", then "|"\. ', description)
    names = [f"word {word}" for word in plain_words(description)]
    if len(parts) == 4:
        token = re.sub(r'^<explanation>"', "", parts[0])
        names += [f"token {token}", *(f"last {word}" for word in plain_words(parts[1])[-1:])]
        names += [f"{label} {word}" for label, part in zip("bak", parts[1:], strict=True) for word in plain_words(part)]
    return names


@lru_cache(maxsize=200_000)
def _bucket(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % BUCKETS


def fit_reconstructor(descriptions: Sequence[str], activations: Float[Tensor, "n d_model"]) -> Reconstructor:
    """Fit to descriptions and what they are of; the last tenth of them chooses the penalty."""
    x, y = features(descriptions), activations
    n = len(x) - max(1, len(x) // 10)
    best = max(PENALTIES, key=lambda penalty: explained(_solve(x[:n], y[:n], penalty), x[n:], y[n:]))
    return _solve(x, y, best)


def explained(reconstructor: Reconstructor, x: Tensor, y: Tensor) -> float:
    """Explained variance of `y` by its features `x`."""
    return explained_variance(x @ reconstructor.weight + reconstructor.bias, y)


def explained_variance(rebuilt: Float[Tensor, "n d_model"], right: Float[Tensor, "n d_model"]) -> float:
    """1 - (squared error) / (squared distance from the mean); 1 is perfect, 0 is the mean, nan where nothing varies."""
    error = (right - rebuilt).square().sum()
    distance = (right - right.mean(dim=0)).square().sum()
    return float(1 - error / distance)


def _solve(x: Tensor, y: Tensor, penalty: float) -> Reconstructor:
    middle, mean = x.mean(dim=0), y.mean(dim=0)
    centred = (x - middle).double()
    gram = centred.T @ centred + penalty * torch.eye(BUCKETS, dtype=torch.float64)
    weight = torch.linalg.solve(gram, centred.T @ (y - mean).double()).float()
    return Reconstructor(weight, mean - middle @ weight, penalty)
