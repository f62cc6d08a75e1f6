"""Released autoencoders and exported labels: small synthetic ones, in exactly the layouts of the real ones."""

import gzip
import json
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from claims.schema import UserError
from tools.sae_labels import Label, read_exported
from tools.sae_loader import Dictionary, check_model, check_row
from tools.targets import SAESource, get_target

# sae-lens 6.54.12 imports a module that transformer-lens has deprecated.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "The 'utils' module has been deprecated", DeprecationWarning)
    from tools.sae_released import load_released

D_MODEL, D_SAE = 6, 20


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def exports(tmp_path: Path) -> Iterator[str]:
    """The address of a server with the folder `exports` behind it."""
    (tmp_path / "exports").mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "exports")))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPLIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def explanation(index: int, description: str, source: str = "oai_token-act-pair") -> dict[str, object]:
    """A row with the fields of Neuronpedia's export."""
    return {
        "id": f"id{index}{description}",
        "modelId": "qwen3-8b",
        "layer": "18-resid-batchtopk-65k__l0-80",
        "index": str(index),
        "authorId": "a",
        "description": description,
        "embedding": [0.25] * 256,
        "typeName": source,
        "explanationModelName": "gpt-4o-mini",
        "umap_x": 0.5,
        "umap_y": 0.5,
        "umap_cluster": 1,
    }


def export(folder: Path, source: str, batches: Sequence[Sequence[Mapping[str, object]]]) -> None:
    place = folder / "exports" / source / "explanations"
    place.mkdir(parents=True)
    for number, rows in enumerate(batches):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (place / f"batch-{number}.jsonl.gz").write_bytes(gzip.compress(text.encode()))


def test_exported_labels_are_joined_on_the_index_as_a_number(tmp_path: Path, exports: str) -> None:
    rows = [explanation(10, "names of  cities\n"), explanation(2, "numbers"), explanation(2, "digits", "np_max-act")]
    export(tmp_path, "m/s", [rows])
    labels = read_exported("m/s", base_url=exports)
    assert labels.by_feature[10] == (Label("names of cities", "oai_token-act-pair"),)
    assert labels.text(2) == "numbers / digits"
    assert labels.text(1) == "(no label)"
    assert labels.sources == ("np_max-act", "oai_token-act-pair")


def test_an_empty_description_is_no_label_and_a_repeated_one_is_one(tmp_path: Path, exports: str) -> None:
    export(tmp_path, "m/s", [[explanation(1, "  "), explanation(3, "x"), explanation(3, "x")]])
    labels = read_exported("m/s", base_url=exports)
    assert (labels.text(1), labels.text(3)) == ("(no label)", "x")


def test_every_batch_is_read_whatever_its_size_and_in_the_order_of_its_number(tmp_path: Path, exports: str) -> None:
    batches = [[explanation(7, f"label {number}")] * (1 + number % 3) for number in range(12)]
    export(tmp_path, "m/s", batches)
    labels = read_exported("m/s", base_url=exports)
    assert [label.text for label in labels.by_feature[7]] == [f"label {number}" for number in range(12)]


def test_labels_are_downloaded_once(tmp_path: Path, exports: str) -> None:
    export(tmp_path, "m/s", [[explanation(1, "one")]])
    first = read_exported("m/s", base_url=exports)
    assert read_exported("m/s", base_url="http://127.0.0.1:9/nothing") == first


def test_labels_that_cannot_be_had_are_named_with_the_remedy(exports: str) -> None:
    with pytest.raises(UserError, match="could not be downloaded.*Connect to the internet once"):
        read_exported("m/s", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(UserError, match=r"has no batch-0.*Check `labels`"):
        read_exported("m/s", base_url=exports)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"no gzip", "is not gzipped JSON Lines"),
        (gzip.compress(b"{"), "is not gzipped JSON Lines"),
        (gzip.compress(b'{"description": "x"}'), "the field 'index' is missing"),
        (gzip.compress(b'{"index": "seven", "description": "x"}'), "'index' must be the number of a feature"),
    ],
)
def test_a_broken_batch_is_named(tmp_path: Path, exports: str, content: bytes, text: str) -> None:
    export(tmp_path, "m/s", [[explanation(1, "one")]])
    (tmp_path / "exports" / "m" / "s" / "explanations" / "batch-0.jsonl.gz").write_bytes(content)
    with pytest.raises(UserError, match=text):
        read_exported("m/s", base_url=exports)


