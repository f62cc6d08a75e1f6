"""From passages to the verbaliser's examples, and the sidecar that says how it was trained.

Invariant: the prompt is the sidecar's, built by `tools.nla_prompt`, as it is when the tool runs.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from torch import Tensor

from claims.schema import Message, UserError
from tools.activations import ActivationReader
from tools.chat import encode_prompt
from tools.model import Loaded
from tools.nla_prompt import verbaliser_prompt
from tools.nla_sidecar import SIDECAR, Sidecar, read_sidecar
from tools.training.corpus import Progress
from tools.training.lora.describing import Describer, Place, draw_place
from tools.training.lora.examples import Example, encode_answer
from tools.training.lora.passages import Passage
from tools.training.lora.rows import Stretch, centres, read_stretches
from tools.training.lora.seeds import generator
from tools.training.lora.words import Reader

MARKERS = ("㈜", "¶", "§", "†", "^")
"""The first of these that is one token of the target's becomes the marker."""
TEMPLATE = "Activation: <a>{injection_char}</a>\nDescribe the text it is from."
"""What the verbaliser is told."""
MAX_TOKENS = 64
"""Longest description."""


@dataclass(frozen=True)
class VerbaliserSet:
    """Everything a verbaliser is trained and judged on."""

    sidecar: Sidecar
    """Its facts."""
    places: tuple[Place, ...]
    """Of the training examples, then of those held out."""
    train: tuple[Example, ...]
    """In the order they were made."""
    held_out: tuple[Example, ...]
    """About held-out passages."""
    centre: Tensor
    """The mean activation, from training passages."""

    @property
    def held_out_places(self) -> tuple[Place, ...]:
        """Of the held-out examples."""
        return self.places[len(self.train) :]


def build_verbaliser_set(
    loaded: Loaded,
    reader: ActivationReader,
    passages: Sequence[Passage],
    layer: int,
    n: tuple[int, int],
    folder: Path,
    *,
    seed: int,
    progress: Progress,
) -> VerbaliserSet:
    """Draw places, read the target's activations there, and write descriptions; `n` for training and held out."""
    describer = Describer(Reader(loaded.tokenizer))
    pools = [[passage for passage in passages if passage.held_out == kept] for kept in (False, True)]
    places = [
        draw_place(pool, rng=generator(f"place {split} {number} {seed}"))
        for split, (pool, amount) in enumerate(zip(pools, n, strict=True))
        for number in range(amount)
    ]
    rows, stretches = read_places(reader, places, layer, folder, progress=progress)
    centre = centres(rows[: n[0]], stretches[: n[0]])[layer]
    scale = float(torch.cat([row.float() for row in rows[: n[0]]]).norm(dim=-1).median())
    sidecar = make_sidecar(loaded, layer, scale)
    prompt_ids, position = verbaliser_prompt(loaded.tokenizer, sidecar, loaded.target)
    examples = [
        Example(
            prompt_ids=prompt_ids,
            positions=(position,),
            vectors=row.float() - centre,
            answer_ids=encode_answer(loaded.tokenizer, prompt_ids, describer.describe(place)),
            layer=layer,
        )
        for place, row in zip(places, rows, strict=True)
    ]
    return VerbaliserSet(sidecar, tuple(places), tuple(examples[: n[0]]), tuple(examples[n[0] :]), centre)


def read_places(
    reader: ActivationReader, places: Sequence[Place], layer: int, folder: Path, *, progress: Progress
) -> tuple[list[Tensor], list[Stretch]]:
    """The activations at `places`, and where they were read."""
    sequences = list(dict.fromkeys(place.passage.token_ids for place in places))
    index = {token_ids: number for number, token_ids in enumerate(sequences)}
    stretches = [Stretch(index[place.passage.token_ids], layer, place.position, place.position + 1) for place in places]
    return read_stretches(reader, sequences, stretches, folder, progress=progress), stretches


def make_sidecar(loaded: Loaded, layer: int, scale: float) -> Sidecar:
    """The facts of a verbaliser for this target, as its tool reads them.

    Raises:
        UserError: No marker is a single token of the target's.
    """
    with tempfile.TemporaryDirectory() as name:
        write_sidecar(Path(name), sidecar_fields(loaded, layer, scale))
        return read_sidecar(Path(name))


def sidecar_fields(loaded: Loaded, layer: int, scale: float) -> dict[str, object]:
    """What `nla_meta.yaml` holds, in the layout of the released ones."""
    marker, marker_id = _marker(loaded)
    content = TEMPLATE.format(injection_char=marker)
    token_ids = encode_prompt(loaded.tokenizer, loaded.target, [Message("user", content)])
    place = token_ids.index(marker_id)
    return {
        "kind": "nla_model",
        "d_model": loaded.d_model,
        "extraction": {"layer_index": layer, "injection_scale": round(scale, 2)},
        "tokens": {
            "injection_char": marker,
            "injection_token_id": marker_id,
            "injection_left_neighbor_id": token_ids[place - 1],
            "injection_right_neighbor_id": token_ids[place + 1],
        },
        "prompt_templates": {"av": TEMPLATE},
        "base": {"target": loaded.target.name, "weights": loaded.weights},
        "decoding": {"temperature": 0.0, "top_p": 1.0, "max_tokens": MAX_TOKENS},
    }


def _marker(loaded: Loaded) -> tuple[str, int]:
    for marker in MARKERS:
        token_ids = loaded.tokenizer.encode(marker, add_special_tokens=False)
        if len(token_ids) == 1:
            return marker, int(token_ids[0])
    raise UserError(
        f"None of {', '.join(MARKERS)} is one token of {loaded.target.name}. Expected one that can mark where an "
        "activation goes. Add a character to MARKERS in tools/training/lora/verbaliser.py."
    )


def write_sidecar(folder: Path, fields: dict[str, object]) -> None:
    """Write `nla_meta.yaml`."""
    (folder / SIDECAR).write_text(yaml.safe_dump(fields, allow_unicode=True, sort_keys=False), encoding="utf-8")
