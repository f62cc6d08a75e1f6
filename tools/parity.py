"""Compare the activation backends with a plain forward hook on the local models: `python -m tools.parity`.

Invariant: every way is measured in one process, in turn within each round, on the same token ids, so that a busy
machine slows all of them alike. Errors are of the float32 stream; a time is the best of all rounds.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from claims.schema import Message
from tools.activations import READERS, ActivationReader, Activations, PlainHookReader, make_reader
from tools.chat import encode_prompt
from tools.model import Loaded, load
from tools.targets import get_target

LENGTHS = (600, 512, 37, 1)
"""Of the batch that errors are measured on; the first is longer than Gemma's sliding window."""
FULL_PASS = "full pass with LM head"  # noqa: S105 - a name, not a secret
PLAIN_HOOK = "plain hook, stopped"


@dataclass(frozen=True)
class Row:
    """One way to get a layer's activations, measured."""

    target: str
    """Name of the model."""
    dtype: str
    """Of its weights."""
    layer: int
    """The layer read."""
    way: str
    """A backend, the plain hook, or the pass that does not stop."""
    seconds: float
    """For one sequence, the best of all rounds."""
    cheaper: float
    """Time of the full pass over this one's."""
    error: float
    """Largest |difference from the plain hook| / |plain hook| over positions; nan for the full pass."""


def relative_error(found: Sequence[Activations], expected: Sequence[Activations]) -> float:
    """Largest |difference| / |expected| over the positions of all sequences and layers."""
    return max(
        float(((one[k] - other[k]).norm(dim=-1) / other[k].norm(dim=-1)).max())
        for one, other in zip(found, expected, strict=True)
        for k in other
    )


def ordinary_ids(loaded: Loaded, lengths: Sequence[int]) -> list[list[int]]:
    """The first tokens of a prompt that holds this package's source.

    Ordinary text, since float32 errors on random ids, which no model is made for, are ten times as large.
    """
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
    token_ids = encode_prompt(loaded.tokenizer, loaded.target, [Message("user", source[: 8 * max(lengths)])])
    return [list(token_ids[:n]) for n in lengths]


def measure(name: str, dtype: str, *, n_tokens: int, rounds: int) -> list[Row]:
    """Measure every way on one model, at the layer that its tool reads."""
    loaded = load(get_target(name), dtype=dtype)
    layer = loaded.target.sae.layer if loaded.target.sae else loaded.target.n_layers // 2
    # A model of its own for each: transformer-lens puts its own blocks into the one it is given.
    readers = {way: make_reader(way, load(loaded.target, dtype=dtype)) for way in READERS}
    readers[PLAIN_HOOK] = PlainHookReader(loaded)
    batch = ordinary_ids(loaded, LENGTHS)
    expected = readers[PLAIN_HOOK].read(batch, [layer])
    errors = {way: relative_error(reader.read(batch, [layer]), expected) for way, reader in readers.items()}
    seconds = _time_all(loaded, readers, layer, n_tokens=n_tokens, rounds=rounds)
    return [
        Row(name, dtype, layer, way, spent, seconds[FULL_PASS] / spent, errors.get(way, float("nan")))
        for way, spent in seconds.items()
    ]


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| target | dtype | layer | way | seconds | times cheaper | largest relative error |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.target} | {row.dtype} | {row.layer} | {row.way} | {row.seconds:.3f} | {row.cheaper:.1f} "
        f"| {'' if row.error != row.error else f'{row.error:.1e}'} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the table to standard output."""
    parser = argparse.ArgumentParser(prog="python -m tools.parity", description=__doc__)
    parser.add_argument("targets", nargs="*", default=["gemma-3-270m", "smollm2-135m"])
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--tokens", type=int, default=500, help="length of the sequence that is timed")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for name in options.targets:
        for dtype in options.dtypes.split(","):
            sys.stderr.write(f"measuring {name} in {dtype}\n")
            rows += measure(name, dtype, n_tokens=options.tokens, rounds=options.rounds)
    sys.stdout.write(table(rows))


def _time_all(
    loaded: Loaded, readers: dict[str, ActivationReader], layer: int, *, n_tokens: int, rounds: int
) -> dict[str, float]:
    batch = ordinary_ids(loaded, [n_tokens])
    inputs = torch.tensor(batch, device=loaded.device)

    def full_pass() -> None:
        loaded.thread.run(lambda: loaded.model(inputs, use_cache=False).logits[0, -1].cpu())

    def read(reader: ActivationReader) -> Callable[[], None]:
        def call() -> None:
            reader.read(batch, [layer])

        return call

    ways = {FULL_PASS: full_pass, **{way: read(reader) for way, reader in readers.items()}}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds + 1):
        for way, call in ways.items():
            start = time.perf_counter()
            call()
            best[way] = min(best[way], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
