"""Keys and values of batches that are decoded token by token.

Invariant: every layer keeps all positions of all rows (a sliding window is left to the attention mask), so rows can
be repeated and dropped at will. Memory is taken once and used again by the next batch: transformers' own dynamic
layers copy everything into new memory for every token, which glibc then keeps (8.5 GB for 0.6 GB of states).
"""

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer
from transformers.configuration_utils import PreTrainedConfig

ROOM = 64
"""Positions reserved beyond those in use."""


class RoomyLayer(DynamicLayer):  # type: ignore[misc]  # transformers ships no types
    """A full-attention layer whose keys and values lie in buffers with room to grow."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.stores = (_Store(), _Store())
        self.reset()

    def reset(self) -> None:
        """Forget the batch and keep its memory."""
        self.keys: Tensor = torch.empty(0)
        self.values: Tensor = torch.empty(0)
        self.is_initialized = False

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: object, **_kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Append states of shape (rows, heads, new positions, width) and return all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        for store, new in zip(self.stores, (key_states, value_states), strict=True):
            store.append(new, fresh=not self.keys.numel())
        self.keys, self.values = (store.used() for store in self.stores)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep (or repeat) the rows `indices`."""
        if self.keys.numel():
            for store in self.stores:
                store.select(indices)
            self.keys, self.values = (store.used() for store in self.stores)


class _Store:
    """One buffer, viewed as (rows, heads, room, width), of which the first `n_positions` are in use."""

    def __init__(self) -> None:
        self.memory = torch.empty(0)
        self.view = self.memory
        self.n_positions = 0

    def used(self) -> Tensor:
        return self.view[:, :, : self.n_positions]

    def append(self, new: Tensor, *, fresh: bool) -> None:
        if fresh:
            self._lay_out(new[:, :, :0], new.shape[2])
        elif self.n_positions + new.shape[2] > self.view.shape[2]:
            self._lay_out(self.used().clone(), new.shape[2])
        end = self.n_positions + new.shape[2]
        self.view[:, :, self.n_positions : end] = new
        self.n_positions = end

    def select(self, indices: Tensor) -> None:
        self._lay_out(self.used()[indices], 0)

    def _lay_out(self, states: Tensor, n_new: int) -> None:
        """Put `states` (which do not lie in the buffer) in front of room for `n_new` positions and some more."""
        rows, heads, n_positions, width = states.shape
        shape = (rows, heads, n_positions + n_new + ROOM, width)
        needed = rows * heads * shape[2] * width
        if self.memory.numel() < needed or self.memory.dtype != states.dtype:
            self.memory = states.new_empty(needed)
        self.view = self.memory[:needed].view(shape)
        self.view[:, :, :n_positions] = states
        self.n_positions = n_positions


def roomy_cache(config: PreTrainedConfig) -> Cache:
    """An empty cache for a model of this configuration; `reset` makes it ready for another batch.

    Layers that are not attention (a hybrid model's linear ones) stay as transformers makes them.
    """
    cache = DynamicCache(config=config)
    plain = (DynamicLayer, DynamicSlidingWindowLayer)
    cache.layers = [RoomyLayer() if type(layer) in plain else layer for layer in cache.layers]
    return cache


def positions_of(mask: Tensor) -> Tensor:
    """Position ids of left-padded rows: the first real token is 0, whatever stands before it."""
    return torch.clamp(mask.long().cumsum(-1) - 1, min=0)
