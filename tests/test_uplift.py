"""From outcomes to uplift: pairing, exclusions, half credit, and what a reader is told."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from claims.schema import UserError
from harness.logs import Setting
from harness.outcomes import Outcome
from harness.stats import auroc
from harness.uplift import BASELINE, ArmResult, compare

N_CLAIMS = 48


def rows(arm: str, p_true: Sequence[float | None], labels: Sequence[bool], *, per_cluster: int = 2) -> list[Outcome]:
    calls = 0 if arm in (BASELINE, "ceiling") else 5
    return [
        Outcome(
            setting=Setting("tiny-gemma", "mockllm/model", arm, calls, 32 if calls else 0),
            claim_id=f"claim-{index:03}",
            cluster_id=f"cluster-{index // per_cluster:03}",
            investigation_id=f"investigation-{index // per_cluster:03}",
            label=label,
            outcome="answered" if value is not None else "no_answer",
            p_true=value,
            calls_used=min(calls, 1),
            how="submitted" if value is not None else None,
            detail="",
            input_tokens=10,
            output_tokens=1,
        )
        for index, (value, label) in enumerate(zip(p_true, labels, strict=True))
    ]


def by_arm(outcomes: Sequence[Outcome], seed: str = "s") -> dict[str, ArmResult]:
    return {result.setting.arm: result for result in compare(outcomes, seed=seed)}


def example() -> tuple[list[float], list[float], list[bool]]:
    """A weak baseline and a better arm, two claims a cluster."""
    rng = np.random.default_rng(1)
    labels = [bool(value) for value in rng.random(N_CLAIMS) < 0.5]
    weak = [float(value) for value in np.round(rng.random(N_CLAIMS), 2)]
    strong = [round(0.5 * p + 0.4 * label, 3) for p, label in zip(weak, labels, strict=True)]
    return weak, strong, labels


def test_uplift_by_hand() -> None:
    # Baseline: true 0.4, 0.6; false 0.5, 0.3: 0.4>0.3, 0.6>0.5, 0.6>0.3: 3 of 4. The arm ranks all four: 1 - 3/4.
    labels = [True, True, False, False]
    outcomes = rows(BASELINE, [0.4, 0.6, 0.5, 0.3], labels) + rows("sae", [0.8, 0.9, 0.1, 0.2], labels)
    result = by_arm(outcomes)["sae"]
    assert result.uplift is not None
    assert (result.baseline_auroc, result.auroc.value, result.uplift.value) == (0.75, 1.0, 0.25)


def test_every_estimate_travels_with_its_numbers() -> None:
    weak, strong, labels = example()
    gappy = [None if index in (0, 1, 5) else p for index, p in enumerate(strong)]
    result = by_arm(rows(BASELINE, weak, labels) + rows("sae", gappy, labels))["sae"]
    assert result.uplift is not None
    assert result.uplift.n_claims == N_CLAIMS - 3
    assert result.uplift.n_excluded == 3
    assert result.uplift.n_clusters == result.uplift.n_investigations == N_CLAIMS // 2 - 1
    assert result.uplift.n_true == sum(labels) - sum(labels[index] for index in (0, 1, 5))
    assert result.uplift.low < result.uplift.value < result.uplift.high
    assert dict(result.outcome_counts) == {"answered": N_CLAIMS - 3, "no_answer": 3}


def test_the_headline_uses_the_claims_that_both_arms_answered() -> None:
    weak, strong, labels = example()
    missing_here = [None if index < 4 else p for index, p in enumerate(weak)]
    missing_there = [None if index >= 44 else p for index, p in enumerate(strong)]
    results = by_arm(rows(BASELINE, missing_here, labels) + rows("sae", missing_there, labels))
    used = slice(4, 44)
    tool, base = (auroc(np.array(arm[used]), np.array(labels[used])) for arm in (strong, weak))
    assert results["sae"].uplift is not None
    assert results["sae"].uplift.value == tool - base
    assert results["sae"].uplift.n_excluded == 8
    assert results[BASELINE].auroc.n_claims == N_CLAIMS - 4


def test_half_credit_stands_beside_the_headline_and_uses_every_claim() -> None:
    # Answered pairs: the arm wins 1 of 1, the baseline loses it: headline +1. Over all four pairs the arm earns
    # 1 + 3 * 1/2 = 2.5 of 4 (two claims unanswered); the baseline, who answered all, 0 + 3 = 3 of 4: -0.125.
    labels = [True, True, False, False]
    outcomes = rows(BASELINE, [0.2, 0.9, 0.3, 0.1], labels) + rows("sae", [0.9, None, 0.1, None], labels)
    result = by_arm(outcomes)["sae"]
    assert result.uplift is not None
    assert result.half_credit is not None
    assert result.uplift.value == 1.0
    assert result.half_credit.value == 2.5 / 4 - 3 / 4
    assert result.half_credit.n_claims == 4


def test_without_a_missing_answer_both_rules_agree() -> None:
    weak, strong, labels = example()
    result = by_arm(rows(BASELINE, weak, labels) + rows("sae", strong, labels))["sae"]
    assert result.half_credit == result.uplift


def test_a_claim_that_one_arm_never_ran_is_excluded_and_counted() -> None:
    weak, strong, labels = example()
    results = by_arm(rows(BASELINE, weak, labels) + rows("sae", strong, labels)[:40])
    assert results["sae"].uplift is not None
    assert (results["sae"].uplift.n_claims, results["sae"].uplift.n_excluded) == (40, 8)


def test_swapping_the_arms_mirrors_uplift_and_its_interval() -> None:
    weak, strong, labels = example()
    forth = by_arm(rows(BASELINE, weak, labels) + rows("sae", strong, labels))["sae"].uplift
    back = by_arm(rows(BASELINE, strong, labels) + rows("sae", weak, labels))["sae"].uplift
    assert forth is not None
    assert back is not None
    assert back.value == -forth.value
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low), abs=1e-12)


def test_an_arm_against_itself_has_exactly_no_uplift_and_no_width() -> None:
    weak, _, labels = example()
    uplift = by_arm(rows(BASELINE, weak, labels) + rows("sae", weak, labels))["sae"].uplift
    assert uplift is not None
    assert (uplift.value, uplift.low, uplift.high) == (0, 0, 0)


def test_the_order_of_outcomes_does_not_matter() -> None:
    weak, strong, labels = example()
    outcomes = rows(BASELINE, weak, labels) + rows("sae", strong, labels)
    shuffled = [outcomes[index] for index in np.random.default_rng(0).permutation(len(outcomes))]
    assert repr(compare(outcomes, seed="s")) == repr(compare(shuffled, seed="s"))


def test_the_seed_moves_the_interval_a_little_and_the_estimate_not_at_all() -> None:
    weak, strong, labels = example()
    outcomes = rows(BASELINE, weak, labels) + rows("sae", strong, labels)
    one, other = by_arm(outcomes, "one")["sae"].uplift, by_arm(outcomes, "other")["sae"].uplift
    assert one is not None
    assert other is not None
    assert one.value == other.value
    assert one.low != other.low
    assert one.low == pytest.approx(other.low, abs=0.02)


def test_clusters_and_not_claims_decide_the_width() -> None:
    # Each claim four times in its cluster: as rows the interval would be half as wide, as clusters it must not move.
    weak, strong, labels = example()

    def width(times: int) -> float:
        tool, base = [p for p in strong for _ in range(times)], [p for p in weak for _ in range(times)]
        truth = [label for label in labels for _ in range(times)]
        outcomes = rows(BASELINE, base, truth, per_cluster=times) + rows("sae", tool, truth, per_cluster=times)
        uplift = by_arm(outcomes)["sae"].uplift
        assert uplift is not None
        return uplift.high - uplift.low

    assert width(4) == pytest.approx(width(1), rel=1e-9)


def test_one_class_gives_no_number_and_says_why() -> None:
    outcomes = rows(BASELINE, [0.1, 0.2], [True, True]) + rows("sae", [0.3, 0.4], [True, True])
    uplift = by_arm(outcomes)["sae"].uplift
    assert uplift is not None
    assert np.isnan([uplift.value, uplift.low, uplift.high]).all()
    assert uplift.notes == ("all 2 claims are true: AUROC is not defined with one class only",)


def test_one_cluster_gives_an_estimate_and_no_interval() -> None:
    labels = [True, False]
    uplift = by_arm(rows(BASELINE, [0.1, 0.2], labels) + rows("sae", [0.4, 0.3], labels))["sae"].uplift
    assert uplift is not None
    assert uplift.value == 1.0
    assert np.isnan(uplift.low)
    assert uplift.notes == ("one cluster only: the interval is not estimable",)


def test_many_one_class_resamples_give_no_interval() -> None:
    labels = [True] + [False] * 11
    outcomes = rows(BASELINE, [0.5] * 12, labels) + rows("sae", list(np.linspace(0, 1, 12)), labels)
    uplift = by_arm(outcomes)["sae"].uplift
    assert uplift is not None
    assert np.isnan(uplift.high)
    assert uplift.one_class_share > 0.05
    assert "of the resamples held one class only" in uplift.notes[0]


def test_a_constant_predictor_is_one_half_with_a_note() -> None:
    weak, _, labels = example()
    results = by_arm(rows(BASELINE, weak, labels) + rows("sae", [0.3] * N_CLAIMS, labels))
    assert results["sae"].auroc.value == 0.5
    assert results["sae"].auroc.notes == (
        "every answer of this arm is 0.3, so its AUROC is 0.5 by definition and holds no information",
    )
    assert results[BASELINE].auroc.notes == ()


def test_few_clusters_are_said() -> None:
    labels = [True, False] * 6
    outcomes = rows(BASELINE, list(np.linspace(0, 1, 12)), labels) + rows("sae", list(np.linspace(1, 0, 12)), labels)
    uplift = by_arm(outcomes)["sae"].uplift
    assert uplift is not None
    assert uplift.notes == ("6 clusters: intervals from fewer than 20 tend to be too narrow",)


def test_a_predictor_that_answered_nothing_leaves_nothing_to_compare() -> None:
    weak, _, labels = example()
    results = by_arm(rows(BASELINE, weak, labels) + rows("sae", [None] * N_CLAIMS, labels))
    uplift = results["sae"].uplift
    assert uplift is not None
    assert np.isnan(uplift.value)
    assert (uplift.n_claims, uplift.n_excluded) == (0, N_CLAIMS)
    nothing, differ = uplift.notes
    assert nothing == "no claim was answered in both arms, so nothing can be compared"
    assert differ.startswith("100.0% of its claims have no answer, but 0.0% of the transcript arm's")


def test_predictors_are_compared_with_their_own_baseline() -> None:
    weak, strong, labels = example()

    def of(predictor: str, outcomes: list[Outcome]) -> list[Outcome]:
        return [replace(row, setting=replace(row.setting, predictor=predictor)) for row in outcomes]

    one = of("one", rows(BASELINE, weak, labels) + rows("sae", strong, labels))
    two = of("two", rows(BASELINE, strong, labels) + rows("sae", strong, labels))
    uplifts = {(r.setting.predictor, r.setting.arm): r.uplift for r in compare(one + two, seed="s")}
    assert uplifts["one", "sae"] is not None
    assert uplifts["one", "sae"].value > 0
    assert uplifts["two", "sae"] is not None
    assert uplifts["two", "sae"].value == 0


def test_rows_that_come_twice_are_refused() -> None:
    weak, _, labels = example()
    with pytest.raises(UserError, match="'claim-000' comes twice in the arm 'transcript'"):
        compare(rows(BASELINE, weak, labels) * 2, seed="s")


def test_arms_of_two_claim_sets_are_refused() -> None:
    weak, strong, labels = example()
    flipped = [not label for label in labels]
    with pytest.raises(UserError, match="they come from different claim sets"):
        compare(rows(BASELINE, weak, labels) + rows("sae", strong, flipped), seed="s")


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
