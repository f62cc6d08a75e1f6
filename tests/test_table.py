"""The table and its JSON: what the first line says, what is never said, and that bytes are stable."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from test_uplift import example, rows

from harness.table import CANNOT_MEASURE, RunFacts, first_line, table_markdown, verdict
from harness.uplift import BASELINE, ArmResult, Estimate, compare
from harness.uplift_json import uplift_json

FACTS = RunFacts(
    run="tiny-gemma-sae-x",
    target="tiny-gemma",
    asked_target="tiny-gemma",
    predictor="mockllm/model",
    claims="48 of 48 claims in tests",
    fidelities=(("sae", "demo"),),
    paper_setting=True,
)


def results(ceiling: str = "strong", tool: str = "strong") -> tuple[ArmResult, ...]:
    weak, strong, labels = example()
    arms = {"weak": weak, "strong": strong, "constant": [0.4] * len(labels), "reverse": [1 - p for p in strong]}
    outcomes = rows(BASELINE, weak, labels) + rows("sae", arms[tool], labels) + rows("ceiling", arms[ceiling], labels)
    return compare(outcomes, seed="s")


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 60, 30, 20, 20, 0, 0.0, ())


def test_the_first_line_names_the_fidelity_and_that_the_ceiling_passed() -> None:
    line = table_markdown(results(), FACTS).split("\n")[0]
    assert line.startswith("Fidelity: sae demo. Ceiling: passed (uplift +")
    assert CANNOT_MEASURE not in line


@pytest.mark.parametrize("ceiling", ["weak", "constant", "reverse"])
def test_the_first_line_says_that_the_instrument_cannot_measure_unless_the_ceiling_is_above_zero(
    ceiling: str,
) -> None:
    line = table_markdown(results(ceiling), FACTS).split("\n")[0]
    assert "Ceiling: not passed" in line
    assert CANNOT_MEASURE in line


def test_a_ceiling_that_was_not_run_or_is_not_estimable_has_not_passed() -> None:
    without = [result for result in results() if result.setting.arm != "ceiling"]
    assert "Ceiling: not run" in first_line(without, FACTS)
    nan = float("nan")
    undefined = [
        replace(result, uplift=estimate(nan, nan, nan)) if result.setting.arm == "ceiling" else result
        for result in results()
    ]
    assert f"not estimable, so it did not pass: {CANNOT_MEASURE}" in first_line(undefined, FACTS)


def test_a_ceiling_whose_lower_bound_is_exactly_zero_has_not_passed() -> None:
    touching = [replace(r, uplift=estimate(0.1, 0.0, 0.2)) if r.uplift else r for r in results()]
    assert CANNOT_MEASURE in first_line(touching, FACTS)


def test_an_interval_that_straddles_zero_is_told_by_what_it_excludes() -> None:
    said = verdict(estimate(0.02, -0.05, 0.11))
    assert said == (
        "uplift +0.020 (-0.050 to +0.110): its sign is open. Excluded are an uplift above +0.110 and a loss beyond "
        "-0.050; the largest uplift still compatible with these claims is +0.110."
    )
    assert "no uplift" not in table_markdown(results("weak", "weak"), FACTS).lower()


def test_an_interval_on_one_side_of_zero_says_which() -> None:
    assert verdict(estimate(0.1, 0.01, 0.2)).endswith("the whole interval lies above zero.")
    assert verdict(estimate(-0.1, -0.2, -0.01)).endswith("the arm predicts worse.")


def test_json_has_one_object_an_arm_with_every_promised_field() -> None:
    loaded = json.loads(uplift_json(results(), FACTS))
    assert [row["arm"] for row in loaded] == [BASELINE, "sae", "ceiling"]
    promised = {"target", "predictor", "arm", "calls", "positions", "n_claims", "n_investigations", "n_clusters"}
    promised |= {"n_excluded", "auroc", "uplift", "low", "high", "fidelity"}
    assert all(promised <= row.keys() for row in loaded)
    base, tool, ceiling = loaded
    assert (base["uplift"], base["fidelity"], base["calls"]) == (None, None, 0)
    assert (ceiling["fidelity"], tool["fidelity"]) == (None, "demo")
    assert (tool["calls"], tool["positions"], tool["n_claims"], tool["n_clusters"]) == (5, 32, 48, 24)
    assert tool["low"] < tool["uplift"] < tool["high"]
    assert math.isclose(tool["uplift"], tool["auroc"] - tool["auroc_transcript"])


def test_what_is_not_defined_is_null_in_json_and_a_word_in_the_table() -> None:
    labels = [True, True]
    one_class = compare(rows(BASELINE, [0.1, 0.2], labels) + rows("sae", [0.3, 0.4], labels), seed="s")
    row = json.loads(uplift_json(one_class, FACTS))[1]
    assert (row["auroc"], row["uplift"], row["low"]) == (None, None, None)
    table = table_markdown(one_class, FACTS)
    assert not re.search(r"\bnan\b", table)
    assert "undefined" in table
    assert "AUROC is not defined with one class only" in table


def test_every_cell_of_the_table_is_under_its_heading() -> None:
    lines = [line for line in table_markdown(results(), FACTS).split("\n") if line.startswith("|")]
    head, rule, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {len(cells) for cells in (head, rule, *body)} == {13}
    tool = dict(zip(head, next(cells for cells in body if cells[0] == "sae"), strict=True))
    (result,) = [result for result in results() if result.setting.arm == "sae"]
    assert tool["budget"] == "5x32"
    assert tool["clusters"] == "24"
    assert tool["outcomes"] == "48 answered"
    assert float(tool["uplift"]) == pytest.approx(result.uplift.value, abs=5e-4)
    assert float(tool["accuracy"]) == pytest.approx(result.accuracy, abs=5e-4)


def test_the_run_says_which_member_a_family_name_took_and_that_its_setting_is_not_the_papers() -> None:
    table = table_markdown(results(), replace(FACTS, asked_target="gemma", paper_setting=False))
    assert "Target: tiny-gemma (asked for: gemma)." in table
    assert "not the paper's (5 calls of 32 positions)" in table
    assert "not the paper's" not in table_markdown(results(), FACTS)


def test_the_same_outcomes_give_the_same_bytes() -> None:
    weak, strong, labels = example()
    outcomes = rows(BASELINE, weak, labels) + rows("sae", strong, labels)
    order = np.random.default_rng(1).permutation(len(outcomes))
    one, other = compare(outcomes, seed="s"), compare([outcomes[index] for index in order], seed="s")
    assert table_markdown(one, FACTS) == table_markdown(other, FACTS)
    assert uplift_json(one, FACTS) == uplift_json(other, FACTS)
