"""Samples on disk: nothing stale, nothing paid for twice."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from claims.build import sampler
from claims.build.sampler import StoredSampler
from claims.build.store import SampleStore, sample_key
from claims.schema import Message
from tests.known_rates import SETTINGS
from tools.sampling import Request, Sample


def say(text: str) -> tuple[Message, ...]:
    return (Message("user", text),)


class FakeTarget:
    """What `StoredSampler` needs of a loaded target."""

    weights = "w"
    dtype = "bfloat16"


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[StoredSampler, list[tuple[str, int]]]:
    """A stored sampler over a fake target, and every (prompt, index) that was drawn."""
    paid: list[tuple[str, int]] = []

    def fake_sample(loaded: object, requests: Sequence[Request], **options: object) -> None:
        for place, request in enumerate(requests):
            text = request.messages[-1].content
            if text == "killer":
                raise KeyboardInterrupt
            indices = range(request.first, request.first + request.n)
            paid.extend((text, index) for index in indices)
            options["progress"](place, [Sample(f"{text} {i} seed {request.seed}", (i,), True) for i in indices])

    monkeypatch.setattr(sampler, "sample", fake_sample)
    monkeypatch.setattr(StoredSampler, "prompt_ids", lambda self, prompt: tuple(prompt[-1].content.encode()))
    return StoredSampler(FakeTarget(), SETTINGS, tmp_path / "samples"), paid  # type: ignore[arg-type]


def test_nothing_is_paid_for_twice(counting: tuple[StoredSampler, list[tuple[str, int]]]) -> None:
    stored, paid = counting
    ten = stored.draw([say("a"), say("b"), say("a")], 10, 0)
    thirty = stored.draw([say("a")], 30, 0)
    again = stored.draw([say("a"), say("b")], 10, 0)
    assert sorted(paid) == [("a", i) for i in range(30)] + [("b", i) for i in range(10)]
    assert thirty[say("a")][:10] == ten[say("a")]
    assert again == ten


def test_a_killed_run_keeps_what_it_paid_for(counting: tuple[StoredSampler, list[tuple[str, int]]]) -> None:
    stored, paid = counting
    with pytest.raises(KeyboardInterrupt):
        stored.draw([say("a"), say("b"), say("killer")], 10, 0)
    fresh = StoredSampler(FakeTarget(), SETTINGS, stored.store.folder)  # type: ignore[arg-type]
    fresh.draw([say("b"), say("a")], 10, 0)
    assert Counter(paid) == {(text, i): 1 for text in "ab" for i in range(10)}


def test_another_seed_or_setting_or_weight_is_paid_for_anew(
    counting: tuple[StoredSampler, list[tuple[str, int]]],
) -> None:
    stored, paid = counting
    stored.draw([say("a")], 2, 0)
    other_seed = stored.draw([say("a")], 2, 1)
    assert other_seed[say("a")][0].text == "a 0 seed 1"
    StoredSampler(FakeTarget(), replace(SETTINGS, top_p=0.8), stored.store.folder).draw([say("a")], 2, 0)  # type: ignore[arg-type]
    assert len(paid) == 6
    base = ("w", "bfloat16", (1, 2), SETTINGS, 0)
    others = [("v", *base[1:]), ("w", "float32", *base[2:]), (*base[:2], (1, 3), *base[3:])]
    assert len({sample_key(*base), *(sample_key(*other) for other in others)}) == 4


def test_progress_is_logged_with_the_time_left(
    counting: tuple[StoredSampler, list[tuple[str, int]]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    counting[0].draw([say(str(i)) for i in range(30)], 10, 0)
    lines = [record.message for record in caplog.records]
    assert lines[0].startswith("240 of 300 responses, ")
    assert lines[-1] == "300 of 300 responses, 0 min left"


def test_samples_survive_the_store_as_they_are(tmp_path: Path) -> None:
    store = SampleStore(tmp_path)
    odd = Sample('a\u2028"\\\ufffd', (5, 6), finished=False)
    store.extend("k", 0, [odd])
    store.extend("k", 1, [odd, odd])
    assert store.read("k") == (odd, odd, odd)
    assert [path.name for path in tmp_path.iterdir()] == ["k.json"]
    with pytest.raises(ValueError, match="cannot follow"):
        store.extend("k", 9, [odd])


def test_what_another_process_stored_meanwhile_is_kept(tmp_path: Path) -> None:
    store = SampleStore(tmp_path)
    first, second = Sample("one", (1,), True), Sample("two", (2,), True)
    store.extend("k", 0, [first, second])
    store.extend("k", 0, [first])
    assert store.read("k") == (first, second)
