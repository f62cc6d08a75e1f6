"""From outcomes to uplift: pairing, exclusions, half credit, and what a reader is told."""

from dataclasses import replace

import numpy as np
import pytest

from claims.schema import UserError
from harness.outcomes import Outcome
from harness.stats import auroc
from harness.uplift import BASELINE, compare
from tests.arm_rows import N_CLAIMS, by_arm, example, rows


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
