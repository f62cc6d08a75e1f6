"""The offline builder from investigations to a bank on disk, and its command line."""

import errno
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from claims.build import pipeline, second
from claims.build.__main__ import main, parse
from claims.build.check import check_claims
from claims.build.measure import N_FULL, Batch, judge
from claims.build.pipeline import Plan, build_with
from claims.build.programs import says
from claims.build.spec import Investigation, add, delete
from claims.labels import load_evidence, load_labels
from claims.load import load_claims
from claims.schema import UserError
from tests.known_rates import CARD, SETTINGS, KnownRates, an_investigation, candidates, edits_at
from tools.sampling import Sample
from tools.targets import get_target


def four_investigations() -> tuple[tuple[Investigation, ...], dict[str, int]]:
    pairs = [edits_at([0, 30, 20], f"i{i}", f"t{i}") for i in range(4)]
    return tuple(one for one, _ in pairs), {text: n for _, rates in pairs for text, n in rates.items()}


def run(out: Path, known: KnownRates, investigations: tuple[Investigation, ...], **plan: object) -> None:
    whole = Plan(get_target("tiny-qwen"), out, **plan)  # type: ignore[arg-type]
    build_with(known, investigations, whole, sampling=SETTINGS, card=CARD)


def test_a_bank_is_built_that_the_loaders_and_the_check_accept(tmp_path: Path) -> None:
    investigations, rates = four_investigations()
    known = KnownRates(rates)
    run(tmp_path / "bank", known, investigations, seed=7)
    claim_set = load_claims(tmp_path / "bank", target="tiny-qwen")
    labels, evidence = load_labels(claim_set), load_evidence(claim_set)
    assert check_claims(tmp_path / "bank").problems == ()
    assert len(claim_set.claims) == 8
    assert {claim.claim_id: labels[claim.claim_id].label for claim in claim_set.claims} == {
        f"i{i}/e{j}": j == 0 for i in range(4) for j in range(2)
    }
    assert labels["i0/e0"].edited_yes == 0
    assert (len(evidence["i0/e1"].responses), len(evidence["i0/e1"].fresh)) == (N_FULL, second.N_AGAIN)
    transcript = claim_set.transcripts["i2"]
    assert transcript.response.startswith("yes ")
    assert transcript.token_ids == (*b"i2: say yes.", 100 + int(transcript.response[4:]))
    assert {seed for _, _, seed in known.asked} == {7, 8}


def test_the_card_says_how_the_bank_was_made(tmp_path: Path) -> None:
    investigations, rates = four_investigations()
    (tmp_path / "hand_check.json").write_text('{"n": 40, "agreement": 0.975}', encoding="utf-8")
    run(tmp_path, KnownRates(rates), investigations)
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["sampling"]["temperature"] == 0.6
    assert card["counts"]["edits_written"] == 12
    assert card["counts"]["edits_sampled_in_full"] == 8
    assert (card["n_claims"], card["n_true"], card["n_clusters"]) == (8, 4, 4)
    assert card["claims_by_cause"] == {"wording": 8}
    assert card["second_sampling"] == {
        "n_agree": 8,
        "n": 8,
        "agreement": 1.0,
        "responses_of_a_prompt": 20,
    }
    assert card["hand_check"] == {"n": 40, "agreement": 0.975}


