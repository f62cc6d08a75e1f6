"""The statistics, each proved by hand arithmetic, by a naive second implementation, and by a law."""

import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import rankdata

from harness.seeding import digest, keyed_rng
from harness.stats import (
    MAX_ONE_CLASS_SHARE,
    accuracy,
    auroc,
    bootstrap,
    brier,
    pair_credit,
    percentile_interval,
    two_class_weights,
    weighted_aurocs,
)

NAN = float("nan")


def flags(*values: int) -> np.ndarray:
    return np.array(values, dtype=bool)


def tied_case(seed: int, n_claims: int = 60, n_clusters: int = 12, unanswered: float = 0.0):
    """Probabilities rounded to one decimal, so that ties abound."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n_claims) < 0.5
    clusters = np.unique(rng.integers(n_clusters, size=n_claims), return_inverse=True)[1]
    arms = [np.round(np.clip(rng.random(n_claims) * 0.7 + labels * gain, 0, 1), 1) for gain in (0.1, 0.3)]
    for arm in arms:
        arm[rng.random(n_claims) < unanswered] = NAN
    return arms, labels, clusters


def auroc_by_ranks(p_true: np.ndarray, labels: np.ndarray) -> float:
    """The textbook formula over mid-ranks."""
    n_true, n_false = labels.sum(), (~labels).sum()
    return (rankdata(p_true)[labels].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false)


def auroc_by_pairs(p_true: np.ndarray, labels: np.ndarray) -> float:
    """Every pair in turn; a pair with an unanswered claim earns half."""
    earned = []
    for above in p_true[labels]:
        for below in p_true[~labels]:
            half = np.isnan(above) or np.isnan(below) or above == below
            earned.append(0.5 if half else float(above > below))
    return sum(earned) / len(earned)


def test_auroc_by_hand() -> None:
    # true: 0.9, 0.5; false: 0.5, 0.1. Pairs: 0.9>0.5 (1), 0.9>0.1 (1), 0.5=0.5 (1/2), 0.5>0.1 (1): 3.5 of 4.
    assert auroc(np.array([0.9, 0.5, 0.5, 0.1]), flags(1, 1, 0, 0)) == 3.5 / 4


def test_an_unanswered_claim_earns_half_in_each_of_its_pairs_and_is_not_ranked_at_one_half() -> None:
    # true: 0.9, none; false: 0.8, 0.7. Pairs: 1, 1, then 1/2, 1/2: 3 of 4. Written as 0.5 it would lose both: 2 of 4.
    labels = flags(1, 1, 0, 0)
    assert auroc(np.array([0.9, NAN, 0.8, 0.7]), labels) == 3 / 4
    assert auroc(np.array([0.9, 0.5, 0.8, 0.7]), labels) == 2 / 4


def test_accuracy_and_brier_by_hand_over_answered_claims_only() -> None:
    p_true, labels = np.array([0.9, 0.5, 0.2, 0.6, NAN]), flags(1, 1, 0, 0, 1)
    assert accuracy(p_true, labels) == (1 + 0.5 + 1 + 0) / 4
    assert brier(p_true, labels) == pytest.approx((0.01 + 0.25 + 0.04 + 0.36) / 4)


def test_what_is_not_defined_is_nan() -> None:
    assert np.isnan(auroc(np.array([0.1, 0.2]), flags(1, 1)))
    assert np.isnan(auroc(np.array([]), flags()))
    assert np.isnan(accuracy(np.array([NAN]), flags(1)))
    assert np.isnan(brier(np.array([NAN]), flags(1)))


@pytest.mark.parametrize("sentinel", [-1.0, 2.0, np.inf])
def test_a_sentinel_is_refused_where_a_probability_belongs(sentinel: float) -> None:
    with pytest.raises(ValueError, match="write nan, not a sentinel"):
        auroc(np.array([0.1, sentinel]), flags(0, 1))


def test_arrays_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="one shape"):
        pair_credit(np.array([0.1, 0.2]), flags(0, 1, 1), np.array([0, 0, 0]))


@pytest.mark.parametrize("seed", range(5))
def test_auroc_equals_the_rank_formula_and_the_loop_over_pairs(seed: int) -> None:
    (arm, _), labels, _ = tied_case(seed)
    assert auroc(arm, labels) == auroc_by_ranks(arm, labels) == auroc_by_pairs(arm, labels)
    (gappy, _), labels, _ = tied_case(seed, unanswered=0.3)
    assert auroc(gappy, labels) == auroc_by_pairs(gappy, labels)


def test_pair_credit_by_hand() -> None:
    # Cluster 0: true 0.9, false 0.5. Cluster 1: true 0.5, false none.
    credit = pair_credit(np.array([0.9, 0.5, 0.5, NAN]), flags(1, 0, 1, 0), np.array([0, 0, 1, 1]))
    assert credit.tolist() == [[1.0, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("unanswered", [0.0, 0.2])
def test_the_quadratic_form_equals_a_loop_over_materialised_resamples(unanswered: float) -> None:
    arms, labels, clusters = tied_case(7, unanswered=unanswered)
    fast = bootstrap(arms, labels, clusters, rng=keyed_rng("twin"), n_resamples=200).aurocs
    sizes = np.stack([np.bincount(clusters, weights=labels), np.bincount(clusters, weights=~labels)], axis=1)
    weights, _ = two_class_weights(sizes, 200, rng=keyed_rng("twin"))
    naive = auroc_by_pairs if unanswered else auroc_by_ranks
    for column, row in enumerate(weights.astype(int)):
        drawn = np.concatenate([np.flatnonzero(clusters == cluster) for cluster in np.repeat(np.arange(len(row)), row)])
        assert [naive(arm[drawn], labels[drawn]) for arm in arms] == fast[:, column].tolist()


def test_a_cluster_drawn_twice_counts_twice() -> None:
    # Cluster 0 once (true 0.9, false 0.1), cluster 1 twice (true 0.2, false 0.3). True 0.9, 0.2, 0.2; false 0.1, 0.3,
    # 0.3. Pairs won: 0.9 beats 3; each 0.2 beats 0.1 only: 5 of 9. With the repeat dropped it would be 3 of 4.
    labels, clusters = flags(1, 0, 1, 0), np.array([0, 0, 1, 1])
    credit = pair_credit(np.array([0.9, 0.1, 0.2, 0.3]), labels, clusters)
    sizes = np.ones((2, 2))
    assert weighted_aurocs(np.array([[1.0, 2.0]]), credit, sizes)[0, 0] == 5 / 9
    assert weighted_aurocs(np.array([[1.0, 1.0]]), credit, sizes)[0, 0] == 3 / 4


def test_swapping_the_arms_mirrors_every_resampled_difference() -> None:
    arms, labels, clusters = tied_case(3)
    one = bootstrap(arms, labels, clusters, rng=keyed_rng("law"), n_resamples=500).aurocs
    other = bootstrap(arms[::-1], labels, clusters, rng=keyed_rng("law"), n_resamples=500).aurocs
    assert ((one[1] - one[0]) == -(other[1] - other[0])).all()


def test_the_order_of_rows_does_not_matter() -> None:
    arms, labels, clusters = tied_case(4)
    order = np.random.default_rng(0).permutation(len(labels))
    one = bootstrap(arms, labels, clusters, rng=keyed_rng("law"), n_resamples=200).aurocs
    shuffled = [arm[order] for arm in arms]
    other = bootstrap(shuffled, labels[order], clusters[order], rng=keyed_rng("law"), n_resamples=200).aurocs
    assert (one == other).all()


def test_only_the_order_of_probabilities_matters() -> None:
    arms, labels, clusters = tied_case(5)
    one = bootstrap(arms, labels, clusters, rng=keyed_rng("law"), n_resamples=200).aurocs
    squeezed = [arm**3 / 2 for arm in arms]
    other = bootstrap(squeezed, labels, clusters, rng=keyed_rng("law"), n_resamples=200).aurocs
    assert (one == other).all()


def test_flipping_every_label_mirrors_auroc_about_one_half() -> None:
    (arm, _), labels, _ = tied_case(6, unanswered=0.2)
    assert auroc(arm, labels) == pytest.approx(1 - auroc(arm, ~labels), abs=1e-15)


def test_equal_probabilities_give_exactly_one_half_in_every_resample() -> None:
    _, labels, clusters = tied_case(8)
    same = np.full(len(labels), 0.37)
    assert (bootstrap([same], labels, clusters, rng=keyed_rng("x"), n_resamples=300).aurocs == 0.5).all()


def test_one_class_resamples_are_drawn_again_and_their_share_is_reported() -> None:
    # Eleven clusters, the first alone holds true claims: it is missed with probability (10/11)^11 = 0.35.
    labels = flags(1, *[0] * 10)
    clusters = np.arange(11)
    resamples = bootstrap([np.linspace(0, 1, 11)], labels, clusters, rng=keyed_rng("x"), n_resamples=4000)
    assert resamples.one_class_share == pytest.approx((10 / 11) ** 11, abs=0.03)
    assert not resamples.estimable
    assert np.isfinite(resamples.aurocs).all()


def test_rare_one_class_resamples_leave_the_interval_estimable() -> None:
    # Ten clusters, five hold true claims only, five false ones: one class with probability 2 / 2^10 = 0.002.
    labels = flags(*[1] * 5, *[0] * 5)
    resamples = bootstrap([np.linspace(0, 1, 10)], labels, np.arange(10), rng=keyed_rng("x"), n_resamples=4000)
    assert 0 < resamples.one_class_share < MAX_ONE_CLASS_SHARE
    assert resamples.estimable
    assert np.isfinite(resamples.aurocs).all()


@pytest.mark.parametrize(
    ("labels", "clusters"),
    [(flags(1, 1), np.array([0, 1])), (flags(1, 0), np.array([0, 0])), (flags(), np.array([], int))],
)
def test_one_class_or_one_cluster_is_not_estimable(labels: np.ndarray, clusters: np.ndarray) -> None:
    resamples = bootstrap([np.full(len(labels), 0.5)], labels, clusters, rng=keyed_rng("x"), n_resamples=10)
    assert not resamples.estimable
    assert np.isnan(resamples.aurocs).all()


def test_the_interval_is_the_central_share_of_the_draws() -> None:
    # 0..1000: 2.5 % lies at 25, 97.5 % at 975.
    assert percentile_interval(np.arange(1001.0)) == pytest.approx((25, 975))


def clustered_sample(rng: np.random.Generator, n_clusters: int = 60, size: int = 4):
    """Claims of a cluster share their label and most of what moves their score; d' is 1.0 and 0.5."""
    labels = np.repeat(np.arange(n_clusters) % 2 == 0, size)
    clusters = np.repeat(np.arange(n_clusters), size)
    shared = np.repeat(rng.normal(size=n_clusters), size) * np.sqrt(0.5)
    arms = []
    for distance in (1.0, 0.5):
        own = np.repeat(rng.normal(size=n_clusters), size) * np.sqrt(0.3)
        noise = rng.normal(size=len(labels)) * np.sqrt(0.2)
        arms.append(ndtr(labels * distance + shared + own + noise))
    return arms, labels, clusters


