"""Settings of a run: arms, budgets, grids and repetitions; donors of a sham; answers that are not paid for twice."""

import json
from pathlib import Path

import pytest
from test_eval import by_arm, evaluate, informative, only_run
from typer.testing import CliRunner

from claims.load import load_claims
from claims.schema import UserError
from harness.arms import arm_place, is_sham, tool_of
from harness.cli import app
from harness.donors import choose_donors
from harness.logs import Setting, read_headers
from harness.outcomes import read_outcomes
from harness.settings import Budget, Grid, settings_of
from tests.claim_bank import write_bank
from tests.planted import planted

PAPER_GRID = Grid((2, 5, 10), (16, 32, 64))


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bank(tmp_path_factory.mktemp("bank"))


def test_the_papers_grid_varies_one_number_at_a_time_from_its_main_setting() -> None:
    main = PAPER_GRID.main(Budget(1, 8))
    assert main == Budget(5, 32)
    assert PAPER_GRID.budgets(main) == (Budget(5, 32), Budget(2, 32), Budget(5, 16), Budget(5, 64), Budget(10, 32))


@pytest.mark.parametrize(
    ("grid", "main"),
    [
        (Grid(), Budget(1, 8)),
        (Grid((1, 2), (4, 8)), Budget(1, 8)),
        (Grid((2, 3, 4), (4, 8)), Budget(3, 8)),
        (Grid((2, 4), ()), Budget(2, 8)),
    ],
)
def test_the_main_setting_is_the_usual_one_or_the_papers_or_the_middle(grid: Grid, main: Budget) -> None:
    assert grid.main(Budget(1, 8)) == main


def test_a_grid_shares_the_arms_without_a_tool_and_repeats_all_arms_equally() -> None:
    budgets = (Budget(5, 32), Budget(2, 32))
    arms = ("transcript", "sae", "sham-sae", "ceiling")
    made = settings_of("t", "p", arms, budgets, epochs=2)
    assert [setting.label for setting in made if setting.epoch == 0] == [
        "transcript",
        "sae 5x32",
        "sae 2x32",
        "sham-sae 5x32",
        "ceiling",
    ]
    assert len(made) == 10
    assert made[1] == Setting("t", "p", "transcript", 0, 0, 1)
    assert made[1].label == "transcript (2)"


def test_the_order_of_tables_puts_each_sham_behind_its_tool() -> None:
    arms = ["ceiling", "sham-sae", "sae", "transcript-2", "sham-ao", "ao", "transcript"]
    in_order = ["transcript", "transcript-2", "ao", "sham-ao", "sae", "sham-sae", "ceiling"]
    assert sorted(arms, key=arm_place) == in_order
    assert [tool_of(arm) for arm in in_order] == [None, None, "ao", "ao", "sae", "sae", None]
    assert [is_sham(arm) for arm in in_order] == [False, False, False, True, False, True, False]


def test_a_donor_is_of_another_cluster_at_least_as_long_and_moves_with_the_seed(bank: Path) -> None:
    claim_set = load_claims(bank)
    cluster = {claim.transcript_id: claim.cluster_id for claim in claim_set.claims}
    length = {name: len(transcript.token_ids) for name, transcript in claim_set.transcripts.items()}
    choices = [choose_donors(claim_set, seed=seed) for seed in range(5)]
    for donors in choices:
        assert donors.keys() == claim_set.transcripts.keys()
        for name, donor in donors.items():
            assert cluster[donor] != cluster[name]
            others = [length[other] for other in length if cluster[other] != cluster[name]]
            assert length[donor] >= min(length[name], max(others))
    assert choices[0] == choose_donors(claim_set, seed=0)
    assert len({tuple(donors.items()) for donors in choices}) > 1


def test_one_cluster_has_no_donors(tmp_path: Path) -> None:
    claim_set = load_claims(write_bank(tmp_path / "bank", n_clusters=1))
    with pytest.raises(UserError, match="has one cluster only"):
        choose_donors(claim_set, seed=0)


