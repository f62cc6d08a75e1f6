"""Samples on disk: paid for once, whatever is killed in between.

Invariant: a file's name covers everything its samples depend on (weights, prompt tokens, settings, seed), so nothing
stale is ever reused; a file is replaced as a whole, so nothing half-written is ever read.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from claims.atomic import write_atomically
from tools.sampling import Sample
from tools.targets import Sampling

FORMAT = 1
"""Raise it when the sampler draws otherwise than before."""


def sample_key(weights: str, dtype: str, prompt_ids: Sequence[int], sampling: Sampling, seed: int) -> str:
    """The name under which the samples of one prompt are kept: a sha256 in hex.

    The prompt counts as its token ids, so that a changed chat template or tokenizer is another prompt.
    """
    parts = [FORMAT, weights, dtype, list(prompt_ids), sampling.as_row(), seed]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class SampleStore:
    """A folder with one JSON file a prompt."""

    def __init__(self, folder: Path) -> None:
        """Use (and make) `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def read(self, key: str) -> tuple[Sample, ...]:
        """The samples kept under `key`, by index from 0; none when there is no file."""
        try:
            rows = json.loads(self._path(key).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ()
        return tuple(Sample(row["text"], tuple(row["token_ids"]), row["finished"]) for row in rows)

    def extend(self, key: str, first: int, samples: Iterable[Sample]) -> None:
        """Add samples whose indices start at `first`; what another process added meanwhile is kept."""
        held = self.read(key)
        if len(held) < first:
            raise ValueError(f"{key}: samples from {first} cannot follow {len(held)} samples")
        joined = (*held, *tuple(samples)[len(held) - first :])
        write_atomically(self._path(key), json.dumps([asdict(sample) for sample in joined], ensure_ascii=False))
