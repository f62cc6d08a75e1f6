"""The report of a run: its numbers, its sentences, its pages and its figures for print."""

import base64
import json
import re
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from claims.schema import UserError
from harness.cli import app
from harness.flips import count_flips
from harness.report import write_report
from harness.report.draw import axis_over, bars_of, forest, heat, thinned
from harness.report.figures import write_figures
from harness.report.numbers import Bin, Flips, calibration, curves, flips, grids, roc, spending, wilson
from harness.report.page import pages, script_safe
from harness.report.read import Series, read_run, series_labels
from harness.report.samples import json_text, positions_of
from harness.report.words import controls
from harness.stats import auroc
from tests.claim_bank import write_bank
from tests.planted import planted
from tests.report_run import BASE, CEILING, NOTHING, ORDER, SAE, answer, estimated, explorer_of, island, run_of

# Numbers


def area(points: tuple[tuple[float, float], ...]) -> float:
    return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(points))


def test_the_area_under_the_curve_is_the_auroc_ties_and_all() -> None:
    rng = np.random.default_rng(0)
    values = [None if p == 0 else p for p in rng.choice([0.1, 0.4, 0.4, 0.8, 0.0], 60).tolist()]
    rows = [answer(SAE, n, p, bool(rng.random() < 0.4)) for n, p in enumerate(values)]
    answered = [row for row in rows if row.p_true is not None]
    expected = auroc(np.array([row.p_true for row in answered]), np.array([row.label for row in answered]))
    assert area(roc(rows)) == pytest.approx(expected)
    assert area(tuple(thinned(roc(rows)))) == pytest.approx(expected)


def test_a_curve_by_hand() -> None:
    # 0.9 true, then a tie of one true and one false at 0.5, then a false one.
    rows = [
        answer(SAE, n, p, label) for n, (p, label) in enumerate([(0.9, True), (0.5, True), (0.5, False), (0.1, False)])
    ]
    assert roc(rows) == ((0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 1.0))
    assert roc(rows[:2]) == ()
    assert roc([]) == ()


def test_every_repetition_has_its_curve() -> None:
    rows = [answer(SAE, n, n / 4, n > 1, epoch=epoch) for n in range(4) for epoch in (0, 1)]
    assert [(curve.series, curve.epoch, curve.n) for curve in curves(rows, (BASE, SAE))] == [(SAE, 0, 4), (SAE, 1, 4)]


def test_calibration_bins_hold_every_answer_once() -> None:
    rows = [answer(SAE, n, p, n % 2 == 0) for n, p in enumerate([0.0, 0.05, 0.1, 0.95, 1.0])]
    rows.append(answer(SAE, 9, None, True))
    found = calibration(rows)
    assert [one.n for one in found] == [2, 1, 2]
    assert found[0].mean_p == pytest.approx(0.025)
    assert found[2].share_true == 0.5


