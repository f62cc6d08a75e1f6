"""Training both adapters from end to end on tiny targets, and the adapters that are shipped."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from claims.schema import UserError
from tools import train_ao, train_nla
from tools.adapters import read_adapter
from tools.ao_facts import check_weights, oracle_facts
from tools.model import Loaded
from tools.nla_checkpoint import Verbaliser, read_checkpoint
from tools.sae_loader import file_sha256
from tools.targets import OracleSource, get_target
from tools.training import corpus
from tools.training.lora import make_oracle, retrieval
from tools.training.lora.run import ARTIFACTS

FILES = {
    "ao": ["adapter_config.json", "adapter_model.safetensors", "ao.json", "card.json", "card.md", "centre.safetensors"],
    "nla": ["adapter_config.json", "adapter_model.safetensors", "card.json", "card.md", "centre.safetensors"],
}
FILES["ao"] += ["loss.png"]
FILES["nla"] += ["loss.png", "nla_meta.yaml", "reconstructor.safetensors"]
TRAIN = {"ao": train_ao.train, "nla": train_nla.train}


@pytest.fixture(scope="module", autouse=True)
def small_corpus() -> None:
    with pytest.MonkeyPatch.context() as patch:
        texts = {f"p{i} text": f"Text {i} says this and that of plants and trees. " * 20 for i in range(60)}
        patch.setattr(corpus, "package_texts", lambda: texts)
        patch.setattr(retrieval, "CONTEXTS", 4)
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, small_corpus: None) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("adapters")
    return {tool: train("tiny-gemma", out=folder / tool) for tool, train in TRAIN.items()}


@pytest.mark.parametrize("tool", ["ao", "nla"])
def test_the_folder_is_complete_and_described(tool: str, trained: dict[str, Path]) -> None:
    folder = trained[tool]
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES[tool])
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    training = card["training"]
    assert (training["target"], training["fidelity"], training["n_steps"]) == ("tiny-gemma", "demo", 4)
    assert training["command"] == f"uplift artifacts {tool} tiny-gemma"
    assert {name: file_sha256(folder / name) for name in card["sha256"]} == card["sha256"]
    assert set(card["sha256"]) == set(FILES[tool]) - {"card.json", "card.md"}
    assert card["losses"]["n"] == 12
    text = (folder / "card.md").read_text(encoding="utf-8")
    assert f"| right | {card['losses']['right']:.3f} |" in text
    assert (
        "/" not in json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))["base_model_name_or_path"]
    )
    with Image.open(folder / "loss.png") as picture:
        assert picture.size == (640, 400)


def test_the_oracle_loads_as_its_tool_loads_it(trained: dict[str, Path], tiny_gemma: Loaded) -> None:
    target = get_target("tiny-gemma")
    facts = oracle_facts(trained["ao"], target, OracleSource("local", layer=2))
    assert (facts.layer, facts.block, facts.coefficient) == (2, 1, 1.0)
    check_weights(facts, trained["ao"], tiny_gemma.weights)
    adapter = read_adapter(trained["ao"])
    assert (adapter.base, adapter.rank, adapter.alpha) == ("tiny-gemma", 2, 4.0)
    # Activations are not there before block 2: two of four blocks are adapted, seven modules each.
    assert len(adapter.pairs) == 14
    assert {path.split(".")[1] for path in adapter.pairs} == {"2", "3"}
    assert all(
        tensor.dtype == torch.float16 for tensor in load_file(trained["ao"] / "adapter_model.safetensors").values()
    )
    centres = load_file(trained["ao"] / "centre.safetensors")
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in centres.items()} == {
        f"layer_{layer}": (torch.Size([64]), torch.float32) for layer in (1, 2, 3)
    }
    families = json.loads((trained["ao"] / "card.json").read_text(encoding="utf-8"))["families"]
    assert all(family["n"] == 4 for family in families.values())


def test_the_autoencoder_loads_as_its_tool_loads_it(trained: dict[str, Path], tiny_qwen: Loaded) -> None:
    from tools.model import load

    loaded = load(get_target("tiny-gemma"), device="cpu")
    checkpoint = read_checkpoint(trained["nla"], loaded.target, stated_layer=2)
    verbaliser = Verbaliser(checkpoint, loaded)
    assert (checkpoint.is_adapter, checkpoint.layer, checkpoint.sidecar.target) == (True, 2, "tiny-gemma")
    activation = torch.randn(64, generator=torch.Generator().manual_seed(0))
    item = verbaliser.item(activation, seed=0)
    centre = load_file(trained["nla"] / "centre.safetensors")["layer_2"]
    direction = (activation - centre) / (activation - centre).norm()
    assert torch.allclose(item.vectors[0], direction * checkpoint.sidecar.injection_scale, atol=1e-4)
    (answer,) = loaded.thread.run(lambda: verbaliser.write([item]))
    assert len(answer.token_ids) <= checkpoint.sidecar.decoding.max_tokens
    other = get_target("tiny-qwen")
    with pytest.raises(UserError, match="describes layer 2 of tiny-gemma"):
        read_checkpoint(trained["nla"], other, stated_layer=2)
    assert tiny_qwen.target is other


def test_the_autoencoders_card_has_every_control(trained: dict[str, Path]) -> None:
    card = json.loads((trained["nla"] / "card.json").read_text(encoding="utf-8"))
    assert set(card["retrieval"]) == {"of the activation", "of another activation", "knowing the token alone"}
    assert set(card["explained"]) == {*card["retrieval"], "of the text, by the template"}
    assert all(set(found) == {"drawn", "shared_token"} for found in card["explained"].values())
    assert all(found["n"] > 0 for found in card["retrieval"].values())
    rebuilder = load_file(trained["nla"] / "reconstructor.safetensors")
    assert {name: tensor.dtype for name, tensor in rebuilder.items()} == {
        "weight": torch.float16,
        "bias": torch.float16,
    }


def test_the_same_training_gives_the_same_files(
    trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPLIFT_CACHE", str(tmp_path / "another-cache"))
    again = train_ao.train("tiny-gemma", out=tmp_path / "again")
    for path in trained["ao"].iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_training_that_fails_leaves_what_was_there(
    trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "card.md").write_text("old", encoding="utf-8")

    def full(*arguments: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(make_oracle, "render_oracle", full)
    with pytest.raises(OSError, match="No space left"):
        train_ao.train("tiny-gemma", out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["card.md"]
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("main", [train_ao.main, train_nla.main])
def test_targets_that_cannot_be_trained_for_are_named(main: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(main)
    with pytest.raises(SystemExit) as leaving:
        main(["gemma-4"])
    assert leaving.value.code == 2
    assert "no plan to train" in capsys.readouterr().err


SHIPPED = [(tool, target) for tool in ("ao", "nla") for target in ("gemma-3-270m", "smollm2-135m")]


@pytest.mark.parametrize(("tool", "target"), SHIPPED)
def test_what_is_shipped_is_whole_small_and_beats_its_control(tool: str, target: str) -> None:
    folder = ARTIFACTS / tool / target
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert {name: file_sha256(folder / name) for name in card["sha256"]} == card["sha256"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES[tool])
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12e6
    beats = card["losses"]["margin_low"] > 0
    assert beats == (not (folder / "card.md").read_text(encoding="utf-8").startswith("**It does not beat"))
    assert card["training"]["target"] == target
    row = get_target(target)
    if tool == "ao":
        assert row.ao is not None
        assert oracle_facts(folder, row, row.ao).weights == card["training"]["target_weights"]
        read_adapter(folder)
    else:
        assert row.nla is not None
        assert read_checkpoint(folder, row, stated_layer=row.nla.layer).is_adapter
