"""A grid of budgets and a set of predictors: one command each, shared baselines, tables again from logs."""

import json
from pathlib import Path

import pytest
from test_eval import informative
from typer.testing import CliRunner

from claims.schema import UserError
from harness.cli import app
from harness.families import write_families
from harness.logs import read_headers
from tests.claim_bank import write_bank
from tests.planted import planted


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bank(tmp_path_factory.mktemp("bank"))


def run(command: str, bank: Path, results: Path, *more: str, status: int = 0) -> str:
    given = [command, "--target", "tiny-gemma", "--claims", str(bank), "--results", str(results), "--no-report"]
    done = CliRunner().invoke(app, [*given, *more])
    assert done.exit_code == status, done.output
    return done.output


def runs_in(results: Path) -> list[Path]:
    return sorted(path.parent for path in results.glob("*/manifest.json"))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}


@pytest.fixture(scope="module")
def swept(bank: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    results = tmp_path_factory.mktemp("swept")
    options = ["--predictor", "scripted/reader", "--calls", "2 5", "--positions", "16 32", "--limit", "6"]
    with planted(bank, informative) as (running, reads):
        said = run("sweep", bank, results, *options, "--arms", "transcript sae", "--server", running.url)
        # Three budgets of six claims: the main one stands in both halves of the grid and is asked once.
        assert len(reads.seen) == 18
        run("sweep", bank, results, *options, "--arms", "transcript sae", "--server", running.url)
        assert len(reads.seen) == 18
    return results, said


def test_one_command_runs_a_grid_with_one_baseline_and_stars_the_main_setting(swept: tuple[Path, str]) -> None:
    results, said = swept
    (folder,) = runs_in(results)
    arms = sorted(header.eval.task_args["arm"] for header in read_headers(folder / "logs"))
    assert arms == ["sae", "sae", "sae", "transcript"]
    assert "| tool | 2 calls" in said
    assert "5 calls*" in said
    assert "32 positions*" in said
    rows = json.loads((folder / "tables" / "sweep.json").read_text(encoding="utf-8"))["rows"]
    assert [row["tool"] for row in rows] == ["sae"]
    assert rows[0]["uplift_5_calls"] == rows[0]["uplift_32_positions"]
    declared = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["analysis"]["families"]["tools"]
    assert declared == [["sae", 5, 32], ["sae", 2, 32], ["sae", 5, 16]]


def test_the_tables_of_a_grid_are_made_again_byte_for_byte(swept: tuple[Path, str]) -> None:
    (folder,) = runs_in(swept[0])
    before = bytes_of(folder)
    assert {
        "sweep.md",
        "sweep.csv",
        "sweep.tex",
        "sweep.json",
        "flips.tex",
        "targets.csv",
        "tests.json",
    } <= before.keys()
    for path in (folder / "tables").iterdir():
        path.unlink()
    done = CliRunner().invoke(app, ["tables", str(folder), "--no-report"])
    assert done.exit_code == 0, done.output
    assert bytes_of(folder) == before


def test_a_grid_of_what_is_no_number_is_refused(bank: Path, tmp_path: Path) -> None:
    said = run("sweep", bank, tmp_path, "--predictor", "scripted/reader", "--calls", "two", status=2)
    assert "--calls is 'two'. Expected whole numbers, such as '2 5 10'." in said


@pytest.fixture(scope="module")
def side_by_side(bank: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    results = tmp_path_factory.mktemp("families")
    with planted(bank, informative) as (running, _):
        options = ["--arms", "transcript sae", "--limit", "6", "--server", running.url]
        said = run("families", bank, results, "--predictors", "scripted/reader scripted/steady", *options)
    return results, said


def test_predictors_are_run_on_the_same_claims_and_stand_side_by_side(side_by_side: tuple[Path, str]) -> None:
    results, said = side_by_side
    assert len(runs_in(results)) == 2
    assert "scripted/reader: AUROC" in said
    assert "scripted/steady: uplift" in said
    (folder,) = [path.parent for path in results.glob("*/families.json")]
    before = bytes_of(folder)
    done = CliRunner().invoke(app, ["tables", "--results", str(results), "--no-report"])
    assert done.exit_code == 0, done.output
    assert "AUROC by predictor and arm" in done.output
    assert bytes_of(folder) == before
    overview = json.loads((results / "overview" / "targets.json").read_text(encoding="utf-8"))["rows"]
    runs = [path.name for path in runs_in(results)]
    assert [(row["run"], row["arm"]) for row in overview] == [
        (run, arm) for run in runs for arm in ("transcript", "sae")
    ]
    assert all(row["n_claims"] == 6 for row in overview)


def test_runs_about_different_claims_do_not_stand_in_one_table(side_by_side: tuple[Path, str], tmp_path: Path) -> None:
    one, other = runs_in(side_by_side[0])
    manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
    manifest["hashes"]["claim_set"] = "0" * 64
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    folder = tmp_path / "families"
    folder.mkdir()
    names = [str(one), "other"]
    (folder / "families.json").write_text(json.dumps({"runs": names}), encoding="utf-8")
    with pytest.raises(UserError, match="asked about different claims"):
        write_families(folder)


def test_an_interrupted_log_is_told_in_the_first_line_of_its_table(
    side_by_side: tuple[Path, str], tmp_path: Path
) -> None:
    one, _ = runs_in(side_by_side[0])
    there = tmp_path / one.name
    (there / "logs").mkdir(parents=True)
    (there / "manifest.json").write_bytes((one / "manifest.json").read_bytes())
    for log in (one / "logs").glob("*transcript*.eval"):
        (there / "logs" / log.name).write_bytes(log.read_bytes())
    done = CliRunner().invoke(app, ["tables", str(there), "--no-report"])
    assert done.exit_code == 0, done.output
    assert "INCOMPLETE: 6 answers are missing, run the command again." in done.output.split("\n")[0]


def test_a_run_is_a_pilot_for_a_larger_study(bank: Path, tmp_path: Path) -> None:
    with planted(bank, informative) as (running, _):
        options = ["--predictor", "scripted/reader", "--arms", "transcript sae", "--server", running.url]
        run("eval", bank, tmp_path, *options)
    (folder,) = runs_in(tmp_path)
    done = CliRunner().invoke(app, ["power", "--pilot", str(folder), "--claims", "48"])
    assert done.exit_code == 0, done.output
    assert "sae 5x32, 24 claims in 8 clusters, uplift +0.375" in done.output
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.output.split("\n") if "|" in line]
    errors = {int(row[0]): float(row[2]) for row in cells[2:]}
    assert set(errors) == {12, 24, 48, 96, 192}
    assert errors[48] == pytest.approx(errors[192] * 2, abs=2e-4)
    refused = CliRunner().invoke(app, ["power", "--pilot", str(folder), "--arm", "nla"])
    assert refused.exit_code == 2
    assert "has no arm 'nla' to plan for; it has sae" in refused.output
