"""`python -m tools.bench`: many positions and many callers at once, against one at a time; caches; memory.

Invariant: both sides of a row ask for the same answers, each of the same number of tokens (random adapters, no end
text), in one process and by turns, the best of each counting; so what else the machine does weighs little.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tools.ao_prompt import oracle_prompt
from tools.bench_sampling import RESULTS, BenchRow, compare, save
from tools.benching.shapes import random_loaded
from tools.benching.stand_ins import Settings, stand_in, without_stops
from tools.benching.workload import Caller, Workload, resident_mb, transcripts_of
from tools.model import Loaded, load
from tools.nla_prompt import verbaliser_prompt
from tools.nla_sidecar import read_sidecar
from tools.registered import Registered
from tools.steered import AfterBlock, AtEmbedding, Injection, Steered, generate
from tools.targets import get_target

TARGETS = ("smollm2-135m", "gemma-3-270m")
FIRST = 8
"""Positions asked about start here, after the prompt's frame."""
N_CALLERS = 8


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    n_tokens: int
    """Of every transcript."""
    max_tokens: int
    """Of every answer."""
    positions: int
    """In one call."""
    repeats: int
    """Of every comparison; the best counts."""
    soak_s: float
    """Length of the soak."""


FULL = Size(n_tokens=512, max_tokens=32, positions=32, repeats=1, soak_s=120.0)
QUICK = Size(n_tokens=64, max_tokens=4, positions=8, repeats=1, soak_s=1.0)


def bench(loaded: Loaded, size: Size, folder: Path) -> Iterator[BenchRow]:
    """All comparisons on one target.

    Args:
        loaded: The target; its adapters are random.
        size: How much is measured.
        folder: For weights and activations, empty.
    """
    loaded = without_stops(loaded)
    registered = transcripts_of(loaded, n=N_CALLERS, n_tokens=size.n_tokens)
    yield from _caches(loaded, registered, folder)
    for name in ("ao", "nla"):
        tool = stand_in(name, loaded, folder / name, Settings(max_tokens=size.max_tokens))
        work = Workload(tool, name, loaded, registered, disk=folder / f"{name}-disk")
        # Every transcript is read once before anything is timed.
        work.one_by_one([Caller(transcript_id, (FIRST,)) for transcript_id in registered.transcripts])
        yield from _batching(work, name, loaded.target.name, size)
        yield _prefix(name, loaded, folder / name, size)
    yield _soak(work, name, loaded.target.name, size)


def _caches(loaded: Loaded, registered: Registered, folder: Path) -> Iterator[BenchRow]:
    # As wide as the autoencoders that are shipped.
    tool = stand_in("sae", loaded, folder / "sae", Settings(d_sae=4096))
    n_tokens = len(registered.transcripts["t0"].token_ids)
    what = f"{loaded.target.name}, sae: 32 positions of {n_tokens} tokens, {{}}"

    def seconds(work: Workload, transcript_id: str) -> float:
        return work.one_by_one([Caller(transcript_id, tuple(range(FIRST, FIRST + 32)))])

    first = Workload(tool, "sae", loaded, registered, disk=folder / "sae-disk")
    seconds(first, "t1")
    computed = seconds(first, "t0")
    again = min(seconds(first, "t0") for _ in range(20))
    second = Workload(tool, "sae", loaded, registered, disk=folder / "sae-disk")
    seconds(second, "t1")
    from_disk = seconds(second, "t0")
    yield _row(what.format("second call on a transcript, against the first"), again, computed)
    yield _row(what.format("activations from disk, against computed"), from_disk, computed)


def _row(name: str, ours_s: float, other_s: float) -> BenchRow:
    return BenchRow(name, round(ours_s, 5), round(other_s, 5), round(other_s / ours_s, 2))


