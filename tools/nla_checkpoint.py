"""A natural-language autoencoder's folder: a whole language model as released, or an adapter on the target.

Invariant: both come with the same sidecar, and everything in it is compared with the live model and tokenizer when
they meet.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedModel

from claims.schema import UserError
from tools.adapters import CONFIG, attach, check_base, read_adapter, read_centre
from tools.engines.address import VllmAddress
from tools.engines.vllm_server import checked_writer, embedding_of
from tools.model import Loaded, load_model
from tools.nla_prompt import scaled, verbaliser_prompt
from tools.nla_sidecar import SIDECAR, Sidecar, check_model, layer_of, read_sidecar
from tools.owner import ModelThread
from tools.random_adapters import make_autoencoder
from tools.steered import AtEmbedding, Generated, Steered
from tools.targets import Target
from tools.trained import files_sha256, trained_folder
from tools.writer import Decoding, LocalWriter, Writer

STOP = "</explanation>"


@dataclass(frozen=True)
class Checkpoint:
    """A folder, read and compared with the target's row."""

    folder: Path
    """Where it is."""
    sidecar: Sidecar
    """Its facts."""
    layer: int
    """What it describes: the residual stream after this block, from 0."""
    is_adapter: bool
    """Whether it goes on the target's own weights."""
    sha256: str
    """Of everything that its descriptions depend on."""


def find_checkpoint(target: Target) -> Checkpoint:
    """The checkpoint of the target's row.

    Raises:
        UserError: There is none, it cannot be had, is not whole, or is another target's.
    """
    if target.nla is None:
        raise UserError(
            f"{target.name} has no natural-language autoencoder. Choose another target, or name one in its row (`nla`) "
            "in tools/targets.py."
        )
    folder = trained_folder("nla", target.nla.checkpoint, target, make_random=make_autoencoder)
    return read_checkpoint(folder, target, stated_layer=target.nla.layer)


def read_checkpoint(folder: Path, target: Target, *, stated_layer: int | None) -> Checkpoint:
    """Read a folder and compare it with the target's row.

    Raises:
        UserError: It is not whole, or another target's.
    """
    sidecar = read_sidecar(folder)
    layer = layer_of(sidecar, stated_layer)
    if layer >= target.n_layers or sidecar.target not in (None, target.name):
        found = f"layer {layer} of {sidecar.target or 'its model'}"
        raise UserError(
            f"The natural-language autoencoder {folder} describes {found}. Expected a layer from 0 to "
            f"{target.n_layers - 1} of {target.name}. Mend `nla` in the target's row in tools/targets.py."
        )
    is_adapter = (folder / CONFIG).is_file()
    if is_adapter:
        check_base(read_adapter(folder), target)
    files = [*folder.glob("*.safetensors"), *folder.glob("*config.json"), folder / SIDECAR]
    return Checkpoint(folder, sidecar, layer, is_adapter, files_sha256(files))


class Verbaliser:
    """A checkpoint on live models."""

    def __init__(self, checkpoint: Checkpoint, loaded: Loaded, vllm: VllmAddress | None = None) -> None:
        """Load the model or put the adapter on the target's weights, where it stays off but to write.

        Args:
            checkpoint: The checkpoint.
            loaded: The target.
            vllm: A server that has the checkpoint and writes in its place; its embeddings alone are loaded here.

        Raises:
            UserError: The checkpoint fits neither the target nor its own tokenizer, or the server does not answer.
        """
        sidecar = checkpoint.sidecar
        check_model(sidecar, d_model=loaded.d_model, name=loaded.target.name)
        _check_weights(checkpoint, loaded)
        local, target = (
            _adapted(checkpoint, loaded, vllm) if checkpoint.is_adapter else _whole(checkpoint, loaded, vllm)
        )
        check_model(sidecar, d_model=_width(local.model), name=f"the model in {checkpoint.folder}")
        self._prompt_ids, self._place = verbaliser_prompt(local.tokenizer, sidecar, target)
        self._writer: Writer = local if vllm is None else checked_writer(vllm, embed=embedding_of(local.model))
        self._sidecar = sidecar
        self._centre = read_centre(checkpoint.folder, checkpoint.layer, loaded.d_model)
        self.thread = self._writer.thread

    def item(self, activation: Float[Tensor, " d_model"], seed: int) -> Steered:
        """One activation, ready to be described."""
        vector = scaled((activation - self._centre)[None], self._sidecar)
        return Steered(self._prompt_ids, (self._place,), vector, seed)

    def write(self, items: Sequence[Steered]) -> list[Generated]:
        """A description of each; call it in the writer's thread."""
        wanted = self._sidecar.decoding
        decoding = Decoding(wanted.max_tokens, wanted.temperature, wanted.top_p, STOP)
        return self._writer.write(items, AtEmbedding(), decoding, prefix=self._place)


def _width(model: PreTrainedModel) -> int:
    return int(model.config.get_text_config().hidden_size)


def _check_weights(checkpoint: Checkpoint, loaded: Loaded) -> None:
    if checkpoint.sidecar.weights not in (None, loaded.weights):
        raise UserError(
            f"The natural-language autoencoder {checkpoint.folder} was trained on the weights "
            f"{checkpoint.sidecar.weights}. Expected {loaded.weights}, which are loaded. Train it again with "
            "`make artifacts TOOL=nla`."
        )


def _adapted(checkpoint: Checkpoint, loaded: Loaded, vllm: VllmAddress | None) -> tuple[LocalWriter, Target | None]:
    """The target with the adapter on it, and whose chat template applies (None: the tokenizer's own)."""
    switch = attach(read_adapter(checkpoint.folder), loaded) if vllm is None else None
    writing = nullcontext if switch is None else switch.on
    target = loaded.target if checkpoint.sidecar.target is not None else None
    return LocalWriter(loaded.model, loaded.tokenizer, loaded.thread, writing), target


def _whole(checkpoint: Checkpoint, loaded: Loaded, vllm: VllmAddress | None) -> tuple[LocalWriter, None]:
    model = load_model(
        checkpoint.folder,
        name=str(checkpoint.folder),
        dtype=str(loaded.dtype).removeprefix("torch."),
        device=loaded.device,
        n_blocks=None if vllm is None else 0,
    )
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder)
    return LocalWriter(model, tokenizer, ModelThread(f"{loaded.target.name}-nla")), None
