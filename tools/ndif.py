"""Activations of targets that nobody here can hold: nnsight's remote execution on the National Deep Inference Fabric.

Third parties see the token ids of the transcripts that are read. The fabric holds some models at a time (`nnsight
status` lists them); a queue and a failure there are faults of ours towards a predictor.

Invariant: no weight is loaded here. A hollow target has its configuration, its tokenizer and a model without data.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from claims.schema import UserError
from tools.activations import ActivationError, ActivationReader
from tools.model import Loaded, as_text_model
from tools.nnsight_import import import_nnsight
from tools.owner import ModelThread
from tools.targets import Target
from tools.weights import prepare, weights_id

KEY = "NDIF_API_KEY"
_SMALL_FILES = ["*.json", "*.jinja", "*.model", "*.txt"]


def load_hollow(target: Target) -> Loaded:
    """A target without weights: enough to render, to number tokens, and to read elsewhere.

    Raises:
        UserError: There is no key for the fabric, or configuration and tokenizer cannot be had.
    """
    require_key()
    folder = prepare(target) if target.source != "hub" else _small_files(target)
    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = as_text_model(AutoModelForCausalLM.from_config(config)).eval()
    return Loaded(
        target=target,
        model=model,
        tokenizer=AutoTokenizer.from_pretrained(folder),
        device=torch.device("cpu"),
        dtype=torch.float32,
        weights=weights_id(target, folder),
        thread=ModelThread(target.name),
    )


def require_key() -> None:
    """Check that nnsight has a key.

    Raises:
        UserError: It has none.
    """
    import_nnsight()
    from nnsight.schema.config import CONFIG

    if not CONFIG.API.APIKEY:
        raise UserError(
            f"There is no key for the National Deep Inference Fabric. Expected one in {KEY}. Get one at "
            "https://login.ndif.us and set the variable, or read on this machine with --activations nnsight."
        )


def _small_files(target: Target) -> Path:
    # Imported here: the hub's client takes a second, and the local targets do without it.
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(target.checkpoint, revision=target.revision, allow_patterns=_SMALL_FILES))
    except Exception as error:
        # The hub's client raises its own errors and those of its HTTP libraries.
        raise UserError(
            f"Configuration and tokenizer of {target.checkpoint} cannot be had ({error!s:.200}). Expected them in the "
            "hub's cache or a network. Log in with `hf auth login` where the model is gated."
        ) from error


class NdifReader(ActivationReader):
    """Reads through nnsight on the fabric's machines. The dtype is theirs; what comes back is widened to float32."""

    remote: bool | str = True
    """As nnsight has it; a test runs the same serialized block here with `local`."""

    def _attach(self) -> None:
        require_key()
        nnsight = import_nnsight()
        self._save = nnsight.save
        self._model = nnsight.TransformersModel(self._source(), task="text-generation", **self._options())
        self._blocks = _blocks(self._model)

    def _source(self) -> str:
        target = self.loaded.target
        return target.checkpoint if target.source == "hub" else str(prepare(target))

    def _options(self) -> dict[str, object]:
        target = self.loaded.target
        revision = {"revision": target.revision} if target.source == "hub" else {}
        return {"tokenizer": self.loaded.tokenizer, **revision}

    def _capture(
        self, token_ids: Int[Tensor, "rows tokens"], mask: Int[Tensor, "rows tokens"], layers: Sequence[int]
    ) -> dict[int, Float[Tensor, "rows tokens d_model"]]:
        # The block below travels as source with the values of these names, and `self` could not.
        model, blocks, save, wanted = self._model, self._blocks, self._save, list(layers)
        captured: dict[int, Tensor | tuple[Tensor, ...]] = {}
        try:
            with model.trace(input_ids=token_ids, attention_mask=mask, use_cache=False, remote=self.remote) as tracer:
                captured = {}
                for k in wanted:
                    captured[k] = blocks[k].output
                captured = save(captured)
                tracer.stop()
        except Exception as error:
            # nnsight, its websocket and its HTTP client raise errors of their own.
            raise ActivationError(
                f"The fabric gave no activations of {self.loaded.target.checkpoint} ({type(error).__name__}: "
                f"{error!s:.300}). `nnsight.status()` says which models it holds now."
            ) from error
        return {k: value[0] if isinstance(value, tuple) else value for k, value in captured.items()}


def _blocks(model: Any) -> Any:
    """The decoder's blocks, also inside Gemma 3's multimodal wrapper."""
    return getattr(model.model, "language_model", model.model).layers
