"""Scoring tables that others made, and the one answer to each way in which they can be wrong."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from test_uplift import example
from typer.testing import CliRunner

from harness.cli import app
from harness.outcomes import Outcome
from harness.read_table import Names, read_predictions
from harness.uplift import compare

Rows = list[dict[str, object]]


def table(arms: dict[str, Sequence[float | None]], labels: Sequence[bool]) -> Rows:
    return [
        {"claim_id": f"c{index:02}", "cluster_id": f"k{index // 2:02}", "label": label, "arm": arm, "p_true": value}
        for arm, answers in arms.items()
        for index, (value, label) in enumerate(zip(answers, labels, strict=True))
    ]


def good() -> Rows:
    weak, strong, labels = example()
    return table({"transcript": weak, "sae": strong}, labels)


def write(path: Path, rows: Rows) -> Path:
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def score(path: Path, *more: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["score", str(path), *more])
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output
    return done.output


def facts(outcomes: Sequence[Outcome]) -> list[tuple[object, ...]]:
    return [(o.claim_id, o.cluster_id, o.label, o.setting.arm, o.p_true) for o in outcomes]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_every_format_gives_the_same_outcomes_and_the_uplift_of_a_run(tmp_path: Path, kind: str) -> None:
    outcomes = read_predictions(write(tmp_path / f"t.{kind}", good()), Names())
    assert facts(outcomes) == [tuple(row.values()) for row in good()]
    (base, tool) = compare(outcomes, seed="s")
    assert tool.uplift is not None
    assert tool.uplift.value == tool.auroc.value - base.auroc.value
    assert "the whole interval lies above zero" in score(tmp_path / f"t.{kind}")


def test_columns_and_the_baseline_may_have_other_names(tmp_path: Path) -> None:
    renamed = {"claim_id": "item", "cluster_id": "family", "label": "y", "arm": "condition", "p_true": "score"}
    rows = [{renamed[name]: value for name, value in row.items()} for row in good()]
    for row in rows:
        row["condition"] = {"transcript": "none", "sae": "tool"}[str(row["condition"])]
        row["y"] = "yes" if row["y"] else "no"
    path = write(tmp_path / "t.csv", rows)
    options = ["--claim", "item", "--cluster", "family", "--label", "y", "--arm", "condition", "--p-true", "score"]
    said = score(path, *options, "--baseline", "none", "--out", str(tmp_path / "tables"))
    assert "| tool " in said
    assert {file.name for file in (tmp_path / "tables").iterdir()} == {
        f"{name}.{suffix}" for name in ("targets", "tests", "flips") for suffix in ("md", "csv", "tex", "json")
    }


def test_a_sentinel_is_refused_until_it_is_declared(tmp_path: Path) -> None:
    rows = good()
    rows[50]["p_true"] = -1
    path = write(tmp_path / "t.csv", rows)
    refused = score(path, status=2)
    assert "t.csv row 51: p_true is '-1'" in refused
    assert "say --missing -1" in refused
    assert "| 47 (" in score(path, "--missing", "-1")


def test_an_empty_probability_is_no_answer(tmp_path: Path) -> None:
    rows = good()
    rows[50]["p_true"] = rows[51]["p_true"] = None
    for kind in ("csv", "jsonl", "parquet"):
        outcomes = read_predictions(write(tmp_path / f"t.{kind}", rows), Names())
        assert [o.p_true for o in outcomes[50:52]] == [None, None]
        assert outcomes[50].outcome == "no_answer"


def spoiled(**changes: object) -> Rows:
    first, *rest = good()
    return [{**first, **changes}, *rest]


@pytest.mark.parametrize(
    ("rows", "found", "remedy"),
    [
        (spoiled(p_true="high"), "row 1: p_true is 'high'", "Expected a probability from 0 to 1"),
        (spoiled(p_true=1.2), "row 1: p_true is '1.2'", "Expected a probability from 0 to 1"),
        (spoiled(label="maybe"), "row 1: label is 'maybe'", "Expected true or false"),
        ([{**row, "arm": "tool"} for row in good()], "has no arm 'transcript'", "Name the baseline with --baseline"),
        ([{"claim_id": "a", "p_true": 0.1}], "has no column 'cluster_id', 'label', 'arm'", "Name its columns"),
        (good() + good()[:1], "'c00' comes twice in the arm 'transcript'", "Keep one row a claim"),
        ([*good(), {**good()[0], "label": not good()[0]["label"], "arm": "x"}], "has two labels", "one claim set only"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_by_row_with_a_remedy(
    tmp_path: Path, rows: Rows, found: str, remedy: str
) -> None:
    said = score(write(tmp_path / "t.csv", rows), status=2)
    assert found in said
    assert remedy in said


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_text("x", encoding="utf-8")
    (tmp_path / "t.jsonl").write_text("{", encoding="utf-8")
    (tmp_path / "t.csv").write_text("claim_id\n", encoding="utf-8")
    (tmp_path / "t.parquet").write_text("x", encoding="utf-8")
    assert "has the ending '.xlsx'" in score(tmp_path / "t.xlsx", status=2)
    assert "cannot be read as .jsonl" in score(tmp_path / "t.jsonl", status=2)
    assert "holds no row" in score(tmp_path / "t.csv", status=2)
    assert "cannot be read as .parquet" in score(tmp_path / "t.parquet", status=2)
    assert "is not a file" in score(tmp_path / "nothing.csv", status=2)


def test_one_class_one_cluster_equal_answers_and_silence_are_told_apart(tmp_path: Path) -> None:
    weak, strong, labels = example()
    n = len(labels)
    cases = {
        "one class": (table({"transcript": weak, "sae": strong}, [True] * n), "not defined with one class only"),
        "one cluster": (
            [{**row, "cluster_id": "k"} for row in good()],
            "one cluster only: the interval is not estimable",
        ),
        "equal": (table({"transcript": weak, "sae": [0.5] * n}, labels), "holds no information"),
        "silence": (table({"transcript": weak, "sae": [None] * n}, labels), "nothing can be compared"),
        "disjoint": (
            table({"transcript": weak}, labels)
            + [{**row, "claim_id": f"x{row['claim_id']}"} for row in table({"sae": strong}, labels)],
            "have no claim in common",
        ),
    }
    for name, (rows, note) in cases.items():
        said = score(write(tmp_path / f"{name}.jsonl", rows))
        assert note in said, name
        assert not re.search(r"\bnan\b", said), name
        assert "no uplift" not in said.lower(), name


def test_repetitions_in_an_epoch_column_are_averaged_as_aurocs(tmp_path: Path) -> None:
    weak, strong, labels = example()
    rows = []
    for epoch, (base, tool) in enumerate([(weak, strong), (list(reversed(weak)), weak)]):
        rows += [{**row, "epoch": epoch} for row in table({"transcript": base, "sae": tool}, labels)]
    (base_result, tool_result) = compare(read_predictions(write(tmp_path / "t.csv", rows), Names()), seed="s")
    one = compare(read_predictions(write(tmp_path / "a.csv", rows[: len(rows) // 2]), Names()), seed="s")
    two = compare(
        read_predictions(write(tmp_path / "b.csv", rows[len(rows) // 2 :]), Names()),
        seed="s",
    )
    assert base_result.epochs == tool_result.epochs == 2
    assert tool_result.auroc.value == pytest.approx(np.mean([one[1].auroc.value, two[1].auroc.value]))


def test_an_outcomes_file_of_a_run_can_be_scored(tmp_path: Path) -> None:
    rows = [{**row, "calls": 5 if row["arm"] == "sae" else 0, "positions": 32, "epoch": 0} for row in good()]
    assert "| 5x32" in score(write(tmp_path / "outcomes.jsonl", rows))
