"""Low-rank adapters in PEFT's format, put on a target's own weights and switched on to generate only.

Invariant: at rest every adapter is off, so whoever reads the target's activations reads the clean target, to the last
bit. What a folder holds is compared with the live model, module by module, before anything is changed.
"""

import contextlib
import hashlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from claims.schema import UserError
from tools.fields import Fields, read_fields
from tools.model import Loaded, decoder_layers
from tools.targets import Target

if TYPE_CHECKING:
    from peft.tuners.lora import LoraLayer

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
CENTRE = "centre.safetensors"

_KEY = re.compile(r"(?P<path>.+)\.lora_(?P<side>[AB])(?:\.\w+)?\.weight$")
_BLOCK = re.compile(r"(?:^|\.)(layers\.\d+\..+)$")
_UNREAD = ("use_dora", "modules_to_save", "layers_pattern", "layer_replication", "rank_pattern", "alpha_pattern")
"""Settings that would change what an adapter computes, and that no oracle known uses."""


@dataclass(frozen=True)
class Pair:
    """The two matrices of one adapted module: its output grows by scale * B A x."""

    a: Float[Tensor, "rank inputs"]
    """float32."""
    b: Float[Tensor, "outputs rank"]
    """float32."""


@dataclass(frozen=True)
class Adapter:
    """What a folder holds."""

    folder: Path
    """Where it is."""
    base: str
    """The model that it was trained on, by its own account."""
    rank: int
    """Inner width of every pair."""
    alpha: float
    """The scale times the rank (or times its root)."""
    rooted: bool
    """Whether the scale is alpha over the root of the rank."""
    pairs: Mapping[str, Pair]
    """By path below the decoder, such as `layers.3.self_attn.q_proj`."""
    sha256: str
    """Of settings and weights."""


def read_adapter(folder: Path) -> Adapter:
    """Read an adapter's folder.

    Raises:
        UserError: It is not whole, or no plain low-rank adapter of a language model's blocks.
    """
    fields = read_fields(folder / CONFIG, "the settings of a PEFT adapter")
    _check_settings(fields, folder)
    rank = fields.whole("r", least=1)
    return Adapter(
        folder=folder,
        base=fields.text("base_model_name_or_path"),
        rank=rank,
        alpha=fields.positive("lora_alpha"),
        rooted=bool(fields.get("use_rslora")),
        pairs=_read_pairs(folder, rank),
        sha256=_sha256(folder),
    )


def _check_settings(fields: Fields, folder: Path) -> None:
    kind = fields.get("peft_type")
    if kind != "LORA":
        raise _misfit(folder, f"is of the type {kind!r}", "LORA")
    for name in _UNREAD:
        if fields.get(name):
            raise _misfit(folder, f"has {name} set", "a plain low-rank adapter")
    if fields.get("bias") not in (None, "none"):
        raise _misfit(folder, f"adapts biases ({fields.get('bias')!r})", "none of them")


def _read_pairs(folder: Path, rank: int) -> dict[str, Pair]:
    sides: dict[str, dict[str, Tensor]] = {}
    for key, tensor in _load(folder / WEIGHTS).items():
        # The vision tower of a multimodal model has no part in text.
        if "vision" in key:
            continue
        match = _KEY.match(key)
        block = _BLOCK.search(match["path"]) if match else None
        if match is None or block is None:
            raise _misfit(folder, f"holds {key}", "low-rank pairs for the decoder's blocks only")
        sides.setdefault(block[1], {})[match["side"]] = tensor.float()
    for path, found in sides.items():
        shapes = {side: tuple(tensor.shape) for side, tensor in sorted(found.items())}
        if set(found) != {"A", "B"} or shapes["A"][0] != rank or shapes["B"][1] != rank:
            raise _misfit(folder, f"has the shapes {shapes} at {path}", f"a pair of rank {rank}, as its settings say")
    if not sides:
        raise _misfit(folder, "adapts nothing", "at least one module")
    return {path: Pair(sides[path]["A"], sides[path]["B"]) for path in sorted(sides)}


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"{path} cannot be read ({error}). Expected the weights of an adapter. Download or train it again."
        ) from error


