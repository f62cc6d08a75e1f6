"""How good an autoencoder is on documents that it was not trained on.

Invariant: positions that the tool masks are left out of every figure, and are left as they are when the target's
prediction is measured with its activations replaced.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.model import Loaded, decoder_layers
from tools.positions import masked_positions
from tools.sae_local import TopK
from tools.training.corpus import Document

CHUNK = 4096
"""Tokens encoded together."""


@dataclass(frozen=True)
class Reconstruction:
    """How an autoencoder rebuilds activations."""

    explained_variance: float
    """1 - (squared error) / (squared distance from the mean), over all tokens and dimensions; 1 is perfect, nan
    when there is nothing to explain."""
    cosine: float
    """Mean cosine between an activation and its reconstruction."""
    l0: float
    """Mean number of active features."""
    dead_share: float
    """Share of features that are never active."""
    n_tokens: int
    """How many tokens were looked at."""


class Coder(Protocol):
    """Anything that encodes and decodes activations: `TopK`, or an `Autoencoder` from anywhere."""

    @property
    def d_sae(self) -> int:
        """Number of features."""
        ...

    def encode(self, residual: Tensor, /) -> Tensor:
        """Residual stream to features."""
        ...

    def decode(self, features: Tensor, /) -> Tensor:
        """Features to residual stream."""
        ...


@torch.inference_mode()
def reconstruction(coder: Coder, residual: Tensor) -> Reconstruction:
    """Encode and decode `residual`, shape (tokens, d_model)."""
    mean = residual.float().mean(dim=0)
    error = distance = cosine = active = 0.0
    fired = torch.zeros(coder.d_sae, dtype=torch.bool)
    for at in range(0, len(residual), CHUNK):
        x = residual[at : at + CHUNK].float()
        features = coder.encode(x)
        rebuilt = coder.decode(features)
        error += float((x - rebuilt).square().sum())
        distance += float((x - mean).square().sum())
        cosine += float(functional.cosine_similarity(x, rebuilt, dim=-1).sum())
        active += float((features > 0).sum())
        fired |= (features > 0).any(dim=0)
    n_tokens = len(residual)
    return Reconstruction(
        explained_variance=1 - error / distance if distance else math.nan,
        cosine=cosine / n_tokens,
        l0=active / n_tokens,
        dead_share=1 - float(fired.float().mean()),
        n_tokens=n_tokens,
    )


@dataclass(frozen=True)
class Prediction:
    """How well the target predicts the next token, in nats a token, with its residual stream replaced after a block."""

    clean: float
    """As it is."""
    rebuilt: float
    """Replaced by the autoencoder's reconstruction."""
    mean: float
    """Replaced by the mean activation."""
    n_tokens: int
    """Predictions averaged over."""

    @property
    def recovered(self) -> float:
        """Share of what the mean loses that the reconstruction keeps; 1 is perfect, nan when the mean loses nothing."""
        lost = self.mean - self.clean
        return (self.mean - self.rebuilt) / lost if lost else math.nan


def prediction(loaded: Loaded, topk: TopK, documents: Sequence[Document], layer: int, mean: Tensor) -> Prediction:
    """The target's loss on `documents`, with and without the autoencoder in its way."""
    block = decoder_layers(loaded.model)[layer]

    def rebuild(residual: Tensor) -> Tensor:
        return topk.decode(topk.encode(residual.float())).to(residual.dtype)

    def flatten(residual: Tensor) -> Tensor:
        return mean.to(residual.dtype).expand_as(residual)

    def measure() -> Prediction:
        return Prediction(
            clean=_loss(loaded, documents, block, lambda residual: residual),
            rebuilt=_loss(loaded, documents, block, rebuild),
            mean=_loss(loaded, documents, block, flatten),
            n_tokens=sum(len(document.token_ids) - 1 for document in documents),
        )

    return loaded.thread.run(measure)


def _loss(
    loaded: Loaded, documents: Sequence[Document], block: nn.Module, replace: Callable[[Tensor], Tensor]
) -> float:
    total = n_tokens = 0.0
    with _rewritten(block, lambda output: _replaced(output, replace)):
        for document in documents:
            ids = torch.tensor([document.token_ids], device=loaded.device)
            logits = loaded.model(input_ids=ids, use_cache=False).logits[0, :-1].float()
            total += float(functional.cross_entropy(logits, ids[0, 1:], reduction="sum"))
            n_tokens += len(document.token_ids) - 1
    return total / n_tokens


def _replaced(output: Tensor, replace: Callable[[Tensor], Tensor]) -> Tensor:
    masked = list(masked_positions(output[0], has_bos=True))
    result = replace(output[0]).clone()
    result[masked] = output[0, masked]
    return result[None]


@contextmanager
def _rewritten(block: nn.Module, rewrite: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let `rewrite` change what `block` gives, for as long as the context lasts."""
    # A reader may have given the block a `forward` of its own (nnsight does): that one comes back.
    original, own = block.forward, vars(block).get("forward")
    block.forward = lambda *args, **kwargs: rewrite(original(*args, **kwargs))
    try:
        yield
    finally:
        del block.forward
        if own is not None:
            block.forward = own
