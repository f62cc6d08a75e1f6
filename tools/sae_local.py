"""Sparse autoencoders in a local folder of sae-lens format, such as those shipped in `tools/artifacts/sae/`.

Invariant: a plain TopK autoencoder is computed here, because importing sae-lens takes longer than everything else
that a server does; a test holds it against sae-lens. Any other architecture is left to sae-lens.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from claims.schema import Row, UserError
from tools.sae_labels import read_shipped
from tools.sae_loader import Autoencoder, Dictionary, file_sha256
from tools.targets import SAESource

ARTIFACTS = Path(__file__).parent / "artifacts" / "sae"
"""One folder a sparse autoencoder: `cfg.json`, `sae_weights.safetensors`, `labels.jsonl`, `card.json`, `card.md`."""
WEIGHTS = "sae_weights.safetensors"
CONFIG = "cfg.json"


@dataclass(frozen=True)
class TopK:
    """A TopK autoencoder: the k largest pre-activations of each row, those above zero."""

    w_enc: Float[Tensor, "d_model d_sae"]
    """float32, as all of them."""
    b_enc: Float[Tensor, " d_sae"]
    """Added before the k largest are taken."""
    w_dec: Float[Tensor, "d_sae d_model"]
    """One row a feature."""
    b_dec: Float[Tensor, " d_model"]
    """Added after decoding."""
    centre: Float[Tensor, " d_model"]
    """Subtracted before encoding: `b_dec` or zeros."""
    k: int
    """Most features active in one row."""

    @property
    def d_sae(self) -> int:
        """Number of features."""
        return len(self.b_enc)

    def encode(self, residual: Float[Tensor, "positions d_model"]) -> Float[Tensor, "positions d_sae"]:
        """Features of each row; at most `k` are above 0, none below."""
        before = (residual.float() - self.centre) @ self.w_enc + self.b_enc
        values, indices = before.topk(self.k, dim=-1)
        return torch.zeros_like(before).scatter_(-1, indices, values.relu())

    def decode(self, features: Float[Tensor, "positions d_sae"]) -> Float[Tensor, "positions d_model"]:
        """The residual stream that the features stand for."""
        return features @ self.w_dec + self.b_dec


def load_local(source: SAESource, *, artifacts: Path = ARTIFACTS) -> Dictionary:
    """The dictionary in the folder `source.sae_id` of `artifacts`.

    Raises:
        UserError: The folder or a file of it is absent or broken.
    """
    folder = artifacts / source.sae_id
    if not (folder / CONFIG).exists():
        raise UserError(
            f"{folder} has no {CONFIG}. Expected a sparse autoencoder in sae-lens format. "
            f"Train it with `python -m tools.train_sae {source.sae_id}`."
        )
    card = folder / "card.json"
    fidelity = json.loads(card.read_text(encoding="utf-8"))["fidelity"] if card.exists() else "demo"
    return Dictionary(
        autoencoder=read_folder(folder),
        labels=read_shipped(folder / "labels.jsonl"),
        source=f"in {folder}",
        fidelity=fidelity,
        card=_shown(folder / "card.md") if card.exists() else None,
    )


def _shown(path: Path) -> str:
    """The same on every machine for what is shipped: results name it."""
    project = ARTIFACTS.parents[2]
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def read_folder(folder: Path) -> Autoencoder:
    """The autoencoder of a folder in sae-lens format.

    Raises:
        UserError: The configuration or the weights are broken.
    """
    config = _config(folder / CONFIG)
    if config.get("architecture") != "topk" or any(config.get(name, plain) != plain for name, plain in _PLAIN.items()):
        from tools.sae_released import read_with_sae_lens

        return read_with_sae_lens(folder)
    row = Row(config, str(folder / CONFIG))
    weights = _weights(folder / WEIGHTS, d_model=row.count("d_in"), d_sae=row.count("d_sae"))
    centre = weights["b_dec"] if config.get("apply_b_dec_to_input", True) else torch.zeros_like(weights["b_dec"])
    topk = TopK(weights["W_enc"], weights["b_enc"], weights["W_dec"], weights["b_dec"], centre, row.count("k"))
    metadata = config.get("metadata")
    about = Row(metadata if isinstance(metadata, dict) else {}, f"{folder / CONFIG}, metadata")
    return Autoencoder(
        encode=topk.encode,
        decode=topk.decode,
        d_model=row.count("d_in"),
        d_sae=row.count("d_sae"),
        model=about.text("model_name"),
        hook=about.text("hook_name"),
        sha256=file_sha256(folder / WEIGHTS),
    )


_PLAIN: Mapping[str, object] = {
    "rescale_acts_by_decoder_norm": False,
    "normalize_activations": "none",
    "reshape_activations": "none",
}
"""What the arithmetic here takes for granted."""


def _config(path: Path) -> dict[str, object]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is not JSON ({error}). Expected a sae-lens configuration. Train it again.") from None
    if not isinstance(config, dict):
        raise UserError(f"{path} is not a JSON object. Expected a sae-lens configuration. Train it again.")
    return config


def _weights(path: Path, *, d_model: int, d_sae: int) -> dict[str, Tensor]:
    try:
        weights = {name: tensor.float() for name, tensor in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"{path} cannot be read ({error}). Expected the weights of a sparse autoencoder. Train it again."
        ) from None
    expected = {"W_enc": (d_model, d_sae), "b_enc": (d_sae,), "W_dec": (d_sae, d_model), "b_dec": (d_model,)}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if found != expected:
        raise UserError(f"{path} holds {found}. Expected {expected}, by the {CONFIG} beside it. Train it again.")
    return weights
