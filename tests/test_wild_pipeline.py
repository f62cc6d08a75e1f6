"""The whole pipeline of claims from the wild with scripted models: what comes out, kills, caps, columns."""

import asyncio
import json
from pathlib import Path

import pytest

from claims.build.check import check_claims
from claims.build.wild import run_wild
from claims.build.wild.money import CostCapError
from claims.labels import load_evidence, load_labels
from claims.load import load_claims
from claims.schema import ClaimsError, UserError
from tests.wild_models import (
    FakeTarget,
    Killed,
    Say,
    Tally,
    Turn,
    call,
    classify,
    investigate,
    make_lab,
    report,
    sailor_prompts,
    screening,
)
from tests.wild_runs import plan


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_a_run_writes_a_claims_folder_that_passes_the_check(tmp_path: Path) -> None:
    result = run_wild(plan(tmp_path), make_lab(tmp_path / "work"))
    assert result.out == tmp_path / "out"
    found = check_claims(tmp_path / "out")
    assert found.problems == ()
    claim_set = load_claims(tmp_path / "out", target="tiny-gemma")
    # Two experiments of four take the sailor away, two leave him: two true and two false claims a prompt.
    assert len(claim_set.claims) == 12
    assert sum(label.label for label in load_labels(claim_set).values()) == 6
    assert all(len(one.fresh) == 8 for one in load_evidence(claim_set).values())
    assert all("ahoy" in one.response for one in claim_set.transcripts.values())


def test_labels_follow_from_the_counts_of_the_right_experiment(tmp_path: Path) -> None:
    run_wild(plan(tmp_path, n=1), make_lab(tmp_path / "work"))
    labels = load_labels(load_claims(tmp_path / "out"))
    (investigation,) = rows(tmp_path / "out" / "investigations.jsonl")
    for experiment in investigation["experiments"]:
        label = labels[f"{investigation['investigation_id']}/{experiment['number']}"]
        naive = sum("ahoy" in one["response"] for one in experiment["responses"])
        assert (label.edited_yes, label.edited_n) == (naive, 10) == (experiment["yes"], experiment["n"])
        assert label.label == ("sailor" not in experiment["messages"][0]["content"])


def test_nothing_that_a_predictor_sees_holds_an_outcome_or_an_edited_response(tmp_path: Path) -> None:
    run_wild(plan(tmp_path), make_lab(tmp_path / "work"))
    seen = (tmp_path / "out" / "claims.jsonl").read_text() + (tmp_path / "out" / "transcripts.jsonl").read_text()
    assert '"label"' not in seen
    assert "hello number" not in seen
    assert "Verdict" not in seen


def test_the_describer_sees_the_two_prompts_and_nothing_else(tmp_path: Path) -> None:
    tally = Tally()
    run_wild(plan(tmp_path, n=1), make_lab(tmp_path / "work", tally=tally))
    shown = [text for role, text in tally.seen if role in ("describer", "reproducer")]
    assert shown
    assert not any(word in text for text in shown for word in ("ahoy", "hello number", "10 of 10", "Does the response"))


@pytest.mark.parametrize("at", [1, 12, 15, 25, 40, 70, 90, 99, 104])
def test_a_run_killed_anywhere_ends_with_the_same_bytes_and_pays_nothing_twice(tmp_path: Path, at: int) -> None:
    whole = Tally()
    run_wild(plan(tmp_path / "a", in_flight=2), make_lab(tmp_path / "a" / "work", tally=whole))
    assert at < whole.n, "the run is too short to be killed there"
    killed = Tally(kill_at=at)
    with pytest.raises(Killed):
        run_wild(plan(tmp_path / "b", in_flight=2), make_lab(tmp_path / "b" / "work", tally=killed))
    assert not (tmp_path / "b" / "out").exists()
    rest = Tally()
    run_wild(plan(tmp_path / "b", in_flight=2), make_lab(tmp_path / "b" / "work", tally=rest))
    assert len(killed.seen) + len(rest.seen) == len(whole.seen)
    assert folder_bytes(tmp_path / "a" / "out") == folder_bytes(tmp_path / "b" / "out")


def test_a_finished_run_made_again_asks_no_model(tmp_path: Path) -> None:
    run_wild(plan(tmp_path), make_lab(tmp_path / "work"))
    again = Tally()
    run_wild(plan(tmp_path, out=tmp_path / "other"), make_lab(tmp_path / "work", tally=again))
    assert again.n == 0
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "other")


def test_the_number_of_prompts_in_flight_changes_no_byte(tmp_path: Path) -> None:
    run_wild(plan(tmp_path / "a", in_flight=1), make_lab(tmp_path / "a" / "work"))
    run_wild(plan(tmp_path / "b", in_flight=8), make_lab(tmp_path / "b" / "work"))
    assert folder_bytes(tmp_path / "a" / "out") == folder_bytes(tmp_path / "b" / "out")


def test_a_torn_last_line_costs_one_reply_and_no_more(tmp_path: Path) -> None:
    run_wild(plan(tmp_path, n=1), make_lab(tmp_path / "work"))
    log = max((tmp_path / "work" / "replies").glob("*.jsonl"), key=lambda path: path.stat().st_size)
    log.write_bytes(log.read_bytes()[:-20])
    again = Tally()
    run_wild(plan(tmp_path, n=1, out=tmp_path / "other"), make_lab(tmp_path / "work", tally=again))
    assert again.n == 1
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "other")