def test_the_hidden_companion_holds_every_experiment_and_the_card_its_sum(tmp_path: Path) -> None:
    investigations, rates = four_investigations()
    run(tmp_path, KnownRates(rates), investigations)
    text = (tmp_path / "investigations.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert card["files"]["investigations.jsonl"] == hashlib.sha256(text.encode()).hexdigest()
    assert [row["investigation_id"] for row in rows] == ["i0", "i1", "i2", "i3"]
    # The third edit lies between the thresholds: seen ten times, part of the record, in no claim.
    assert [(one["yes"], one["n"], len(one["responses"])) for one in rows[0]["experiments"]] == [
        (0, 30, 10),
        (30, 30, 10),
        (7, 10, 10),
    ]
    assert [(one["claim_id"], one["experiment"], one["label"]) for one in rows[0]["claims"]] == [
        ("i0/e0", 1, True),
        ("i0/e1", 2, False),
    ]
    assert rows[0]["claims"][0]["second_sampling"]["agrees"]
    assert (rows[0]["baseline"]["yes"], rows[0]["cause"], rows[0]["report"]) == (30, "wording", None)


def test_the_second_sampling_agrees_on_the_side_of_thirty_points(tmp_path: Path) -> None:
    def batch(n_yes: int) -> Batch:
        return judge([Sample("yes" if i < n_yes else "no", (1,), True) for i in range(30)], says("yes"))

    [true, false] = candidates(("a", "swap", True), ("b", "swap", False))
    # 30 against 21 is 30 points, against 22 is 26.7.
    assert second.Checked(true, batch(30), batch(21)).agrees
    assert not second.Checked(true, batch(30), batch(22)).agrees
    assert second.Checked(false, batch(30), batch(22)).agrees
    assert not second.Checked(false, batch(30), batch(21)).agrees


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    investigations, rates = four_investigations()
    for name in ("a", "b", "c"):
        run(tmp_path / name, KnownRates(rates), investigations, seed=int(name == "c"))
    texts = [(tmp_path / name / "transcripts.jsonl").read_bytes() for name in ("a", "b", "c")]
    assert texts[0] == texts[1] != texts[2]
    assert (tmp_path / "a" / "card.json").read_bytes() == (tmp_path / "b" / "card.json").read_bytes()


def test_a_bank_grows_from_the_investigations_it_holds(tmp_path: Path) -> None:
    investigations, rates = four_investigations()
    for seed in range(4):
        first, grown = tmp_path / f"first{seed}", tmp_path / f"grown{seed}"
        run(first, KnownRates(rates), investigations, seed=seed, most=1)
        run(grown, KnownRates(rates), investigations, seed=9, most=2, grow=first)
        [held] = {claim.investigation_id for claim in load_claims(first).claims}
        later = {claim.investigation_id for claim in load_claims(grown).claims}
        assert held in later
        card = json.loads((grown / "card.json").read_text(encoding="utf-8"))
        assert card["grown_from"] == load_claims(first).sha256
        assert len(later) == 2


def test_what_was_excluded_by_hand_yields_no_claim_and_changes_nothing_else(tmp_path: Path) -> None:
    investigations, rates = four_investigations()
    run(tmp_path / "all", KnownRates(rates), investigations)
    plan = Plan(get_target("tiny-qwen"), tmp_path / "less")
    why = {"i2": "its program misreads"}
    build_with(KnownRates(rates), investigations, plan, sampling=SETTINGS, card=CARD, excluded=why)
    whole, less = (load_claims(tmp_path / name).claims for name in ("all", "less"))
    assert less == tuple(claim for claim in whole if claim.investigation_id != "i2")
    card = json.loads((tmp_path / "less" / "card.json").read_text(encoding="utf-8"))
    assert card["excluded_by_hand"] == why


def test_a_full_disk_leaves_the_old_bank_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    investigations, rates = four_investigations()
    run(tmp_path / "bank", KnownRates(rates), investigations)
    before = {path.name: path.read_bytes() for path in (tmp_path / "bank").iterdir()}
    write_text = Path.write_text

    def full(path: Path, text: str, **options: str) -> int:
        if path.name == "evidence.jsonl":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_text(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UserError, match="cannot be written: No space left on device"):
        run(tmp_path / "bank", KnownRates(rates), investigations, seed=5)
    assert {path.name: path.read_bytes() for path in (tmp_path / "bank").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["bank"]


def test_a_bank_that_fails_the_check_is_not_written(tmp_path: Path) -> None:
    one, rates = edits_at([0, 30], "same", "t1")
    twin = replace(one, investigation_id="other", template="t2")
    with pytest.raises(UserError, match="more than one cluster"):
        run(tmp_path / "bank", KnownRates(rates), (one, twin))
    assert list((tmp_path / "bank").iterdir()) == []


def test_no_claims_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    one, rates = edits_at([20])
    with pytest.raises(UserError, match="no claim came out"):
        run(tmp_path / "bank", KnownRates(rates), (one,))
    assert not (tmp_path / "bank").exists()


def test_the_report_shows_every_rate_and_two_responses_of_each(tmp_path: Path) -> None:
    investigations, rates = four_investigations()
    known = KnownRates(rates)
    run(tmp_path / "bank", known, investigations, screen_only=True, report=tmp_path / "r" / "report.md")
    text = (tmp_path / "r" / "report.md").read_text(encoding="utf-8")
    assert "- **e0** (swap) 0/10 = 0 %, -100: true\n  - 'yes' becomes 'word0'\n  - no: 'no 0'\n  - no: 'no 1'" in text
    assert "- **baseline** 10/10 = 100 %" in text
    assert {n for _, n, _ in known.asked} == {10}
    assert not (tmp_path / "bank").exists()


def test_the_command_line_names_a_plan() -> None:
    plan = parse(["smollm2-135m", "--only", "capital-*", "--seed", "3", "--screen-only"])
    assert (plan.target.name, plan.only, plan.seed, plan.screen_only, plan.report) == (
        "smollm2-135m",
        "capital-*",
        3,
        True,
        None,
    )
    assert plan.out.parts[-3:] == ("claims", "data", "smollm2-135m")
    report = parse(["smollm2-135m", "--report"]).report
    assert report is not None
    assert report.name == "report.md"


def test_a_user_mistake_ends_with_status_2(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("sys.argv", ["claims.build", "nobody"])
    assert main() == 2
    assert "Unknown target 'nobody'" in caplog.text


def test_the_whole_builder_runs_on_a_tiny_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPLIFT_CACHE", str(tmp_path / "cache"))
    one = an_investigation(
        yes=~says("yes"), edits=[delete("no-please", "please ", "d"), add("now", "yes", " now", "d")]
    )
    monkeypatch.setattr(pipeline, "read_investigations", lambda target, only: (one,))
    monkeypatch.setattr(pipeline, "read_excluded", lambda target: {})
    plan = Plan(get_target("tiny-qwen"), tmp_path / "bank", report=tmp_path / "report.md")
    with pytest.raises(UserError, match="no claim came out"):
        pipeline.build(plan)
    stored = list((tmp_path / "cache" / "sampling" / "tiny-qwen").glob("*.json"))
    assert len(stored) == 3
    assert all(len(json.loads(path.read_text(encoding="utf-8"))) == N_FULL for path in stored)
