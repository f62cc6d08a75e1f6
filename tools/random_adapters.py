"""Oracles and autoencoders for random targets: random too, in the very layout of what is trained here.

Invariant: the same target gives the same bytes on every machine. They mean nothing; they have the shape of the real
thing, so that tests run it end to end.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import torch
import yaml
from transformers import AutoConfig, AutoTokenizer

from tools.adapters import Pair, write_adapter
from tools.ao_facts import FACTS
from tools.nla_sidecar import SIDECAR
from tools.targets import Target
from tools.weights import prepare, weights_id

RANK = 4
ALPHA = 8.0
TEMPLATE = "An activation:\n<concept>{injection_char}</concept>\nSay what it is."
_MARKERS = ("<image>", "<0>")
"""Tokens of tiny targets that no text contains."""


def make_oracle(target: Target, folder: Path) -> dict[str, str]:
    """Write a random oracle; return what to note of it."""
    assert target.ao is not None, target.name
    _write_pairs(target, folder, f"oracle of {target.name}")
    facts = {
        "target": target.name,
        "weights": weights_id(target, prepare(target)),
        "layers": [target.ao.layer],
        "layer": target.ao.layer,
        "block": 1,
        "coefficient": 1.0,
        "max_segment": 16,
        "max_tokens": 8,
        "temperature": 0.7,
        "top_p": 0.9,
    }
    (folder / FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")
    return {"target": target.name}


def make_autoencoder(target: Target, folder: Path) -> dict[str, str]:
    """Write a random verbaliser; return what to note of it."""
    assert target.nla is not None, target.name
    _write_pairs(target, folder, f"verbaliser of {target.name}")
    tokenizer = AutoTokenizer.from_pretrained(prepare(target))
    known = tokenizer.get_vocab()
    marker = next(marker for marker in _MARKERS if marker in known)
    sidecar = {
        "kind": "nla_model",
        "d_model": _text_config(target).hidden_size,
        "extraction": {"layer_index": target.nla.layer, "injection_scale": 20.0},
        "tokens": {
            "injection_char": marker,
            "injection_token_id": known[marker],
            "injection_left_neighbor_id": known[">"],
            "injection_right_neighbor_id": known["<"],
        },
        "prompt_templates": {"av": TEMPLATE},
        "base": {"target": target.name, "weights": weights_id(target, prepare(target))},
        "decoding": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 8},
    }
    (folder / SIDECAR).write_text(yaml.safe_dump(sidecar, sort_keys=False), encoding="utf-8")
    return {"target": target.name}


def _text_config(target: Target) -> AutoConfig:
    return AutoConfig.from_pretrained(prepare(target)).get_text_config()


def _write_pairs(target: Target, folder: Path, key: str) -> None:
    config = _text_config(target)
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))
    shapes = {
        "self_attn.q_proj": (config.num_attention_heads * config.head_dim, config.hidden_size),
        "mlp.down_proj": (config.hidden_size, config.intermediate_size),
    }
    pairs = {
        f"layers.{block}.{name}": Pair(_random(rng, RANK, inputs), _random(rng, outputs, RANK))
        for block in range(target.n_layers)
        for name, (outputs, inputs) in shapes.items()
    }
    write_adapter(folder, base=target.name, rank=RANK, alpha=ALPHA, pairs=pairs)


def _random(rng: np.random.Generator, rows: int, columns: int) -> torch.Tensor:
    return torch.from_numpy(0.1 * rng.standard_normal((rows, columns), dtype=np.float32))
