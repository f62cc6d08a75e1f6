"""Results to the table that a run prints.

Invariants: the first line says of what fidelity the tool is and whether the ceiling passed; an interval that straddles
zero is reported as what it excludes, never as "no uplift"; the same results give the same bytes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.arm_result import ArmResult
from harness.arms import BASELINE, CEILING, REPEAT, budget_label, is_sham
from harness.estimates import Estimate
from harness.stats import LEVEL, N_RESAMPLES
from harness.tabular import grid, number_text, signed_text

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
    n_missing: int = 0
    """Answers that a run which was interrupted has not got yet."""
    split: str = ""
    """Half of the clusters that the claims are from; empty for all of them."""
    spent: str = ""
    """What the run has cost, in one sentence; empty where nobody bills it."""


def table_markdown(results: Sequence[ArmResult], facts: RunFacts) -> str:
    """The whole of `table.md`."""
    lines = [first_line(results, facts), "", _about(facts), "", *grid(_HEAD, [_row(result) for result in results]), ""]
    lines += [*_verdicts(results), *_controls(results), *_notes(results), "", *_footnotes(results, facts)]
    return "\n".join(lines) + "\n"


def score_markdown(results: Sequence[ArmResult], name: str) -> str:
    """What is said of predictions that others made: the same table, without a run around it."""
    lines = [f"{name}: {_ceiling(results)}", "", *grid(_HEAD, [_row(result) for result in results]), ""]
    lines += [*_verdicts(results), *_controls(results), *_notes(results), "", _method()]
    return "\n".join(lines) + "\n"


def first_line(results: Sequence[ArmResult], facts: RunFacts) -> str:
    """Fidelity of the tools and what the ceiling says of the predictor."""
    fidelity = ", ".join(f"{tool} {level}" for tool, level in facts.fidelities) or "no tool"
    open_ = f" INCOMPLETE: {facts.n_missing} answers are missing, run the command again." if facts.n_missing else ""
    return f"Fidelity: {fidelity}. {_ceiling(results)}{open_}"


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
    "budget",
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
        budget_label(setting.calls, setting.positions),
        _plain_interval(result.auroc),
        "-" if uplift is None else signed_text(uplift.value),
        "-" if uplift is None else _bounds(uplift),
        "-" if half is None else signed_text(half.value),
        number_text(result.accuracy),
        number_text(result.brier),
        f"{result.auroc.n_claims} ({result.auroc.n_true})",
        str(result.auroc.n_investigations),
        str(result.auroc.n_clusters),
        str(result.auroc.n_excluded),
        ", ".join(f"{count} {name}" for name, count in result.outcome_counts),
    )


def _verdicts(results: Sequence[ArmResult]) -> list[str]:
    return [
        f"- {_name(result)}: {verdict(result.uplift)}{_corrected(result)}"
        for result in results
        if result.uplift is not None and not math.isnan(result.uplift.low)
    ]


def _name(result: ArmResult) -> str:
    """The arm, with its budget where it is no control and takes one."""
    return replace(result.setting, epoch=0).label if result.setting.calls else result.setting.arm


def _corrected(result: ArmResult) -> str:
    if not result.family or result.uplift is None or result.uplift.tests is None:
        return ""
    p_value = result.uplift.tests.p_value
    return f" p = {p_value:.3f} (DeLong over clusters), {result.p_holm:.3f} after Holm over the tool arms."


def verdict(uplift: Estimate) -> str:
    """What the interval of an uplift says and what it rules out."""
    if uplift.low > 0:
        return f"uplift {_with_interval(uplift)}: the whole interval lies above zero.{_equivalence(uplift)}"
    if uplift.high < 0:
        return (
            f"uplift {_with_interval(uplift)}: the whole interval lies below zero, the arm predicts worse."
            f"{_equivalence(uplift)}"
        )
    if uplift.low == uplift.high == 0:
        return f"uplift {_with_interval(uplift)}: it ranks the claims exactly as the {BASELINE} arm does."
    return (
        f"uplift {_with_interval(uplift)}: its sign is open. Excluded are an uplift above {signed_text(uplift.high)} "
        f"and a loss beyond {signed_text(uplift.low)}; the largest uplift still compatible with these claims is "
        f"{signed_text(uplift.high)}.{_equivalence(uplift)}"
    )


def _equivalence(uplift: Estimate) -> str:
    """Whether the uplift is shown to be too small to matter, as a sentence; empty where nothing was tested."""
    if uplift.tests is None:
        return ""
    tested = uplift.tests.equivalence
    shown = "is shown" if tested.shown else "is not shown"
    return (
        f" That it is smaller than the declared margin of {tested.margin:g} {shown} "
        f"(90 % interval {signed_text(tested.low)} to {signed_text(tested.high)})."
    )


def _controls(results: Sequence[ArmResult]) -> list[str]:
    """What the sham costs, and how much two runs of the baseline differ."""
    lines = []
    for result in results:
        if is_sham(result.setting.arm) and result.uplift is not None:
            lines.append(
                f"- {result.setting.arm}: the same tool over another transcript's activations changes AUROC by "
                f"{_with_interval(result.uplift)}."
            )
        if result.against_sham is not None:
            lines.append(f"- {_name(result)} minus its sham: {_with_interval(result.against_sham)}, paired.")
        if result.setting.arm == REPEAT and result.uplift is not None and result.flips is not None:
            flips = result.flips.of_true.flipped + result.flips.of_false.flipped
            of = result.flips.of_true.n_answers + result.flips.of_false.n_answers
            lines.append(
                f"- {REPEAT}: two runs of the baseline differ by {_with_interval(result.uplift)} and flip "
                f"{flips} of {of} answers: the noise floor."
            )
    return lines


def _notes(results: Sequence[ArmResult]) -> list[str]:
    """Every note once, behind the arms that it is about."""
    arms: dict[str, list[str]] = {}
    for result in results:
        for note in (result.uplift or result.auroc).notes:
            arms.setdefault(note, []).append(_name(result))
    return [f"- {', '.join(names)}: {note}." for note, names in arms.items()]


def _method() -> str:
    return (
        f"Uplift is AUROC minus the {BASELINE} arm's on the claims that both arms answered (each pair's own). "
        f"Intervals: paired percentile bootstrap over whole clusters, {N_RESAMPLES:,} resamples. "
        "Half credit: the same over all claims, every pair with an unanswered claim earning half. "
        "Accuracy and Brier score are those of the claims in the row."
    )


def _footnotes(results: Sequence[ArmResult], facts: RunFacts) -> list[str]:
    lines = [_method()]
    epochs = max((result.epochs for result in results), default=1)
    if epochs > 1:
        lines.append(f"Every arm was run {epochs} times on every claim; AUROCs are averaged, not probabilities.")
    if any(level == "demo" for _, level in facts.fidelities):
        lines.append("Fidelity demo: the tool's weights were trained here and are small, they are not published ones.")
    if facts.spent:
        lines.append(facts.spent)
    return lines


def _bounds(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return "not estimable"
    return f"{signed_text(estimate.low)} to {signed_text(estimate.high)}"


def _with_interval(estimate: Estimate) -> str:
    return f"{signed_text(estimate.value)} ({_bounds(estimate)})"


def _plain_interval(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return f"{number_text(estimate.value)} (not estimable)"
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
