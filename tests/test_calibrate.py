"""The instrument on predictors with known uplift: the simulator, coverage, false positives, power, planning."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.calibrate import METHODS, SCENARIOS, Judged, PowerPoint, judge, monte_carlo_error, summary
from harness.calibration_figure import draw_calibration
from harness.cli import app
from harness.planning import Assumed, plan_assumed
from harness.power import credit_of, detectable, detectable_at, power_at, scaled, simulated_error
from harness.seeding import keyed_rng
from harness.simulate import Design
from harness.stats import auroc


@pytest.mark.parametrize(
    "design",
    [
        Design(40, 3, uplift=0.05),
        Design(40, 3, uplift=0.05, one_label=False),
        Design(40, 3, uplift=0.05, step=0.1),
        Design(12, 4, uplift=0.1, one_label=False, step=0.25, within_clusters=0.7),
    ],
)
def test_the_truth_of_a_design_is_what_its_draws_average_to(design: Design) -> None:
    rng = keyed_rng("truth")
    draws = np.array([[auroc(p, design.labels) for p in design.draw(rng)] for _ in range(300)])
    error = draws.std(axis=0) / math.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - design.truth) < 4 * error).all()


def test_without_ties_and_shared_clusters_the_truth_is_the_stated_auroc() -> None:
    assert Design(auroc=0.7, uplift=0.05).truth == pytest.approx((0.75, 0.7))
    assert Design(auroc=0.7).true_uplift == 0


def test_a_fine_grid_changes_the_truth_hardly_and_a_coarse_one_pulls_it_to_one_half() -> None:
    smooth = Design(auroc=0.8).truth[1]
    assert Design(auroc=0.8, step=0.01).truth[1] == pytest.approx(smooth, abs=1e-4)
    assert 0.5 < Design(auroc=0.8, step=0.5).truth[1] < smooth - 0.02


def test_intervals_over_clusters_cover_and_intervals_over_rows_do_not() -> None:
    n = 200
    judged = judge("fast", SCENARIOS["strong clustering"], replications=n, resamples=300)
    by_method = {one.method: one for one in judged}
    slack = 3 * monte_carlo_error(0.95, n)
    for method in METHODS[:3]:
        assert abs(by_method[method].coverage - 0.95) < slack, method
    for method in METHODS[3:]:
        assert by_method[method].coverage < 0.95 - slack, method


def test_without_uplift_one_interval_in_twenty_leaves_out_zero() -> None:
    n = 200
    judged = judge("fast null", SCENARIOS["no uplift, mixed, ties"], replications=n, resamples=300)
    for one in judged[:3]:
        assert abs(one.rejection - 0.05) < 3 * monte_carlo_error(0.05, n), one.method


def test_power_by_hand() -> None:
    # At 2.8016 standard errors: 1.96 + 0.8416. Without uplift the chance is the size of the test.
    assert power_at(2.8016, 1.0) == pytest.approx(0.8, abs=1e-4)
    assert power_at(0.0, 1.0) == pytest.approx(0.05)
    assert detectable_at(0.01) == pytest.approx(0.028016, abs=1e-5)
    assert scaled(0.02, 25, 100) == 0.01


def test_planned_power_is_the_power_that_simulation_finds() -> None:
    design = Design(60, 2, auroc=0.75, one_label=False)
    uplift = detectable(design, n_datasets=40)
    there = Design(60, 2, auroc=0.75, uplift=uplift, one_label=False)
    rng = keyed_rng("found")
    error = simulated_error(there, n_datasets=40)
    values = []
    for _ in range(300):
        credit, classes = credit_of(there, rng)
        values.append(credit.sum() / np.prod(classes.sum(axis=0)))
    found = np.mean(np.array(values) > 1.959964 * error)
    assert found == pytest.approx(0.8, abs=0.09)


def test_more_clusters_detect_less_and_an_uplift_past_perfection_is_none() -> None:
    small, large = (detectable(Design(n, 2, one_label=False), n_datasets=20) for n in (50, 200))
    assert large < small
    assert math.isnan(detectable(Design(4, 2, auroc=0.95, one_label=False), n_datasets=20))


def assumed(**changes: object) -> Assumed:
    given = {"claims": 100, "investigations": None, "claims_per": 2.0, "auroc": 0.8, "between_arms": 0.8}
    given |= {"within": 0.3, "predictor": "anthropic/claude-opus-4-8", "tokens_in": 10_000, "tokens_out": 1_000}
    return Assumed(**{**given, **changes})  # type: ignore[arg-type]


def test_a_plan_states_its_assumptions_and_its_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.planning.SIZES", (1.0,))
    said = plan_assumed(assumed())
    assert "baseline AUROC 0.8, correlation of the arms 0.8 and within an investigation 0.3" in said
    assert "10,000 tokens read and 1,000 written per claim" in said
    assert "| 100 " in said
    assert "$" in said
    assert "price unknown" in plan_assumed(assumed(predictor="ollama/mystery"))
    assert "nobody bills" in plan_assumed(assumed(predictor="local"))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--auroc", "0.3"], "--auroc is 0.3; expected a number from 0.5 to 0.99"),
        (["--between-arms", "1"], "--between-arms is 1"),
        (["--claims", "5"], "--claims is 5"),
        (["--claims", "50", "--investigations", "60"], "--investigations is 60"),
        (["--pilot", "/nowhere"], "/nowhere is not a run"),
    ],
)
def test_an_assumption_out_of_range_is_refused(options: list[str], found: str) -> None:
    done = CliRunner().invoke(app, ["power", *options])
    assert done.exit_code == 2
    assert found in done.output


def test_the_figure_and_the_numbers_are_the_same_twice(tmp_path: Path) -> None:
    judged = [Judged("a design", method, 190, 10, 200) for method in METHODS]
    points = [PowerPoint(0.0, 0.05, 0.05), PowerPoint(0.1, 0.8, 0.81)]
    draw_calibration(judged, points, tmp_path)
    first = (tmp_path / "calibration.svg").read_bytes()
    (tmp_path / "calibration.svg").unlink()
    draw_calibration(judged, points, tmp_path)
    assert (tmp_path / "calibration.svg").read_bytes() == first
    assert (tmp_path / "calibration.png").read_bytes()[:4] == b"\x89PNG"
    assert "| a design | 0.950 |" in summary(judged, points)
    assert "| +0.10 | 0.800 | 0.810 |" in summary(judged, points)


def test_the_published_calibration_is_as_aimed() -> None:
    held = json.loads((Path(__file__).parent.parent / "docs" / "calibration.json").read_text(encoding="utf-8"))
    judged = [Judged(**one) for one in held["intervals"]]
    assert {one.scenario for one in judged} == SCENARIOS.keys()
    assert all(one.replications == 2000 for one in judged)
    for one in judged:
        assert one.as_aimed == one.method.endswith("clusters"), (one.scenario, one.method, one.coverage)


def test_the_published_rate_of_false_positives_is_as_aimed() -> None:
    held = json.loads((Path(__file__).parent.parent / "docs" / "calibration.json").read_text(encoding="utf-8"))
    points = [PowerPoint(**one) for one in held["power"]]
    (null,) = (point.found for point in points if point.uplift == 0)
    assert abs(null - 0.05) < 3 * monte_carlo_error(0.05, 2000)
    for point in points:
        assert point.found == pytest.approx(point.predicted, abs=0.04), point.uplift
