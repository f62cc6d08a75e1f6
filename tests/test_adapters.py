"""An adapter computes what its file says, only while it is switched on, and only on the model that it was made for."""

import json
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from claims.schema import UserError
from tools.activations import PlainHookReader, make_reader
from tools.adapters import CENTRE, CONFIG, WEIGHTS, Adapter, attach, check_base, read_adapter, read_centre
from tools.model import Loaded, load
from tools.targets import get_target
from tools.weights import prepare

IDS = torch.tensor([[2, 30, 31, 32, 33, 34, 35, 36]])


def fresh(name: str) -> Loaded:
    return load(get_target(name), dtype="float32", device="cpu")


def make_adapter(folder: Path, name: str, *, base: str | None = None, rank: int = 4, modules: object = None) -> Path:
    """An adapter as PEFT itself trains and saves it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        config = LoraConfig(
            r=rank,
            lora_alpha=8,
            target_modules=modules or ["q_proj", "down_proj"],
            init_lora_weights=False,
            task_type="CAUSAL_LM",
        )
        model = get_peft_model(fresh(name).model, config)
    model.peft_config["default"].base_model_name_or_path = base or name
    model.save_pretrained(folder, save_embedding_layers=False)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_adapter(tmp_path / "adapter", "tiny-qwen")


def logits(loaded: Loaded) -> Tensor:
    with torch.inference_mode():
        return loaded.model(IDS).logits


def change(folder: Path, **settings: object) -> Path:
    path = folder / CONFIG
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | settings), encoding="utf-8")
    return folder


def rename(folder: Path, old: str, new: str) -> Path:
    tensors = {key.replace(old, new): tensor for key, tensor in load_file(folder / WEIGHTS).items()}
    save_file(tensors, folder / WEIGHTS)
    return folder


def test_switched_on_it_gives_what_peft_gives_and_switched_off_what_the_clean_model_gives(folder: Path) -> None:
    clean = logits(fresh("tiny-qwen"))
    wanted = PeftModel.from_pretrained(fresh("tiny-qwen").model, folder)
    with torch.inference_mode():
        expected = wanted(IDS).logits
    loaded = fresh("tiny-qwen")
    switch = attach(read_adapter(folder), loaded)
    assert torch.equal(logits(loaded), clean)
    with switch.on():
        assert torch.allclose(logits(loaded), expected, atol=1e-5)
        assert not torch.allclose(expected, clean, atol=1e-2)
    assert torch.equal(logits(loaded), clean)


def test_a_pair_adds_alpha_over_rank_times_b_a_x(folder: Path) -> None:
    # By hand on one module: W x + (8 / 4) B (A x).
    loaded = fresh("tiny-qwen")
    module = loaded.model.get_submodule("model.layers.1.self_attn.q_proj")
    adapter = read_adapter(folder)
    pair = adapter.pairs["layers.1.self_attn.q_proj"]
    x = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))
    by_hand = x @ module.weight.T + 8 / 4 * (x @ pair.a.T) @ pair.b.T
    with attach(adapter, loaded).on():
        assert torch.allclose(loaded.model.get_submodule("model.layers.1.self_attn.q_proj")(x), by_hand, atol=1e-5)


@pytest.mark.parametrize("name", ["tiny-gemma", "tiny-qwen", "tiny-gemma-mm"])
@pytest.mark.parametrize("first", ["reader", "adapter"])
def test_activations_are_read_from_the_clean_model_to_the_last_bit(name: str, first: str, tmp_path: Path) -> None:
    adapter = read_adapter(make_adapter(tmp_path, name))
    layers = range(get_target(name).n_layers)
    clean = PlainHookReader(fresh(name)).read([IDS[0].tolist()], layers)[0]
    loaded = fresh(name)
    reader = make_reader("nnsight", loaded) if first == "reader" else None
    switch = attach(adapter, loaded)
    reader = reader or make_reader("nnsight", loaded)
    for _ in range(2):
        found = reader.read([IDS[0].tolist()], layers)[0]
        assert all(torch.equal(found[k], clean[k]) for k in layers)
        with switch.on():
            loaded.model(IDS)


def test_off_means_off_also_when_what_it_was_on_for_failed(folder: Path) -> None:
    loaded = fresh("tiny-qwen")
    clean = logits(loaded)
    switch = attach(read_adapter(folder), loaded)
    with pytest.raises(ZeroDivisionError), switch.on():
        _ = 1 // 0
    assert torch.equal(logits(loaded), clean)


def test_two_adapters_on_one_model_are_themselves_each_and_a_second_attach_changes_nothing(tmp_path: Path) -> None:
    folders = [make_adapter(tmp_path / "a", "tiny-qwen"), make_adapter(tmp_path / "b", "tiny-qwen", rank=2)]
    alone = []
    for folder in folders:
        loaded = fresh("tiny-qwen")
        with attach(read_adapter(folder), loaded).on():
            alone.append(logits(loaded))
    shared = fresh("tiny-qwen")
    switches = [attach(read_adapter(folder), shared) for folder in (*folders, folders[0])]
    for switch, expected in zip(switches, (*alone, alone[0]), strict=True):
        with switch.on():
            assert torch.equal(logits(shared), expected)
    assert not torch.equal(*alone)
    assert torch.equal(logits(shared), logits(fresh("tiny-qwen")))


def test_an_adapter_of_the_multimodal_model_goes_on_its_text_tower(tmp_path: Path) -> None:
    """Keys as PEFT gives them for Gemma 3 as published: below `language_model`, with or without a vision tower's."""
    loaded = fresh("tiny-gemma-mm")
    plain = read_adapter(make_adapter(tmp_path / "plain", "tiny-gemma-mm", base="google/tiny-gemma-mm"))
    with attach(plain, loaded).on():
        expected = logits(loaded)
    whole = AutoModelForCausalLM.from_pretrained(prepare(loaded.target), dtype=torch.float32)
    config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    get_peft_model(whole, config).save_pretrained(tmp_path / "all", save_embedding_layers=False)
    change(tmp_path / "all", base_model_name_or_path="google/tiny-gemma-mm")
    assert any("vision_tower" in key for key in load_file(tmp_path / "all" / WEIGHTS))
    everything = read_adapter(tmp_path / "all")
    assert set(everything.pairs) > set(plain.pairs)
    assert len(everything.pairs) == 4 * 7
    other = fresh("tiny-gemma-mm")
    with attach(everything, other).on():
        assert not torch.allclose(logits(other), expected)
    for name in ("language_model.model", "model.language_model"):
        renamed = rename(
            make_adapter(tmp_path / name, "tiny-gemma-mm"), "base_model.model.model", f"base_model.model.{name}"
        )
        assert set(read_adapter(renamed).pairs) == set(plain.pairs)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"peft_type": "IA3"}, "is of the type 'IA3'. Expected LORA"),
        ({"use_dora": True}, "has use_dora set"),
        ({"modules_to_save": ["lm_head"]}, "has modules_to_save set"),
        ({"bias": "all"}, "adapts biases"),
        ({"r": 8}, r"shapes .* Expected a pair of rank 8, as its settings say"),
        ({"r": None}, r"r is None\. Expected a whole number from 1"),
        ({"base_model_name_or_path": None}, "base_model_name_or_path is None"),
    ],
)
def test_settings_that_are_not_a_plain_adapter_s_are_refused(
    folder: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_adapter(change(folder, **settings))


def test_weights_outside_the_blocks_and_half_pairs_are_refused(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    save_file(tensors | {"base_model.model.lm_head.lora_A.weight": torch.zeros(4, 64)}, folder / WEIGHTS)
    with pytest.raises(UserError, match="lm_head.lora_A.weight. Expected low-rank pairs for the decoder's blocks"):
        read_adapter(folder)
    first = next(key for key in tensors if "lora_B" in key)
    save_file({key: tensor for key, tensor in tensors.items() if key != first}, folder / WEIGHTS)
    with pytest.raises(UserError, match="Expected a pair of rank 4"):
        read_adapter(folder)
    save_file({}, folder / WEIGHTS)
    with pytest.raises(UserError, match="adapts nothing"):
        read_adapter(folder)
    (folder / WEIGHTS).write_bytes(b"broken")
    with pytest.raises(UserError, match="cannot be read"):
        read_adapter(folder)


def test_an_adapter_of_another_base_model_is_refused(folder: Path) -> None:
    adapter = read_adapter(folder)
    check_base(adapter, get_target("tiny-qwen"))
    check_base(read_adapter(change(folder, base_model_name_or_path="Qwen/Qwen3-8B")), get_target("qwen3-8b"))
    with pytest.raises(UserError, match=r"was trained on tiny-qwen\. Expected one for gemma3_text \(tiny-gemma\)"):
        attach(adapter, fresh("tiny-gemma"))


def renamed_base(adapter: Adapter, base: str) -> Adapter:
    from dataclasses import replace

    return replace(adapter, base=base)


def test_an_adapter_of_another_shape_or_depth_is_refused(tmp_path: Path) -> None:
    # tiny-gemma has a fourth block, tiny-qwen three; both are 64 wide.
    deep = read_adapter(make_adapter(tmp_path / "deep", "tiny-gemma"))
    with pytest.raises(UserError, match=r"changes layers\.3\..* Expected no such module"):
        attach(renamed_base(deep, "tiny-qwen"), fresh("tiny-qwen"))
    folder = make_adapter(tmp_path / "wide", "tiny-qwen")
    wide = {
        key: torch.zeros(4, 128) if "q_proj.lora_A" in key else value
        for key, value in load_file(folder / WEIGHTS).items()
    }
    save_file(wide, folder / WEIGHTS)
    loaded = fresh("tiny-qwen")
    clean = logits(loaded)
    with pytest.raises(
        UserError, match=r"changes layers\.0\.self_attn\.q_proj of shape \(64, 128\)\. Expected \(64, 64\)"
    ):
        attach(read_adapter(folder), loaded)
    assert torch.equal(logits(loaded), clean)


def test_a_model_whose_blocks_a_reader_has_replaced_is_refused(folder: Path) -> None:
    loaded = fresh("tiny-qwen")
    make_reader("transformer-lens", loaded)
    with pytest.raises(UserError, match="--reader nnsight"):
        attach(read_adapter(folder), loaded)


def test_the_hash_covers_settings_weights_and_centre(folder: Path) -> None:
    hashes = {read_adapter(folder).sha256}
    save_file({"layer_1": torch.ones(64)}, folder / CENTRE)
    hashes.add(read_adapter(folder).sha256)
    hashes.add(read_adapter(change(folder, lora_alpha=9)).sha256)
    tensors = load_file(folder / WEIGHTS)
    save_file({key: tensor + 1 for key, tensor in tensors.items()}, folder / WEIGHTS)
    hashes.add(read_adapter(folder).sha256)
    assert len(hashes) == 4


def test_a_centre_is_read_for_its_layer_and_absent_it_is_zero(tmp_path: Path) -> None:
    assert read_centre(tmp_path, 1, 2).tolist() == [0, 0]
    save_file({"layer_1": torch.tensor([1.0, 2])}, tmp_path / CENTRE)
    assert read_centre(tmp_path, 1, 2).tolist() == [1, 2]
    with pytest.raises(UserError, match="has nothing for layer 2"):
        read_centre(tmp_path, 2, 2)
    with pytest.raises(UserError, match=r"has the shape \(2,\) for layer 1 .* width 3"):
        read_centre(tmp_path, 1, 3)
