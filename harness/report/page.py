"""The pages of a report: one file while it is small enough to open on a phone, else the claims in pages of their own.

Invariants: what a predictor or a target said is only in data blocks, packed; a page is a function of the run's files.
"""

import base64
import json
import shlex
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agents.outcome import OUTCOMES
from claims.page import Page, render
from harness.report.draw import (
    CALIBRATION_SIDE,
    LEFT,
    SIDE,
    WIDTH,
    bars_of,
    dots,
    forest,
    heat,
    roc_lines,
    square,
)
from harness.report.numbers import calibration, curves, flips, grids, spending
from harness.report.read import Answer, RunFiles, Series
from harness.report.samples import Explored, Explorer, TranscriptText, json_text
from harness.report.words import controls, made

TEMPLATES = Path(__file__).parent / "templates"
REPORT = Page(TEMPLATES, "report.html", "report.css", "report.js")
SHARD = Page(TEMPLATES, "shard.html", "report.css", "report.js")
LARGEST = 11_000_000
"""Bytes of packed claims and transcripts in one page; more go into pages of their own."""


@dataclass(frozen=True)
class Shard:
    """The claims of one page, packed: base64 of their deflated JSON."""

    claims: dict[int, str]
    """By number of the claim."""
    transcripts: dict[int, str]
    """By number of the transcript."""

    @property
    def island(self) -> str:
        """The page's data block."""
        return json.dumps(asdict(self), separators=(",", ":"))


def pages(run: RunFiles, explorer: Explorer, *, largest: int = LARGEST) -> Iterator[tuple[str, str]]:
    """File name and text of every page; `report.html` comes last.

    Args:
        run: The run's files.
        explorer: What was said about every claim.
        largest: Bytes of packed claims and transcripts that one page may hold.
    """
    rows = index_rows(run, explorer)
    shards = list(_shards(explorer, largest))
    frame = _frame(run)
    if len(shards) == 1:
        yield "report.html", _report(run, {**frame, "claims": rows}, shards[0].island)
        return
    for number, shard in enumerate(shards, start=1):
        name = f"{number:04}.html"
        own = [{**rows[place], "n": place} for place in shard.claims]
        for place in shard.claims:
            rows[place] = {**rows[place], "shard": name}
        values = {
            "first": min(shard.claims) + 1,
            "last": max(shard.claims) + 1,
            "run": run,
            "explorer_note": "A part of the run's claims. Open one for all that was said about it.",
            "index": script_safe(json_text({**frame, "claims": own})),
            "packed": shard.island,
            **_drawing(run),
        }
        yield f"report/{name}", render(SHARD, values)
    yield "report.html", _report(run, {**frame, "claims": rows}, "")


def script_safe(text: str) -> str:
    """JSON that cannot end its script element, nor start a comment in it."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def packed(text: str) -> str:
    """Base64 of deflated text."""
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii")


def _shards(explorer: Explorer, largest: int) -> Iterator[Shard]:
    """Claims in order, as many together as fit, each with its transcript."""
    number = {name: place for place, name in enumerate(explorer.transcripts)}
    held, size = Shard({}, {}), 0
    for place, claim in enumerate(explorer.claims.values()):
        text = packed(claim.as_json())
        at = number.get(claim.transcript_id, -1)
        transcript = held.transcripts.get(at) or packed(json_text(_transcript(explorer, claim)))
        more = len(text) + (0 if at in held.transcripts else len(transcript))
        if held.claims and size + more > largest:
            yield held
            held, size, more = Shard({}, {}), 0, len(text) + len(transcript)
        held.claims[place], held.transcripts[at] = text, transcript
        size += more
    yield held


def _transcript(explorer: Explorer, claim: Explored) -> dict[str, object]:
    return asdict(explorer.transcripts.get(claim.transcript_id, TranscriptText(())))


def _frame(run: RunFiles) -> dict[str, object]:
    """What the script must know of the run."""
    names, order = run.labels, list(run.series)
    keys = ["\n".join(map(str, (one.predictor, one.arm, one.calls, one.positions))) for one in order]
    baselines = {one.predictor: number for number, one in enumerate(order) if one.is_baseline}
    return {
        "series": [{"name": names[one]} for one in order],
        "baseline": [baselines.get(one.predictor, -1) for one in order],
        "order": {key: number for number, key in enumerate(keys)},
        "names": {key: names[one] for key, one in zip(keys, order, strict=True)},
        "outcomes": list(OUTCOMES),
        "view": view_command(run.folder),
    }


def view_command(folder: Path) -> str:
    """What starts Inspect's viewer on the run's logs, from the folder that holds `results`."""
    return shlex.join(["inspect", "view", "--log-dir", f"results/{folder.name}/logs"])


def index_rows(run: RunFiles, explorer: Explorer) -> list[dict[str, object]]:
    """One row a claim for the list: ids, label, the edit, and every setting's answers by repetition."""
    by_claim: dict[str, list[Answer]] = defaultdict(list)
    for answer in run.answers:
        by_claim[answer.claim_id].append(answer)
    number = {name: place for place, name in enumerate(explorer.transcripts)}
    return [_row(claim, by_claim[claim.claim_id], run.series, number) for claim in explorer.claims.values()]


def _row(
    claim: Explored, answers: Sequence[Answer], order: Sequence[Series], number: Mapping[str, int]
) -> dict[str, object]:
    groups: dict[Series, list[Answer]] = {series: [] for series in order}
    for answer in sorted(answers, key=lambda one: one.epoch):
        groups[answer.series].append(answer)
    first = answers[0] if answers else None
    return {
        "id": claim.claim_id,
        "cluster": first.cluster_id if first else "",
        "investigation": first.investigation_id if first else "",
        "label": int(first.label) if first else 0,
        "title": claim.title,
        "t": number.get(claim.transcript_id, -1),
        "p": [[_short(one.p_true) for one in group] or [None] for group in groups.values()],
        "o": [[OUTCOMES.index(one.outcome) for one in group] for group in groups.values()],
    }


def _short(p_true: float | None) -> float | None:
    """Six digits are enough to look at, and half the page."""
    return None if p_true is None else round(p_true, 6)


def _report(run: RunFiles, index: Mapping[str, object], island: str) -> str:
    names = run.labels
    by_series = {series: [one for one in run.answers if one.series == series] for series in run.series}
    found = grids(run.estimates)
    uplifts = [abs(cell.uplift[0]) for grid in found for cell in grid.cells.values() if cell.uplift[0] is not None]
    values = {
        "run": run,
        "forest": forest(bars_of(run.estimates, names), run.margin),
        "lines": roc_lines(curves(run.answers, run.series), run.estimates, names),
        "calibrations": [(names[one], dots(calibration(group))) for one, group in by_series.items()],
        "flips": flips(run.answers, run.series),
        "grids": found,
        "largest": max(uplifts, default=0.0),
        "main": (run.manifest.settings["calls"], run.manifest.settings["positions"]),
        "spending": spending(run.answers, run.series),
        "controls": controls(run),
        "made": made(run.manifest),
        "explorer_note": "Open a claim for its transcript, the positions that were read, every call and answer.",
        "index": script_safe(json_text(index)),
        "packed": island,
        **_drawing(run),
    }
    return render(REPORT, values)


def _drawing(run: RunFiles) -> dict[str, object]:
    return {
        "names": run.labels,
        "view_command": view_command(run.folder),
        "heat": heat,
        "square": square,
        "WIDTH": WIDTH,
        "SIDE": SIDE,
        "LEFT": LEFT,
        "CALIBRATION_SIDE": CALIBRATION_SIDE,
    }
