"""`uplift eval` over the wire: a quota that is spent for the day stops the run, and the same command finishes it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from tests.claim_bank import write_bank
from tests.fakes import Faults
from tests.wire_runs import GPT, wired

N_CLAIMS = 24


class UntilTomorrow(Faults):
    """A daily quota of so many requests."""

    left = 9

    def draw(self, number: int, model: str) -> str:
        self.left -= 1
        return "" if self.left >= 0 else "429_day"


def evaluate(bank: Path, results: Path, *more: str) -> tuple[int, str]:
    given = ["eval", "--tool", "sae", "--target", "tiny-gemma", "--predictor", GPT, "--claims", str(bank)]
    wanted = ["--results", str(results), "--arms", "transcript", "--yes", "--no-report", *more]
    done = CliRunner().invoke(app, [*given, *wanted])
    return done.exit_code, done.output


def test_a_quota_of_the_day_stops_a_run_that_the_same_command_finishes(tmp_path: Path) -> None:
    bank, results = write_bank(tmp_path / "bank"), tmp_path / "results"
    faults = UntilTomorrow()
    with wired("steady", faults) as fake:
        status, said = evaluate(bank, results)
        assert status == 3, said
        assert f"{GPT} gives no more answers today" in said
        assert "Give the same command again" in said
        assert len(fake.bill.records) == 9
        refused = fake.counts["fault 429_day"]
        assert refused < N_CLAIMS, "only what was in flight met the quota"
        faults.left = 1000
        status, said = evaluate(bank, results)
    assert status == 0, said
    assert len(fake.bill.records) == N_CLAIMS
    assert len({record.first_user_sha256 for record in fake.bill.records}) == N_CLAIMS, "an answer was paid for twice"
    (manifest,) = results.glob("*/manifest.json")
    settings = json.loads(manifest.read_text(encoding="utf-8"))["settings"]
    assert (settings["effort"], json.loads(settings["reasoning_sent"])) == ("high", {"reasoning.effort": "high"})
    rows = [json.loads(line) for line in (manifest.parent / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["outcome"] for row in rows} == {"answered"}
    assert sum(row["output_tokens"] for row in rows) == sum(record.usage.written for record in fake.bill.records)


def test_another_effort_is_another_run_and_one_that_does_not_exist_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = write_bank(tmp_path / "bank")
    with wired("steady") as fake:
        for effort in ("high", "low"):
            assert evaluate(bank, tmp_path / "results", "--limit", "4", "--effort", effort)[0] == 0
        efforts = [request.body["reasoning"]["effort"] for request in fake.requests]
        status, said = evaluate(bank, tmp_path / "results", "--effort", "utmost")
    assert len(list((tmp_path / "results").glob("*/manifest.json"))) == 2
    assert set(efforts) == {"low", "high"}
    assert status == 2
    assert "Unknown effort 'utmost'. Known efforts: low, medium, high." in " ".join(said.split())
