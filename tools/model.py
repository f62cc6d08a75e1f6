"""A target in memory: its language model, its tokenizer, and the one thread that may use them.

Invariant: what `load` returns is the model that the table describes, with every weight read from the checkpoint.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    Gemma3ForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as hf_logging

from claims.schema import UserError
from tools.owner import ModelThread
from tools.targets import Target
from tools.weights import prepare, weights_id

_DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


@dataclass(frozen=True)
class Loaded:
    """A target that can be run."""

    target: Target
    """Its row."""
    model: PreTrainedModel
    """A causal language model over text, in evaluation mode."""
    tokenizer: PreTrainedTokenizerFast
    """Its tokenizer; prompts are encoded by `tools.chat` only."""
    device: torch.device
    """Where inputs go."""
    dtype: torch.dtype
    """Of the weights."""
    weights: str
    """What the weights are: checkpoint and commit, or sha256 of the file."""
    thread: ModelThread = field(compare=False)
    """Owns the model; whoever runs it does so in here."""

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return int(self.model.config.get_text_config().hidden_size)


def load(target: Target, *, dtype: str = "bfloat16", device: str | None = None) -> Loaded:
    """Load a target, preparing its weights first if need be.

    Args:
        target: Its row.
        dtype: `bfloat16`, or `float32` for a proof. Never float16: Gemma's residual stream overflows it.
        device: As torch names it; `auto` spreads a large model over all GPUs. None takes a GPU if there is one.

    Raises:
        UserError: The weights cannot be had, are incomplete, or are not the model that the table describes; or the
            dtype is unknown.
    """
    folder = prepare(target)
    model = load_model(folder, name=target.name, dtype=dtype, device=device)
    _check_layers(target, model)
    return Loaded(
        target=target,
        model=model,
        tokenizer=AutoTokenizer.from_pretrained(folder),
        device=model.device,
        dtype=_DTYPES[dtype],
        weights=weights_id(target, folder),
        thread=ModelThread(target.name),
    )


def load_model(
    folder: Path,
    *,
    name: str,
    dtype: str = "bfloat16",
    device: str | torch.device | None = None,
    n_blocks: int | None = None,
) -> PreTrainedModel:
    """The language model in a folder, with every weight read from it, ready to be run.

    Args:
        folder: As transformers writes it.
        name: What to call the model in an error.
        dtype: As for `load`.
        device: As for `load`.
        n_blocks: Only so many of its blocks; 0 leaves the embedding and the head.

    Raises:
        UserError: The dtype is unknown, or weights are missing or cannot be read.
    """
    if dtype not in _DTYPES:
        raise UserError(f"Unknown dtype {dtype!r}. Expected one of: {', '.join(_DTYPES)}.")
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    with _no_progress_bar(), contextlib.nullcontext() if n_blocks is None else _errors_only():
        model, report = AutoModelForCausalLM.from_pretrained(
            folder,
            config=_config(folder, n_blocks),
            dtype=_DTYPES[dtype],
            device_map=None if str(place) == "cpu" else place,
            output_loading_info=True,
        )
    # transformers fills weights that it does not find with random numbers and only warns.
    if report["missing_keys"]:
        raise UserError(
            f"The weights of {name} in {folder} lack {len(report['missing_keys'])} tensors, such as "
            f"{sorted(report['missing_keys'])[0]}. Expected all of them. Delete the folder and run again."
        )
    model = as_text_model(model).eval().requires_grad_(False)
    # A GGUF file and the multimodal wrapper leave this empty or wrong; transformer-lens goes by it.
    model.config.architectures = [type(model).__name__]
    return model


def _config(folder: Path, n_blocks: int | None) -> PreTrainedConfig:
    config = AutoConfig.from_pretrained(folder)
    if n_blocks is not None:
        text = config.get_text_config()
        text.num_hidden_layers = n_blocks
        if getattr(text, "layer_types", None) is not None:
            text.layer_types = text.layer_types[:n_blocks]
    return config


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    # Loading takes a second; a bar for it would stand between the lines that a run prints.
    shown = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            hf_logging.enable_progress_bar()


@contextlib.contextmanager
def _errors_only() -> Iterator[None]:
    # Every weight of a block that is left out would be listed; those that are missing are asked for below.
    shown = hf_logging.get_verbosity()
    hf_logging.set_verbosity_error()
    try:
        yield
    finally:
        hf_logging.set_verbosity(shown)


def as_text_model(model: PreTrainedModel) -> PreTrainedModel:
    """The language model inside Gemma 3's multimodal wrapper (4B and larger), sharing its weights; others as is."""
    if model.config.model_type != "gemma3":
        return model
    decoder = model.get_decoder()
    with torch.device("meta"):
        text = Gemma3ForCausalLM(decoder.config)
    text.model, text.lm_head, text.generation_config = decoder, model.lm_head, model.generation_config
    return text


def decoder_layers(model: nn.Module) -> nn.ModuleList:
    """The blocks of a language model, from 0, also of one inside a multimodal wrapper or a peft model."""
    if isinstance(model, PreTrainedModel):
        return cast(nn.ModuleList, model.get_decoder().layers)
    # A peft model; its class is not named here, because importing peft takes seconds that most processes can save.
    return decoder_layers(cast(Callable[[], nn.Module], model.get_base_model)())


def _check_layers(target: Target, model: PreTrainedModel) -> None:
    n_layers = len(decoder_layers(model))
    if n_layers != target.n_layers:
        raise UserError(
            f"The weights of {target.name} have {n_layers} blocks, expected {target.n_layers}: this is another model. "
            "Check which checkpoint was prepared under that name."
        )
