"""The whole loop on a tiny target: server, budget, logs, scoring, tables; resumed, repeated, interrupted."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest
from typer.testing import CliRunner

from claims.schema import UserError
from harness.cli import app
from harness.outcomes import read_outcomes
from harness.stats import auroc
from tests.claim_bank import label_of, write_bank
from tests.planted import planted

N_CLAIMS = 24
TRANSCRIPTS = [f"transcript-{number:02}" for number in range(N_CLAIMS)]


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bank(tmp_path_factory.mktemp("bank"))


def command(bank: Path, results: Path, *more: str) -> list[str]:
    given = ["eval", "--no-report", "--tool", "sae", "--target", "tiny-gemma", "--predictor", "scripted/reader"]
    return [*given, "--claims", str(bank), "--results", str(results), *more]


def evaluate(bank: Path, results: Path, *more: str, status: int = 0) -> str:
    """Run `uplift eval` in this process; what it says on standard output and standard error."""
    done = CliRunner().invoke(app, command(bank, results, *more))
    assert done.exit_code == status, done.output
    return done.output


def only_run(results: Path) -> Path:
    (manifest,) = results.glob("*/manifest.json")
    return manifest.parent


def files_of(results: Path) -> dict[str, bytes]:
    return {name: (only_run(results) / name).read_bytes() for name in ("outcomes.jsonl", "uplift.json", "table.md")}


def by_arm(results: Path) -> dict[str, dict[str, object]]:
    return {row["arm"]: row for row in json.loads((only_run(results) / "uplift.json").read_text(encoding="utf-8"))}


def informative(number: int) -> float:
    """Leans the right way in 21 claims of 24, with ties."""
    leans_true = label_of(number) != (number % 8 == 5)
    return round((0.6 if leans_true else 0.2) + 0.1 * (number % 3), 1)


def uninformative(number: int) -> float:
    """A pattern that has next to nothing to do with the labels."""
    return round((2 * number % 9) / 9, 2)


def expected_auroc(p_true: Sequence[float]) -> float:
    return auroc(np.array(p_true), np.array([label_of(number) for number in range(N_CLAIMS)]))


@pytest.fixture(scope="session")
def undisturbed(bank: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The results of a run with the informative tool that nothing disturbed, and what it said."""
    results = tmp_path_factory.mktemp("undisturbed")
    with planted(bank, informative) as (running, reads):
        said = evaluate(bank, results, "--server", running.url)
    assert sorted(reads.seen) == TRANSCRIPTS
    return results, said


def test_an_informative_tool_shows_the_uplift_that_was_planted(undisturbed: tuple[Path, str]) -> None:
    results, said = undisturbed
    rows = by_arm(results)
    # Counted by hand in a loop over the 144 pairs of a true and a false claim: 126 won or half won.
    assert expected_auroc([informative(number) for number in range(N_CLAIMS)]) == 126 / 144
    assert rows["transcript"]["auroc"] == 0.5
    assert rows["sae"]["auroc"] == 0.875
    assert rows["sae"]["uplift"] == 0.375
    assert 0 < rows["sae"]["low"] < rows["sae"]["uplift"] < rows["sae"]["high"]
    assert (rows["sae"]["n_claims"], rows["sae"]["n_clusters"], rows["sae"]["n_excluded"]) == (24, 8, 0)
    assert (rows["sae"]["calls"], rows["sae"]["positions"], rows["sae"]["fidelity"]) == (5, 32, "demo")
    assert rows["sae"]["mean_calls_used"] == 1
    assert "the whole interval lies above zero" in said


def test_an_uninformative_tool_shows_no_uplift_and_says_what_is_excluded(bank: Path, tmp_path: Path) -> None:
    with planted(bank, uninformative) as (running, _):
        said = evaluate(bank, tmp_path, "--server", running.url, "--arms", "transcript,sae")
    row = by_arm(tmp_path)["sae"]
    assert row["uplift"] == expected_auroc([uninformative(number) for number in range(N_CLAIMS)]) - 0.5
    assert abs(row["uplift"]) < 0.03
    assert row["low"] < 0 < row["high"]
    assert "its sign is open. Excluded are an uplift above" in said
    assert "Ceiling: not run" in said
    assert "no uplift" not in said.lower()


