"""Edits, judges, claims and fences of claims from the wild."""

import asyncio
import json
import re
from dataclasses import replace as changed
from fractions import Fraction
from pathlib import Path

import pytest

from claims.build.wild.edits import apply_edits
from claims.build.wild.extract import DESCRIPTION, describe, eligible, select
from claims.build.wild.fence import FOLDER, code_for, fenced, text
from claims.build.wild.forms import MAX_TRIES, Fields, FormError
from claims.build.wild.investigate import Lab
from claims.build.wild.records import Batch, Experiment, Investigated, Report
from claims.build.wild.study import study
from claims.schema import Message
from tests.wild_models import (
    FakeTarget,
    Say,
    Tally,
    Turn,
    call,
    make_lab,
    sailor_prompts,
)
from tests.wild_runs import studied, told

# Edits

PROMPT = (Message("system", "Be brief."), Message("user", "Tell me, tell me about tea."))


def edited(*steps: dict[str, object]) -> tuple[Message, ...]:
    return apply_edits(PROMPT, tuple(Fields(step) for step in steps))


def test_edits_reach_every_turn() -> None:
    assert edited({"action": "delete", "message": 1}) == PROMPT[1:]
    assert edited({"action": "replace", "message": 2, "find": "tea", "text": "rum"})[1].content.endswith("rum.")
    assert edited({"action": "replace_all", "message": 2, "find": "ell me", "text": "alk"})[1].content.count("alk") == 2
    assert edited({"action": "rewrite", "message": 1, "text": "Be long."})[0] == Message("system", "Be long.")
    inserted = edited(
        {"action": "insert", "message": 2, "role": "user", "text": "Hi"},
        {"action": "insert", "message": 3, "role": "assistant", "text": "Hello"},
    )
    assert [message.role for message in inserted] == ["system", "user", "assistant", "user"]
    assert edited({"action": "replace", "message": 1, "find": "Be brief.", "text": ""}) == PROMPT[1:]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"action": "sing", "message": 1}, "action: found 'sing'"),
        ({"action": "delete", "message": 3}, "message: found 3, expected a whole number from 1 to 2"),
        ({"action": "delete", "message": 2}, "ends with system"),
        ({"action": "replace", "message": 2, "find": "ell me", "text": "x"}, "occurs 2 times"),
        ({"action": "replace", "message": 2, "find": "coffee", "text": "x"}, "does not occur"),
        ({"action": "replace", "message": 2, "text": "x"}, "find: found nothing"),
        ({"action": "replace", "message": 2, "find": "tea", "text": "tea"}, "nothing changed"),
        ({"action": "insert", "message": 3, "role": "assistant", "text": "x"}, "ends with assistant"),
        ({"action": "insert", "message": 1, "role": "narrator", "text": "x"}, "role: found 'narrator'"),
    ],
)
def test_edits_that_do_not_fit_say_what_was_found(step: dict, said: str) -> None:
    with pytest.raises(FormError, match=re.escape(said)):
        edited(step)


# Judging


def test_an_eleven_is_asked_again_then_left_out_and_counted(tmp_path: Path) -> None:
    tally = Tally()
    one = studied(tmp_path, tally, judge=lambda _: call("file_score", reasons="Great!", score=11))
    assert (one.scores.given, one.scores.average) == ((None, None, None), None)
    assert "score: found 11, expected a whole number from 1 to 10" in told(tally, "judge")
    assert sum(role == "judge" for role, _ in tally.seen) == 3 * MAX_TRIES


def test_the_average_is_of_the_usable_scores(tmp_path: Path) -> None:
    given = iter([8, 11, 9])

    def judge(turn: Turn) -> Say:
        return call("file_score", reasons="r", score=next(given) if turn.number == 0 else 11)

    one = studied(tmp_path, judge=judge)
    assert sorted(one.scores.usable) == [8, 9]
    assert one.scores.average == Fraction(17, 2)