def _sha256(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (CONFIG, WEIGHTS, CENTRE):
        if (folder / name).is_file():
            digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def check_base(adapter: Adapter, target: Target) -> None:
    """Compare the adapter's own account with the target.

    Raises:
        UserError: It was trained on another model.
    """
    if _tail(adapter.base) not in {_tail(target.name), _tail(target.checkpoint)}:
        raise _misfit(adapter.folder, f"was trained on {adapter.base}", f"one for {target.checkpoint} ({target.name})")


def _tail(name: str) -> str:
    return name.rstrip("/").rsplit("/", maxsplit=1)[-1].lower()


def check_shapes(adapter: Adapter, model: PreTrainedModel) -> None:
    """Compare every pair with the module that it changes.

    Raises:
        UserError: There is no such module, or it has another shape.
    """
    decoder = model.get_decoder()
    for path, pair in adapter.pairs.items():
        try:
            module = decoder.get_submodule(path)
        except AttributeError:
            module = None
        shape = _linear_shape(module)
        found = (pair.b.shape[0], pair.a.shape[1])
        if shape != found:
            raise _misfit(adapter.folder, f"changes {path} of shape {found}", f"{shape or 'no such module'}")


def _linear_shape(module: nn.Module | None) -> tuple[int, int] | None:
    inner = getattr(module, "base_layer", module)
    return (inner.out_features, inner.in_features) if isinstance(inner, nn.Linear) else None


class Switch:
    """An adapter in its place, off until it is needed."""

    def __init__(self, layers: Sequence["LoraLayer"], name: str) -> None:
        """Take over the adapted modules of a model."""
        self._layers = layers
        self._name = name

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Switch the adapter on. In the model's thread only, so that no read can fall into it."""
        try:
            for layer in self._layers:
                layer.set_adapter(self._name)
                layer.enable_adapters(enabled=True)
            yield
        finally:
            for layer in self._layers:
                layer.enable_adapters(enabled=False)


def attach(adapter: Adapter, loaded: Loaded) -> Switch:
    """Put an adapter on a target's weights, once however often it is asked for; it stays off.

    Raises:
        UserError: It was trained on another model, does not fit this one, or the model's blocks are not its own.
    """
    check_base(adapter, loaded.target)
    block = decoder_layers(loaded.model)[0]
    if type(block).__module__.partition(".")[0] == "transformer_lens":
        raise UserError(
            f"The adapter {adapter.folder} goes on the target's own blocks, which the reader transformer-lens has "
            "replaced. Use `--reader nnsight` with this tool."
        )
    check_shapes(adapter, loaded.model)
    return loaded.thread.run(lambda: _put_on(adapter, loaded.model))


# What is made in inference mode can be switched in that mode alone.
@torch.inference_mode(mode=False)
def _put_on(adapter: Adapter, model: PreTrainedModel) -> Switch:
    name = f"uplift-{adapter.sha256[:12]}"
    decoder = model.get_decoder()
    prefix = next(where for where, module in model.named_modules() if module is decoder)
    modules = {path: f"{prefix}.{path}" for path in adapter.pairs}
    if name not in getattr(model, "peft_config", {}):
        _inject(adapter, model, list(modules.values()), name)
    layers: list[LoraLayer] = [model.get_submodule(where) for where in modules.values()]
    for layer, pair in zip(layers, adapter.pairs.values(), strict=True):
        for matrices, weight in ((layer.lora_A, pair.a), (layer.lora_B, pair.b)):
            # float32, as PEFT keeps adapters over weights of less precision.
            matrices[name].weight = nn.Parameter(weight.to(matrices[name].weight.device), requires_grad=False)
        layer.enable_adapters(enabled=False)
    return Switch(layers, name)


def _inject(adapter: Adapter, model: PreTrainedModel, modules: list[str], name: str) -> None:
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=adapter.rank, lora_alpha=adapter.alpha, use_rslora=adapter.rooted, lora_dropout=0.0, target_modules=modules
    )
    with warnings.catch_warnings():
        # Two tools may share one model; each switches on its own adapter only.
        warnings.filterwarnings("ignore", message="Already found a `peft_config`")
        inject_adapter_in_model(config, model, adapter_name=name)
    model.requires_grad_(False)


def read_centre(folder: Path, layer: int, d_model: int) -> Float[Tensor, " d_model"]:
    """What is subtracted from activations of `layer` before an adapter trained here is given them; zeros if nothing.

    Raises:
        UserError: The file that says so has no entry for the layer, or one of another width.
    """
    path = folder / CENTRE
    if not path.is_file():
        return torch.zeros(d_model)
    centre = _load(path).get(f"layer_{layer}")
    if centre is None or tuple(centre.shape) != (d_model,):
        found = "nothing" if centre is None else f"the shape {tuple(centre.shape)}"
        raise _misfit(folder, f"has {found} for layer {layer} in {CENTRE}", f"a vector of width {d_model}")
    return centre.float()


def _misfit(folder: Path, found: str, expected: str) -> UserError:
    return UserError(
        f"The adapter {folder} {found}. Expected {expected}. It was made for another model or in another way: mend the "
        "target's row in tools/targets.py, or put the right adapter there."
    )


def write_adapter(folder: Path, *, base: str, rank: int, alpha: float, pairs: Mapping[str, Pair]) -> None:
    """Write an adapter as PEFT does, for a plain language model."""
    from safetensors.torch import save_file

    tensors = {}
    for path, pair in pairs.items():
        tensors[f"base_model.model.model.{path}.lora_A.weight"] = pair.a.contiguous()
        tensors[f"base_model.model.model.{path}.lora_B.weight"] = pair.b.contiguous()
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    modules = sorted({path.rpartition(".")[2] for path in pairs})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": modules,
        "inference_mode": True,
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=1), encoding="utf-8")
