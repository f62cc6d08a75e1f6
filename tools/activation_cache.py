"""Activations on disk: what a target computed once is read from a file by every later server of any tool.

Invariant: what comes out is what the reader gave, to the last bit, for the same weights, tokens, layer, dtype, backend,
kind of device and versions of the libraries. A file that is damaged, or cannot be written, is a miss and no error.
"""

import hashlib
import importlib.metadata
import json
import logging
import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from tools.activations import ActivationReader, Activations
from tools.model import Loaded
from tools.weights import cache_root

FORMAT = 1
"""Raised when files are laid out in another way."""
MAX_BYTES = 2 * 2**30
"""Disk for activations: 1,600 transcripts of 1,000 tokens of Gemma-3-270m, 200 of Gemma-3-27B."""
_VERSIONS = ("torch", "transformers")

_log = logging.getLogger(__name__)


class DiskCache:
    """Tensors by key in one folder, of which the longest unused go when there are too many bytes."""

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES) -> None:
        """Touch nothing yet.

        Args:
            folder: Where the files are; made when first written to.
            max_bytes: Of all files together. A single larger tensor is not kept.
        """
        self._folder = folder
        self._max_bytes = max_bytes

    def get(self, key: str) -> Tensor | None:
        """The tensor kept under `key`, if it is there and whole."""
        path = self._path(key)
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        try:
            return _unpack(content)
        except (SafetensorError, ValueError, KeyError) as error:
            _log.warning("%s is damaged (%s); it is computed again", path, error)
            path.unlink(missing_ok=True)
            return None

    def put(self, key: str, value: Tensor) -> None:
        """Keep `value`, and let the longest unused go."""
        content = _pack(value)
        if len(content) > self._max_bytes:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".draft-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(draft).replace(self._path(key))
            finally:
                Path(draft).unlink(missing_ok=True)
            self._shrink()
        except OSError as error:
            _log.warning(
                "activations cannot be kept in %s (%s); they are computed again next time", self._folder, error
            )

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.safetensors"

    def _shrink(self) -> None:
        found = sorted(filter(None, map(_age_and_size, self._folder.glob("*.safetensors"))))
        total = sum(size for _, size, _ in found)
        for _, size, path in found:
            if total <= self._max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size


def _age_and_size(path: Path) -> tuple[int, int, Path] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        # Another server has removed it since it was listed.
        return None
    return status.st_mtime_ns, status.st_size, path


def _pack(value: Tensor) -> bytes:
    whole = value.contiguous()
    packed: bytes = save_tensors({"residual": whole}, {"sha256": _sha256(whole)})
    return packed


def _unpack(content: bytes) -> Tensor:
    value: Tensor = load_tensors(content)["residual"]
    if _metadata(content)["sha256"] != _sha256(value):
        raise ValueError("its checksum is another")
    return value


def _metadata(content: bytes) -> dict[str, str]:
    # A file is eight bytes of the header's length, the header in JSON, then the tensors.
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    found: dict[str, str] = header["__metadata__"]
    return found


def _sha256(value: Tensor) -> str:
    return hashlib.sha256(value.view(torch.uint8).numpy().data).hexdigest()


class CachedReader:
    """An activation reader that looks on disk first."""

    def __init__(self, reader: ActivationReader, cache: DiskCache | None = None) -> None:
        """Stand before `reader`; by default with the cache that all tools share."""
        self.loaded: Loaded = reader.loaded
        self._reader = reader
        self._cache = cache or DiskCache(cache_root() / "activations")

    def read(
        self, batch: Sequence[Sequence[int]], layers: Collection[int], *, names: Sequence[str] | None = None
    ) -> list[Activations]:
        """As `ActivationReader.read`; sequences of which a layer is missing are run together, once."""
        found = [{k: self._cache.get(self.key(ids, k)) for k in layers} for ids in batch]
        missing = [place for place, values in enumerate(found) if any(value is None for value in values.values())]
        if missing:
            fresh = self._reader.read(
                [batch[place] for place in missing],
                layers,
                names=None if names is None else [names[place] for place in missing],
            )
            for place, activations in zip(missing, fresh, strict=True):
                found[place] = dict(activations)
                self._keep(batch[place], activations)
        return [{k: value.float() for k, value in values.items() if value is not None} for values in found]

    def key(self, token_ids: Sequence[int], layer: int) -> str:
        """Everything that the activations after one block depend on."""
        described = {
            "format": FORMAT,
            "weights": self.loaded.weights,
            "target": self.loaded.target.name,
            "token_ids": list(token_ids),
            "layer": layer,
            "dtype": str(self.loaded.dtype),
            "device": self.loaded.device.type,
            "backend": type(self._reader).__name__,
            "versions": {name: importlib.metadata.version(name) for name in _VERSIONS},
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    def _keep(self, token_ids: Sequence[int], activations: Activations) -> None:
        for layer, value in activations.items():
            # Readers widen what the model computed in its own dtype; the narrow form holds the same numbers.
            narrow = value.to(self.loaded.dtype)
            self._cache.put(self.key(token_ids, layer), narrow if torch.equal(narrow.float(), value) else value)
