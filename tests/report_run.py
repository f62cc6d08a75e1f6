"""A run made by hand: answers, estimates and what was said, without a model or a log."""

import json
import zlib
from dataclasses import asdict
from pathlib import Path

from harness.manifest import Manifest
from harness.report.read import Answer, Estimated, RunFiles, Series
from harness.report.samples import Explored, Explorer, Told, TranscriptText, Turn, json_text

BASE = Series("local", "transcript", 0, 0)
SAE = Series("local", "sae", 5, 32)
SMALL = Series("local", "sae", 2, 16)
CEILING = Series("local", "ceiling", 0, 0)
ORDER = (BASE, SMALL, SAE, CEILING)
NOTHING = (None, None, None)


def answer(series: Series, number: int, p_true: float | None, label: bool, **more: object) -> Answer:
    values = {
        "series": series,
        "epoch": 0,
        "claim_id": f"claim-{number:04}",
        "cluster_id": f"cluster-{number // 3}",
        "investigation_id": f"investigation-{number // 2}",
        "label": label,
        "outcome": "answered" if p_true is not None else "no_answer",
        "p_true": p_true,
        "calls_used": 0,
        "input_tokens": 100,
        "output_tokens": 10,
        "dollars": None,
    }
    return Answer(**{**values, **more})


def estimated(series: Series, uplift: tuple[float | None, float | None, float | None] = NOTHING) -> Estimated:
    fidelity = "demo" if series.arm == "sae" else None
    return Estimated(series, fidelity, (0.7, 0.6, 0.8), uplift, NOTHING, 100, 50, 30, 0, 0.6, 0.2, ())


def manifest(**changed: object) -> Manifest:
    values = {
        "run": "tiny-sae-local-12345678",
        "settings": {"target": "tiny-gemma", "tool": "sae", "predictor": "local", "calls": 5, "positions": 32},
        "arms": ("transcript", "sae", "ceiling"),
        "hashes": {"claim_set": "0" * 64},
        "claims": {"folder": "somewhere", "n_all": 6, "n_used": 6},
        "tools": {},
        "made": {"command": "uplift eval"},
        "analysis": {"margin": 0.05},
    }
    return Manifest(**{**values, **changed})


def run_of(n: int = 6, folder: Path = Path("results/tiny-sae-local-12345678"), **changed: object) -> RunFiles:
    answers = tuple(
        answer(series, number, (number * 37 % 100 + 7 * place) % 100 / 100, number % 2 == 0)
        for place, series in enumerate(ORDER)
        for number in range(n)
    )
    uplifts = (NOTHING, (-0.01, -0.08, 0.06), (0.12, 0.03, 0.2), (0.2, 0.1, 0.3))
    values = {
        "folder": folder,
        "manifest": manifest(),
        "answers": answers,
        "estimates": tuple(estimated(series, uplift) for series, uplift in zip(ORDER, uplifts, strict=True)),
        "headline": "Fidelity: sae demo. Ceiling: passed.",
        "about": "Run tiny.",
        "verdicts": ("sae: its sign is positive.",),
    }
    return RunFiles(**{**values, **changed})


def told(series: Series, text: str = "output", **changed: object) -> Told:
    turns = (Turn("predictor", text), Turn("call", "positions=[1]", "read_features", (1,)), Turn("tool", text, "read"))
    values = {
        "series": series,
        "epoch": 0,
        "log": "log.eval",
        "sample_id": "a/b",
        "sample_epoch": 1,
        "how": "submitted",
        "detail": "",
        "shown": (("response 1", text),) if series == CEILING else (),
        "turns": turns if series.calls else turns[:1],
    }
    return Told(**{**values, **changed})


def explorer_of(n: int = 6, text: str = "output", *, transcript: str = "A prompt.") -> Explorer:
    packed = tuple(zlib.compress(json_text(asdict(told(series, text))).encode(), 1) for series in ORDER)
    claims = {
        f"claim-{number:04}": Explored(
            f"claim-{number:04}",
            f"transcript-{number // 2}",
            f"BEHAVIOR: {text}?\n\nINTERVENTION: edit {number} {text}\n\nIs this claim true?",
            packed,
        )
        for number in range(n)
    }
    tokens = ((0, "<bos>", "template"), (1, text, "user"), (2, "\\n", "template"))
    texts = TranscriptText((("message 1, user", transcript), ("response", text)), tokens, (0,))
    return Explorer(claims, {f"transcript-{number}": texts for number in range((n + 1) // 2)})


def island(page: str, name: str) -> object:
    """A data block of a page."""
    start = page.index(f'id="{name}">') + len(f'id="{name}">')
    return json.loads(page[start : page.index("</script>", start)])