def _batching(work: Workload, name: str, target: str, size: Size) -> Iterator[BenchRow]:
    positions = tuple(range(FIRST, FIRST + size.positions))
    one_each = [Caller("t0", (position,)) for position in positions]
    at_once = [Caller("t0", positions)] if name == "nla" else one_each
    asked = "positions in one call" if name == "nla" else "questions at once"
    what = f"{target}, {name}, {size.max_tokens} tokens an answer: {{}}"
    yield compare(
        what.format(f"{size.positions} {asked}, against one at a time"),
        lambda: work.together(at_once),
        lambda: work.one_by_one(one_each),
        size.repeats,
    )
    callers = callers_of(max(1, size.positions // N_CALLERS))
    yield compare(
        what.format(f"{N_CALLERS} callers at once, {len(callers[0].positions)} positions each, against in turn"),
        lambda: work.together(callers),
        lambda: work.one_by_one(callers),
        size.repeats,
    )


def callers_of(n_positions: int) -> list[Caller]:
    """As many callers as there are transcripts, each asking about other positions of its own."""
    return [Caller(f"t{i}", tuple(range(FIRST + i, FIRST + i + n_positions))) for i in range(N_CALLERS)]


def _prefix(name: str, loaded: Loaded, folder: Path, size: Size) -> BenchRow:
    """The same answers with the prompt's shared start computed once, against anew in every row."""
    items, injection = _items(name, loaded, folder, size.positions)
    prefix = items[0].positions[0]

    def answer(shared: int) -> None:
        loaded.thread.run(
            lambda: generate(
                loaded.model, loaded.tokenizer, items, injection, max_tokens=size.max_tokens, prefix=shared
            )
        )

    n_prompt = len(items[0].prompt_ids)
    what = f"{loaded.target.name}, {name}: prefix of {prefix} of {n_prompt} tokens computed once, against in each row"
    return compare(what, lambda: answer(prefix), lambda: answer(0), size.repeats)


def _items(name: str, loaded: Loaded, folder: Path, n: int) -> tuple[list[Steered], Injection]:
    vectors = torch.randn(n, 1, loaded.d_model, generator=torch.Generator().manual_seed(0))
    if name == "ao":
        prompt_ids, places = oracle_prompt(loaded.tokenizer, loaded.target, 1, 1, "What is this text about?")
        return [Steered(prompt_ids, places, vector) for vector in vectors], AfterBlock(1)
    prompt_ids, place = verbaliser_prompt(loaded.tokenizer, read_sidecar(folder), loaded.target)
    return [Steered(prompt_ids, (place,), vector) for vector in vectors], AtEmbedding()


def _soak(work: Workload, name: str, target: str, size: Size) -> BenchRow:
    """Memory after calls without end, against after the first third of them."""
    callers = callers_of(2)
    start, calls, early = time.monotonic(), 0, 0.0
    while time.monotonic() - start < size.soak_s:
        work.together(callers[: 1 + calls % N_CALLERS])
        calls += 1
        if not early and time.monotonic() - start > size.soak_s / 3:
            early = resident_mb()
    late = resident_mb()
    early = early or late
    what = f"{target}, {name}: MB (not seconds) after a soak of {size.soak_s:.0f} s, against after its first third"
    return BenchRow(what, round(late, 1), round(early, 1), round(early / late, 3))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparisons, print the rows and keep them in `results/bench.json`."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("--target", action="append", help="may be given several times; default: both local targets")
    parser.add_argument("--quick", action="store_true", help="a tiny random model and short answers: does it run?")
    parser.add_argument("--soak", type=float, help="seconds of the soak")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else FULL
    if options.soak is not None:
        size = Size(size.n_tokens, size.max_tokens, size.positions, size.repeats, options.soak)
    for name in ("tiny",) if options.quick else options.target or TARGETS:
        loaded = random_loaded(name) if options.quick else load(get_target(name), device="cpu")
        with tempfile.TemporaryDirectory(prefix="uplift-bench-") as folder:
            for row in bench(loaded, size, Path(folder)):
                save(options.out, [row])
                sys.stdout.write(f"{row.ours_s:10.4f} {row.other_s:10.4f} {row.ratio:7.2f}x  {row.name}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
