"""`uplift eval --filters`: which claims of a set from the wild are asked."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claims.schema import UserError
from harness.cli import app
from harness.plan import Request, filtered_folder, make_plan
from tests.claim_bank import write_bank, write_rows
from tests.planted import planted

SINGLE = 12
"""Claims with a single factor, of 24."""


@pytest.fixture
def wild_bank(tmp_path: Path) -> Path:
    folder = write_bank(tmp_path / "wild")
    rows = [
        {
            "claim_id": f"claim-{number:02}",
            "label": True,
            "concreteness": None if number == 0 else 4,
            "balanced": True,
            "reproduced": True,
            "reproduced_yes": 1,
            "reproduced_n": 2,
            "single_factor": number < SINGLE,
        }
        for number in range(24)
    ]
    write_rows(folder / "filters.jsonl", rows)
    return folder


def asked(folder: Path, filters: str) -> Request:
    return Request("sae", "tiny-gemma", "scripted/reader", None, None, None, folder, 0, ("transcript",), None, filters)


def test_filters_choose_claims_and_change_the_identity_of_the_set(wild_bank: Path) -> None:
    whole, paper = make_plan(asked(wild_bank, "none")), make_plan(asked(wild_bank, "paper"))
    single = make_plan(asked(wild_bank, "single-factor"))
    assert [len(plan.claims) for plan in (whole, paper, single)] == [24, SINGLE - 1, SINGLE]
    assert len({plan.claim_set.sha256 for plan in (whole, paper, single)}) == 3
    assert whole.claim_set.path == wild_bank


@pytest.mark.parametrize(
    ("filters", "said"),
    [("papper", "Unknown filters 'papper'. Expected none, paper, or some of concrete"), ("", "Unknown filters ''")],
)
def test_a_mistyped_filter_is_answered_with_those_there_are(wild_bank: Path, filters: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_plan(asked(wild_bank, filters))


def test_a_set_without_filters_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no filters\.jsonl.*Use --filters none"):
        filtered_folder(write_bank(tmp_path / "bank"), "paper")


def test_table_and_manifest_name_the_filters_and_the_folder_they_were_used_on(wild_bank: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with planted(wild_bank, lambda _: 0.5) as (running, _):
        command = [
            "eval",
            "--no-report",
            "--target",
            "tiny-gemma",
            "--predictor",
            "scripted/reader",
            "--claims",
            str(wild_bank),
        ]
        more = ["--arms", "transcript,sae", "--server", running.url, "--results", str(results)]
        done = CliRunner().invoke(app, [*command, *more, "--filters", "single-factor"])
    assert done.exit_code == 0, done.output
    assert f"Claims: {SINGLE} of {SINGLE} in {wild_bank} (filters: single-factor)" in done.output
    (manifest,) = results.glob("*/manifest.json")
    assert json.loads(manifest.read_text(encoding="utf-8"))["claims"] == {
        "folder": str(wild_bank),
        "filters": "single-factor",
        "n_all": SINGLE,
        "n_used": SINGLE,
    }
