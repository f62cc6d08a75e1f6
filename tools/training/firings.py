"""Which features are active where, on a whole corpus.

Invariant: what is kept are the features of the tool's own encoding, value and token for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tools.sae_local import TopK
from tools.training.measure import CHUNK


@dataclass(frozen=True)
class Firings:
    """Every activation above 0, sorted by feature, strongest first."""

    token: NDArray[np.int64]
    """Row of the activations, shape (n,)."""
    value: NDArray[np.float32]
    """How active, shape (n,)."""
    starts: NDArray[np.int64]
    """Feature `f` has the entries from `starts[f]` to `starts[f + 1]`, shape (d_sae + 1,)."""

    def of(self, feature: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Tokens and values of one feature, strongest first."""
        chosen = slice(self.starts[feature], self.starts[feature + 1])
        return self.token[chosen], self.value[chosen]


@torch.inference_mode()
def firings(topk: TopK, residual: Tensor) -> Firings:
    """Encode `residual`, shape (tokens, d_model)."""
    parts = list(_parts(topk, residual))
    token, feature, value = (np.concatenate([part[column] for part in parts]) for column in range(3))
    # Ties go to the earlier token, so that the order is the same everywhere.
    order = np.lexsort((token, -value, feature))
    starts = np.searchsorted(feature[order], np.arange(topk.d_sae + 1))
    return Firings(token[order], value[order].astype(np.float32), starts)


def _parts(topk: TopK, residual: Tensor) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
    for at in range(0, len(residual), CHUNK):
        features = topk.encode(residual[at : at + CHUNK].float())
        rows, columns = torch.nonzero(features, as_tuple=True)
        yield rows.numpy() + at, columns.numpy(), features[rows, columns].numpy()
