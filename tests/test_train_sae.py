"""Training from end to end on the tiny target, and the two autoencoders that are shipped."""

import json
import warnings
from pathlib import Path

import pytest
import torch

from claims.schema import Message, UserError
from tests.tool_bench import ask, readings_of
from tools import train_sae
from tools.activations import NNsightReader
from tools.chat import encode_prompt
from tools.model import Loaded
from tools.positions import masked_positions
from tools.sae import SAETool
from tools.sae_loader import check_model, file_sha256, load_dictionary
from tools.sae_local import ARTIFACTS, load_local
from tools.server import make_server
from tools.targets import SAESource, get_target
from tools.training import corpus, make
from tools.training.__main__ import main as training_main
from tools.training.measure import Reconstruction, reconstruction
from tools.training.recipe import RECIPES


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        texts = {f"p{number} text": f"Text {number} says this and that. " * 20 for number in range(60)}
        patch.setattr(corpus, "package_texts", lambda: texts)
        return train_sae.train("tiny-gemma", out=tmp_path_factory.mktemp("artifacts") / "mine")


def test_the_folder_is_complete_and_described(trained: Path) -> None:
    assert sorted(path.name for path in trained.iterdir()) == [
        "card.json",
        "card.md",
        "cfg.json",
        "labels.jsonl",
        "sae_weights.safetensors",
    ]
    card = json.loads((trained / "card.json").read_text(encoding="utf-8"))
    assert (card["target"], card["layer"], card["fidelity"]) == ("tiny-gemma", 1, "demo")
    assert card["command"] == "python -m tools.train_sae tiny-gemma"
    assert card["versions"]["torch"] == torch.__version__
    assert set(card["corpus"]) == {"chat", "written", "package"}
    for name in ("cfg.json", "labels.jsonl", "sae_weights.safetensors"):
        assert card["sha256"][name] == file_sha256(trained / name)
    text = (trained / "card.md").read_text(encoding="utf-8")
    for figure in ("explained variance", "cross-entropy recovered", "L0", "dead features", "single-token", "others"):
        assert figure in text
    assert f"| explained variance | {card['held_out']['all']['explained_variance']:.3f} |" in text


def test_it_explains_more_of_held_out_text_than_the_mean_does(trained: Path) -> None:
    card = json.loads((trained / "card.json").read_text(encoding="utf-8"))
    assert 0.2 < card["held_out"]["all"]["explained_variance"] < 1
    assert card["held_out"]["all"]["l0"] <= RECIPES["tiny-gemma"].k
    assert card["loss_curve"][-1] < card["loss_curve"][0]


