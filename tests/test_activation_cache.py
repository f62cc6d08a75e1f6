"""Activations on disk: equal to the last bit, keyed by all that they depend on, bounded, and never an error."""

import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tools.activation_cache import CachedReader, DiskCache
from tools.activations import ActivationReader, Activations, NNsightReader, PlainHookReader
from tools.model import Loaded, load
from tools.targets import get_target

IDS = ((2, 20, 30, 40), (2, 21, 31), (2, 22))


class Counting(PlainHookReader):
    """Notes what it was asked to compute."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.asked: list[tuple[list[tuple[int, ...]], list[int], list[str] | None]] = []

    def read(
        self, batch: Sequence[Sequence[int]], layers: Collection[int], *, names: Sequence[str] | None = None
    ) -> list[Activations]:
        self.asked.append((list(map(tuple, batch)), sorted(layers), None if names is None else list(names)))
        return super().read(batch, layers, names=names)


def same(one: list[Activations], other: list[Activations]) -> bool:
    return all(
        a.keys() == b.keys() and all(torch.equal(a[k], b[k]) and a[k].dtype == torch.float32 for k in a)
        for a, b in zip(one, other, strict=True)
    )


@pytest.fixture(scope="module")
def tiny_bf16() -> Loaded:
    return load(get_target("tiny-gemma"), dtype="bfloat16", device="cpu")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_read_back_is_what_was_computed_and_is_computed_once(
    tmp_path: Path, tiny_gemma: Loaded, tiny_bf16: Loaded, dtype: str
) -> None:
    counting = Counting(tiny_gemma if dtype == "float32" else tiny_bf16)
    expected = counting.read(IDS, [0, 2])
    for _ in range(2):
        # A new object is another server.
        assert same(CachedReader(counting, DiskCache(tmp_path)).read(IDS, [0, 2]), expected)
    assert len(counting.asked) == 2
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    width = 2 if dtype == "bfloat16" else 4
    assert len(sizes) == 6
    assert sum(sizes) < 2 * 9 * 64 * width + 6 * 250


def test_only_what_is_missing_is_computed_in_one_pass(tmp_path: Path, tiny_gemma: Loaded) -> None:
    counting = Counting(tiny_gemma)
    cached = CachedReader(counting, DiskCache(tmp_path))
    cached.read(IDS[:1], [1])
    for found, plain in zip(
        cached.read(IDS, [1], names=["a", "b", "c"]), PlainHookReader(tiny_gemma).read(IDS, [1]), strict=True
    ):
        torch.testing.assert_close(found, plain)
    cached.read(IDS[:1], [0, 1])
    cached.read(IDS[:1], [0])
    assert counting.asked == [
        ([IDS[0]], [1], None),
        ([IDS[1], IDS[2]], [1], ["b", "c"]),
        ([IDS[0]], [0, 1], None),
    ]


def test_a_key_changes_with_everything_that_activations_depend_on(
    tiny_gemma: Loaded, tiny_bf16: Loaded, tiny_qwen: Loaded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def key(loaded: Loaded, reader: type[ActivationReader] = PlainHookReader, ids: Sequence[int] = IDS[0]) -> str:
        return CachedReader(reader(loaded), DiskCache(tmp_path)).key(ids, 1)

    keys = [
        key(tiny_gemma),
        key(tiny_bf16),
        key(tiny_qwen),
        key(tiny_gemma, NNsightReader),
        key(tiny_gemma, ids=IDS[1]),
        key(replace(tiny_gemma, weights="another revision")),
        key(replace(tiny_gemma, device=torch.device("cuda"))),
        CachedReader(PlainHookReader(tiny_gemma), DiskCache(tmp_path)).key(IDS[0], 2),
    ]
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0")
    keys.append(key(tiny_gemma))
    assert len(set(keys)) == len(keys)
    monkeypatch.undo()
    assert key(tiny_gemma) == keys[0]


def flip(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGE = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:-7],
    "a header of nonsense": lambda content: b"\xff" * len(content),
    "a flipped bit": lambda content: flip(content, len(content) - 5),
    "another file": lambda content: b"not a tensor at all, but longer than a header",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_a_miss_and_is_replaced(
    tmp_path: Path, tiny_gemma: Loaded, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    counting = Counting(tiny_gemma)
    cached = CachedReader(counting, DiskCache(tmp_path))
    expected = cached.read(IDS[:1], [1])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[damage](whole))
    with caplog.at_level(logging.WARNING):
        assert same(cached.read(IDS[:1], [1]), expected)
    assert "is damaged" in caplog.text
    assert path.read_bytes() == whole
    assert len(counting.asked) == 2


def test_the_longest_unused_go_when_there_are_too_many_bytes(tmp_path: Path) -> None:
    values = {name: torch.full((100, 10), float(i)) for i, name in enumerate("abcd")}
    cache = DiskCache(tmp_path, max_bytes=14_000)  # three of 4,100
    for age, name in enumerate("abc"):
        cache.put(name, values[name])
        os.utime(tmp_path / f"{name}.safetensors", (1000 + age, 1000 + age))
    assert torch.equal(cache.get("a"), values["a"])  # and is the last used now
    cache.put("d", values["d"])
    assert {name for name in values if cache.get(name) is not None} == {"a", "c", "d"}
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 14_000
    cache.put("huge", torch.zeros(4000))
    assert cache.get("huge") is None
    assert cache.get("d") is not None


def test_a_disk_that_cannot_be_written_costs_time_only(
    tmp_path: Path, tiny_gemma: Loaded, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    counting = Counting(tiny_gemma)
    cached = CachedReader(counting, DiskCache(tmp_path / "file"))
    assert same(cached.read(IDS, [1]), cached.read(IDS, [1]))
    assert len(counting.asked) == 2
    assert "cannot be kept" in caplog.text


def test_the_default_place_is_the_users_cache(session_cache: Path, tiny_gemma: Loaded) -> None:
    cached = CachedReader(PlainHookReader(tiny_gemma))
    cached.read([(2, 99, 98)], [1])
    assert (session_cache / "activations" / f"{cached.key((2, 99, 98), 1)}.safetensors").is_file()
