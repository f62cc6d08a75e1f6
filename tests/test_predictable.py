"""Trivial predictors: what they must find, and what they must not."""

import numpy as np
import pytest

from claims.build.predictable import Visible, auroc, trivial_aurocs


def bank(n_clusters: int, text_of: dict[bool, str], seed: int = 0) -> list[Visible]:
    """One true and one false claim a cluster; words, rates and kinds by chance beyond `text_of`."""
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(50)]
    return [
        Visible(
            f"c{cluster}",
            str(rng.choice(["swap", "add"])),
            float(rng.random()),
            f"{text_of[label]} {' '.join(rng.choice(words, 8))}",
            label,
        )
        for cluster in range(n_clusters)
        for label in (True, False)
    ]


def test_auroc_counts_pairs_and_halves_ties() -> None:
    # Pairs (true, false): .9 > .5, .9 > .1, .5 = .5, .5 > .1: 3.5 of 4.
    assert auroc(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False])) == 3.5 / 4
    assert np.isnan(auroc(np.array([1.0, 2.0]), np.array([True, True])))


def test_a_word_that_gives_the_label_away_is_found() -> None:
    assert trivial_aurocs(bank(40, {True: "removed", False: "replaced"}))["bag_of_words"] > 0.95


def test_words_of_a_cluster_alone_give_nothing_away() -> None:
    # Every cluster has words of its own, and all its claims one label: learned by heart, useless elsewhere.
    claims = [
        Visible(f"c{cluster}", "swap", 0.5, f"only{cluster} here{cluster}", cluster % 2 == 0)
        for cluster in range(40)
        for _ in range(3)
    ]
    assert trivial_aurocs(claims)["bag_of_words"] == pytest.approx(0.5, abs=0.01)


def test_chance_stays_near_one_half() -> None:
    found = [trivial_aurocs(bank(100, {True: "", False: ""}, seed))["bag_of_words"] for seed in range(4)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.06)


def test_kind_rate_and_length_get_their_better_direction() -> None:
    claims = [
        Visible("a", "delete", 0.4, "long text", True),
        Visible("b", "swap", 0.6, "long text", True),
        Visible("c", "swap", 0.8, "very long text", False),
        Visible("d", "swap", 0.8, "very long text", False),
    ]
    found = trivial_aurocs(claims)
    # Kind: delete scores 1, swap 1/3: the first true claim beats both false ones, the second ties with both.
    assert (found["kind_of_edit"], found["baseline_rate"], found["claim_length"]) == (0.75, 1.0, 1.0)


def test_the_order_of_the_claims_does_not_matter() -> None:
    claims = bank(30, {True: "removed", False: "replaced"})
    assert trivial_aurocs(claims) == trivial_aurocs(claims[::-1])
