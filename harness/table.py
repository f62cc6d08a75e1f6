"""Results to Markdown and JSON.

Invariants: the first line says of what fidelity the tool is and whether the ceiling passed; an interval that straddles
zero is reported as what it excludes, never as "no uplift"; the same results give the same bytes.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.stats import LEVEL, N_RESAMPLES
from harness.uplift import BASELINE, CEILING, ArmResult, Estimate

CANNOT_MEASURE = "this instrument cannot measure uplift with this predictor"


@dataclass(frozen=True)
class RunFacts:
    """What a table says about its run beside the numbers."""

    run: str
    """Name of the run."""
    target: str
    """Name of the target that was used."""
    asked_target: str
    """Name that the user gave, which may be a family."""
    predictor: str
    """Name of the predictor."""
    claims: str
    """Where the claims came from, and how many of them were used."""
    fidelities: tuple[tuple[str, str], ...]
    """(tool, `demo` or `released`) of every tool arm."""
    paper_setting: bool
    """Whether budget and positions are the paper's."""


def table_markdown(results: Sequence[ArmResult], facts: RunFacts) -> str:
    """The whole of `table.md`."""
    lines = [first_line(results, facts), "", _about(facts), "", *_grid(_HEAD, [_row(result) for result in results]), ""]
    lines += [*_verdicts(results), *_notes(results), "", *_footnotes(facts)]
    return "\n".join(lines) + "\n"


def first_line(results: Sequence[ArmResult], facts: RunFacts) -> str:
    """Fidelity of the tools and what the ceiling says of the predictor."""
    fidelity = ", ".join(f"{tool} {level}" for tool, level in facts.fidelities) or "no tool"
    return f"Fidelity: {fidelity}. {_ceiling(results)}"


def _ceiling(results: Sequence[ArmResult]) -> str:
    result = next((result for result in results if result.setting.arm == CEILING), None)
    if result is None or result.uplift is None:
        return "Ceiling: not run, so it is not known whether this predictor can use good evidence."
    if math.isnan(result.uplift.low):
        return f"Ceiling: not estimable, so it did not pass: {CANNOT_MEASURE}."
    found = f"uplift {_with_interval(result.uplift)}"
    if result.uplift.low > 0:
        return (
            f"Ceiling: passed ({found}): it reaches AUROC {result.auroc.value:.3f}, "
            "so this predictor could have used evidence this good."
        )
    return f"Ceiling: not passed ({found}, lower bound not above 0): {CANNOT_MEASURE}."


def _about(facts: RunFacts) -> str:
    target = facts.target if facts.target == facts.asked_target else f"{facts.target} (asked for: {facts.asked_target})"
    setting = "" if facts.paper_setting else " Budget and positions are not the paper's (5 calls of 32 positions)."
    return f"Run {facts.run}. Target: {target}. Predictor: {facts.predictor}. Claims: {facts.claims}.{setting}"


_HEAD = (
    "arm",
    "calls x positions",
    "AUROC",
    "uplift",
    f"{LEVEL:.0%} interval",
    "half credit",
    "accuracy",
    "Brier",
    "claims (true)",
    "investigations",
    "clusters",
    "excluded",
    "outcomes",
)


def _row(result: ArmResult) -> tuple[str, ...]:
    setting, uplift, half = result.setting, result.uplift, result.half_credit
    return (
        setting.arm,
        f"{setting.calls} x {setting.positions}" if setting.calls else "-",
        _plain_interval(result.auroc),
        "-" if uplift is None else _signed(uplift.value),
        "-" if uplift is None else _bounds(uplift),
        "-" if half is None else _signed(half.value),
        _number(result.accuracy),
        _number(result.brier),
        f"{result.auroc.n_claims} ({result.auroc.n_true})",
        str(result.auroc.n_investigations),
        str(result.auroc.n_clusters),
        str(result.auroc.n_excluded),
        ", ".join(f"{count} {name}" for name, count in result.outcome_counts),
    )


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *(line(row) for row in rows)]


def _verdicts(results: Sequence[ArmResult]) -> list[str]:
    return [
        f"- {result.setting.arm}: {verdict(result.uplift)}"
        for result in results
        if result.uplift is not None and not math.isnan(result.uplift.low)
    ]


