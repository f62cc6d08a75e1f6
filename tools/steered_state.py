"""The model's state behind a batch of prompts with vectors: left padding, a prefix that is computed once, injection.

Invariant: within a row, slots of the cache are as far apart as positions are, which a sliding window counts on. So a
short row's padding stands before its prefix, and what the shift leaves of the prefix is computed again.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from tools.activations import adding
from tools.kv_cache import RoomyLayer, positions_of, roomy_cache

PREFIXES = 4
"""States of prefixes kept for each model: a tool has one or two."""


@dataclass(frozen=True, eq=False)
class Steered:
    """One prompt with its vectors."""

    prompt_ids: tuple[int, ...]
    """Rendered, with the places that the vectors take."""
    positions: tuple[int, ...]
    """Indices into `prompt_ids`, one for each vector."""
    vectors: Float[Tensor, "positions d_model"]
    """What is injected."""
    seed: int = 0
    """Of the answer's random numbers."""


@dataclass(frozen=True)
class AfterBlock:
    """Add each vector to the residual stream after a block, scaled to the norm that is there."""

    block: int
    """From 0."""
    coefficient: float = 1.0
    """Times the norm."""


@dataclass(frozen=True)
class AtEmbedding:
    """Put each vector in the place of a token's embedding, as it is given."""


Injection = AfterBlock | AtEmbedding


@dataclass(frozen=True, eq=False)
class _Prefix:
    """Keys and values of a prefix: for each layer two tensors of shape (heads, tokens, width)."""

    states: tuple[tuple[Tensor, Tensor], ...]


_caches: WeakKeyDictionary[PreTrainedModel, Cache] = WeakKeyDictionary()
_prefixes: WeakKeyDictionary[PreTrainedModel, "OrderedDict[object, _Prefix]"] = WeakKeyDictionary()


def causal_model(model: PreTrainedModel) -> PreTrainedModel:
    """The language model inside a PEFT wrapper, with the adapter's layers in it; others as is."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


class SteeredState:
    """The model after every token so far of a batch."""

    def __init__(self, model: PreTrainedModel, items: Sequence[Steered], injection: Injection, prefix: int) -> None:
        """Run the prompts, the vectors put in.

        Args:
            model: May be wrapped by PEFT.
            items: The rows.
            injection: Where the vectors go.
            prefix: Leading tokens that all rows share and no vector touches.
        """
        self.model = model
        self._base = causal_model(model)
        self._device = self._base.get_input_embeddings().weight.device
        self._cache = _cache_of(self._base)
        width = max(len(item.prompt_ids) for item in items)
        pads = [width - len(item.prompt_ids) for item in items]
        ids = [[0] * pad + list(item.prompt_ids) for pad, item in zip(pads, items, strict=True)]
        mask = [[0] * pad + [1] * (width - pad) for pad in pads]
        self.mask = torch.tensor(mask, device=self._device)
        # Two tokens at least are fed, since the injecting hook takes a single one for a decoding step.
        cached = self._fill(items[0].prompt_ids, pads, min(prefix, width - 2))
        fed = torch.tensor(ids, device=self._device)[:, cached:]
        self._prefill(fed, items, [pad - cached for pad in pads], injection)

    def _fill(self, prompt_ids: tuple[int, ...], pads: Sequence[int], n_tokens: int) -> int:
        """Put the prefix into every row's cache, shifted to where the row begins; how many slots that took."""
        if n_tokens < 1 or not all(isinstance(layer, RoomyLayer) for layer in self._cache.layers):
            return 0
        states = self._prefix(prompt_ids[:n_tokens]).states
        slots = torch.arange(n_tokens, device=self._device)[None] - torch.tensor(pads, device=self._device)[:, None]
        slots = slots.clamp(min=0)
        for layer, (keys, values) in zip(self._cache.layers, states, strict=True):
            at = slots.to(keys.device)
            layer.update(keys[:, at].transpose(0, 1), values[:, at].transpose(0, 1))
        return n_tokens

    def _prefix(self, prompt_ids: tuple[int, ...]) -> _Prefix:
        known = _prefixes.setdefault(self._base, OrderedDict())
        key = (prompt_ids, _fingerprint(self.model))
        if key not in known:
            ids = torch.tensor([prompt_ids], device=self._device)
            self._forward(ids, torch.arange(len(prompt_ids), device=self._device)[None], torch.ones_like(ids))
            known[key] = _Prefix(
                tuple((layer.keys[0].clone(), layer.values[0].clone()) for layer in self._cache.layers)
            )
            self._cache.reset()
        known.move_to_end(key)
        while len(known) > PREFIXES:
            known.popitem(last=False)
        return known[key]

    def _prefill(self, fed: Tensor, items: Sequence[Steered], shifts: Sequence[int], injection: Injection) -> None:
        rows = [row for row, item in enumerate(items) for _ in item.positions]
        columns = [position + shift for item, shift in zip(items, shifts, strict=True) for position in item.positions]
        at = torch.tensor(rows, device=self._device), torch.tensor(columns, device=self._device)
        positions = positions_of(self.mask)[:, -fed.shape[1] :]
        vectors = torch.cat([item.vectors.to(self._device) for item in items])
        embedded: Tensor | None = None
        injecting: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if rows and isinstance(injection, AtEmbedding):
            embedded = self._base.get_input_embeddings()(fed).clone()
            embedded[at] = vectors.to(embedded.dtype)
        elif rows and isinstance(injection, AfterBlock):
            injecting = adding(self.model, injection.block, *at, vectors, coefficient=injection.coefficient)
        with injecting:
            self._forward(fed, positions, self.mask, embedded)

    def _forward(self, ids: Tensor, positions: Tensor, mask: Tensor, embedded: Tensor | None = None) -> None:
        inputs = {"input_ids": ids} if embedded is None else {"inputs_embeds": embedded}
        hidden = self._base.get_decoder()(
            **inputs, attention_mask=mask, position_ids=positions, cache=self._cache, use_cache=True
        ).last_hidden_state
        # The last position alone and contiguous: a bfloat16 head would otherwise copy its weight for every row.
        self.logits = _capped(self._base, self._base.get_output_embeddings()(hidden[:, -1].contiguous()))

    def select(self, rows: Tensor) -> None:
        """Keep the rows."""
        self._cache.batch_select_indices(rows)
        self.mask, self.logits = self.mask[rows], self.logits[rows]

    def advance(self, tokens: Tensor) -> None:
        """Feed one token to every row."""
        self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], dim=1)
        self._forward(tokens[:, None], self.mask.sum(-1, keepdim=True) - 1, self.mask)


def _cache_of(model: PreTrainedModel) -> Cache:
    """The model's one cache, empty: its memory is used again by every batch."""
    if model not in _caches:
        _caches[model] = roomy_cache(model.config.get_text_config(decoder=True))
    _caches[model].reset()
    return _caches[model]


def forget_states(model: PreTrainedModel) -> None:
    """Give back the memory that batches on `model` have left for the next one."""
    _caches.pop(causal_model(model), None)
    _prefixes.pop(causal_model(model), None)


def _fingerprint(model: PreTrainedModel) -> int:
    """Changes when a weight is trained on or an adapter is switched, as a whole or in some layers."""
    switches = tuple(
        (bool(module.disable_adapters), tuple(module.active_adapters))
        for module in model.modules()
        if isinstance(getattr(type(module), "disable_adapters", None), property)
    )
    weights = ((weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in model.parameters())
    return hash((switches, tuple(weights)))


def _capped(model: PreTrainedModel, logits: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    return logits if cap is None else torch.tanh(logits / cap) * cap