def coverage(n_replications: int, *, by_row: bool) -> float:
    truth = ndtr(1.0 / np.sqrt(2)) - ndtr(0.5 / np.sqrt(2))
    rng = keyed_rng("coverage")
    hits = 0
    for _ in range(n_replications):
        (better, worse), labels, clusters = clustered_sample(rng)
        units = np.arange(len(labels)) if by_row else clusters
        draws = bootstrap([better, worse], labels, units, rng=rng, n_resamples=300).aurocs
        low, high = percentile_interval(draws[0] - draws[1])
        hits += low <= truth <= high
    return hits / n_replications


def test_intervals_over_clusters_cover_the_truth_and_intervals_over_rows_do_not() -> None:
    n_replications = 250
    error = np.sqrt(0.95 * 0.05 / n_replications)
    assert abs(coverage(n_replications, by_row=False) - 0.95) < 3 * error
    assert coverage(60, by_row=True) < 0.8


def test_ten_thousand_resamples_of_1294_claims_are_over_ten_times_faster_than_the_loop() -> None:
    arms, labels, clusters = tied_case(9, n_claims=1294, n_clusters=500)
    start = time.process_time()
    bootstrap(arms, labels, clusters, rng=keyed_rng("speed"), n_resamples=10_000)
    fast = time.process_time() - start
    members = [np.flatnonzero(clusters == cluster) for cluster in range(clusters.max() + 1)]
    rng = keyed_rng("speed")
    start = time.process_time()
    for _ in range(100):
        drawn = np.concatenate([members[cluster] for cluster in rng.integers(len(members), size=len(members))])
        [auroc_by_ranks(arm[drawn], labels[drawn]) for arm in arms]
    loop = (time.process_time() - start) * 100
    assert loop > 10 * fast


def test_seeds_come_from_the_key_and_not_from_the_process() -> None:
    code = "from harness.seeding import keyed_rng; print(keyed_rng('ceiling', 0, 'claim-7').integers(10**9))"
    command = [sys.executable, "-c", code]
    here = str(keyed_rng("ceiling", 0, "claim-7").integers(10**9))
    for salt in ("1", "2"):
        done = subprocess.run(command, env={"PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == here


def test_keys_that_read_alike_draw_differently() -> None:
    assert len({digest("a", "b"), digest("ab"), digest("a,b"), digest("1"), digest(1)}) == 5
