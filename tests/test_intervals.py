"""Second opinions on uplift: each by hand, against a naive twin, and by a law."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats as scipy_stats
from test_stats import auroc_by_pairs, flags, tied_case

from harness.intervals import (
    bca_interval,
    clustered_delong,
    equivalence,
    holm,
    left_out,
    mean_credit,
    sign_test,
)
from harness.seeding import keyed_rng
from harness.stats import Resampler, auroc, pair_credit, percentile_interval


def classes_of(labels: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    n = int(clusters.max()) + 1
    return np.stack([np.bincount(clusters[side], minlength=n) for side in (labels, ~labels)], axis=1).astype(float)


def difference_case(seed: int):
    (better, worse), labels, clusters = tied_case(seed, n_claims=120, n_clusters=30)
    credit = pair_credit(worse, labels, clusters) - pair_credit(better, labels, clusters)
    return worse, better, labels, clusters, credit, classes_of(labels, clusters)


def test_the_jackknife_is_the_value_without_each_cluster() -> None:
    one, other, labels, clusters, credit, classes = difference_case(1)
    for cluster, value in enumerate(left_out(credit, classes)):
        rest = clusters != cluster
        assert value == pytest.approx(auroc(one[rest], labels[rest]) - auroc(other[rest], labels[rest]), abs=1e-12)


def test_bca_equals_scipys_on_a_mean() -> None:
    sample = keyed_rng("bca").gamma(1.0, size=40)
    rng = np.random.default_rng(3)
    theirs = scipy_stats.bootstrap((sample,), np.mean, n_resamples=5000, method="BCa", rng=rng)
    jackknife = np.array([np.delete(sample, index).mean() for index in range(40)])
    ours = bca_interval(float(sample.mean()), theirs.bootstrap_distribution, jackknife)
    assert ours.fallback == ""
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-9)


def test_bca_of_symmetric_draws_without_acceleration_is_the_percentile_interval() -> None:
    draws = np.linspace(-1, 1, 2001)
    ours = bca_interval(0.0, draws, np.array([-1.0, 1.0, -2.0, 2.0]))
    assert (ours.low, ours.high) == pytest.approx(percentile_interval(draws), abs=1e-9)


@pytest.mark.parametrize(
    ("draws", "jackknife", "why"),
    [
        (np.zeros(100) + 1, np.arange(5.0), "one side"),
        (np.arange(-50.0, 50), np.full(5, 0.3), "no cluster moves"),
        (np.arange(-50.0, 50), np.array([0.1, math.nan]), "only one class is left"),
    ],
)
def test_where_bca_is_not_defined_the_percentile_interval_stands_under_its_own_name(
    draws: np.ndarray, jackknife: np.ndarray, why: str
) -> None:
    ours = bca_interval(0.0, draws, jackknife)
    assert why in ours.fallback
    assert (ours.low, ours.high) == percentile_interval(draws)


def delong_by_loops(one: np.ndarray, other: np.ndarray, labels: np.ndarray) -> float:
    """The variance of DeLong, DeLong and Clarke-Pearson for independent claims, from its definition."""

    def parts(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        won = np.array([[0.5 if a == b else float(a > b) for b in p[~labels]] for a in p[labels]])
        return won.mean(axis=1), won.mean(axis=0)

    (one_true, one_false), (other_true, other_false) = parts(one), parts(other)
    by_true, by_false = one_true - other_true, one_false - other_false
    return float(by_true.var(ddof=1) / len(by_true) + by_false.var(ddof=1) / len(by_false))


def test_with_a_cluster_a_claim_it_is_delongs_variance() -> None:
    one, other, labels, _, _, _ = difference_case(2)
    singles = np.arange(len(labels))
    credit = pair_credit(one, labels, singles) - pair_credit(other, labels, singles)
    ours = clustered_delong(credit, classes_of(labels, singles))
    assert ours.standard_error**2 == pytest.approx(delong_by_loops(one, other, labels), rel=1e-9)


def test_the_clustered_variance_by_hand() -> None:
    # Cluster 0: true 0.9, false 0.1; cluster 1: true 0.3, false 0.5; cluster 2: true 0.7, false 0.2.
    # Shares won by true claims: 0.9: 1, 0.3: 2/3, 0.7: 1; against false ones: 0.1: 1, 0.5: 2/3, 0.2: 1. AUROC 8/9.
    # Deviations 1/9, -2/9, 1/9 on both sides: each sum of squares 6/81, so each variance is 3/2 * 6/81 / 9 = 1/81, and
    # the covariance term is 2 * 3/2 * 6/81 / 9 = 2/81. Together 4/81: the standard error is 2/9.
    p, labels = np.array([0.9, 0.1, 0.3, 0.5, 0.7, 0.2]), flags(1, 0, 1, 0, 1, 0)
    clusters = np.array([0, 0, 1, 1, 2, 2])
    ours = clustered_delong(pair_credit(p, labels, clusters), classes_of(labels, clusters), null=0.5)
    assert ours.standard_error == pytest.approx(2 / 9)
    assert ours.p_value == pytest.approx(2 * scipy_stats.norm.sf((8 / 9 - 1 / 2) / (2 / 9)))
    assert ours.high - ours.low == pytest.approx(2 * 1.959964 * 2 / 9, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_delong_and_the_bootstrap_agree_on_the_standard_error(seed: int) -> None:
    one, other, labels, clusters, credit, classes = difference_case(seed)
    resampler = Resampler(labels, clusters, rng=keyed_rng("agree", seed), n_resamples=4000)
    draws = resampler.aurocs(pair_credit(one, labels, clusters)) - resampler.aurocs(
        pair_credit(other, labels, clusters)
    )
    assert clustered_delong(credit, classes).standard_error == pytest.approx(draws.std(), rel=0.12)


def test_swapping_the_arms_mirrors_every_opinion() -> None:
    _, _, _, _, credit, classes = difference_case(4)
    draws = keyed_rng("mirror").normal(0.01, 0.02, size=999)
    forth, back = clustered_delong(credit, classes), clustered_delong(-credit, classes)
    assert (forth.low, forth.high, forth.p_value) == pytest.approx((-back.high, -back.low, back.p_value))
    one = bca_interval(0.01, draws, left_out(credit, classes))
    other = bca_interval(-0.01, -draws, left_out(-credit, classes))
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)


def test_an_arm_against_itself_has_no_spread_and_a_p_value_of_one() -> None:
    _, _, _, _, credit, classes = difference_case(5)
    ours = clustered_delong(credit * 0, classes)
    assert (ours.standard_error, ours.low, ours.high) == (0, 0, 0)
    assert ours.p_value == 1
    assert math.isnan(clustered_delong(credit * 0, classes, null=0.5).p_value)


def test_too_few_clusters_with_a_class_give_no_variance() -> None:
    labels, clusters = flags(1, 0, 0), np.array([0, 1, 2])
    credit = pair_credit(np.array([0.9, 0.2, 0.1]), labels, clusters)
    assert math.isnan(clustered_delong(credit, classes_of(labels, clusters)).standard_error)


@pytest.mark.parametrize("seed", range(3))
def test_the_p_value_is_the_level_at_which_the_interval_ends_at_the_null(seed: int) -> None:
    _, _, _, _, credit, classes = difference_case(seed)
    p_value = clustered_delong(credit, classes).p_value
    at_its_level = clustered_delong(credit, classes, level=1 - p_value)
    assert min(abs(at_its_level.low), abs(at_its_level.high)) == pytest.approx(0, abs=1e-9)


def test_holm_by_hand_and_against_its_definition() -> None:
    # Sorted 0.01, 0.02, 0.03: times 3, 2, 1 gives 0.03, 0.04, 0.03, and what comes later is never smaller.
    assert holm({"a": 0.02, "b": 0.01, "c": 0.03}) == pytest.approx({"a": 0.04, "b": 0.03, "c": 0.04})
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = {str(index): float(value) for index, value in enumerate(rng.random(5) ** 3)}
        ordered = sorted(p, key=p.__getitem__)
        for place, name in enumerate(ordered):
            steps = [min(1.0, (5 - rank) * p[other]) for rank, other in enumerate(ordered[: place + 1])]
            assert holm(p)[name] == pytest.approx(max(steps))


def test_holm_leaves_out_what_was_not_tested() -> None:
    adjusted = holm({"a": 0.01, "b": math.nan})
    assert adjusted["a"] == 0.01
    assert math.isnan(adjusted["b"])
    assert holm({}) == {}


def test_equivalence_needs_the_ninety_percent_interval_within_the_margin() -> None:
    draws = np.linspace(-0.04, 0.04, 1001)
    found = equivalence(draws, 0.05)
    assert (found.low, found.high) == pytest.approx((-0.036, 0.036))
    assert found.shown
    assert not equivalence(draws, 0.03).shown
    assert not equivalence(draws + 0.02, 0.05).shown


def test_the_sign_test_by_hand_and_against_scipy() -> None:
    # 0 of 5: 2 / 32. An even split is no evidence.
    assert sign_test(0, 5) == 2 / 32
    assert sign_test(3, 3) == 1.0
    assert sign_test(0, 0) == 1.0
    for better, worse in [(1, 9), (4, 17), (30, 12)]:
        assert sign_test(better, worse) == pytest.approx(scipy_stats.binomtest(better, better + worse).pvalue)


def test_the_mean_of_aurocs_is_the_auroc_of_the_mean_credit_and_not_of_the_mean_probability() -> None:
    (one, other), labels, clusters = tied_case(6)
    mean = mean_credit([pair_credit(p, labels, clusters) for p in (one, other)])
    n_pairs = labels.sum() * (~labels).sum()
    assert mean.sum() / n_pairs == pytest.approx((auroc_by_pairs(one, labels) + auroc_by_pairs(other, labels)) / 2)
    assert auroc((one + other) / 2, labels) > mean.sum() / n_pairs


def test_holm_keeps_the_order_of_p_values() -> None:
    p = {str(index): value for index, value in enumerate([0.001, 0.02, 0.04, 0.2, 0.9])}
    adjusted = list(holm(p).values())
    assert all(one <= other for one, other in pairwise(adjusted))