def test_the_cap_stops_the_run_before_it_is_exceeded_and_a_higher_one_continues(tmp_path: Path) -> None:
    first = Tally()
    lab = make_lab(tmp_path / "work", tally=first, cap=0.16)
    with pytest.raises(CostCapError, match=r"cap of \$0\.16"):
        run_wild(plan(tmp_path, n=1), lab)
    # A reply of 100 and 10 tokens at 10 and 50 dollars a million costs 0.0015 dollars.
    assert lab.clerk.purse.spent == pytest.approx(0.0015 * first.n)
    assert 0 < lab.clerk.purse.spent <= 0.16
    second = Tally()
    result = run_wild(plan(tmp_path, n=1), make_lab(tmp_path / "work", tally=second, cap=50))
    total = next(row for row in result.costs if row["stage"] == "total")
    assert total["n_calls"] == first.n + second.n
    assert total["dollars"] == pytest.approx(0.0015 * (first.n + second.n))


def test_the_tables_count_prompts_investigations_and_claims_in_the_papers_order(tmp_path: Path) -> None:
    prompts = (*sailor_prompts(2), *sailor_prompts(3)[2:])

    def rated(turn: Turn) -> Say:
        return screening(2 if "number 2." in turn.user else 5)

    def graded(turn: Turn) -> Say:
        return call("file_grade", reasons="r", grade=4)

    result = run_wild(plan(tmp_path, prompts=prompts), make_lab(tmp_path / "work", screener=rated, grader=graded))
    counts = {one.step: one.n for one in result.counts}
    assert counts["prompts"] == 3
    assert counts["+ unexpected enough"] == 2
    assert counts["investigations (verified)"] == 2
    assert counts["counterfactual claims"] == 8
    assert counts["+ balanced, capped"] == 8
    assert result.faults["prompts expected"] == 1
    assert "| counterfactual claims | 8 | 4 | 4 |" in result.text
    assert "| investigate |" in result.text
    stages = {row["stage"]: row["n_calls"] for row in result.costs}
    # Per prompt: 4 experiments and the report; 3 judges; 4 descriptions. One screening a prompt, screened out or not.
    assert stages["screen"] == 3
    assert stages["investigate"] == 10
    assert stages["verify"] == 6
    assert stages["claims"] == 8
    assert sum(value for name, value in stages.items() if name != "total") == stages["total"]


def test_low_scores_keep_an_investigation_out_of_the_claims_and_in_the_record(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "work", judge=lambda _: call("file_score", reasons="r", score=6))
    result = run_wild(plan(tmp_path, n=1), lab)
    assert result.out is None
    assert not (tmp_path / "out").exists()
    (row,) = rows(tmp_path / "work" / "investigations.jsonl")
    assert (row["scores"], row["verified"], row["claims"]) == ([6, 6, 6], False, [])


def test_claims_of_prompts_that_start_alike_share_a_cluster(tmp_path: Path) -> None:
    from claims.prompts.record import make_prompt
    from claims.schema import Message

    start = "I am a sailor. Tell me about the weather. " + "La la la " * 20
    prompts = tuple(make_prompt((Message("user", f"{start}{end}"),), "s") for end in ("one", "two"))
    run_wild(plan(tmp_path, prompts=(*prompts, *sailor_prompts(1))), make_lab(tmp_path / "work"))
    claims = load_claims(tmp_path / "out").claims
    clusters = {claim.investigation_id: claim.cluster_id for claim in claims}
    assert clusters[prompts[0].prompt_id] == clusters[prompts[1].prompt_id]
    assert len(set(clusters.values())) == 2


def test_a_run_whose_every_prompt_is_refused_says_so(tmp_path: Path) -> None:
    from claims.prompts.record import make_prompt
    from claims.schema import Message

    prompts = (make_prompt((Message("user", "REFUSE this"),), "s"),)
    with pytest.raises(UserError, match="took none of the 1 prompts"):
        run_wild(plan(tmp_path, prompts=prompts), make_lab(tmp_path / "work"))


def test_an_existing_folder_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    tally = Tally()
    with pytest.raises(ClaimsError, match="exists already"):
        run_wild(plan(tmp_path), make_lab(tmp_path / "work", tally=tally))
    assert tally.n == 0


def test_a_failing_model_stops_new_payments_and_keeps_what_was_paid(tmp_path: Path) -> None:
    calls = 0

    def failing(turn: Turn) -> Say:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise RuntimeError("the provider is gone")
        return classify(turn)

    tally = Tally()
    with pytest.raises(RuntimeError, match="provider is gone"):
        run_wild(plan(tmp_path, n=6, in_flight=1), make_lab(tmp_path / "work", tally=tally, classifier=failing))
    assert tally.n < 20, "later prompts were still paid for"
    rest = Tally()
    run_wild(plan(tmp_path, n=6, in_flight=1), make_lab(tmp_path / "work", tally=rest))
    whole = Tally()
    run_wild(plan(tmp_path / "x", n=6), make_lab(tmp_path / "x" / "work", tally=whole))
    assert tally.n - 1 + rest.n == whole.n


def test_the_same_question_in_flight_twice_is_paid_for_once(tmp_path: Path) -> None:
    tally = Tally()
    lab = make_lab(tmp_path / "work", tally=tally)
    target = FakeTarget()

    async def twice() -> list[object]:
        responses = await target.draw(sailor_prompts(1)[0].messages, 1, 0)
        return list(await asyncio.gather(*(lab.classifier.judge("x", "q", responses) for _ in range(3))))

    batches = asyncio.run(twice())
    assert tally.n == 1
    assert batches[0] == batches[1] == batches[2]


def test_an_investigator_that_reports_at_once_is_asked_for_experiments(tmp_path: Path) -> None:
    def hasty(turn: Turn) -> Say:
        return report(turn) if turn.number == 0 else investigate(turn)

    run_wild(plan(tmp_path, n=1), make_lab(tmp_path / "work", investigator=hasty))
    (row,) = rows(tmp_path / "out" / "investigations.jsonl")
    assert row["outcome"] == "filed"
    assert len(row["experiments"]) == 3
