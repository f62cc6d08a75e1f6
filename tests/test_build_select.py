"""Measuring and choosing: screening, thresholds, caps, balance."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from claims.build import select
from claims.build.measure import deepen, drawn_edits, excess_of_kinds, judge, promising, screen
from claims.build.programs import says
from claims.build.select import balance
from claims.build.spec import KINDS
from tests.known_rates import KnownRates, candidates, edits_at, measured
from tools.sampling import Sample


def test_a_rate_is_the_share_of_yes() -> None:
    batch = judge([Sample("yes", (1,), True), Sample("no", (1,), True), Sample("no", (1,), True)], says("yes"))
    assert (batch.n_yes, batch.n, batch.rate) == (1, 3, Fraction(1, 3))


def test_of_each_side_two_edits_are_drawn_for_the_full_sampling() -> None:
    # Of ten: five changes of 10, 9, 8, 7 and 6, and five of 0.
    one, rates = edits_at([0, 3, 6, 9, 12, 30, 30, 30, 30, 30])
    [screened] = screen(KnownRates(rates), [one], seed=0)
    even = dict.fromkeys(KINDS, 0.0)
    sets = [{edit.edit_id for edit in drawn_edits(screened, seed, even)} for seed in range(40)]
    large = {f"e{i}" for i in range(5)}
    assert all(len(chosen & large) == 2 == len(chosen - large) for chosen in sets)
    assert set().union(*sets) == {f"e{i}" for i in range(10)}
    [deep] = deepen(KnownRates(rates), [screened], seed=1)
    assert {edit_id for edit_id in deep.edits if deep.is_full(edit_id)} == sets[1]


def test_only_what_can_still_become_a_claim_is_sampled_thirty_times() -> None:
    # Of ten: changes of 10, 4, 3 (between), 2 and 0 against a baseline of ten yes.
    one, rates = edits_at([0, 18, 21, 24, 30])
    rare, rare_rates = edits_at([0], "rare", baseline=3)
    known = KnownRates({**rates, **rare_rates})
    screened = screen(known, [one, rare], seed=4)
    assert [sorted(m.edits) for m in screened] == [["e0", "e1", "e2", "e3", "e4"], []]
    assert [edit.edit_id for edit in promising(screened[0])] == ["e0", "e1", "e3", "e4"]
    known.asked.clear()
    [deep, still_rare] = deepen(known, screened, seed=4)
    assert {n for _, n, _ in known.asked} == {30}
    assert len(known.asked) == 5
    assert [deep.edits[f"e{i}"].n for i in range(5)] == [30, 30, 10, 30, 30]
    assert still_rare.baseline.n == 10


def test_kinds_that_are_rare_on_a_side_are_drawn_first_there() -> None:
    one, rates = edits_at([0, 0, 0, 30, 30, 30])
    kinds = ["delete", "delete", "add", "delete", "add", "add"]
    edits = tuple(replace(edit, kind=kind) for edit, kind in zip(one.edits, kinds, strict=True))
    [screened] = screen(KnownRates(rates), [replace(one, edits=edits)], seed=0)
    excess = excess_of_kinds([screened])
    # Of three large changes two are deletions, of three small ones one.
    assert {kind: round(3 * share) for kind, share in excess.items()} == {
        "delete": 1,
        "swap": 0,
        "add": -1,
        "reorder": 0,
    }
    for seed in range(9):
        drawn = {edit.edit_id for edit in drawn_edits(screened, seed, excess)}
        assert len(drawn) == 4
        assert {"e2", "e3"} <= drawn


def test_investigations_where_both_labels_may_come_out_are_sampled_in_full_first() -> None:
    one_sided = [edits_at([0], f"only{i}", f"t{i}") for i in range(4)]
    both = [edits_at([0, 30], f"both{i}", "same") for i in range(4)]
    known = KnownRates({text: n for _, rates in one_sided + both for text, n in rates.items()})
    screened = screen(known, [one for one, _ in one_sided + both], seed=0)

    def in_full(most: int | None, seed: int = 0, kept: tuple[str, ...] = ()) -> set[str]:
        deep = deepen(known, screened, seed=seed, most=most, kept=kept)
        return {one.investigation.investigation_id for one in deep if one.baseline.n == 30}

    assert len(in_full(2)) == 2
    assert all(name.startswith("both") for name in in_full(2))
    assert len({frozenset(in_full(2, seed)) for seed in range(9)}) > 1
    # Three of the template they share, then the others.
    assert sorted(name[:4] for name in in_full(5)) == ["both"] * 3 + ["only"] * 2
    assert len(in_full(None)) == 7
    # What a bank holds already goes before everything.
    assert "only2" in in_full(1, kept=("only2",))


def test_among_equals_the_investigations_with_short_responses_go_first() -> None:
    pairs = [edits_at([0, 30], f"i{i}", f"t{i}") for i in range(4)]
    known = KnownRates({text: n for _, rates in pairs for text, n in rates.items()})
    screened = screen(known, [one for one, _ in pairs], seed=0)
    long = Sample("yes", tuple(range(9)), finished=True)
    longer = [replace(one, baseline=replace(one.baseline, samples=(long,) * 10)) for one in screened[:3]]
    deep = deepen(known, [*longer, screened[3]], seed=0, most=1)
    assert [one.investigation.investigation_id for one in deep if one.baseline.n == 30] == ["i3"]


@pytest.mark.parametrize(("n_yes", "label"), [(15, True), (0, True), (16, None), (25, None), (26, False), (30, False)])
def test_a_change_of_fifty_points_is_true_and_of_fifteen_false(n_yes: int, label: bool | None) -> None:
    # Against 30 of 30: 15 is exactly 50 points, 25.5 would be 15 points.
    chosen, counts = select.select([measured([n_yes])], seed=0)
    assert counts["labelled_true"] == (label is True)
    assert counts["labelled_false"] == (label is False)
    assert chosen == []


def test_a_rise_counts_like_a_fall() -> None:
    _, counts = select.select([measured([28, 13], baseline=12)], seed=0)
    assert (counts["labelled_true"], counts["labelled_false"]) == (1, 1)


def test_a_baseline_below_thirty_percent_gives_no_claim() -> None:
    _, at = select.select([measured([30], baseline=9)], seed=0)
    _, below = select.select([measured([30], baseline=8)], seed=0)
    assert (at["labelled_true"], below["labelled_true"]) == (1, 0)


def test_an_investigation_gives_two_claims_of_a_label_drawn_whatever_the_size_of_their_change() -> None:
    one = measured([0, 10, 5, 15, 30, 29, 28])
    drawn = Counter()
    for seed in range(40):
        chosen, counts = select.select([one], seed=seed)
        assert (counts["labelled_true"], counts["labelled_false"]) == (4, 3)
        assert (counts["two_of_a_label_true"], counts["two_of_a_label_false"]) == (2, 2)
        drawn.update(candidate.edit.edit_id for candidate in chosen if candidate.label)
    # Of 40 draws of two out of four each edit is expected 20 times; the smallest change as often as the largest.
    assert sum(drawn.values()) == 80
    assert all(10 <= drawn[f"e{i}"] <= 30 for i in range(4))


def test_a_template_gives_three_investigations_those_with_both_labels_first() -> None:
    family = [measured([0], f"true{i}") for i in range(3)] + [measured([0, 30], f"both{i}") for i in range(3)]
    chosen, counts = select.select(family, seed=0)
    assert {one.investigation_id for one in chosen} == {"both0", "both1", "both2"}
    assert (counts["three_of_a_template_true"], counts["three_of_a_template_false"]) == (3, 3)


def test_balance_keeps_clusters_and_evens_the_kinds_of_edit() -> None:
    rows = [("a", "swap", True), ("b", "swap", True), ("c", "add", False), ("c", "swap", False), ("c", "swap", False)]
    kept = balance(candidates(*rows, ("d", "delete", False)), seed=0)
    assert Counter(one.label for one in kept) == {True: 2, False: 2}
    # d stays, being alone in its cluster; of c the add goes, swaps being on the true side as well.
    assert sorted((one.cluster_id, one.edit.kind) for one in kept) == [
        ("a", "swap"),
        ("b", "swap"),
        ("c", "swap"),
        ("d", "delete"),
    ]


def test_balance_does_not_depend_on_the_order_of_the_claims() -> None:
    made = candidates(*[(f"c{i}", "swap", i < 3) for i in range(12)])
    ids = {one.claim_id for one in balance(made, seed=1)}
    assert ids == {one.claim_id for one in balance(made[::-1], seed=1)}
    assert ids != {one.claim_id for one in balance(made, seed=2)}