def test_the_same_command_again_asks_nothing_and_changes_nothing(
    bank: Path, undisturbed: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, _ = undisturbed
    logs = {path: path.read_bytes() for path in (only_run(results) / "logs").glob("*.eval")}
    before = files_of(results)
    monkeypatch.setattr("harness.run.eval_set", lambda *_, **__: pytest.fail("a complete run was started again"))
    with planted(bank, informative) as (running, reads):
        evaluate(bank, results, "--server", running.url)
    assert reads.seen == []
    assert files_of(results) == before
    assert {path: path.read_bytes() for path in (only_run(results) / "logs").glob("*.eval")} == logs


def test_tables_are_made_again_from_the_logs_byte_for_byte_without_a_model(
    undisturbed: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, _ = undisturbed
    before = files_of(results)
    for name in before:
        (only_run(results) / name).unlink()
    monkeypatch.setattr("inspect_ai.model.Model.generate", lambda *_, **__: pytest.fail("a model was called"))
    done = CliRunner().invoke(app, ["tables", "--no-report", "--results", str(results)])
    assert done.exit_code == 0, done.output
    assert files_of(results) == before


def test_any_other_setting_is_another_run(bank: Path, undisturbed: tuple[Path, str], tmp_path: Path) -> None:
    results, _ = undisturbed
    name = only_run(results).name
    with planted(bank, informative, description="Other words.") as (running, _):
        evaluate(bank, tmp_path / "words", "--server", running.url, "--arms", "transcript,sae", "--limit", "6")
        evaluate(bank, tmp_path / "seed", "--server", running.url, "--arms", "transcript", "--seed", "1")
    names = {name, only_run(tmp_path / "words").name, only_run(tmp_path / "seed").name}
    assert len(names) == 3


def test_the_manifest_says_what_was_run(undisturbed: tuple[Path, str]) -> None:
    manifest = json.loads((only_run(undisturbed[0]) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["target"] == "tiny-gemma"
    assert manifest["settings"]["calls"] == 5
    assert manifest["claims"]["n_used"] == N_CLAIMS
    assert manifest["tools"]["sae"]["weights_sha256"] == "w"
    assert {"claim_set", "prompts", "predictor", "tool sae"} == manifest["hashes"].keys()
    assert {"command", "started_at", "git", "python", "versions", "platform"} == manifest["made"].keys()


def test_a_run_killed_in_the_middle_continues_to_the_outcomes_of_an_undisturbed_one(
    bank: Path, undisturbed: tuple[Path, str], tmp_path: Path
) -> None:
    with planted(bank, informative) as (running, reads):
        released = threading.Event()
        reads.at, reads.then = 16, lambda: released.wait(120)
        process = subprocess.Popen(
            [sys.executable, "-m", "harness", *command(bank, tmp_path, "--server", running.url)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            done = _wait_for_outcomes(tmp_path, "sae", process)
        finally:
            process.kill()
            process.wait(30)
            released.set()
        before = len(reads.seen)
        evaluate(bank, tmp_path, "--server", running.url)
    read_again = {name.replace("transcript", "claim") for name in reads.seen[before:]}
    assert len(done) >= 5
    assert read_again.isdisjoint(done)
    assert files_of(tmp_path) == files_of(undisturbed[0])


def _wait_for_outcomes(results: Path, arm: str, process: subprocess.Popen[bytes]) -> set[str]:
    """The claims of an arm that are on disk, as soon as there are any."""
    tick = threading.Event()
    for _ in range(2400):
        for logs in results.glob("*/logs"):
            # A log that is replaced between two of its reader's steps cannot be read: the next round sees the new one.
            with contextlib.suppress(ValueError, OSError, UserError):
                done = {row.claim_id for row in read_outcomes(logs) if row.setting.arm == arm}
                if done:
                    return done
        assert process.poll() is None, "the run ended before it could be killed"
        tick.wait(0.05)
    raise AssertionError("nothing was written")


def test_a_server_that_dies_in_the_middle_stops_the_run_and_the_same_command_continues(
    bank: Path, undisturbed: tuple[Path, str], tmp_path: Path
) -> None:
    with planted(bank, informative) as (running, reads):
        reads.at, reads.then = (
            9,
            lambda: setattr(running.uvicorn, "force_exit", True) or running.uvicorn.handle_exit(2, None),
        )
        said = evaluate(bank, tmp_path, "--server", running.url, status=3)
    assert "Give the same command again" in said
    assert "The tool server at" in said
    assert not (only_run(tmp_path) / "table.md").exists()
    kept = [outcome for outcome in read_outcomes(only_run(tmp_path) / "logs") if outcome.setting.arm == "sae"]
    done = {outcome.claim_id.replace("claim", "transcript") for outcome in kept}
    with planted(bank, informative) as (running, again):
        evaluate(bank, tmp_path, "--server", running.url)
    assert len(done) < N_CLAIMS
    assert sorted(again.seen) == sorted(set(TRANSCRIPTS) - done)
    assert files_of(tmp_path) == files_of(undisturbed[0])


def _processes_about(folder: Path) -> list[str]:
    return [
        " ".join(process.info["cmdline"])
        for process in psutil.process_iter(["cmdline", "status"])
        if str(folder) in " ".join(process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_neither_ctrl_c_nor_kill_leaves_a_process_behind(bank: Path, tmp_path: Path, number: int, status: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *command(bank, tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # A shell's background job, such as a CI run, is started with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("Run: "):
            break
    assert any(str(tmp_path) in line and "tools.serve" in line for line in _processes_about(tmp_path)), said
    process.send_signal(number)
    said += process.stderr.readlines()
    process.stderr.close()
    assert process.wait(60) == status, "".join(said)
    tick = threading.Event()
    for _ in range(400):
        if not _processes_about(tmp_path):
            break
        tick.wait(0.05)
    assert _processes_about(tmp_path) == []
