"""Autoencoders' folders for tests: sidecars and whole checkpoints in the released layout, adapters as trained here."""

import shutil
from pathlib import Path

import torch
import yaml
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from tools import nla
from tools.model import Loaded, load
from tools.nla import NLATool
from tools.nla_checkpoint import read_checkpoint
from tools.targets import get_target
from tools.weights import prepare

TEMPLATE = "An activation of another model:\n\n<concept>{injection_char}</concept>\n\nExplain it."


def sidecar_row(
    *, d_model: int = 64, layer: int = 2, marker: str, marker_id: int, neighbours: tuple[int, int], **more: object
) -> dict[str, object]:
    """Keys and nesting as the authors' checkpoints have them, with what they hold beside what we read."""
    return {
        "kind": "nla_model",
        "d_model": d_model,
        "extraction": {"layer_index": layer, "injection_scale": 80.0, "mse_scale": 8.0},
        "tokens": {
            "injection_char": marker,
            "injection_token_id": marker_id,
            "injection_left_neighbor_id": neighbours[0],
            "injection_right_neighbor_id": neighbours[1],
        },
        "prompt_templates": {"av": TEMPLATE, "ar": "Summary: {explanation}"},
        **more,
    }


def write_sidecar(folder: Path, row: dict[str, object]) -> Path:
    """`nla_meta.yaml` with non-ASCII characters as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nla_meta.yaml").write_text(yaml.safe_dump(row, allow_unicode=True), encoding="utf-8")
    return folder


def fresh(name: str) -> Loaded:
    return load(get_target(name), dtype="float32", device="cpu")


def copied(tmp_path: Path, name: str) -> Path:
    """The random verbaliser of a target, in a folder of its own."""
    return Path(shutil.copytree(nla.load(get_target(name))._checkpoint.folder, tmp_path / f"nla-{name}"))


def change(folder: Path, path: str, value: object) -> Path:
    """Another value at a dotted path of a folder's sidecar."""
    row = yaml.safe_load((folder / "nla_meta.yaml").read_text(encoding="utf-8"))
    *above, last = path.split(".")
    place = row
    for key in above:
        place = place[key]
    place[last] = value
    return write_sidecar(folder, row)


def tool_of(folder: Path, name: str, layer: int | None = 2) -> NLATool:
    target = get_target(name)
    return NLATool(target, read_checkpoint(folder, target, stated_layer=layer), fidelity="demo")


def full_checkpoint(folder: Path, name: str, **facts: object) -> Path:
    """A whole language model beside its sidecar, as released: here another random model of the target's kind."""
    target = get_target(name)
    shutil.copytree(prepare(target), folder)
    (folder / "prepared.json").unlink()
    tensors = load_file(folder / "model.safetensors")
    rng = torch.Generator().manual_seed(3)
    moved = {key: value + 0.02 * torch.randn(value.shape, generator=rng).to(value) for key, value in tensors.items()}
    save_file(moved, folder / "model.safetensors", metadata={"format": "pt"})
    known = AutoTokenizer.from_pretrained(folder).get_vocab()
    marker = "<image>" if "<image>" in known else "<0>"
    row = sidecar_row(marker=marker, marker_id=known[marker], neighbours=(known[">"], known["<"]), role="av")
    row["extraction"] |= facts
    return write_sidecar(folder, row)
