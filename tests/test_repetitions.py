"""Uplift of repeated runs, missing answers, shams, and p-values over families."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from claims.schema import UserError
from harness.outcomes import Outcome
from harness.stats import auroc
from harness.uplift import BASELINE, compare
from tests.arm_rows import N_CLAIMS, by_arm, example, rows


def repeated(arm: str, runs: Sequence[Sequence[float | None]], labels: Sequence[bool]) -> list[Outcome]:
    return [
        replace(row, setting=replace(row.setting, epoch=epoch))
        for epoch, p_true in enumerate(runs)
        for row in rows(arm, p_true, labels)
    ]


def test_repetitions_enter_as_the_mean_of_their_aurocs() -> None:
    weak, strong, labels = example()
    runs = [weak, list(reversed(weak))], [strong, weak]
    result = by_arm(repeated(BASELINE, runs[0], labels) + repeated("sae", runs[1], labels))["sae"]
    base, tool = ([auroc(np.array(p), np.array(labels)) for p in side] for side in runs)
    assert result.uplift is not None
    assert result.epochs == 2
    assert result.auroc.value == pytest.approx(np.mean(tool))
    assert result.uplift.value == pytest.approx(np.mean(tool) - np.mean(base))
    assert result.uplift.low < result.uplift.value < result.uplift.high


def test_a_claim_counts_as_answered_when_every_repetition_was() -> None:
    weak, strong, labels = example()
    gappy = [None if index < 3 else p for index, p in enumerate(strong)]
    result = by_arm(repeated(BASELINE, [weak, weak], labels) + repeated("sae", [strong, gappy], labels))["sae"]
    assert result.uplift is not None
    assert (result.uplift.n_claims, result.uplift.n_excluded) == (N_CLAIMS - 3, 3)


def test_arms_repeated_differently_often_are_refused() -> None:
    weak, strong, labels = example()
    with pytest.raises(UserError, match="repeated 2 times and the other 1 times"):
        compare(rows(BASELINE, weak, labels) + repeated("sae", [strong, strong], labels), seed="s")


def test_the_worst_case_charges_the_arm_for_what_is_missing_and_not_the_baseline() -> None:
    # The case of half credit above. Worst: the arm wins its one answered pair of four, the baseline keeps 3 of 4.
    labels = [True, True, False, False]
    outcomes = rows(BASELINE, [0.2, 0.9, 0.3, 0.1], labels) + rows("sae", [0.9, None, 0.1, None], labels)
    result = by_arm(outcomes)["sae"]
    assert result.worst_case is not None
    assert result.worst_case.value == 1 / 4 - 3 / 4
    # And a baseline that is missing an answer is credited with all of its pairs.
    outcomes = rows(BASELINE, [0.2, None, 0.3, 0.1], labels) + rows("sae", [0.9, 0.8, 0.1, 0.2], labels)
    result = by_arm(outcomes)["sae"]
    assert result.worst_case is not None
    assert result.worst_case.value == 1 - (1 + 2) / 4


def test_the_worst_case_is_never_above_half_credit() -> None:
    weak, strong, labels = example()
    gappy = [None if index % 7 == 0 else p for index, p in enumerate(strong)]
    result = by_arm(rows(BASELINE, weak, labels) + rows("sae", gappy, labels))["sae"]
    assert result.worst_case is not None
    assert result.half_credit is not None
    assert result.worst_case.value < result.half_credit.value


def test_arms_that_fail_at_different_rates_are_warned_about() -> None:
    weak, strong, labels = example()
    gappy = [None if index < 8 else p for index, p in enumerate(strong)]
    even = [None if index < 2 else p for index, p in enumerate(strong)]
    uplift = by_arm(rows(BASELINE, weak, labels) + rows("sae", gappy, labels))["sae"].uplift
    assert uplift is not None
    assert "16.7% of its claims have no answer, but 0.0% of the transcript arm's" in uplift.notes[-1]
    quiet = by_arm(rows(BASELINE, weak, labels) + rows("sae", even, labels))["sae"].uplift
    assert quiet is not None
    assert quiet.notes == ()


def test_a_tool_is_compared_with_its_sham_and_a_sham_with_the_baseline() -> None:
    weak, strong, labels = example()
    sham = rows("sham-sae", weak, labels)
    results = by_arm(rows(BASELINE, weak, labels) + rows("sae", strong, labels) + sham)
    tool, control = results["sae"], results["sham-sae"]
    assert tool.against_sham is not None
    assert tool.uplift is not None
    assert control.uplift is not None
    assert tool.against_sham.value == tool.uplift.value
    assert control.uplift.value == 0
    assert control.against_sham is None


def test_p_values_are_corrected_over_the_tools_and_not_over_the_controls() -> None:
    weak, strong, labels = example()
    arms = {"sae": strong, "ao": weak, "ceiling": strong, "transcript-2": weak}
    outcomes = rows(BASELINE, weak, labels)
    for arm, p_true in arms.items():
        outcomes += rows(arm, p_true, labels)
    results = by_arm(outcomes)
    assert results["sae"].uplift is not None
    assert results["sae"].uplift.tests is not None
    assert results["sae"].p_holm == pytest.approx(2 * results["sae"].uplift.tests.p_value)
    assert results["ao"].p_holm == 1
    assert (results["ceiling"].family, results["transcript-2"].family) == ("", "")
    declared = compare(outcomes, seed="s", families={"tools": [("sae", 5, 32)]})
    sae = next(result for result in declared if result.setting.arm == "sae")
    assert sae.uplift is not None
    assert sae.uplift.tests is not None
    assert sae.p_holm == sae.uplift.tests.p_value
