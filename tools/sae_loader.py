"""Sparse autoencoders, whatever they come from, behind one record; and the check that one belongs to a target.

Invariant: what a checkpoint fixes (model, layer, width) is read from the checkpoint and compared with the target's
row and the live model; nothing is assumed.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from claims.schema import UserError
from tools.sae_labels import Labels
from tools.targets import SAESource, Target

Encode = Callable[[Float[Tensor, "positions d_model"]], Float[Tensor, "positions d_sae"]]
Decode = Callable[[Float[Tensor, "positions d_sae"]], Float[Tensor, "positions d_model"]]

RESIDUAL_HOOK = re.compile(r"(?:blocks|layers)\.(\d+)\.(?:hook_resid_post|hook_out|output)$")
"""Names that sae-lens, transformer-lens and Gemma Scope have for the residual stream after a block."""


@dataclass(frozen=True)
class Autoencoder:
    """A sparse autoencoder, as its checkpoint describes itself."""

    encode: Encode
    """Residual stream to features; at least 0, mostly exactly 0."""
    decode: Decode
    """Features to residual stream."""
    d_model: int
    """Width of the residual stream that it was trained on."""
    d_sae: int
    """Number of features."""
    model: str
    """The model that it was trained on, by the checkpoint's own account."""
    hook: str
    """Where in the model, likewise."""
    sha256: str
    """Of the weights."""


@dataclass(frozen=True)
class Dictionary:
    """A sparse autoencoder with its labels, found for one target."""

    autoencoder: Autoencoder
    """The features."""
    labels: Labels
    """What they are called."""
    source: str
    """Where it came from, for people."""
    fidelity: str
    """`released` or `demo`."""
    card: str | None
    """Where its quality card is."""

    @property
    def sha256(self) -> str:
        """Of weights and labels together."""
        return hashlib.sha256(f"{self.autoencoder.sha256} {self.labels.sha256}".encode()).hexdigest()


def load_dictionary(target: Target) -> Dictionary:
    """The sparse autoencoder of the target's row, checked against the row.

    Raises:
        UserError: The target has none, it cannot be had, or it was made for another model or layer.
    """
    if target.sae is None:
        raise UserError(
            f"{target.name} has no sparse autoencoder. Choose another target, or name one in its row "
            "(`sae`) in tools/targets.py."
        )
    dictionary = _load(target, target.sae)
    check_row(dictionary, target, target.sae)
    return dictionary


def _load(target: Target, source: SAESource) -> Dictionary:
    # One source a module: sae-lens takes seconds to import and is only needed for released weights.
    if source.release == "random":
        from tools.sae_random import load_random

        return load_random(target)
    if source.release == "local":
        from tools.sae_local import load_local

        return load_local(source)
    from tools.sae_released import load_released

    return load_released(source, model=target.checkpoint)


def check_row(dictionary: Dictionary, target: Target, source: SAESource) -> None:
    """Compare the checkpoint's own account with the target's row.

    Raises:
        UserError: Model, place or layer differ, or a label names a feature that does not exist.
    """
    autoencoder = dictionary.autoencoder
    expected = {_tail(target.name), _tail(target.checkpoint)}
    if _tail(autoencoder.model) not in expected:
        raise _wrong_pairing(dictionary, f"was trained on {autoencoder.model}", f"{target.checkpoint} ({target.name})")
    place = RESIDUAL_HOOK.search(autoencoder.hook)
    if place is None:
        raise _wrong_pairing(dictionary, f"reads {autoencoder.hook!r}", "the residual stream after a block")
    if int(place.group(1)) != source.layer:
        raise _wrong_pairing(dictionary, f"reads layer {place.group(1)}", f"layer {source.layer}")
    highest = max(dictionary.labels.by_feature, default=0)
    if highest >= autoencoder.d_sae:
        raise _wrong_pairing(
            dictionary, f"has {autoencoder.d_sae} features, and a label for feature {highest}", "labels of its own"
        )


def _tail(name: str) -> str:
    return name.rsplit("/", maxsplit=1)[-1].lower()


def check_model(dictionary: Dictionary, target: Target, *, d_model: int) -> None:
    """Compare with the live model.

    Raises:
        UserError: The widths differ.
    """
    found = dictionary.autoencoder.d_model
    if found != d_model:
        raise _wrong_pairing(dictionary, f"is {found} wide", f"{d_model}, the width of {target.name}")


def _wrong_pairing(dictionary: Dictionary, found: str, expected: str) -> UserError:
    return UserError(
        f"The sparse autoencoder {dictionary.source} {found}. Expected {expected}. "
        "Mend `sae` in the target's row in tools/targets.py, or put the right weights there."
    )


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """sha256 of named weights, independent of the file format that they came in."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].detach().float().contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """sha256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
