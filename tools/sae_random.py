"""The sparse autoencoders of random targets: random too, made once and kept in the cache in sae-lens format.

Invariant: the same target gives the same bytes on every machine. They mean nothing; they have the shape of the
real thing, so that tests run it end to end.
"""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from tools.build_once import build_once
from tools.sae_labels import read_shipped
from tools.sae_loader import Dictionary
from tools.sae_local import CONFIG, WEIGHTS, read_folder
from tools.targets import Target
from tools.weights import cache_root, prepare

D_SAE = 256
ACTIVE = 32
UNLABELLED_EVERY = 8
"""Every so many features have no label, as in real exports."""


def load_random(target: Target) -> Dictionary:
    """The dictionary of a random target, made if it is not in the cache."""
    folder = build_once(
        cache_root() / "sae-random" / f"{target.name}-{target.revision}", lambda draft: _make(target, draft)
    )
    return Dictionary(
        autoencoder=read_folder(folder),
        labels=read_shipped(folder / "labels.jsonl"),
        source=f"in {folder}",
        fidelity="demo",
        card=None,
    )


def _make(target: Target, folder: Path) -> dict[str, str]:
    assert target.sae is not None, target.name
    config = json.loads((prepare(target) / "config.json").read_text(encoding="utf-8"))
    d_model = config.get("text_config", config)["hidden_size"]
    write_random(folder, model=target.name, layer=target.sae.layer, d_model=d_model)
    return {"target": target.name}


def write_random(folder: Path, *, model: str, layer: int, d_model: int, d_sae: int = D_SAE) -> None:
    """Write a random TopK autoencoder with labels, seeded by its arguments alone."""
    key = f"{model} {layer} {d_model} {d_sae}"
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))
    rows = rng.standard_normal((d_sae, d_model), dtype=np.float32)
    directions = torch.from_numpy(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    weights = {
        "W_enc": directions.T.contiguous(),
        "W_dec": directions,
        "b_enc": torch.zeros(d_sae),
        "b_dec": torch.zeros(d_model),
    }
    save_file(weights, folder / WEIGHTS)
    labels = [
        json.dumps({"index": index, "label": f"direction {index}, which is random", "source": "random"}) + "\n"
        for index in range(d_sae)
        if index % UNLABELLED_EVERY
    ]
    (folder / "labels.jsonl").write_text("".join(labels), encoding="utf-8")
    config = topk_config(model=model, layer=layer, d_model=d_model, d_sae=d_sae, k=ACTIVE, dtype="float32")
    (folder / CONFIG).write_text(json.dumps(config, indent=1), encoding="utf-8")


def topk_config(*, model: str, layer: int, d_model: int, d_sae: int, k: int, dtype: str) -> dict[str, object]:
    """The `cfg.json` of a plain TopK autoencoder in sae-lens format."""
    return {
        "architecture": "topk",
        "d_in": d_model,
        "d_sae": d_sae,
        "k": k,
        "dtype": dtype,
        "device": "cpu",
        "apply_b_dec_to_input": True,
        "rescale_acts_by_decoder_norm": False,
        "normalize_activations": "none",
        "reshape_activations": "none",
        "metadata": {
            "sae_lens_version": version("sae-lens"),
            "model_name": model,
            "hook_name": f"blocks.{layer}.hook_resid_post",
        },
    }
