"""The folder of a trained adapter: written whole or left as it was.

Invariant: every file that is shipped is named with its sha256 in the card, except the card itself.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from tools.training.lora.examples import Example
from tools.training.lora.plan import LoraPlan

CENTRE = "centre.safetensors"
"""What is subtracted from an activation before it is given to the adapter's model."""


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write into an empty folder, then move what it wrote into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        draft = Path(name)
        fill(draft)
        for path in sorted(draft.iterdir()):
            path.replace(folder / path.name)


def write_json(path: Path, fields: Mapping[str, object]) -> None:
    """Write an object, as people can read it."""
    path.write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_centres(folder: Path, centres: Mapping[int, Tensor]) -> None:
    """Write the mean activation of each layer."""
    tensors = {f"layer_{layer}": centre.float().contiguous() for layer, centre in centres.items()}
    save_file(tensors, folder / CENTRE)


def checkpoint(folder: Path, plan: LoraPlan, weights: str, examples: Sequence[Example]) -> Path:
    """Where training keeps its state: another plan, target or set of examples has another file."""
    key = hashlib.sha256(f"{plan.rank} {plan.alpha} {plan.schedule} {weights}".encode())
    for example in examples:
        key.update(repr((example.prompt_ids, example.answer_ids, float(example.vectors.sum()))).encode())
    return folder / f"fit-{key.hexdigest()[:16]}.pt"


def thinned(losses: Sequence[float], n: int = 40) -> tuple[float, ...]:
    """At most `n` means of neighbouring losses."""
    size = max(1, -(-len(losses) // n))
    return tuple(
        round(sum(losses[at : at + size]) / len(losses[at : at + size]), 4) for at in range(0, len(losses), size)
    )