def test_wilson_intervals_are_the_textbooks() -> None:
    # 8 of 10 (Newcombe 1998): 0.490 to 0.943.
    low, high = wilson(0.8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert wilson(0.0, 5)[0] == 0.0
    assert wilson(1.0, 5)[1] == 1.0


def test_a_share_lies_in_its_interval_to_the_last_digit() -> None:
    for n in range(1, 400):
        for share in (0.0, 1 / n, 1.0):
            low, high = wilson(share, n)
            assert 0 <= low <= share <= high <= 1, (share, n)


def test_flips_are_counted_against_the_baseline_of_the_same_claim_and_repetition() -> None:
    fixed, broken, right, wrong = (0.4, 0.6, True), (0.6, 0.4, True), (0.6, 0.7, True), (0.6, 0.7, False)
    cases = (fixed, broken, right, wrong, (0.5, 0.7, True), (0.6, None, True))
    rows = [answer(BASE, n, before, label) for n, (before, _, label) in enumerate(cases)]
    rows += [answer(SAE, n, after, label) for n, (_, after, label) in enumerate(cases)]
    rows.append(answer(SAE, 0, 0.9, True, epoch=1))
    assert flips(rows, ORDER)[1] == Flips(SAE, 1, 1, 1, 1, 1, 2)


def test_the_reports_flips_are_those_of_the_tables() -> None:
    run = run_of(60)
    p_true = {series: np.array([one.p_true for one in run.answers if one.series == series]) for series in ORDER}
    labels = np.array([one.label for one in run.answers if one.series == BASE])
    for mine in flips(run.answers, ORDER):
        told = count_flips([p_true[mine.series]], [p_true[BASE]], labels)
        towards_true = sum(one.flipped - one.toward_no_effect for one in (told.of_true, told.of_false))
        broken = told.of_true.toward_no_effect + told.of_false.flipped - told.of_false.toward_no_effect
        assert mine.n_flips == told.of_true.flipped + told.of_false.flipped > 0
        assert (mine.broken, mine.to_true, mine.undecided) == (broken, towards_true, told.undecided)


def test_a_grid_is_made_of_several_budgets_of_one_arm_and_no_control() -> None:
    (grid,) = grids(run_of().estimates)
    assert (grid.name, grid.calls, grid.positions) == ("sae", (2, 5), (16, 32))
    assert set(grid.cells) == {(2, 16), (5, 32)}
    sham = Series("local", "sham-sae", 5, 32)
    assert grids([estimated(SAE), estimated(sham), estimated(CEILING)]) == ()


def test_costs_are_sums_and_unknown_where_a_price_is_missing() -> None:
    rows = [answer(SAE, 0, 0.5, True, dollars=0.25, calls_used=2), answer(SAE, 1, None, True, dollars=0.5)]
    (spent,) = spending(rows, (SAE,))
    assert (spent.dollars, spent.mean_calls, spent.input_tokens) == (0.75, 1.0, 200)
    assert spent.outcomes == (("answered", 1), ("no_answer", 1))
    assert spending([*rows, answer(SAE, 2, 0.5, True)], (SAE,))[0].dollars is None


def test_settings_are_named_by_what_tells_them_apart() -> None:
    other = Series("openai/x", "ao", 5, 0)
    assert list(series_labels(ORDER).values()) == ["transcript", "sae 2x16", "sae 5x32", "ceiling"]
    assert list(series_labels((BASE, other)).values()) == ["transcript, local", "ao 5 calls, openai/x"]


# Sentences and drawings


def test_controls_say_what_was_found_or_that_they_were_not_run() -> None:
    found = dict(controls(run_of()))
    assert "AUROC 0.700; its uplift is +0.200 (+0.100 to +0.300). It passes" in found["ceiling"]
    assert found["transcript-2"].startswith("Not run")
    assert found["sham of sae"].startswith("Not run")
    failed = run_of(estimates=(estimated(BASE), estimated(CEILING, (0.1, -0.1, 0.3))))
    assert "cannot measure uplift" in dict(controls(failed))["ceiling"]
    sham = run_of(estimates=(estimated(BASE), estimated(Series("local", "sham-sae", 5, 32), (0.0, -0.1, 0.1))))
    assert "+0.000 (−0.100 to +0.100)" in dict(controls(sham))["sham-sae"]
    over = run_of(estimates=(replace(estimated(SAE, (0.1, 0.0, 0.2)), over_sham=(0.03, -0.02, 0.08)),))
    assert dict(controls(over))["sae minus sham-sae"] == "Paired by claim: +0.030 (−0.020 to +0.080)."


@pytest.mark.parametrize("values", [[0.003, -0.06, 0.07], [0.3], [-0.9, 0.9], [0.001], []])
def test_an_axis_holds_its_values_and_zero(values: list[float]) -> None:
    axis = axis_over(values, 0, 100)
    assert all(axis.low <= value <= axis.high for value in [0.0, *values])
    assert 0.0 in axis.ticks
    assert len(axis.ticks) <= 9


def test_the_forest_shows_uplifts_and_the_tool_over_its_sham_and_no_missing_one() -> None:
    over = Series("local", "sae", 5, 32)
    shammed = estimated(over, (0.1, None, None))
    bars = bars_of([estimated(BASE), shammed, estimated(CEILING)], series_labels(ORDER))
    assert [(bar.name, bar.text) for bar in bars] == [("sae 5x32", "+0.100 (interval not estimable)")]
    assert forest((), None).bars == ()
    assert [heat(value, 0.2) for value in (0.2, 0.01, -0.1, None)] == ["heat-p4", "heat-0", "heat-n2", "heat-none"]


# Data


def test_data_cannot_end_its_element_and_survives_the_trip() -> None:
    hostile = {"</script>": "<!--<script>&amp;\u2028\x00\ud800é"}
    text = script_safe(json_text(hostile))
    assert not re.search("[<>&\ud800]", text)
    text.encode("utf-8")
    assert json.loads(text) == hostile


def test_positions_come_from_lists_and_segments_and_nothing_else() -> None:
    assert positions_of({"positions": [3, 1, 3, -2, True, "x"]}) == (1, 3)
    assert positions_of({"question": "why", "start": 4, "end": 6}) == (4, 5, 6)
    assert positions_of({"start": 4, "end": 10**9}) == ()


def test_a_page_holds_every_claim_with_its_answers_and_what_was_said() -> None:
    run = run_of()
    ((name, page),) = pages(run, explorer_of())
    assert name == "report.html"
    rows = island(page, "index")["claims"]
    assert [row["id"] for row in rows] == [f"claim-{n:04}" for n in range(6)]
    assert rows[1]["p"] == [[0.37], [0.44], [0.51], [0.58]]
    assert rows[1]["label"] == 0
    assert rows[1]["title"] == "edit 1 output"
    held = island(page, "packed")
    said = json.loads(zlib.decompress(base64.b64decode(held["claims"]["1"])))
    assert [one["series"]["arm"] for one in said["told"]] == ["transcript", "sae", "sae", "ceiling"]
    assert len(held["transcripts"]) == 3
    for words in (run.headline, *run.verdicts, "±0.05", "+0.120", "★", "sha256 of claim_set"):
        assert words in page


def test_many_claims_go_into_pages_of_their_own_and_none_is_lost() -> None:
    written = dict(pages(run_of(40), explorer_of(40), largest=5_000))
    assert list(written)[-1] == "report.html"
    assert len(written) > 3
    rows = island(written["report.html"], "index")["claims"]
    assert 'id="packed"' not in written["report.html"]
    for number, row in enumerate(rows):
        page = written[f"report/{row['shard']}"]
        assert str(number) in island(page, "packed")["claims"]
        assert str(row["t"]) in island(page, "packed")["transcripts"]
        assert number in [one["n"] for one in island(page, "index")["claims"]]


def test_a_run_of_one_arm_and_one_class_has_a_page_too(tmp_path: Path) -> None:
    rows = tuple(answer(BASE, n, None, True) for n in range(3))
    run = run_of(answers=rows, estimates=(estimated(BASE, NOTHING),), verdicts=())
    ((_, page),) = pages(run, explorer_of(3))
    for words in ("No arm could be compared", "No arm answered claims of both classes", "no arm beside the transcript"):
        assert words in page
    assert write_figures(run, tmp_path) == []


# Figures


def test_figures_for_print_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    run = run_of()
    first = {path.name: path.read_bytes() for path in write_figures(run, tmp_path / "a")}
    assert sorted(first) == [
        f"{name}.{kind}" for name in ("calibration", "flips", "roc", "sweep-sae", "uplift") for kind in ("png", "svg")
    ]
    assert {path.name: path.read_bytes() for path in write_figures(run, tmp_path / "b")} == first
    assert all(b"<script" not in held and b"<dc:date>" not in held for held in first.values())


# A whole run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bank = write_bank(tmp_path_factory.mktemp("bank") / "bank")
    folder = tmp_path_factory.mktemp("results")
    command = ["eval", "--target", "tiny-gemma", "--predictor", "scripted/reader", "--claims", str(bank)]
    with planted(bank, lambda _: 0.5) as (running, _):
        done = CliRunner().invoke(app, [*command, "--results", str(folder), "--server", running.url])
    assert done.exit_code == 0, done.output
    return folder


def test_an_evaluation_ends_with_a_report_of_its_own_files(results: Path) -> None:
    (report,) = results.glob("*/report.html")
    folder = report.parent
    run = read_run(folder)
    page = report.read_text(encoding="utf-8")
    assert run.headline in page.replace("&gt;", ">")
    held = island(page, "packed")
    said = json.loads(zlib.decompress(base64.b64decode(held["claims"]["0"])))
    assert said["claim"].startswith("BEHAVIOR")
    arms = {one["series"]["arm"]: one for one in said["told"]}
    assert set(arms) == {"transcript", "sae", "ceiling"}
    calls = [turn for turn in arms["sae"]["turns"] if turn["who"] == "call"]
    assert calls[0]["positions"]
    assert arms["ceiling"]["shown"][0][1].startswith("Fresh answer")
    transcript = json.loads(zlib.decompress(base64.b64decode(held["transcripts"]["0"])))
    assert "Friend 0 told me" in transcript["parts"][0][1]
    assert transcript["tokens"][0][2] == "template"
    assert sorted(path.name for path in (folder / "figures").iterdir())[0] == "calibration.png"


def test_a_report_made_again_is_the_same_and_leaves_nothing_old_behind(results: Path) -> None:
    (folder,) = (path.parent for path in results.glob("*/report.html"))
    before = (folder / "report.html").read_bytes()
    (folder / "report").mkdir()
    (folder / "report" / "0009.html").write_text("old", encoding="utf-8")
    done = CliRunner().invoke(app, ["report", folder.name, "--results", str(results)])
    assert done.exit_code == 0, done.output
    assert done.output.strip() == str(folder / "report.html")
    assert (folder / "report.html").read_bytes() == before
    assert list((folder / "report").iterdir()) == []


def test_a_folder_without_tables_says_what_to_do(results: Path, tmp_path: Path) -> None:
    (folder,) = (path.parent for path in results.glob("*/report.html"))
    (tmp_path / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    with pytest.raises(UserError, match="no table yet. Make it with `uplift tables"):
        write_report(tmp_path)


def test_bins_are_exact_records() -> None:
    assert calibration([answer(SAE, 0, 0.2, True)]) == (Bin(0.2, 1.0, *wilson(1.0, 1), 1),)