def hub_folder(folder: Path, repository: str, path: str) -> Path:
    """A folder in a hub cache, as a download leaves it."""
    root = folder / "hub" / f"models--{repository.replace('/', '--')}"
    (root / "refs").mkdir(parents=True, exist_ok=True)
    (root / "refs" / "main").write_text("0" * 40, encoding="utf-8")
    place = root / "snapshots" / ("0" * 40) / path
    place.mkdir(parents=True)
    return place


def weights(*names: str) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    w_enc, w_dec, b_enc, b_dec, threshold = names
    return {
        w_enc: torch.randn(D_MODEL, D_SAE, generator=generator),
        w_dec: torch.randn(D_SAE, D_MODEL, generator=generator),
        b_enc: torch.randn(D_SAE, generator=generator),
        b_dec: torch.randn(D_MODEL, generator=generator),
        threshold: torch.rand(D_SAE, generator=generator),
    }


def gemma_scope(tmp_path: Path, source: SAESource) -> dict[str, torch.Tensor]:
    """`params.safetensors` and `config.json` as Gemma Scope 2 has them."""
    place = hub_folder(tmp_path, "google/gemma-scope-2-27b-it", f"resid_post/{source.sae_id}")
    made = weights("w_enc", "w_dec", "b_enc", "b_dec", "threshold")
    save_file(made, place / "params.safetensors")
    config = {
        "architecture": "jump_relu",
        "model_name": "gemma-v3-27b-it",
        "hf_hook_point_in": "model.layers.31.output",
    }
    (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return made


def test_a_sae_lens_release_is_found_by_release_and_id(tmp_path: Path, exports: str) -> None:
    target = get_target("gemma-3-27b-it")
    made = gemma_scope(tmp_path, target.sae)
    export(tmp_path, target.sae.labels, [[explanation(5, "cities")]])
    found = load_released(target.sae, model=target.checkpoint, labels_url=exports)
    check_row(found, target, target.sae)
    assert (found.fidelity, found.labels.text(5)) == ("released", "cities")
    rows = torch.randn(8, D_MODEL, generator=torch.Generator().manual_seed(1)) * 2
    # JumpReLU: what is over its threshold stays as it is. Gemma Scope takes no bias off first.
    before = rows @ made["w_enc"] + made["b_enc"]
    expected = torch.where(before > made["threshold"], before.relu(), 0)
    assert torch.allclose(found.autoencoder.encode(rows), expected, atol=1e-5)
    assert 0 < int((expected > 0).sum()) < expected.numel()


def dictionary_learning(tmp_path: Path, source: SAESource, layer: int = 18) -> dict[str, torch.Tensor]:
    """`ae.pt` and `config.json` as the dictionary_learning library writes a BatchTopK autoencoder."""
    place = hub_folder(tmp_path, source.release, source.sae_id)
    made = weights("encoder.weight", "decoder.weight", "encoder.bias", "b_dec", "threshold")
    stored = {name: tensor.T.contiguous() if "weight" in name else tensor for name, tensor in made.items()}
    stored |= {"threshold": torch.tensor(0.4), "k": torch.tensor(3)}
    torch.save(stored, place / "ae.pt")
    trainer = {
        "trainer_class": "BatchTopKTrainer",
        "dict_class": "BatchTopKSAE",
        "activation_dim": D_MODEL,
        "dict_size": D_SAE,
        "k": 3,
        "layer": layer,
        "lm_name": "Qwen/Qwen3-8B",
    }
    (place / "config.json").write_text(json.dumps({"trainer": trainer, "buffer": {"ctx_len": 512}}), encoding="utf-8")
    return made


def test_a_neuronpedia_autoencoder_in_a_hub_repository_is_registered_and_labelled(tmp_path: Path, exports: str) -> None:
    target = get_target("qwen3-8b")
    made = dictionary_learning(tmp_path, target.sae)
    export(tmp_path, target.sae.labels, [[explanation(5, "cities"), explanation(5, "towns", "np_max-act")]])
    found = load_released(target.sae, model=target.checkpoint, labels_url=exports)
    check_row(found, target, target.sae)
    assert found.labels.text(5) == "cities / towns"
    rows = torch.randn(8, D_MODEL, generator=torch.Generator().manual_seed(1)) * 2
    before = (rows - made["b_dec"]) @ made["encoder.weight"] + made["encoder.bias"]
    expected = torch.where(before > 0.4, before, 0)
    assert torch.allclose(found.autoencoder.encode(rows), expected, atol=1e-5)


def test_two_autoencoders_of_one_hub_repository_are_told_apart(tmp_path: Path, exports: str) -> None:
    source = get_target("qwen3-8b").sae
    other = replace(source, sae_id="saes_Qwen_Qwen3-8B_batch_top_k/resid_post_layer_9/trainer_2", layer=9)
    for one in (source, other):
        dictionary_learning(tmp_path, one, layer=one.layer)
    export(tmp_path, source.labels, [[explanation(1, "x")]])
    hooks = [load_released(one, model="Qwen/Qwen3-8B", labels_url=exports).autoencoder.hook for one in (source, other)]
    assert hooks == ["blocks.18.hook_resid_post", "blocks.9.hook_resid_post"]


def qwen_with(tmp_path: Path, exports: str, layer: int = 18) -> Dictionary:
    target = get_target("qwen3-8b")
    dictionary_learning(tmp_path, target.sae, layer=layer)
    export(tmp_path, target.sae.labels, [[explanation(1, "x")]])
    return load_released(target.sae, model=target.checkpoint, labels_url=exports)


def test_a_released_autoencoder_of_another_layer_model_or_width_is_refused(tmp_path: Path, exports: str) -> None:
    target, other = get_target("qwen3-8b"), get_target("qwen3-32b")
    found = qwen_with(tmp_path, exports, layer=9)
    with pytest.raises(UserError, match=r"reads layer 9\. Expected layer 18"):
        check_row(found, target, target.sae)
    with pytest.raises(UserError, match=r"was trained on Qwen3-8B\. Expected Qwen/Qwen3-32B"):
        check_row(found, other, target.sae)
    with pytest.raises(UserError, match=r"is 6 wide\. Expected 4096"):
        check_model(found, target, d_model=4096)


@pytest.mark.parametrize("name", ["gemma-3-27b-it", "qwen3-8b"])
def test_weights_that_cannot_be_had_are_named_with_the_remedy(name: str) -> None:
    target = get_target(name)
    with pytest.raises(UserError, match=r"is not on this machine.*hf download .*--include"):
        load_released(target.sae, model=target.checkpoint)


def test_an_id_that_its_release_does_not_have_is_refused() -> None:
    source = replace(get_target("gemma-3-27b-it").sae, sae_id="layer_32_width_65k_l0_medium")
    with pytest.raises(UserError, match=r"has no 'layer_32_width_65k_l0_medium'\. It has layer_16"):
        load_released(source, model="google/gemma-3-27b-it")


def test_a_release_that_nobody_knows_is_refused() -> None:
    source = replace(get_target("gemma-3-27b-it").sae, release="gemma-scope-9")
    with pytest.raises(UserError, match="sae-lens has no release 'gemma-scope-9'"):
        load_released(source, model="google/gemma-3-27b-it")
