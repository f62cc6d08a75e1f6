"""A low-rank adapter on a target: put on for training, and written as peft reads it.

Invariant: what is measured is what is shipped, float16 rounding included; the configuration names the target, never a
path of this machine.
"""

import json
import warnings
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils import get_peft_model_state_dict
from safetensors.torch import save_file

from tools.model import Loaded
from tools.training.lora.plan import LoraPlan

MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Every linear map of a block."""
WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"


def attach(loaded: Loaded, plan: LoraPlan, *, first: int = 0) -> PeftModel:
    """Put a new adapter on the target; it adds nothing yet.

    Args:
        loaded: The target.
        plan: Rank and seed.
        first: The first block that is adapted; activations are not there yet before it.
    """
    config = LoraConfig(
        r=plan.rank,
        lora_alpha=plan.alpha,
        target_modules=list(MODULES),
        layers_to_transform=list(range(first, loaded.target.n_layers)),
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # peft 0.21.2 asks transformers 5.24 for an attribute by its old name.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        torch.manual_seed(plan.schedule.seed)
        # In the base model's dtype: the loop keeps float32 weights of its own, and bfloat16 products are faster.
        model = get_peft_model(loaded.model, config, autocast_adapter_dtype=False)
    assert isinstance(model, PeftModel)
    return model


@torch.no_grad()
def round_as_shipped(model: PeftModel) -> None:
    """Give the adapter the values that float16 keeps, in float32, as peft loads them."""
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.half().float()


def save_adapter(model: PeftModel, target: str, folder: Path) -> None:
    """Write the adapter's weights, float16, and its configuration."""
    state = {name: tensor.half().contiguous() for name, tensor in get_peft_model_state_dict(model).items()}
    save_file(state, folder / WEIGHTS, metadata={"format": "pt"})
    config = model.peft_config["default"]
    config.base_model_name_or_path = target
    config.inference_mode = True
    config.save_pretrained(str(folder))
    path = folder / CONFIG
    # Sets are written in any order.
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["target_modules"] = sorted(stored["target_modules"])
    path.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
