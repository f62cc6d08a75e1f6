"""The target's activations at the stretches of tokens that examples are about.

Invariant: the activations are the tools' own (same reader, adapters not yet there). They are kept in shards, so that
a run that was killed goes on where it was.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors.torch import load_file, save_file
from torch import Tensor

from tools.activations import ActivationReader
from tools.training.corpus import Progress

SHARD = 64
"""Sequences in one file."""


@dataclass(frozen=True)
class Stretch:
    """Where activations are read."""

    sequence: int
    """Index of the sequence."""
    layer: int
    """Residual stream after this block, from 0."""
    start: int
    """First token."""
    end: int
    """One past the last token."""


def read_stretches(
    reader: ActivationReader,
    sequences: Sequence[tuple[int, ...]],
    stretches: Sequence[Stretch],
    folder: Path,
    *,
    progress: Progress,
) -> list[Float[Tensor, "tokens d_model"]]:
    """The activations of each stretch, bfloat16.

    Args:
        reader: Reads the target.
        sequences: Token ids.
        stretches: What is wanted of them.
        folder: Where shards are kept.
        progress: Told of every shard.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[int, Tensor] = {}
    for first in range(0, len(sequences), SHARD):
        chosen = [i for i, stretch in enumerate(stretches) if first <= stretch.sequence < first + SHARD]
        if chosen:
            shard = _shard(reader, sequences, [stretches[i] for i in chosen], folder)
            found.update(zip(chosen, shard, strict=True))
        progress("sequences read", min(first + SHARD, len(sequences)), len(sequences))
    return [found[i] for i in range(len(stretches))]


def _shard(
    reader: ActivationReader, sequences: Sequence[tuple[int, ...]], stretches: Sequence[Stretch], folder: Path
) -> tuple[Tensor, ...]:
    key = repr([(stretch, sequences[stretch.sequence]) for stretch in stretches]) + reader.loaded.weights
    path = folder / f"rows-{hashlib.sha256(key.encode()).hexdigest()[:16]}.safetensors"
    if not path.exists():
        partial = path.with_suffix(".partial")
        save_file({"rows": torch.cat(_read(reader, sequences, stretches))}, partial)
        partial.replace(path)
    rows: Tensor = load_file(path)["rows"]
    return torch.split(rows, [stretch.end - stretch.start for stretch in stretches])


def _read(reader: ActivationReader, sequences: Sequence[tuple[int, ...]], stretches: Sequence[Stretch]) -> list[Tensor]:
    wanted = sorted({stretch.sequence for stretch in stretches}, key=lambda index: len(sequences[index]))
    layers = {stretch.layer for stretch in stretches}
    rows: dict[int, Tensor] = {}
    for at in range(0, len(wanted), 8):
        group = wanted[at : at + 8]
        read = dict(zip(group, reader.read([sequences[index] for index in group], layers), strict=True))
        for number, stretch in enumerate(stretches):
            if stretch.sequence in read:
                residual = read[stretch.sequence][stretch.layer]
                rows[number] = residual[stretch.start : stretch.end].to(torch.bfloat16).clone()
    return [rows[number] for number in range(len(stretches))]


def centres(rows: Sequence[Tensor], stretches: Sequence[Stretch]) -> dict[int, Float[Tensor, " d_model"]]:
    """The mean activation of each layer, float32: what all texts have in common, which says nothing about any."""
    by_layer: dict[int, list[Tensor]] = {}
    for row, stretch in zip(rows, stretches, strict=True):
        by_layer.setdefault(stretch.layer, []).append(row.float())
    return {layer: torch.cat(parts).mean(dim=0) for layer, parts in sorted(by_layer.items())}
