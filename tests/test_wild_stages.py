"""The stages of claims from the wild one by one, with models that misbehave."""

from pathlib import Path

import pytest

from claims.build.wild.forms import MAX_TRIES
from claims.build.wild.investigate import MAX_BAD_REPORTS, SPARE_TURNS
from claims.build.wild.screen import N_EXAMPLES, draw_examples, read_examples
from tests.wild_models import (
    SMALL,
    FakeTarget,
    Say,
    Tally,
    Turn,
    investigate,
    measured,
    replace,
    report,
    resample,
    screening,
)
from tests.wild_runs import studied, told

# Screening


def test_a_screening_that_does_not_fit_is_answered_and_asked_for_again(tmp_path: Path) -> None:
    tally = Tally()

    def stumbling(turn: Turn) -> Say:
        return (Say("It is about 4."), screening(9), screening(4))[turn.number]

    one = studied(tmp_path, tally, screener=stumbling)
    assert one.outcome == "filed"
    assert "only counts as a call" in told(tally, "screener")
    assert "interest: found 9, expected a whole number from 1 to 5" in told(tally, "screener")


def test_a_screener_that_never_fills_in_its_form_costs_a_bounded_number_of_calls(tmp_path: Path) -> None:
    tally = Tally()
    one = studied(tmp_path, tally, screener=lambda _: Say("Interesting!"))
    assert (one.outcome, tally.n) == ("unscreened", MAX_TRIES)


@pytest.mark.parametrize(("rate", "outcome"), [(0.0, "rare"), (0.15, "rare"), (1.0, "filed")])
def test_the_measured_rate_decides_and_not_the_screeners_word(tmp_path: Path, rate: float, outcome: str) -> None:
    one = studied(tmp_path, engine=FakeTarget(lambda _: rate))
    assert one.outcome == outcome


def test_a_dull_prompt_is_not_classified(tmp_path: Path) -> None:
    tally = Tally()
    assert studied(tmp_path, tally, screener=lambda _: screening(2)).outcome == "expected"
    assert [role for role, _ in tally.seen] == ["screener"]


def test_examples_are_drawn_for_each_prompt_by_its_id() -> None:
    assert len(read_examples()) >= 20
    first = draw_examples("a", 0)
    assert len(set(first)) == N_EXAMPLES
    assert draw_examples("a", 0) == first
    assert len({draw_examples(str(number), 0) for number in range(20)}) > 15
    assert {example.interest for example in read_examples()} == {1, 2, 3, 4, 5}


# Investigating


def test_an_edit_that_changes_nothing_is_told_and_not_charged(tmp_path: Path) -> None:
    tally = Tally()

    def idle(turn: Turn) -> Say:
        return resample(replace("sailor", "sailor")) if turn.number < 3 else investigate(turn)

    one = studied(tmp_path, tally, investigator=idle)
    assert one.outcome == "filed"
    assert "Not run, not charged. The edited prompt is the original" in told(tally)
    assert len(one.experiments) == 1, "only the last of the four scripted edits was left"


def test_500_resamples_are_answered_with_the_runs_own_number(tmp_path: Path) -> None:
    engine, tally = FakeTarget(), Tally()

    def greedy(turn: Turn) -> Say:
        return resample(replace("sailor", "teacher"), n=500) if turn.number == 0 else report(turn)

    one = studied(tmp_path, tally, engine, investigator=greedy)
    assert {n for _, n, _ in engine.drawn} == {SMALL.n}
    assert one.experiments[0].batch.n == SMALL.n
    assert "The number of responses is fixed at 10 in this run; n was not used." in told(tally)


def test_an_investigator_that_never_files_is_bounded_forced_and_unfiled(tmp_path: Path) -> None:
    tally, forced = Tally(), []

    def rambling(turn: Turn) -> Say:
        forced.append(turn.forced)
        return Say("Let me think.")

    one = studied(tmp_path, tally, investigator=rambling)
    assert (one.outcome, one.report) == ("unfiled", None)
    assert one.n_turns == SMALL.experiments[1] + SPARE_TURNS + 2
    assert forced[-3:] == [False, True, True]
    assert one.scores.given == ()


def test_experiments_beyond_the_most_are_refused_and_the_report_still_counts(tmp_path: Path) -> None:
    engine = FakeTarget()

    def endless(turn: Turn) -> Say:
        return report(turn) if turn.forced else resample(replace("sailor", f"teacher{turn.number}"))

    one = studied(tmp_path, engine=engine, investigator=endless)
    assert one.outcome == "filed"
    assert len(one.experiments) == SMALL.experiments[1] == len(engine.drawn) - 1


