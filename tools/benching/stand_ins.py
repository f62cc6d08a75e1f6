"""Tools with random weights for any model that is loaded: they answer nonsense at the real tool's cost.

Invariant: every answer has exactly the number of tokens asked for, since end and stop texts are switched off; so two
ways to the same answers have the same work to do.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import yaml
from torch import nn

from claims.schema import Message
from tools.adapters import Pair, read_adapter, write_adapter
from tools.ao import AOTool, Oracle
from tools.ao_facts import OracleFacts
from tools.chat import encode_prompt
from tools.model import Loaded, decoder_layers
from tools.nla import NLATool
from tools.nla_checkpoint import Checkpoint
from tools.nla_sidecar import SIDECAR, read_sidecar
from tools.sae import SAETool
from tools.sae_labels import read_shipped
from tools.sae_loader import Dictionary
from tools.sae_local import read_folder
from tools.sae_random import write_random
from tools.server import Tool

RANK = 16
TEMPLATE = (
    "You are given one activation of a language model, in the place of a token between the tags. Say in one or two "
    "sentences what it encodes: the topic, the words around it and what may come next.\n"
    "<concept>{injection_char}</concept>\nPut your answer between <explanation> and </explanation>."
)
_MARKERS = ("<image>", "<0>", "<unused0>", "<repo_name>", "㈜")
"""Single tokens of one tokenizer or another that no text contains."""


@dataclass(frozen=True)
class Settings:
    """How big the stand-ins are."""

    max_tokens: int = 48
    """Of every answer of the oracle and the autoencoder."""
    d_sae: int = 16384
    """Features of the SAE."""
    max_segment: int = 64
    """Most tokens of a question to the oracle."""


def stand_in(name: str, loaded: Loaded, folder: Path, settings: Settings) -> Tool:
    """A random tool for `loaded`, which is changed so that no answer ends early.

    Args:
        name: In `tools.TOOLS`.
        loaded: Any target.
        folder: An empty folder for its weights.
        settings: How big it is.
    """
    loaded.model.generation_config.eos_token_id = None
    folder.mkdir(parents=True)
    return _MAKERS[name](loaded, folder, settings)


def without_stops(loaded: Loaded) -> Loaded:
    """The same model, whose answers no stop text ends."""
    target = loaded.target
    return replace(loaded, target=replace(target, sampling=replace(target.sampling, stop=())))


def _layer(loaded: Loaded) -> int:
    return loaded.target.sae.layer if loaded.target.sae is not None else loaded.target.n_layers // 2


def _sae(loaded: Loaded, folder: Path, settings: Settings) -> Tool:
    layer = _layer(loaded)
    write_random(folder, model=loaded.target.name, layer=layer, d_model=loaded.d_model, d_sae=settings.d_sae)
    labels = read_shipped(folder / "labels.jsonl")
    dictionary = Dictionary(read_folder(folder), labels, source=f"in {folder}", fidelity="demo", card=None)
    return SAETool(loaded.target, dictionary, layer=layer)


def _ao(loaded: Loaded, folder: Path, settings: Settings) -> Tool:
    _write_pairs(loaded, folder)
    facts = OracleFacts(
        layer=_layer(loaded),
        block=1,
        coefficient=1.0,
        max_segment=settings.max_segment,
        max_tokens=settings.max_tokens,
        temperature=0.0,
        top_p=1.0,
        weights=None,
    )
    return AOTool(loaded.target, Oracle(read_adapter(folder), facts), fidelity="demo")


def _nla(loaded: Loaded, folder: Path, settings: Settings) -> Tool:
    _write_pairs(loaded, folder)
    known = loaded.tokenizer.get_vocab()
    marker = next(marker for marker in _MARKERS if marker in known)
    content = TEMPLATE.format(injection_char=marker)
    prompt_ids = encode_prompt(loaded.tokenizer, loaded.target, [Message("user", content)], thinking=False)
    place = prompt_ids.index(known[marker])
    sidecar = {
        "kind": "nla_model",
        "d_model": loaded.d_model,
        "extraction": {"layer_index": _layer(loaded), "injection_scale": 20.0},
        "tokens": {
            "injection_char": marker,
            "injection_token_id": known[marker],
            "injection_left_neighbor_id": prompt_ids[place - 1],
            "injection_right_neighbor_id": prompt_ids[place + 1],
        },
        "prompt_templates": {"av": TEMPLATE},
        "base": {"target": loaded.target.name, "weights": loaded.weights},
        "decoding": {"temperature": 0.0, "top_p": 1.0, "max_tokens": settings.max_tokens},
    }
    (folder / SIDECAR).write_text(yaml.safe_dump(sidecar, sort_keys=False), encoding="utf-8")
    checkpoint = Checkpoint(folder, read_sidecar(folder), _layer(loaded), is_adapter=True, sha256="random")
    return NLATool(loaded.target, checkpoint, fidelity="demo")


_MAKERS: dict[str, Callable[[Loaded, Path, Settings], Tool]] = {"sae": _sae, "ao": _ao, "nla": _nla}


def _write_pairs(loaded: Loaded, folder: Path) -> None:
    """A random adapter on every linear layer of every block."""
    rng = np.random.default_rng(int.from_bytes(folder.name.encode(), "big"))

    def random(rows: int, columns: int) -> torch.Tensor:
        return torch.from_numpy(0.01 * rng.standard_normal((rows, columns), dtype=np.float32))

    # Another stand-in may have put its own adapter there before.
    pairs = {
        f"layers.{block}.{name.removesuffix('.base_layer')}": Pair(
            random(RANK, module.in_features), random(module.out_features, RANK)
        )
        for block, layer in enumerate(decoder_layers(loaded.model))
        for name, module in layer.named_modules()
        if isinstance(module, nn.Linear) and "lora_" not in name
    }
    write_adapter(folder, base=loaded.target.name, rank=RANK, alpha=2.0 * RANK, pairs=pairs)