def verdict(uplift: Estimate) -> str:
    """What the interval of an uplift says and what it rules out."""
    if uplift.low > 0:
        return f"uplift {_with_interval(uplift)}: the whole interval lies above zero."
    if uplift.high < 0:
        return f"uplift {_with_interval(uplift)}: the whole interval lies below zero, the arm predicts worse."
    if uplift.low == uplift.high == 0:
        return f"uplift {_with_interval(uplift)}: it ranks the claims exactly as the {BASELINE} arm does."
    return (
        f"uplift {_with_interval(uplift)}: its sign is open. Excluded are an uplift above {_signed(uplift.high)} and a "
        f"loss beyond {_signed(uplift.low)}; the largest uplift still compatible with these claims is "
        f"{_signed(uplift.high)}."
    )


def _notes(results: Sequence[ArmResult]) -> list[str]:
    """Every note once, behind the arms that it is about."""
    arms: dict[str, list[str]] = {}
    for result in results:
        for note in (result.uplift or result.auroc).notes:
            arms.setdefault(note, []).append(result.setting.arm)
    return [f"- {', '.join(names)}: {note}." for note, names in arms.items()]


def _footnotes(facts: RunFacts) -> list[str]:
    lines = [
        f"Uplift is AUROC minus the {BASELINE} arm's on the claims that both arms answered (each pair's own). "
        f"Intervals: paired percentile bootstrap over whole clusters, {N_RESAMPLES:,} resamples. "
        "Half credit: the same over all claims, every pair with an unanswered claim earning half. "
        "Accuracy and Brier score are those of the claims in the row."
    ]
    if any(level == "demo" for _, level in facts.fidelities):
        lines.append("Fidelity demo: the tool's weights were trained here and are small, they are not published ones.")
    return lines


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def _signed(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:+.3f}"


def _bounds(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return "not estimable"
    return f"{_signed(estimate.low)} to {_signed(estimate.high)}"


def _with_interval(estimate: Estimate) -> str:
    return f"{_signed(estimate.value)} ({_bounds(estimate)})"


def _plain_interval(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return f"{_number(estimate.value)} (not estimable)"
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def uplift_json(results: Sequence[ArmResult], facts: RunFacts) -> str:
    """The whole of `uplift.json`: a list with one object an arm; what is not defined is null."""
    fidelities = dict(facts.fidelities)
    rows = [_json_row(result, fidelities.get(result.setting.arm)) for result in results]
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _json_row(result: ArmResult, fidelity: str | None) -> dict[str, object]:
    setting, uplift, half = result.setting, result.uplift, result.half_credit
    main = uplift or result.auroc
    return {
        "target": setting.target,
        "predictor": setting.predictor,
        "arm": setting.arm,
        "calls": setting.calls,
        "positions": setting.positions,
        "fidelity": fidelity,
        "n_claims": main.n_claims,
        "n_true": main.n_true,
        "n_investigations": main.n_investigations,
        "n_clusters": main.n_clusters,
        "n_excluded": main.n_excluded,
        "auroc": _defined(result.auroc.value),
        "auroc_low": _defined(result.auroc.low),
        "auroc_high": _defined(result.auroc.high),
        "auroc_transcript": _defined(result.baseline_auroc),
        "uplift": _defined(uplift.value) if uplift else None,
        "low": _defined(uplift.low) if uplift else None,
        "high": _defined(uplift.high) if uplift else None,
        "uplift_half_credit": _defined(half.value) if half else None,
        "low_half_credit": _defined(half.low) if half else None,
        "high_half_credit": _defined(half.high) if half else None,
        "n_claims_half_credit": half.n_claims if half else None,
        "accuracy": _defined(result.accuracy),
        "brier": _defined(result.brier),
        "outcomes": dict(result.outcome_counts),
        "mean_calls_used": result.mean_calls_used,
        "level": LEVEL,
        "n_resamples": N_RESAMPLES,
        "one_class_share": _defined(main.one_class_share),
        "notes": list(main.notes),
    }


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value
