"""The paper's tables: their layout, their four forms, and the paper's own arithmetic."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_uplift import example, rows

from harness.arms import BASELINE, REPEAT
from harness.families import families_table
from harness.flips import FlipCounts, accuracy_after, count_flips
from harness.outcomes import Outcome
from harness.paper_tables import checks_table, flips_table, shams_table, sweep_table, targets_table
from harness.results import same_repetitions
from harness.stats import auroc
from harness.subsets import hard_claims, only
from harness.tabular import Cell, Column, Table, csv_text, interval, json_text, latex, markdown, words, write_tables
from harness.uplift import compare

NAN = float("nan")


def at(outcomes: Sequence[Outcome], **changes: object) -> list[Outcome]:
    return [replace(row, setting=replace(row.setting, **changes)) for row in outcomes]


def swept() -> list[Outcome]:
    """A tool with positions at five budgets, one without at three."""
    weak, strong, labels = example()
    made = rows(BASELINE, weak, labels)
    for number, (calls, positions) in enumerate([(5, 32), (2, 32), (10, 32), (5, 16), (5, 64)]):
        tool = [round(p + 0.02 * number * label, 3) for p, label in zip(weak, labels, strict=True)]
        made += at(rows("sae", [min(p, 1.0) for p in tool], labels), calls=calls, positions=positions)
    for calls in (2, 5, 10):
        made += at(rows("ao", strong, labels), calls=calls, positions=0)
    return made


def test_the_sweep_has_the_papers_layout_with_the_main_setting_starred() -> None:
    table = sweep_table(compare(swept(), seed="s"), (5, 32))
    assert table is not None
    heads = [column.head for column in table.columns]
    assert heads == ["tool", "2 calls", "5 calls*", "10 calls", "16 positions", "32 positions*", "64 positions"]
    ao, sae = ([cell.text for cell in row] for row in table.rows)
    assert (ao[0], sae[0]) == ("ao", "sae")
    assert ao[4:] == ["-", "-", "-"]
    assert "-" not in sae
    assert sae[2] == sae[5]
    results = {result.key: result for result in compare(swept(), seed="s")}
    assert sae[4].startswith(f"{results['sae', 5, 16].uplift.value:+.3f} (")


def test_one_budget_is_no_sweep() -> None:
    weak, strong, labels = example()
    results = compare(rows(BASELINE, weak, labels) + rows("sae", strong, labels), seed="s")
    assert sweep_table(results, (5, 32)) is None


def test_predictors_stand_side_by_side_each_with_its_own_uplift() -> None:
    weak, strong, labels = example()
    one = at(rows(BASELINE, weak, labels) + rows("sae", strong, labels), predictor="one")
    two = at(rows(BASELINE, strong, labels), predictor="two")
    table = families_table(compare(one + two, seed="s"))
    assert [column.head for column in table.columns[1:]] == ["one: AUROC", "one: uplift", "two: AUROC", "two: uplift"]
    base, tool = ([cell.text for cell in row] for row in table.rows)
    assert base[0] == BASELINE
    assert base[2] == base[4] == "-"
    assert tool[3:] == ["-", "-"]
    assert tool[1].startswith(f"{auroc(np.array(strong), np.array(labels)):.3f} (")


@pytest.mark.parametrize(
    ("baseline", "arms", "uplifts"),
    [
        (0.819, (0.810, 0.812, 0.809), (-0.009, -0.007, -0.010)),
        (0.793, (0.784, 0.654, 0.746), (-0.009, -0.139, -0.047)),
        (0.814, (0.810, 0.808, 0.812), (-0.004, -0.006, -0.002)),
    ],
)
def test_table_5_of_the_paper_gives_its_own_uplifts(
    baseline: float, arms: Sequence[float], uplifts: Sequence[float]
) -> None:
    # Published AUROCs to published differences, and the main column of its Table 4 within its rounding of +-0.001.
    assert [round(arm - baseline, 3) for arm in arms] == list(uplifts)
    if baseline == 0.814:
        assert list(uplifts) == pytest.approx([-0.005, -0.012, -0.005], abs=0.0065)


def test_table_6_of_the_paper_gives_its_own_accuracies() -> None:
    # NLA: 16 % of true claims flip, 82 % of them toward no effect: 73 % right becomes 63 %.
    assert accuracy_after(0.73, 0.16, 0.82, label=True) == pytest.approx(0.63, abs=0.005)
    # 10 % of false claims flip, 84 % of them toward no effect: 74 % right becomes 81 %.
    assert accuracy_after(0.74, 0.10, 0.84, label=False) == pytest.approx(0.81, abs=0.005)
    # And the two nearly cancel over the paper's 682 true and 612 false claims.
    before, after = ((682 * a + 612 * b) / 1294 for a, b in ((0.73, 0.74), (0.6276, 0.808)))
    assert after - before == pytest.approx(-0.02, abs=0.005)


def test_flips_by_hand_and_the_accuracy_that_they_lead_to() -> None:
    # True claims: 0.9 to 0.2 (flip, toward no effect), 0.1 to 0.8 (flip, toward effect), 0.7 to 0.6, 0.5 to 0.9.
    # False claims: 0.8 to 0.3 (flip, toward no effect), 0.2 to 0.1.
    base, arm = np.array([0.9, 0.1, 0.7, 0.5, 0.8, 0.2]), np.array([0.2, 0.8, 0.6, 0.9, 0.3, 0.1])
    labels = np.array([True] * 4 + [False] * 2)
    flips = count_flips([arm], [base], labels)
    assert flips.of_true == FlipCounts(n_answers=3, flipped=2, toward_no_effect=1, right_before=2)
    assert flips.of_false == FlipCounts(n_answers=2, flipped=1, toward_no_effect=1, right_before=1)
    assert flips.undecided == 1
    assert accuracy_after(1 / 2, flips.of_false.share, flips.of_false.share_toward_no_effect, label=False) == 1.0


def test_the_flip_table_leads_from_accuracy_before_to_accuracy_after() -> None:
    weak, strong, labels = example()
    (_, tool) = compare(rows(BASELINE, weak, labels) + rows("sae", strong, labels), seed="s")
    (row,) = flips_table([tool]).rows
    before, after = row[6].values
    true = [index for index, label in enumerate(labels) if label and weak[index] != 0.5 != strong[index]]
    assert before == sum(weak[index] > 0.5 for index in true) / len(true)
    assert after == sum(strong[index] > 0.5 for index in true) / len(true)


def test_flips_of_an_arm_against_itself_are_none_and_mirrored_when_arms_swap() -> None:
    weak, strong, labels = example()
    here, there, truth = np.array(weak), np.array(strong), np.array(labels)
    assert count_flips([here], [here], truth).of_true.flipped == 0
    forth, back = count_flips([here], [there], truth), count_flips([there], [here], truth)
    for one, other in ((forth.of_true, back.of_true), (forth.of_false, back.of_false)):
        assert one.flipped == other.flipped
        assert one.toward_no_effect == other.flipped - other.toward_no_effect


def test_hard_claims_come_from_the_repeated_baseline_alone() -> None:
    weak, _, labels = example()
    repeat = [0.5 if index < 10 else 0.9 for index in range(len(labels))]
    outcomes = rows(BASELINE, weak, labels) + rows(REPEAT, repeat, labels)
    hard = hard_claims(outcomes, 0.25, 0.75)
    assert hard == {f"claim-{index:03}" for index in range(10)}
    assert {row.claim_id for row in only(outcomes, hard)} == hard
    assert hard_claims(rows(BASELINE, weak, labels), 0.25, 0.75) == frozenset()


def test_choosing_hard_claims_on_the_scored_run_would_invent_uplift_and_the_repeat_does_not() -> None:
    rng = np.random.default_rng(0)
    chosen_on = {"scored": [], "repeat": []}
    for _ in range(60):
        labels = rng.random(400) < 0.5
        skill = rng.normal(size=400) + labels * 1.2
        base, repeat, tool = (1 / (1 + np.exp(-(skill - 0.6 + rng.normal(size=400)))) for _ in range(3))
        for name, run in (("scored", base), ("repeat", repeat)):
            hard = (run >= 0.25) & (run <= 0.75)
            chosen_on[name].append(auroc(tool[hard], labels[hard]) - auroc(base[hard], labels[hard]))
    assert np.mean(chosen_on["scored"]) > 0.02
    assert abs(np.mean(chosen_on["repeat"])) < 0.01


def test_an_interrupted_run_is_scored_on_the_repetitions_that_every_arm_has_begun() -> None:
    weak, strong, labels = example()
    outcomes = rows(BASELINE, weak, labels) + at(rows(BASELINE, weak, labels), epoch=1) + rows("sae", strong, labels)
    kept = same_repetitions(outcomes)
    assert {(row.setting.arm, row.setting.epoch) for row in kept} == {(BASELINE, 0), ("sae", 0)}
    assert compare(kept, seed="s")[1].uplift is not None
    whole = outcomes + at(rows("sae", strong, labels), epoch=1)
    assert same_repetitions(whole) == tuple(whole)


def example_table() -> Table:
    columns = (Column("arm & tool", ("arm",)), Column("uplift", ("uplift", "low", "high")))
    made = (
        (words("100% of sae_1|x"), interval(0.0123456789, -0.02, 0.04, signed=True)),
        (words("ao"), interval(NAN, NAN, NAN, signed=True)),
    )
    return Table("uplift", "A title", columns, made, ("a note",))


def test_csv_and_json_keep_every_digit_and_say_nothing_for_what_is_not_defined() -> None:
    parsed = list(csv.DictReader(io.StringIO(csv_text(example_table()))))
    assert parsed[0] == {"arm": "100% of sae_1|x", "uplift": "0.0123456789", "low": "-0.02", "high": "0.04"}
    assert parsed[1] == {"arm": "ao", "uplift": "", "low": "", "high": ""}
    loaded = json.loads(json_text(example_table()))
    assert loaded["rows"][0]["uplift"] == 0.0123456789
    assert loaded["rows"][1] == {"arm": "ao", "uplift": None, "low": None, "high": None}
    assert loaded["notes"] == ["a note"]


def test_markdown_and_latex_escape_what_would_break_them() -> None:
    lines = markdown(example_table()).split("\n")
    assert lines[0] == "## A title"
    assert "| 100% of sae_1\\|x | +0.012 (-0.020 to +0.040) |" in lines
    text = latex(example_table())
    assert r"arm \& tool & uplift \\" in text
    assert r"100\% of sae\_1|x & +0.012 (-0.020 to +0.040) \\" in text
    assert r"\caption{A title. A note.}" in text
    assert text.count(r"\begin") == text.count(r"\end") == 2


def test_every_table_has_a_value_for_every_key_and_the_same_bytes_twice(tmp_path: Path) -> None:
    weak, strong, labels = example()
    gappy = [None if index < 4 else p for index, p in enumerate(strong)]
    outcomes = rows(BASELINE, weak, labels) + rows("sae", gappy, labels) + rows("sham-sae", weak, labels)
    outcomes = [
        replace(r, setting=replace(r.setting, positions=32, calls=5)) if "sae" in r.setting.arm else r for r in outcomes
    ]
    results = compare(outcomes, seed="s")
    tables = [targets_table(results), checks_table(results), flips_table(results), shams_table(results)]
    for table in tables:
        assert table is not None
        for row in table.rows:
            assert [len(cell.values) for cell in row] == [len(column.keys) for column in table.columns]
    write_tables([table for table in tables if table], tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_tables([table for table in tables if table], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    assert len(first) == 16


def test_a_cell_shows_what_it_holds() -> None:
    assert interval(0.5, 0.25, 0.75, signed=False) == Cell("0.500 (0.250 to 0.750)", (0.5, 0.25, 0.75))