def test_sae_lens_loads_it(trained: Path) -> None:
    with warnings.catch_warnings():
        # sae-lens 6.54.12 imports a module that transformer-lens has deprecated.
        warnings.filterwarnings("ignore", "The 'utils' module has been deprecated", DeprecationWarning)
        from sae_lens import SAE
    theirs = SAE.load_from_disk(trained, dtype="float32")
    assert theirs.cfg.metadata.hook_name == "blocks.1.hook_resid_post"
    ours = load_local(SAESource("local", "mine", 1, "local"), artifacts=trained.parent).autoencoder
    rows = 5 * torch.randn(20, 64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(ours.encode(rows), theirs.encode(rows), atol=1e-4)


def test_the_tool_serves_it_with_its_labels(trained: Path, tmp_path: Path, tiny_gemma: Loaded) -> None:
    found = load_local(SAESource("local", "mine", 1, "local"), artifacts=trained.parent)
    server = make_server("sae", SAETool(tiny_gemma.target, found, layer=1), readings_of(tmp_path, tiny_gemma))
    text = ask(server, "read_features", transcript_id="first", positions=[8, 9])[1]
    assert "«" in text
    assert json.loads(ask(server, "about")[1])["card"] == str(trained / "card.md")


def test_a_label_is_short_and_says_where_it_is_from(trained: Path) -> None:
    rows = [json.loads(line) for line in (trained / "labels.jsonl").read_text(encoding="utf-8").split("\n") if line]
    assert len(rows) > 60
    assert [row["index"] for row in rows] == sorted({row["index"] for row in rows})
    assert all(len(row["label"]) <= 60 and row["source"] == "auto-token" for row in rows)


def test_the_same_training_gives_the_same_bytes(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPLIFT_CACHE", str(tmp_path / "another-cache"))
    texts = {f"p{number} text": f"Text {number} says this and that. " * 20 for number in range(60)}
    monkeypatch.setattr(corpus, "package_texts", lambda: texts)
    again = train_sae.train("tiny-gemma", out=tmp_path / "again")
    for path in trained.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_run_that_fails_leaves_what_was_there(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cfg.json").write_text("old", encoding="utf-8")

    def full(*arguments: object, **options: object) -> str:
        raise OSError(28, "No space left on device")

    texts = {f"p{number} text": f"Text {number} says this and that. " * 20 for number in range(60)}
    monkeypatch.setattr(corpus, "package_texts", lambda: texts)
    monkeypatch.setattr(make, "render_card", full)
    with pytest.raises(OSError, match="No space left"):
        train_sae.train("tiny-gemma", out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cfg.json"]
    assert (tmp_path / "cfg.json").read_text(encoding="utf-8") == "old"


def test_targets_that_cannot_be_trained_for_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"no training recipe for 'qwen3-8b'.*gemma-3-270m"):
        train_sae.train("qwen3-8b")
    with pytest.raises(SystemExit) as leaving:
        train_sae.main(["gemma-4"])
    assert leaving.value.code == 2
    assert capsys.readouterr().err.startswith("Unknown target 'gemma-4'")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [([], "No tool is named"), (["probe", "x"], "Unknown tool 'probe'"), (["sae", "x"], "Unknown target 'x'")],
)
def test_one_program_trains_for_every_tool(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        training_main(arguments)
    assert leaving.value.code == 2
    assert capsys.readouterr().err.startswith(text)


SNIPPET = (
    Message("user", "My neighbour says that tomatoes grow better beside basil. Is that true, and what should I plant?"),
)
ANSWER = (
    " Many gardeners plant basil beside tomatoes because both like sun and warm soil. The evidence that one helps the"
    " other to grow is thin, but basil may keep some insects away, and it is handy to pick both for the same salad."
)


def shipped(name: str, loaded: Loaded) -> Reconstruction:
    """What the shipped autoencoder makes of a text that is in no corpus, with everything about it checked."""
    target = get_target(name)
    found = load_dictionary(target)
    check_model(found, target, d_model=loaded.d_model)
    folder = ARTIFACTS / name
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert {path: file_sha256(folder / path) for path in card["sha256"]} == card["sha256"]
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12e6
    assert sum(card["labelled"].values()) == len(found.labels.by_feature) > 3000
    answer = loaded.tokenizer.encode(ANSWER, add_special_tokens=False)
    token_ids = (*encode_prompt(loaded.tokenizer, target, SNIPPET), *answer)
    residual = NNsightReader(loaded).read([token_ids], [target.sae.layer])[0][target.sae.layer]
    kept = [index for index in range(len(token_ids)) if index not in masked_positions(residual, has_bos=True)]
    return reconstruction(found.autoencoder, residual[kept])


@pytest.mark.real
def test_the_one_shipped_for_gemma_explains_text_that_it_never_saw(real_gemma: Loaded) -> None:
    figures = shipped("gemma-3-270m", real_gemma)
    assert figures.explained_variance > 0.7
    assert figures.cosine > 0.9
    assert figures.l0 <= 32


@pytest.mark.real
def test_the_one_shipped_for_smollm2_explains_text_that_it_never_saw(real_smollm2: Loaded) -> None:
    figures = shipped("smollm2-135m", real_smollm2)
    assert figures.explained_variance > 0.7
    assert figures.cosine > 0.9
    assert figures.l0 <= 32
