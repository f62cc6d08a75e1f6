"""`python -m tools.device_check`: how fast the tools answer on this machine, with real weights or random ones.

Real weights and tools with `--target`; without them a random model of a real one's dimensions, by default those of
Gemma 3 27B with fewer blocks on a GPU and tiny ones on a CPU. Two files are written: a table to read and the numbers.

Invariant: every time is the server's own for whole calls, the median of several after one that is not counted.
"""

import argparse
import importlib
import json
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch

from claims.schema import UserError
from tools import TOOLS, get_tool
from tools.benching.shapes import SHAPES, random_loaded
from tools.benching.stand_ins import Settings, stand_in, without_stops
from tools.benching.workload import Caller, Workload, resident_mb, transcripts_of
from tools.model import Loaded, load
from tools.server import Tool
from tools.targets import get_target

OUT = Path("results/device_check")
FIRST = 8
"""Positions asked about start here, after the prompt's frame."""
CASES = (("one position", 1, 1), ("32 positions", 1, 32), ("8 callers at once, 4 positions each", 8, 4))
"""What is asked: a name, callers, positions of each."""


@dataclass(frozen=True)
class Row:
    """One kind of call."""

    tool: str
    """Name in `tools.TOOLS`."""
    case: str
    """What was asked."""
    positions: int
    """Read in all."""
    seconds: float
    """Median of the calls, or of the slowest where several callers wait."""
    positions_per_s: float
    """`positions` over `seconds`."""
    memory_mb: float
    """Most that the device held by then, or the process where there is no device."""


@dataclass(frozen=True)
class Checked:
    """A machine and what was measured on it."""

    device: str
    """Its name."""
    model: str
    """Target, or shape and number of blocks."""
    parameters: int
    """Of the model."""
    dtype: str
    """Of its weights."""
    n_tokens: int
    """Of every transcript."""
    max_tokens: int
    """Of every answer, where the tools are random."""
    torch: str
    """Version."""
    rows: tuple[Row, ...]
    """The measurements."""


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    tools: tuple[str, ...]
    """Names in `tools.TOOLS`."""
    n_tokens: int
    """Of every transcript."""
    max_tokens: int
    """Of every answer, where the tools are random."""
    repeats: int
    """Of every call."""
    random_tools: bool
    """Random weights for the tools as well."""


def check(loaded: Loaded, plan: Plan, model: str) -> Checked:
    """Measure every tool on one model.

    Args:
        loaded: The model.
        plan: What is measured.
        model: What to call it.
    """
    registered_for = without_stops(loaded) if plan.random_tools else loaded
    with tempfile.TemporaryDirectory(prefix="uplift-device-") as folder:
        rows = tuple(row for tool in plan.tools for row in _rows(tool, registered_for, plan, Path(folder)))
    return Checked(
        device=_device_name(loaded.device),
        model=model,
        parameters=sum(weight.numel() for weight in loaded.model.parameters()),
        dtype=str(loaded.dtype).removeprefix("torch."),
        n_tokens=plan.n_tokens,
        max_tokens=plan.max_tokens,
        torch=torch.__version__,
        rows=rows,
    )


def _rows(name: str, loaded: Loaded, plan: Plan, folder: Path) -> Iterator[Row]:
    registered = transcripts_of(loaded, n=8, n_tokens=plan.n_tokens)
    work = Workload(_tool(name, loaded, plan, folder / name), name, loaded, registered, disk=folder / f"{name}-disk")
    first = [work.one_by_one([Caller(f"t{i}", (FIRST,))]) for i in range(8)]
    yield _row(name, f"first call on a transcript of {plan.n_tokens} tokens", 1, median(first[1:]), loaded)
    for case, n_callers, n_positions in CASES:
        callers = [Caller(f"t{i}", tuple(range(FIRST, FIRST + n_positions))) for i in range(n_callers)]
        work.together(callers)
        seconds = median(work.together(callers) for _ in range(plan.repeats))
        yield _row(name, case, n_callers * n_positions, seconds, loaded)


