"""The paper's tables from results: the sweep, the flips, targets and subsets, controls and tests.

Invariant: a table shows numbers that were computed elsewhere and decides nothing.
"""

from collections.abc import Iterator, Sequence

from agents.prompts import counted
from harness.arm_result import ArmResult
from harness.arms import BASELINE, budget_label, is_control, tool_of
from harness.estimates import Estimate
from harness.flips import FlipCounts
from harness.stats import LEVEL
from harness.tabular import Cell, Column, Table, count, interval, nothing, number, share, words

_INTERVAL = f"{LEVEL:.0%} interval"
_ARM = (Column("arm", ("arm",)), Column("budget", ("calls", "positions")))


def _arm_cells(result: ArmResult) -> tuple[Cell, Cell]:
    setting = result.setting
    if not setting.calls:
        return words(setting.arm), Cell("-", (0, 0))
    budget = budget_label(setting.calls, setting.positions)
    return words(setting.arm), Cell(budget, (setting.calls, setting.positions))


def _keys(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _estimate(estimate: Estimate | None, *, signed: bool = True, mark: str = "") -> Cell:
    if estimate is None:
        return nothing(3)
    return interval(estimate.value, estimate.low, estimate.high, signed=signed, mark=mark)


def checks_table(results: Sequence[ArmResult]) -> Table:
    """Every second opinion on every uplift."""
    columns = (
        *_ARM,
        Column("uplift", _keys("uplift")),
        Column("p", ("p_value",)),
        Column("Holm p", ("p_holm",)),
        Column("BCa", ("bca_low", "bca_high")),
        Column("DeLong, clustered", _keys("delong")),
        Column("90 % interval", ("low_90", "high_90")),
        Column("half credit", _keys("half_credit")),
        Column("worst case", _keys("worst_case")),
    )
    tested = [result for result in results if result.uplift is not None]
    rows = tuple((*_arm_cells(result), *_test_cells(result)) for result in tested)
    fallbacks = {
        f"{r.setting.label}: BCa is not defined ({r.uplift.tests.bca.fallback}), the percentile interval stands there"
        for r in tested
        if r.uplift is not None and r.uplift.tests is not None and r.uplift.tests.bca.fallback
    }
    notes = (
        "intervals: percentile bootstrap over whole clusters, where no other is named",
        "p: two-sided, by DeLong's variance for clustered data",
        "Holm p is corrected over the tool arms, the family that the manifest declares before the run",
        "worst case: every missing answer costs the arm all of its pairs and the baseline none",
        *sorted(fallbacks),
    )
    return Table("tests", f"Uplift over {BASELINE}, judged in several ways", columns, rows, notes)


def _test_cells(result: ArmResult) -> Iterator[Cell]:
    uplift = result.uplift
    assert uplift is not None
    yield _estimate(uplift)
    if uplift.tests is None:
        yield from (nothing(n) for n in (1, 1, 2, 3, 2))
    else:
        tests = uplift.tests
        yield number(tests.p_value)
        yield number(result.p_holm) if result.family else nothing()
        yield _bounds(tests.bca.low, tests.bca.high)
        yield interval(uplift.value, tests.delong.low, tests.delong.high, signed=True)
        yield _bounds(tests.equivalence.low, tests.equivalence.high)
    yield _estimate(result.half_credit)
    yield _estimate(result.worst_case)


def _bounds(low: float, high: float) -> Cell:
    return Cell(f"{low:+.3f} to {high:+.3f}", (low, high))


def sweep_table(results: Sequence[ArmResult], main: tuple[int, int]) -> Table | None:
    """Uplift by budget, one row a tool, the main setting starred; None where nothing was swept."""
    tools = list(dict.fromkeys(r.setting.arm for r in results if r.uplift is not None and _is_tool(r.setting.arm)))
    at = {(r.setting.arm, r.setting.calls, r.setting.positions): r for r in results}
    calls = sorted({c for arm, c, p in at if arm in tools and p in (main[1], 0)} | {main[0]})
    positions = sorted({p for arm, c, p in at if arm in tools and c == main[0] and p} | {main[1]})
    if len(calls) + len(positions) <= 2:
        return None
    at_calls, at_positions = counted(main[0], "call"), counted(main[1], "position")
    columns = (
        Column("tool", ("tool",)),
        *(Column(counted(c, "call") + "*" * (c == main[0]), _keys(f"uplift_{c}_calls")) for c in calls),
        *(Column(counted(p, "position") + "*" * (p == main[1]), _keys(f"uplift_{p}_positions")) for p in positions),
    )
    rows = []
    for tool in tools:
        no_positions = not any(arm == tool and p for arm, _, p in at)
        by_calls = [at.get((tool, c, 0 if no_positions else main[1])) for c in calls]
        by_positions = [None if no_positions else at.get((tool, main[0], p)) for p in positions]
        cells = [nothing(3) if r is None else _estimate(r.uplift) for r in (*by_calls, *by_positions)]
        rows.append((words(tool), *cells))
    notes = (
        f"starred: the main setting, {at_calls} of {at_positions}; calls are swept at {at_positions}, positions at "
        f"{at_calls}",
        f"in brackets: {_INTERVAL}, over clusters",
        "a dash: not run, or not applicable to a tool that takes no positions",
    )
    return Table("sweep", f"Paired uplift over {BASELINE} by budget", columns, tuple(rows), notes)


def _is_tool(arm: str) -> bool:
    return tool_of(arm) is not None and not is_control(arm)


def flips_table(results: Sequence[ArmResult]) -> Table:
    """How often arms change the baseline's yes or no, and which way."""
    columns = (
        *_ARM,
        Column("flipped, true claims", ("flipped_true", "n_flipped_true", "n_true")),
        Column("flipped, false claims", ("flipped_false", "n_flipped_false", "n_false")),
        Column("toward no effect, true", ("no_effect_true", "n_no_effect_true", "n_of_flips_true")),
        Column("toward no effect, false", ("no_effect_false", "n_no_effect_false", "n_of_flips_false")),
        Column("accuracy, true claims", ("accuracy_true_before", "accuracy_true_after")),
        Column("accuracy, false claims", ("accuracy_false_before", "accuracy_false_after")),
        Column("undecided", ("undecided",)),
    )
    rows = []
    for result in results:
        if result.flips is not None:
            true, false = result.flips.of_true, result.flips.of_false
            rows.append(
                (
                    *_arm_cells(result),
                    share(true.flipped, true.n_answers),
                    share(false.flipped, false.n_answers),
                    share(true.toward_no_effect, true.flipped),
                    share(false.toward_no_effect, false.flipped),
                    _accuracies(true, label=True),
                    _accuracies(false, label=False),
                    count(result.flips.undecided),
                )
            )
    notes = (
        f"a flip: the arm and {BASELINE} lie on different sides of 0.5; undecided pairs, with an answer of exactly "
        "0.5, are left out",
        "the row of transcript-2, where it was run, is the noise floor: flips between two runs of the baseline",
    )
    return Table("flips", f"Answers flipped against {BASELINE}", columns, tuple(rows), notes)


def _accuracies(counts: FlipCounts, *, label: bool) -> Cell:
    if not counts.n_answers:
        return nothing(2)
    toward_right = counts.flipped - counts.toward_no_effect if label else counts.toward_no_effect
    before = counts.right_before / counts.n_answers
    after = (counts.right_before + 2 * toward_right - counts.flipped) / counts.n_answers
    return Cell(f"{before:.0%} to {after:.0%}", (before, after))


def targets_table(results: Sequence[ArmResult]) -> Table:
    """AUROC and accuracy of every arm, with intervals."""
    columns = (
        Column("target", ("target",)),
        Column("predictor", ("predictor",)),
        *_ARM,
        Column("AUROC", _keys("auroc")),
        Column("accuracy", _keys("accuracy")),
        Column("claims", ("n_claims",)),
        Column("clusters", ("n_clusters",)),
    )
    rows = tuple(
        (
            words(result.setting.target),
            words(result.setting.predictor),
            *_arm_cells(result),
            _estimate(result.auroc, signed=False),
            interval(result.accuracy, result.accuracy_low, result.accuracy_high, signed=False),
            count(result.auroc.n_claims),
            count(result.auroc.n_clusters),
        )
        for result in results
    )
    return Table("targets", "AUROC and accuracy", columns, rows, (f"in brackets: {_INTERVAL}, over clusters",))


def subset_table(name: str, title: str, results: Sequence[ArmResult], notes: tuple[str, ...]) -> Table:
    """AUROC and uplift on a part of the claims."""
    columns = (
        *_ARM,
        Column("AUROC", _keys("auroc")),
        Column("uplift", _keys("uplift")),
        Column("claims", ("n_claims",)),
        Column("true", ("n_true",)),
        Column("clusters", ("n_clusters",)),
    )
    rows = tuple(
        (
            *_arm_cells(result),
            _estimate(result.auroc, signed=False),
            _estimate(result.uplift),
            count(result.auroc.n_claims),
            count(result.auroc.n_true),
            count(result.auroc.n_clusters),
        )
        for result in results
    )
    return Table(name, title, columns, rows, notes)


def shams_table(results: Sequence[ArmResult]) -> Table | None:
    """Tools against their shams; None without one."""
    columns = (
        *_ARM,
        Column("tool minus sham", _keys("tool_minus_sham")),
        Column("p", ("p_value",)),
        Column("Holm p", ("p_holm",)),
        Column("claims", ("n_claims",)),
    )
    rows = tuple(
        (
            *_arm_cells(result),
            _estimate(result.against_sham),
            number(float("nan") if result.against_sham.tests is None else result.against_sham.tests.p_value),
            number(result.p_holm_sham),
            count(result.against_sham.n_claims),
        )
        for result in results
        if result.against_sham is not None
    )
    notes = ("a sham echoes the claim's own tokens over the activations of another cluster's transcript",)
    return Table("shams", "Tools against their shams, paired", columns, rows, notes) if rows else None
