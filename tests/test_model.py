"""A loaded target is the one that the table describes, or is refused."""

import dataclasses
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Gemma3ForConditionalGeneration

from claims.schema import UserError
from tools.model import load
from tools.targets import get_target
from tools.weights import prepare


def test_a_checkpoint_of_another_depth_is_refused(monkeypatch: pytest.MonkeyPatch):
    target = dataclasses.replace(get_target("tiny-gemma"), n_layers=5)
    monkeypatch.setattr("tools.model.prepare", lambda _: prepare(get_target("tiny-gemma")))
    with pytest.raises(UserError, match="have 4 blocks, expected 5"):
        load(target, device="cpu")


def test_a_checkpoint_that_lacks_a_tensor_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = prepare(get_target("tiny-qwen"))
    for path in whole.iterdir():
        os.link(path, tmp_path / path.name)
    tensors = load_file(whole / "model.safetensors")
    lost = "model.layers.1.mlp.up_proj.weight"
    del tensors[lost]
    (tmp_path / "model.safetensors").unlink()
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    monkeypatch.setattr("tools.model.prepare", lambda _: tmp_path)
    with pytest.raises(UserError, match=f"lack 1 tensors, such as {lost}"):
        load(get_target("tiny-qwen"), device="cpu")


def test_an_unknown_dtype_is_refused():
    with pytest.raises(UserError, match=r"'float16'.*bfloat16, float32"):
        load(get_target("tiny-qwen"), dtype="float16")


def test_the_multimodal_wrapper_loads_as_its_own_language_model():
    loaded = load(get_target("tiny-gemma-mm"), dtype="float32", device="cpu")
    assert type(loaded.model).__name__ == "Gemma3ForCausalLM"
    assert loaded.d_model == 64
    whole = Gemma3ForConditionalGeneration.from_pretrained(prepare(loaded.target), dtype=torch.float32).eval()
    token_ids = torch.tensor([[2, *range(20, 60)]])
    with torch.inference_mode():
        assert torch.equal(loaded.model(token_ids).logits, whole(input_ids=token_ids).logits)
