"""Random models with the dimensions of real ones, and fewer blocks, made where they are to run.

Invariant: what decides the cost of a block (widths, heads, window, vocabulary) is the real model's. The weights mean
nothing, and the tokenizer is a tiny one: a token costs the same whatever it stands for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from claims.schema import UserError
from tools.model import Loaded
from tools.owner import ModelThread
from tools.targets import SAESource, get_target
from tools.weights import prepare


@dataclass(frozen=True)
class Shape:
    """Dimensions of one model."""

    kind: str
    """transformers' name of the architecture."""
    like: str
    """The tiny target whose tokenizer and chat format stand in."""
    n_blocks: int
    """Of the real model."""
    settings: Mapping[str, object]
    """Of its configuration."""


def _settings(d_model: int, mlp: int, heads: int, kv_heads: int, width: int, vocabulary: int) -> dict[str, object]:
    return {
        "hidden_size": d_model,
        "intermediate_size": mlp,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": width,
        "vocab_size": vocabulary,
        "max_position_embeddings": 32768,
    }


SHAPES: dict[str, Shape] = {
    "tiny": Shape("gemma3_text", "tiny-gemma", 3, {**_settings(64, 128, 4, 2, 16, 512), "sliding_window": 16}),
    "gemma-3-270m": Shape(
        "gemma3_text", "tiny-gemma", 18, {**_settings(640, 2048, 4, 1, 256, 262144), "sliding_window": 512}
    ),
    "gemma-3-27b": Shape(
        "gemma3_text",
        "tiny-gemma",
        62,
        {**_settings(5376, 21504, 32, 16, 128, 262208), "sliding_window": 1024, "query_pre_attn_scalar": 168},
    ),
    "qwen3-8b": Shape("qwen3", "tiny-qwen", 36, _settings(4096, 12288, 32, 8, 128, 151936)),
}
"""By name. Dimensions from the models' own configurations."""


def random_loaded(name: str, *, n_blocks: int | None = None, device: str = "cpu", dtype: str = "bfloat16") -> Loaded:
    """A random model of a shape, as `tools.model.load` would give it.

    Args:
        name: In `SHAPES`.
        n_blocks: Fewer than the real model has; None takes all.
        device: As torch names it.
        dtype: Of the weights.

    Raises:
        UserError: No such shape, or it has not so many blocks.
    """
    if name not in SHAPES:
        raise UserError(f"Unknown shape {name!r}. Known shapes: {', '.join(SHAPES)}. Choose one of them.")
    shape = SHAPES[name]
    blocks = n_blocks or shape.n_blocks
    if not 2 <= blocks <= shape.n_blocks:
        raise UserError(f"{blocks} blocks of {name} were asked for. Expected 2 to {shape.n_blocks}.")
    row = get_target(shape.like)
    torch_dtype = getattr(torch, dtype)
    config = AutoConfig.for_model(shape.kind, **shape.settings, num_hidden_layers=blocks)
    with torch.device(device), torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=torch_dtype).eval().requires_grad_(False)
    model.config.architectures = [type(model).__name__]
    target = replace(
        row,
        name=f"random-{name}",
        checkpoint=name,
        billions=sum(weight.numel() for weight in model.parameters()) / 1e9,
        n_layers=blocks,
        sae=SAESource("random", name, blocks // 2, "random"),
        ao=None,
        nla=None,
    )
    return Loaded(
        target=target,
        model=model,
        tokenizer=AutoTokenizer.from_pretrained(prepare(row)),
        device=model.device,
        dtype=torch_dtype,
        weights=f"random:{name} {blocks} blocks",
        thread=ModelThread(target.name),
    )
