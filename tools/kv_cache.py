"""Keys and values of a batch that is decoded token by token.

Invariant: every layer keeps all positions of all rows (a sliding window is left to the attention mask), so rows can
be repeated and dropped at will. What it saves: transformers' own dynamic layers copy everything for every token.
"""

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer
from transformers.configuration_utils import PreTrainedConfig

ROOM = 64
"""Positions reserved at a time beyond those in use."""


class RoomyLayer(DynamicLayer):  # type: ignore[misc]  # transformers ships no types
    """A full-attention layer whose keys and values are views of buffers with room to grow."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.keys: Tensor = torch.empty(0)
        self.values: Tensor = torch.empty(0)
        self.room: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: object, **_kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Append states of shape (rows, heads, new positions, width) and return all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if self.room is None or self.room[0].shape[-2] < end:
            self.room = (_widened(self.keys, key_states, end + ROOM), _widened(self.values, value_states, end + ROOM))
        for room, new in zip(self.room, (key_states, value_states), strict=True):
            room[:, :, start:end] = new
        self.keys, self.values = (room[:, :, :end] for room in self.room)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep (or repeat) the rows `indices`."""
        super().batch_select_indices(indices)
        self.room = None


def _widened(old: Tensor, new: Tensor, n_positions: int) -> Tensor:
    room = new.new_empty((*new.shape[:2], n_positions, new.shape[-1]))
    if old.numel():
        room[:, :, : old.shape[-2]] = old
    return room


def roomy_cache(config: PreTrainedConfig) -> Cache:
    """An empty cache for a model of this configuration.

    Layers that are not attention (a hybrid model's linear ones) stay as transformers makes them.
    """
    cache = DynamicCache(config=config)
    plain = (DynamicLayer, DynamicSlidingWindowLayer)
    cache.layers = [RoomyLayer() if type(layer) in plain else layer for layer in cache.layers]
    return cache


def positions_of(mask: Tensor) -> Tensor:
    """Position ids of left-padded rows: the first real token is 0, whatever stands before it."""
    return torch.clamp(mask.long().cumsum(-1) - 1, min=0)
