"""Released sparse autoencoders, loaded by sae-lens from the hub, with the labels that Neuronpedia exports.

Invariant: a release that sae-lens does not list is registered here under its hub repository, with the loader for
the format it is stored in; what cannot be had is a named error with the remedy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from huggingface_hub import hf_hub_download
from sae_lens import SAE
from sae_lens.loading import pretrained_sae_loaders
from sae_lens.loading.pretrained_saes_directory import PretrainedSAELookup, get_pretrained_saes_directory
from safetensors import safe_open

from claims.schema import UserError
from tools.sae_labels import EXPORTS, read_exported
from tools.sae_loader import Autoencoder, Dictionary, tensors_sha256
from tools.targets import SAESource

UNLISTED_LOADER = "dictionary_learning_1"
"""How sae-lens reads `config.json` and `ae.pt` as the dictionary_learning library writes them."""


def load_released(source: SAESource, *, model: str, labels_url: str = EXPORTS) -> Dictionary:
    """The dictionary that `source` names: a sae-lens release and id, or a hub repository and a path in it.

    Raises:
        UserError: The release has no such id, or the weights or the labels cannot be had.
    """
    register(source, model=model)
    known = get_pretrained_saes_directory()[source.release].saes_map
    if source.sae_id not in known:
        raise UserError(
            f"The release {source.release} has no {source.sae_id!r}. It has {', '.join(list(known)[:5])}, ... "
            f"({len(known)} in all). Mend `sae_id` in the target's row in tools/targets.py."
        )
    return Dictionary(
        autoencoder=_describe(_download(source)),
        labels=read_exported(source.labels, base_url=labels_url),
        source=f"{source.release}/{source.sae_id}",
        fidelity="released",
        card=None,
    )


def register(source: SAESource, *, model: str) -> None:
    """Tell sae-lens about a hub repository that is not in its own list; listed releases stay as they are."""
    directory = get_pretrained_saes_directory()
    if source.release in directory and "/" in source.release:
        directory[source.release].saes_map.setdefault(source.sae_id, source.sae_id)
    if source.release in directory:
        return
    if "/" not in source.release:
        raise UserError(
            f"sae-lens has no release {source.release!r}. Expected one of its releases or a hub repository "
            "(owner/name). Mend `release` in the target's row in tools/targets.py."
        )
    directory[source.release] = PretrainedSAELookup(
        release=source.release,
        repo_id=source.release,
        model=model,
        conversion_func=UNLISTED_LOADER,
        saes_map={source.sae_id: source.sae_id},
        expected_var_explained={},
        expected_l0={},
        neuronpedia_id={source.sae_id: source.labels},
        norm_scaling_factor={},
        config_overrides=None,
    )


def _download(source: SAESource) -> SAE:
    entry = get_pretrained_saes_directory()[source.release]
    try:
        with _shapes_from_the_file():
            return SAE.from_pretrained(source.release, source.sae_id)
    except (OSError, httpx.HTTPError) as error:
        raise UserError(
            f"The sparse autoencoder {source.release}/{source.sae_id} is not on this machine and could not be "
            f"downloaded ({type(error).__name__}). Connect to the internet, unset HF_HUB_OFFLINE and run "
            f"`hf download {entry.repo_id} --include '{entry.saes_map[source.sae_id]}/*'`, then try again."
        ) from error


@contextmanager
def _shapes_from_the_file() -> Iterator[None]:
    """Let sae-lens read the shapes of a Gemma Scope file from the file.

    sae-lens 6.54.12 asks the hub for them, and so cannot load what is in the cache without a network.
    """
    original = pretrained_sae_loaders.get_safetensors_tensor_shapes
    pretrained_sae_loaders.get_safetensors_tensor_shapes = _shapes
    try:
        yield
    finally:
        pretrained_sae_loaders.get_safetensors_tensor_shapes = original


def _shapes(repo_id: str, filename: str) -> dict[str, list[int]]:
    with safe_open(hf_hub_download(repo_id, filename), framework="pt") as stored:
        return {name: list(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118


def read_with_sae_lens(folder: Path) -> Autoencoder:
    """The autoencoder of a folder in sae-lens format, of any architecture that sae-lens has."""
    return _describe(SAE.load_from_disk(folder, dtype="float32"))


def _describe(sae: SAE) -> Autoencoder:
    metadata = sae.cfg.metadata
    return Autoencoder(
        encode=sae.encode,
        decode=sae.decode,
        d_model=int(sae.cfg.d_in),
        d_sae=int(sae.cfg.d_sae),
        model=str(metadata.model_name),
        hook=str(metadata.hook_name),
        sha256=tensors_sha256(sae.state_dict()),
    )
