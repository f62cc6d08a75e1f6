"""The target's activations on a corpus, and which of them an autoencoder is fitted to.

Invariant: the activations are the tool's own (same reader, same layer, same masks). They are kept in shards, so
that a run that was killed goes on where it was.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import BFloat16, Bool, Int
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from tools.activations import ActivationReader
from tools.positions import masked_positions
from tools.training.corpus import Document, Progress

SHARD = 64
"""Documents in one file."""
GROUP = 8
"""Documents of similar length read together."""
_MULTIPLIER, _MODULUS = 1_000_003, 2**61 - 1
REPEATS = 20
"""A beginning that documents share has the same activations in all of them: so many of them are kept."""


@dataclass(frozen=True)
class Harvest:
    """Activations at the tokens that count, document after document."""

    residual: BFloat16[Tensor, "tokens d_model"]
    """The residual stream."""
    document: Int[Tensor, " tokens"]
    """Index of the document of each."""
    position: Int[Tensor, " tokens"]
    """Index in its document."""

    def select(self, chosen: Bool[Tensor, " tokens"]) -> "Harvest":
        """Only the tokens chosen."""
        return Harvest(self.residual[chosen], self.document[chosen], self.position[chosen])


def harvest(
    reader: ActivationReader, documents: Sequence[Document], layer: int, folder: Path, *, progress: Progress
) -> Harvest:
    """Read every document's residual stream after block `layer`.

    Left out are position 0, norm outliers, and all but `REPEATS` copies of a beginning that documents share.

    Args:
        reader: Reads the target.
        documents: The corpus.
        layer: From 0.
        folder: Where shards are kept.
        progress: Told of every shard.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = first_copies(documents)
    shards: list[dict[str, Tensor]] = []
    for start in range(0, len(documents), SHARD):
        batch = documents[start : start + SHARD]
        path = folder / f"layer-{layer}-{_digest(batch)}.safetensors"
        if not path.exists():
            _write_shard(path, _read_shard(reader, batch, start, layer, wanted))
        shards.append(load_file(path))
        progress("documents read", min(start + SHARD, len(documents)), len(documents))
    return Harvest(*(torch.cat([shard[name] for shard in shards]) for name in ("residual", "document", "position")))


def first_copies(documents: Sequence[Document]) -> list[NDArray[np.bool_]]:
    """For each document which positions are among the first `REPEATS` copies of the text up to there."""
    seen: Counter[int] = Counter()
    wanted = []
    for document in documents:
        state = 0
        flags = np.zeros(len(document.token_ids), dtype=bool)
        for position, token_id in enumerate(document.token_ids):
            state = (state * _MULTIPLIER + token_id + 1) % _MODULUS
            seen[state] += 1
            flags[position] = seen[state] <= REPEATS
        wanted.append(flags)
    return wanted


def _digest(documents: Sequence[Document]) -> str:
    return hashlib.sha256(repr([document.token_ids for document in documents]).encode()).hexdigest()[:16]


def _write_shard(path: Path, shard: dict[str, Tensor]) -> None:
    partial = path.with_suffix(".partial")
    save_file(shard, partial)
    partial.replace(path)


def _read_shard(
    reader: ActivationReader,
    documents: Sequence[Document],
    start: int,
    layer: int,
    wanted: Sequence[NDArray[np.bool_]],
) -> dict[str, Tensor]:
    parts: dict[int, tuple[Tensor, Tensor]] = {}
    order = sorted(range(len(documents)), key=lambda index: len(documents[index].token_ids))
    for at in range(0, len(order), GROUP):
        group = order[at : at + GROUP]
        read = reader.read([documents[index].token_ids for index in group], [layer])
        for index, layers in zip(group, read, strict=True):
            parts[index] = _kept(layers[layer], wanted[start + index])
    kept = [parts[index] for index in range(len(documents))]
    return {
        "residual": torch.cat([residual for residual, _ in kept]),
        "document": torch.cat([torch.full_like(at, start + index) for index, (_, at) in enumerate(kept)]),
        "position": torch.cat([at for _, at in kept]),
    }


def _kept(residual: Tensor, wanted: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
    keep = torch.from_numpy(wanted)
    keep[list(masked_positions(residual, has_bos=True))] = False
    at = torch.nonzero(keep).flatten()
    return residual[at].to(torch.bfloat16), at.to(torch.int32)