@pytest.fixture(scope="module")
def all_arms(bank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every kind of arm, twice, against a server of its own."""
    results = tmp_path_factory.mktemp("all")
    evaluate(bank, results, "--arms", "transcript transcript-2 sae sham-sae ceiling", "--epochs", "2", "--limit", "12")
    return results


def test_every_kind_of_arm_runs_in_one_folder(all_arms: Path) -> None:
    outcomes = read_outcomes(only_run(all_arms) / "logs")
    labels = {outcome.setting.label for outcome in outcomes}
    once = {"transcript", "transcript-2", "sae 5x32", "sham-sae 5x32", "ceiling"}
    assert labels == once | {f"{label} (2)" for label in once}
    assert len(outcomes) == 12 * 10
    assert {outcome.calls_used for outcome in outcomes if outcome.setting.arm == "sham-sae"} == {1}


def test_the_manifest_declares_hypotheses_margin_and_what_sham_and_tool_said_of_themselves(all_arms: Path) -> None:
    manifest = json.loads((only_run(all_arms) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["analysis"]["margin"] == 0.05
    assert manifest["analysis"]["epochs"] == 2
    assert manifest["analysis"]["families"] == {
        "tools": [["sae", 5, 32]],
        "tools against shams": [["sae", 5, 32]],
    }
    true, sham = (manifest["tools"][arm] for arm in ("sae", "sham-sae"))
    assert true["donors_sha256"] is None
    assert len(sham["donors_sha256"]) == 64
    assert manifest["hashes"]["tool sae"] != manifest["hashes"]["tool sham-sae"]


def test_another_run_of_the_folder_takes_over_what_is_the_same_in_every_respect(
    bank: Path, all_arms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.eval_set", lambda *_, **__: pytest.fail("an answer was asked for twice"))
    said = evaluate(bank, all_arms, "--arms", "transcript,sae", "--limit", "12")
    assert "The answers of transcript are those of tiny-gemma-sae-scripted-reader-" in said
    assert len(list(all_arms.glob("*/manifest.json"))) == 2


def test_what_was_taken_over_is_completed_with_what_is_missing(bank: Path, tmp_path: Path) -> None:
    with planted(bank, informative) as (running, reads):
        evaluate(bank, tmp_path, "--server", running.url, "--arms", "transcript")
        said = evaluate(bank, tmp_path, "--server", running.url, "--arms", "transcript,sae", "--calls", "2")
        assert "The answers of transcript are those of" in said
        before = len(reads.seen)
        evaluate(bank, tmp_path, "--server", running.url, "--arms", "transcript", "--seed", "1")
        assert len(reads.seen) == before == 24
    runs = [path.parent for path in tmp_path.glob("*/manifest.json")]
    assert sorted(len(read_headers(run / "logs")) for run in runs) == [1, 1, 2]


def test_a_margin_chosen_afterwards_is_refused(bank: Path, all_arms: Path) -> None:
    given = ["--arms", "transcript,sae", "--limit", "12"]
    evaluate(bank, all_arms, *given)
    said = evaluate(bank, all_arms, *given, "--margin", "0.1", status=2)
    assert "declared 0.05 before it was started" in said
    assert "uplift score" in said


def test_every_position_is_shown_at_once_on_short_transcripts(bank: Path, tmp_path: Path) -> None:
    with planted(bank, informative) as (running, reads):
        evaluate(bank, tmp_path, "--server", running.url, "--all-positions", "--arms", "transcript all-sae")
    assert len(reads.seen) == 24
    row = by_arm(tmp_path)["all-sae"]
    assert (row["calls"], row["positions"], row["mean_calls_used"], row["fidelity"]) == (0, 0, 0, "demo")


def test_a_server_of_ours_has_to_be_the_only_one(bank: Path, tmp_path: Path) -> None:
    given = ["eval", "--tool", "sae,mcp:http://127.0.0.1:9/mcp", "--target", "tiny-gemma", "--claims", str(bank)]
    given += ["--predictor", "scripted/reader", "--results", str(tmp_path), "--server", "http://127.0.0.1:9/mcp"]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 2
    assert "--server names one server" in done.output