def _row(tool: str, case: str, positions: int, seconds: float, loaded: Loaded) -> Row:
    return Row(tool, case, positions, round(seconds, 4), round(positions / seconds, 2), round(_memory(loaded.device)))


def _tool(name: str, loaded: Loaded, plan: Plan, folder: Path) -> Tool:
    if plan.random_tools:
        return stand_in(name, loaded, folder, Settings(max_tokens=plan.max_tokens))
    tool: Tool = importlib.import_module(get_tool(name).module).load(loaded.target)
    return tool


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU"


def _memory(device: torch.device) -> float:
    return torch.cuda.max_memory_allocated(device) / 1e6 if device.type == "cuda" else resident_mb()


def table(checked: Checked) -> str:
    """The measurements as Markdown."""
    lines = [
        f"# {checked.model} on {checked.device}",
        "",
        f"{checked.parameters / 1e9:.2f}e9 parameters in {checked.dtype}, torch {checked.torch}. Transcripts of "
        f"{checked.n_tokens} tokens; random tools answer with {checked.max_tokens} tokens. Times are the server's own.",
        "",
        "| tool | call | positions | seconds | positions/s | memory, MB |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row.tool} | {row.case} | {row.positions} | {row.seconds:.4f} | {row.positions_per_s:.2f} "
        f"| {row.memory_mb:.0f} |"
        for row in checked.rows
    ]
    return "\n".join(lines) + "\n"


def save(checked: Checked, out: Path) -> tuple[Path, Path]:
    """Write `<out>.md` and `<out>.json`, each at once."""
    out.parent.mkdir(parents=True, exist_ok=True)
    texts = {".md": table(checked), ".json": json.dumps(asdict(checked), indent=2) + "\n"}
    paths = []
    for ending, text in texts.items():
        path = out.with_name(out.name + ending)
        draft = path.with_name(f".{path.name}.draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
        paths.append(path)
    return paths[0], paths[1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.device_check", description=__doc__)
    parser.add_argument("--target", help="real weights of this target, and its own tools")
    parser.add_argument("--shape", help=f"random weights; one of: {', '.join(SHAPES)}")
    parser.add_argument("--blocks", type=int, help="of the shape; default: 8 of a large one, all of a small one")
    parser.add_argument("--tools", default=",".join(TOOLS), help="default: all")
    parser.add_argument("--tokens", type=int, default=1024, help="of every transcript")
    parser.add_argument("--answer", type=int, default=48, help="tokens of every answer of random tools")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", help="default: a GPU if there is one")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--out", type=Path, default=OUT, help="path without an ending")
    return parser


def _load(options: argparse.Namespace) -> tuple[Loaded, str]:
    gpu = torch.cuda.is_available()
    device = options.device or ("cuda" if gpu else "cpu")
    if options.target is not None:
        loaded = load(get_target(options.target), dtype=options.dtype, device=device)
        return loaded, loaded.target.name
    shape = options.shape or ("gemma-3-27b" if gpu else "tiny")
    blocks = options.blocks or (min(8, SHAPES[shape].n_blocks) if shape in SHAPES else None)
    loaded = random_loaded(shape, n_blocks=blocks, device=device, dtype=options.dtype)
    return loaded, f"{shape} (random weights, {loaded.target.n_layers} of {SHAPES[shape].n_blocks} blocks)"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table and keep it; status 2 when the user must mend something first."""
    options = _parser().parse_args(arguments)
    try:
        plan = Plan(
            tools=tuple(get_tool(name).name for name in options.tools.split(",")),
            n_tokens=options.tokens,
            max_tokens=options.answer,
            repeats=options.repeats,
            random_tools=options.target is None,
        )
        loaded, model = _load(options)
        checked = check(loaded, plan, model)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    paths = save(checked, options.out)
    sys.stdout.write(table(checked) + f"\nWritten to {paths[0]} and {paths[1]}.\n")


if __name__ == "__main__":
    main()