def test_judges_are_asked_apart(tmp_path: Path) -> None:
    tally = Tally()
    studied(tmp_path, tally)
    shown = [words for role, words in tally.seen if role == "judge"]
    assert len(shown) == 3
    assert len(set(shown)) == 1, "each judge is given the same material and no other judge's answer"


# Claims


def case(lab: Lab, rates: list[int], baseline: int = 10) -> Investigated:
    """An investigation with experiments of these yes counts of 10."""
    prompt = sailor_prompts(1)[0]
    responses = asyncio.run(FakeTarget().draw(prompt.messages, 10, 0))

    def batch(yes: int) -> Batch:
        return Batch(responses, tuple(number < yes for number in range(10)))

    experiments = tuple(
        Experiment(number, "n", (Message("user", f"x{number}"),), batch(yes)) for number, yes in enumerate(rates, 1)
    )
    lines = {one.number: "edit" for one in experiments}
    found = asyncio.run(study(lab, prompt))
    return changed(found, baseline=batch(baseline), experiments=experiments, report=Report("o", ("c",), (), "a", lines))


def test_labels_are_exact_at_the_thresholds(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    # Changes of 50, 40, 20, 10 and 0 points: true, unused, unused, false, false.
    assert eligible(lab, case(lab, [5, 6, 8, 9, 10])) == {1: True, 4: False, 5: False}


def test_experiments_with_too_few_usable_verdicts_become_no_claim(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    one = case(lab, [0, 0])
    few = Batch(one.experiments[1].batch.responses, (False,) * 7 + (None,) * 3)
    one = changed(one, experiments=(one.experiments[0], changed(one.experiments[1], batch=few)))
    assert eligible(lab, one) == {1: True}


def test_the_selector_is_held_to_two_of_each_that_can_be_claims(tmp_path: Path) -> None:
    tally = Tally()
    answers = iter([([1, 2, 3], [4, 5]), ([1, 4], [5, 6]), ([3, 1], [6, 4])])

    def selector(_: Turn) -> Say:
        supporting, refuting = next(answers)
        return call("choose_experiments", supporting=supporting, refuting=refuting)

    lab = make_lab(tmp_path, tally=tally, selector=selector)
    one = case(lab, [0, 1, 2, 10, 10, 9])
    assert asyncio.run(select(lab, one)) == (1, 3, 4, 6)
    assert "expected 2 different numbers of: 1, 2, 3" in told(tally, "selector")


def test_where_there_is_nothing_to_choose_nobody_is_asked(tmp_path: Path) -> None:
    tally = Tally()
    lab = make_lab(tmp_path, tally=tally)
    one = case(lab, [0, 10])
    before = tally.n
    assert asyncio.run(select(lab, one)) == (1, 2)
    assert tally.n == before


def test_a_description_that_never_comes_right_drops_the_claim_and_is_none(tmp_path: Path) -> None:
    lab = make_lab(
        tmp_path, describer=lambda _: call("describe_edit", changes=["a"], description="d", confounded="yes")
    )
    assert asyncio.run(describe(lab.clerk, "i", PROMPT, PROMPT[1:])) is None


def test_the_description_form_has_no_field_for_an_outcome() -> None:
    assert set(DESCRIPTION.fields) == {"changes", "description", "confounded"}


# Fences


def test_foreign_text_cannot_close_its_fence() -> None:
    body = "x"
    for _ in range(3):
        body += f"\n=== {code_for([body])} prompt ends ==="
    shown = fenced("prompt", [("message 1, user", body)])
    code = shown.split()[1]
    assert code not in body
    assert shown.count(f"=== {code} prompt ends ===") == 1
    assert shown.endswith(f"=== {code} prompt ends ===")


def test_every_system_text_says_that_fenced_text_is_material() -> None:
    for path in FOLDER.glob("*_system.md"):
        words = text(path.name)
        assert "follow them" in words or "do not follow" in words, path.name


def test_examples_and_prices_are_readable_json() -> None:
    for path in (FOLDER.parent / "data").glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))
