"""How activations reach the two tools' models: the oracle's norm-matched addition, the autoencoder's embedding.

Invariant: both are what the servers do: `tools.activations.adding` after block 1, and `tools.nla_prompt.scaled` in
place of an embedding.
"""

from collections.abc import Callable
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel

from tools.activations import adding
from tools.nla_prompt import scaled
from tools.nla_sidecar import Sidecar
from tools.training.lora.examples import Batch

BLOCK = 1
"""The oracle's activations are added to the output of this block."""

Hidden = Callable[[nn.Module, Batch], Float[Tensor, "rows tokens d_model"]]
"""Runs a model on a batch; gives the last hidden state."""


def through_oracle(model: nn.Module, batch: Batch) -> Float[Tensor, "rows tokens d_model"]:
    """Add the batch's activations after block `BLOCK`."""
    cache = _prefix(model, batch)
    with adding(model, BLOCK, batch.rows, batch.positions, batch.vectors):
        return _decoded(model, cache, input_ids=batch.token_ids)


def through_verbaliser(sidecar: Sidecar) -> Hidden:
    """Put the batch's activations, brought to the sidecar's norm, in place of embeddings."""

    def run(model: nn.Module, batch: Batch) -> Tensor:
        embedded = _base(model).get_input_embeddings()(batch.token_ids)
        rows = scaled(batch.vectors, sidecar).to(embedded.dtype)
        embedded = embedded.index_put((batch.rows, batch.positions), rows)
        return _decoded(model, _prefix(model, batch), inputs_embeds=embedded)

    return run


def through_text(model: nn.Module, batch: Batch) -> Float[Tensor, "rows tokens d_model"]:
    """No activations: the prompt as it is."""
    return _decoded(model, _prefix(model, batch), input_ids=batch.token_ids)


def logits(
    model: nn.Module, hidden: Float[Tensor, "n d_model"], tokens: Int[Tensor, " some"] | None = None
) -> Float[Tensor, "n vocabulary"]:
    """The next token's logits at chosen places only, of all tokens or of `tokens`."""
    if tokens is None:
        return cast(Tensor, _base(model).lm_head(hidden)).float()
    weight: Tensor = _base(model).lm_head.weight
    return (hidden @ weight[tokens].T).float()


def option_logits(model: nn.Module, hidden: Float[Tensor, " d_model"], token_ids: list[int]) -> Tensor:
    """The logits of a few tokens."""
    weight: Tensor = _base(model).lm_head.weight
    return hidden.float() @ weight[torch.tensor(token_ids, device=weight.device)].float().T


def vocabulary_size(model: nn.Module) -> int:
    """How many tokens the model chooses among."""
    return int(_base(model).lm_head.weight.shape[0])


def _prefix(model: nn.Module, batch: Batch) -> DynamicCache | None:
    """What all prompts begin with, run once: it is half of a step. Gradients flow through it."""
    if not len(batch.prefix_ids):
        return None
    base = _base(model)
    cache = DynamicCache(config=base.config)
    base.get_decoder()(input_ids=batch.prefix_ids[None], cache=cache, use_cache=True)
    cache.batch_repeat_interleave(len(batch.token_ids))
    return cache


def _decoded(model: nn.Module, cache: DynamicCache | None, **inputs: Tensor) -> Tensor:
    # No mask of our own: rows are padded on the right, where causal attention does not look.
    decoder = _base(model).get_decoder()
    return cast(Tensor, decoder(**inputs, cache=cache, use_cache=cache is not None).last_hidden_state)


def _base(model: nn.Module) -> PreTrainedModel:
    return model if isinstance(model, PreTrainedModel) else cast(Callable[[], PreTrainedModel], model.get_base_model)()
