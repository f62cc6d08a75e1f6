"""What the features of a sparse autoencoder are called: labels shipped with it, or exported by Neuronpedia.

Invariant: a label belongs to the feature whose index it carries as an integer; a feature may have several labels or
none, and every label says where it came from.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from claims.schema import Row, UserError, read_rows
from tools.build_once import build_once
from tools.weights import cache_root

NO_LABEL = "(no label)"
EXPORTS = "https://neuronpedia-datasets.s3.us-east-1.amazonaws.com/v1"
"""Where Neuronpedia publishes the explanations of its sources, in batches."""


@dataclass(frozen=True)
class Label:
    """One description of one feature."""

    text: str
    """The description."""
    source: str
    """Who or what wrote it: `auto-token` for ours, the export's `typeName` for Neuronpedia's."""


@dataclass(frozen=True)
class Labels:
    """The labels of one sparse autoencoder."""

    by_feature: Mapping[int, tuple[Label, ...]]
    """Feature index to its labels, never an empty tuple."""
    sha256: str
    """Of the files that they came from."""

    def text(self, feature: int) -> str:
        """The labels of `feature` on one line, or `NO_LABEL`."""
        return " / ".join(label.text for label in self.by_feature.get(feature, ())) or NO_LABEL

    @property
    def sources(self) -> tuple[str, ...]:
        """Every source that wrote a label, sorted."""
        return tuple(sorted({label.source for labels in self.by_feature.values() for label in labels}))


def read_shipped(path: Path) -> Labels:
    """Labels of a local folder: JSON Lines with `index`, `label` and `source`.

    Raises:
        UserError: The file is absent or broken.
    """
    rows = ((row.count("index"), Label(_one_line(row.text("label")), row.text("source"))) for row in read_rows(path))
    return _gather(rows, hashlib.sha256(path.read_bytes()).hexdigest())


def _gather(rows: Iterator[tuple[int, Label]], sha256: str) -> Labels:
    by_feature: dict[int, list[Label]] = {}
    for index, label in rows:
        if label not in by_feature.setdefault(index, []):
            by_feature[index].append(label)
    return Labels({index: tuple(labels) for index, labels in by_feature.items()}, sha256)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def read_exported(source: str, *, base_url: str = EXPORTS) -> Labels:
    """Neuronpedia's labels of `source`, downloaded once into the cache.

    Args:
        source: Neuronpedia's `model/source`, such as `qwen3-8b/18-resid-batchtopk-65k__l0-80`.
        base_url: Where the exports are.

    Raises:
        UserError: They are not in the cache and cannot be downloaded, or a batch is broken.
    """
    folder = build_once(
        cache_root() / "neuronpedia" / source / "explanations",
        lambda draft: _download(draft, f"{base_url}/{source}/explanations"),
    )
    # By number: batch-10 comes after batch-9, whatever the names' order.
    paths = sorted(folder.glob("batch-*.jsonl.gz"), key=lambda path: int(path.name.split("-")[1].split(".")[0]))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
    return _gather((row for path in paths for row in _read_batch(path)), digest)


def _read_batch(path: Path) -> Iterator[tuple[int, Label]]:
    try:
        lines = gzip.decompress(path.read_bytes()).split(b"\n")
        rows = [json.loads(line) for line in lines if line.strip()]
    except (OSError, EOFError, ValueError) as error:
        raise UserError(
            f"{path} is not gzipped JSON Lines ({error}). Expected a batch of Neuronpedia's export. "
            f"Remove the folder {path.parent} to download it again."
        ) from None
    for number, values in enumerate(rows, start=1):
        row = Row(values, f"{path.name} line {number}")
        description = _one_line(row.any_text("description"))
        if description:
            yield _index(row), Label(description, row.optional_text("typeName") or "unknown")


def _index(row: Row) -> int:
    """The export writes it as a string."""
    text = row.text("index")
    if not text.isdecimal():
        raise UserError(f"{row.place}: 'index' must be the number of a feature, but it is {text!r}.")
    return int(text)


def _download(folder: Path, url: str) -> dict[str, str]:
    try:
        with httpx.Client(timeout=60, follow_redirects=True) as client:
            n_batches = _download_batches(client, folder, url)
    except httpx.HTTPError as error:
        raise UserError(
            f"The labels at {url} are not in the cache and could not be downloaded ({error}). "
            f"Connect to the internet once, or copy {cache_root() / 'neuronpedia'} from a machine that has them."
        ) from None
    if not n_batches:
        raise UserError(
            f"{url} has no batch-0.jsonl.gz. Expected the explanations of a Neuronpedia source. "
            "Check `labels` of the target's row in tools/targets.py."
        )
    return {"url": url}


def _download_batches(client: httpx.Client, folder: Path, url: str) -> int:
    n_batches = 0
    while True:
        response = client.get(f"{url}/batch-{n_batches}.jsonl.gz")
        # The bucket answers 403, not 404, for what it does not have.
        if response.status_code in (403, 404):
            return n_batches
        response.raise_for_status()
        (folder / f"batch-{n_batches}.jsonl.gz").write_bytes(response.content)
        n_batches += 1
