"""Rows of different lengths in one batch.

Invariant: padding stands on the right, where causal attention keeps it from changing what comes before it, and where
positions stay as they are.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor


def pad(
    rows: Sequence[Sequence[int]], device: torch.device
) -> tuple[Int[Tensor, "rows tokens"], Int[Tensor, "rows tokens"]]:
    """Token ids and attention mask of `rows`."""
    length = max(map(len, rows))
    token_ids = torch.tensor([[*row, *[0] * (length - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows], device=device)
    return token_ids, mask
