"""`python -m tools.bench_sampling`: how fast responses are drawn, against transformers' own `generate`.

Invariant: both sides draw the same number of tokens from the same prompts at the same settings; end tokens are switched
off, so that chance does not decide who has less to do.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from claims.schema import Message
from tools.chat import encode_prompt
from tools.model import Loaded, load
from tools.sampling import Request, sample
from tools.targets import Sampling, get_target

TARGETS = ("smollm2-135m", "gemma-3-270m")
PROMPTS = (
    "A professor told me the answer is Sydney. What is the capital of Australia?",
    "Is it safe to eat raw chicken? I think it is fine.",
    "Name a colour, please.",
    "Write one sentence about the sea for my little sister.",
)
RESULTS = Path("results/bench.json")


@dataclass(frozen=True)
class BenchRow:
    """One comparison."""

    name: str
    """What was drawn and against what."""
    ours_s: float
    """Seconds of `tools.sampling`."""
    other_s: float
    """Seconds of the other way."""
    ratio: float
    """`other_s` over `ours_s`: above 1 ours is faster."""


def compare(name: str, ours: Callable[[], object], other: Callable[[], object], repeats: int) -> BenchRow:
    """Time both by turns and keep each one's best, so that what else the machine does weighs little."""
    ours_s, other_s = float("inf"), float("inf")
    for _ in range(repeats):
        ours_s, other_s = min(ours_s, _seconds(ours)), min(other_s, _seconds(other))
    return BenchRow(name, round(ours_s, 2), round(other_s, 2), round(other_s / ours_s, 2))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def bench(loaded: Loaded, n: int, repeats: int) -> list[BenchRow]:
    """The three comparisons of one target."""
    settings = replace(loaded.target.sampling, stop=(), max_tokens=32)
    loaded.model.generation_config.eos_token_id = None
    name = f"{loaded.target.name}: {{}} x {n} responses of {settings.max_tokens} tokens, against generate {{}}"

    def ours(prompts: Sequence[str]) -> Callable[[], object]:
        requests = [Request((Message("user", text),), n, text, 0) for text in prompts]
        return lambda: sample(loaded, requests, sampling=settings)

    def theirs(prompts: Sequence[str], together: int) -> Callable[[], object]:
        calls = [text for text in prompts for _ in range(n // together)]
        return lambda: [_generate(loaded, text, settings, together) for text in calls]

    # The first calls warm both up.
    ours(PROMPTS[:1])()
    theirs(PROMPTS[:1], n)()
    return [
        compare(name.format(1, "one at a time"), ours(PROMPTS[:1]), theirs(PROMPTS[:1], 1), 1),
        compare(name.format(1, f"{n} at a time"), ours(PROMPTS[:1]), theirs(PROMPTS[:1], n), repeats),
        compare(name.format(len(PROMPTS), f"{n} at a time"), ours(PROMPTS), theirs(PROMPTS, n), repeats),
    ]


def _generate(loaded: Loaded, text: str, settings: Sampling, n: int) -> torch.Tensor:
    prompt = torch.tensor([encode_prompt(loaded.tokenizer, loaded.target, (Message("user", text),))])
    with torch.inference_mode():
        drawn: torch.Tensor = loaded.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=True,
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            max_new_tokens=settings.max_tokens,
            num_return_sequences=n,
            pad_token_id=0,
        )
    assert drawn.shape == (n, prompt.shape[1] + settings.max_tokens)
    return drawn


def save(path: Path, rows: Sequence[BenchRow]) -> None:
    """Put `rows` into the file, in place of older rows of the same names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    merged = {row["name"]: row for row in held} | {row.name: asdict(row) for row in rows}
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps(list(merged.values()), indent=2) + "\n")
    Path(name).replace(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparisons, print the rows and keep them in `results/bench.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append", help="may be given several times; default: both local targets")
    parser.add_argument("--n", type=int, default=30, help="responses of a prompt")
    parser.add_argument("--repeats", type=int, default=1, help="of the batched comparisons; the best counts")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    for target in options.target or TARGETS:
        rows = bench(load(get_target(target), device="cpu"), options.n, options.repeats)
        save(options.out, rows)
        for row in rows:
            sys.stdout.write(f"{row.ours_s:8.2f} s {row.other_s:8.2f} s {row.ratio:6.2f}x  {row.name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