def test_the_same_edit_twice_is_answered_from_the_first(tmp_path: Path) -> None:
    tally, engine = Tally(), FakeTarget()

    def repeating(turn: Turn) -> Say:
        return resample(replace("sailor", "teacher")) if turn.number < 3 else report(turn)

    one = studied(tmp_path, tally, engine, investigator=repeating)
    assert (len(one.experiments), len(engine.drawn)) == (1, 2)
    assert "This is the prompt of experiment 1 again" in told(tally)


def test_several_calls_in_one_turn_are_all_answered(tmp_path: Path) -> None:
    tally = Tally()

    def parallel(turn: Turn) -> Say:
        if turn.number:
            return report(turn)
        first, second = resample(replace("sailor", "teacher")), resample(replace("sailor", "cook"))
        return Say(calls=(*first.calls, ("steer", {}), *second.calls))

    one = studied(tmp_path, tally, investigator=parallel)
    assert len(one.experiments) == 2
    assert "There is no tool 'steer'" in told(tally)


def test_a_prompt_that_the_target_refuses_is_not_charged(tmp_path: Path) -> None:
    tally = Tally()

    def refused(turn: Turn) -> Say:
        if turn.number == 0:
            return resample(replace("sailor", "REFUSE"))
        return resample(replace("sailor", "cook")) if turn.number == 1 else report(turn)

    one = studied(tmp_path, tally, investigator=refused)
    assert len(one.experiments) == 1
    assert "The target cannot take this prompt" in told(tally)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"core_causes": []}, "core_causes: found an empty list"),
        ({"final_answer": " "}, 'final_answer: found " ", expected a text'),
        ({"experiments": "none"}, "experiments: found"),
        ({"refuted_hypotheses": [3]}, "refuted_hypotheses: found [3], expected a list of texts"),
        (
            {"experiments": [{"experiment": 1, "description": "d", "rate_before": 50, "rate_after": 0}]},
            "experiment 1, rate_before: found 50, but",
        ),
        (
            {"experiments": [{"experiment": 9, "description": "d", "rate_before": 50, "rate_after": 0}]},
            "experiment: found 9, expected a whole number from 1 to 2",
        ),
    ],
)
def test_a_malformed_report_is_answered_and_can_be_mended(tmp_path: Path, wrong: dict, said: str) -> None:
    tally = Tally()

    def stumbling(turn: Turn) -> Say:
        if turn.number < 2:
            return resample(replace("sailor", f"cook{turn.number}"))
        return report(turn, **wrong) if turn.number == 2 else report(turn)

    one = studied(tmp_path, tally, investigator=stumbling)
    assert one.outcome == "filed"
    assert f"Not filed. {said}" in told(tally)


def test_a_report_must_name_every_experiment_and_its_measured_rates(tmp_path: Path) -> None:
    def forgetful(turn: Turn) -> Say:
        if turn.number < 2:
            return resample(replace("sailor", f"cook{turn.number}"))
        (number, (before, after)), *_ = measured(turn).items()
        line = {"experiment": number, "description": "d", "rate_before": before, "rate_after": after + 5}
        return report(turn, experiments=[line] if turn.number == 2 else [{**line, "rate_after": after}])

    one = studied(tmp_path, investigator=forgetful)
    assert (one.outcome, one.report) == ("malformed", None)
    assert "2 of 2 are not there" in one.detail


def test_reports_that_stay_malformed_end_the_investigation(tmp_path: Path) -> None:
    def wrong(turn: Turn) -> Say:
        return resample(replace("sailor", "cook")) if turn.number == 0 else report(turn, core_causes=[])

    one = studied(tmp_path, investigator=wrong)
    assert (one.outcome, one.n_turns) == ("malformed", 1 + MAX_BAD_REPORTS)


def test_arguments_that_are_not_json_are_told_back(tmp_path: Path) -> None:
    tally = Tally()

    def broken(turn: Turn) -> Say:
        if turn.number == 0:
            return Say(calls=(("resample", {}),), parse_error="Expecting value")
        return resample(replace("sailor", "cook")) if turn.number == 1 else report(turn)

    assert studied(tmp_path, tally, investigator=broken).outcome == "filed"
    assert "arguments that are not JSON" in told(tally)


@pytest.mark.parametrize(("stop", "outcome"), [("content_filter", "blocked"), ("model_length", "overflow")])
def test_a_blocked_or_overflowing_conversation_is_its_own_outcome(tmp_path: Path, stop: str, outcome: str) -> None:
    one = studied(tmp_path, investigator=lambda _: Say(stop=stop))
    assert (one.outcome, one.n_turns) == (outcome, 1)
