"""A checkpoint that does not fit its target, its model or its tokenizer is refused, and by which fact."""

import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from claims.schema import UserError
from tests.hub_cache import put_in_cache
from tests.nla_files import change, copied, fresh, full_checkpoint, tool_of
from tests.tool_bench import readings_of
from tools import nla
from tools.adapters import CENTRE
from tools.model import Loaded
from tools.server import make_server
from tools.targets import NLASource, get_target


@pytest.mark.parametrize("kind", ["adapter", "full"])
@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("d_model", 128, "width 128. Expected 64, the width of tiny-qwen"),
        ("tokens.injection_token_id", 6, "names the marker '<0>' as token 6, which the tokenizer encodes as"),
        ("tokens.injection_left_neighbor_id", 9, "marker between the tokens .* as in training"),
        ("tokens.injection_right_neighbor_id", 9, "marker between the tokens .* as in training"),
        ("prompt_templates.av", "{injection_char}{injection_char}", "with 2 markers"),
    ],
)
def test_a_sidecar_that_does_not_fit_is_refused_when_it_meets_the_model(
    tmp_path: Path, tiny_qwen: Loaded, kind: str, path: str, value: object, message: str
) -> None:
    folder = copied(tmp_path, "tiny-qwen") if kind == "adapter" else full_checkpoint(tmp_path / "full", "tiny-qwen")
    tool = tool_of(change(folder, path, value), "tiny-qwen")
    with pytest.raises(UserError, match=message):
        make_server("nla", tool, readings_of(tmp_path / "talks", tiny_qwen, layer=2))


def test_a_checkpoint_of_another_layer_or_target_is_refused_before_a_model_is_loaded(tmp_path: Path) -> None:
    folder = copied(tmp_path, "tiny-qwen")
    with pytest.raises(UserError, match="describes layer 2. Expected layer 1, as in the target's row"):
        tool_of(folder, "tiny-qwen", layer=1)
    change(folder, "base.target", "tiny-gemma")
    with pytest.raises(UserError, match="describes layer 2 of tiny-gemma. Expected a layer from 0 to 2 of tiny-qwen"):
        tool_of(folder, "tiny-qwen")
    change(folder, "base.target", "tiny-qwen")
    change(folder, "extraction.layer_index", 7)
    with pytest.raises(UserError, match="describes layer 7 .* Expected a layer from 0 to 2"):
        tool_of(folder, "tiny-qwen", layer=None)


def test_an_adapter_of_other_weights_is_refused(tmp_path: Path) -> None:
    loaded = dataclasses.replace(fresh("tiny-qwen"), weights="others")
    with pytest.raises(UserError, match="was trained on the weights random:qwen3 .* Expected others"):
        make_server("nla", nla.load(loaded.target), readings_of(tmp_path, loaded, layer=2))


def test_a_full_checkpoint_whose_own_model_is_of_another_width_is_refused(tmp_path: Path, tiny_qwen: Loaded) -> None:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder = full_checkpoint(tmp_path / "full", "tiny-qwen")
    settings = Qwen3Config.from_pretrained(folder).to_dict() | {"hidden_size": 32}
    Qwen3ForCausalLM(Qwen3Config(**settings)).save_pretrained(folder)
    with pytest.raises(UserError, match=r"width 64. Expected 32, the width of the model in .*full"):
        make_server("nla", tool_of(folder, "tiny-qwen"), readings_of(tmp_path / "talks", tiny_qwen, layer=2))


def test_a_full_checkpoint_with_missing_weights_is_refused(tmp_path: Path, tiny_qwen: Loaded) -> None:
    folder = full_checkpoint(tmp_path / "full", "tiny-qwen")
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.0.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="lack 1 tensors, such as model.layers.0.mlp.up_proj.weight"):
        make_server("nla", tool_of(folder, "tiny-qwen"), readings_of(tmp_path / "talks", tiny_qwen, layer=2))


def test_a_target_without_an_autoencoder_and_one_that_is_not_here_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="llama-3.1-8b has no natural-language autoencoder"):
        nla.load(get_target("llama-3.1-8b"))
    for name, repository in (
        ("gemma-3-27b-it", "kitft/nla-gemma3-27b-L41-av"),
        ("qwen3-8b", "marco-bazzani/Qwen3-8B-nla"),
    ):
        with pytest.raises(UserError, match=f"hf download {repository}"):
            nla.load(get_target(name))
    local = dataclasses.replace(get_target("tiny-qwen"), nla=NLASource("local", layer=2))
    with pytest.raises(UserError, match="make artifacts TOOL=nla TARGET=tiny-qwen"):
        nla.load(local)


def test_a_download_that_was_interrupted_is_not_taken_for_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = full_checkpoint(tmp_path / "full", "tiny-qwen")
    (folder / "model.safetensors").unlink()
    put_in_cache(tmp_path / "hub", "somebody/half", folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    target = dataclasses.replace(get_target("tiny-qwen"), nla=NLASource("somebody/half", layer=2))
    with pytest.raises(UserError, match="hf download somebody/half"):
        nla.load(target)


def test_the_hash_of_the_tool_changes_with_weights_and_with_sidecar(tmp_path: Path) -> None:
    folder = copied(tmp_path, "tiny-qwen")
    hashes = {nla.load(get_target("tiny-qwen")).facts.weights_sha256, tool_of(folder, "tiny-qwen").facts.weights_sha256}
    assert len(hashes) == 1
    hashes.add(tool_of(change(folder, "extraction.injection_scale", 21), "tiny-qwen").facts.weights_sha256)
    save_file({"layer_2": torch.ones(64)}, folder / CENTRE)
    hashes.add(tool_of(folder, "tiny-qwen").facts.weights_sha256)
    assert len(hashes) == 3
