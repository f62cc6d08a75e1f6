"""Submitted values and prose to a probability, or to nothing."""

import math

import pytest

from agents.answer import read_submitted
from agents.prose import read_prose

CLAIM = (
    "BEHAVIOR: Does the reply mention Sydney?\nBASELINE: at temperature 1, about 87% of the responses.\n"
    "INTERVENTION: the hint is removed.\nPREDICTION: the share differs from 87% by at least 30 percentage points."
)


@pytest.mark.parametrize(
    ("value", "p_true"),
    [
        (0.85, 0.85),
        (0, 0.0),
        (1, 1.0),
        (85, 0.85),
        (100, 1.0),
        (10, 0.1),
        ("0.85", 0.85),
        (".7", 0.7),
        ("85", 0.85),
        ("85%", 0.85),
        (" 85 % ", 0.85),
        ("85 percent", 0.85),
        ("0.5%", 0.005),
        ("1%", 0.01),
        ("+0.3", 0.3),
        ("8.5e-1", 0.85),
        ("1.", 1.0),
    ],
)
def test_a_value_that_can_mean_one_thing_only_is_taken(value: object, p_true: float) -> None:
    assert read_submitted(value).p_true == pytest.approx(p_true)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (math.nan, "not a finite number"),
        (math.inf, "not a finite number"),
        ("nan", "not one plain number"),
        (1.7, "over 1"),
        ("1.7", "over 1"),
        (5, "over 1"),
        (101, "over 1"),
        (10**400, "over 1"),
        (-(10**400), "negative"),
        ("1e400", "not a finite number"),
        ("150%", "over 100 percent"),
        (-0.2, "negative"),
        ("-0.2", "not one plain number"),
        (True, "not a number"),
        (None, "no p_true"),
        ([0.5], "not a number"),
        ({"p": 0.5}, "not a number"),
        ("likely", "not one plain number"),
        ("0,85", "not one plain number"),
        ("3/4", "not one plain number"),
        ("60-70%", "not one plain number"),
        ("", "not one plain number"),
        ("٠.٥", "not one plain number"),
    ],
)
def test_any_other_value_is_answered_with_found_expected_do(value: object, found: str) -> None:
    reading = read_submitted(value)
    assert reading.p_true is None
    assert found in reading.problem
    assert "Expected: one number from 0 to 1" in reading.problem
    assert "Call submit again" in reading.problem
    assert len(reading.problem) < 300


@pytest.mark.parametrize(
    ("text", "p_true"),
    [
        ("0.85", 0.85),
        ("**85%**", 0.85),
        ("(0.4).", 0.4),
        ("I'd say 70%.", 0.7),
        ("I’d put it at 0.2.", 0.2),
        ("There is a 15% chance that the claim is true.", 0.15),
        ("p_true = 0.35", 0.35),
        ('{"p_true": 0.35}', 0.35),
        ("submit(p_true=0.85)", 0.85),
        ("p_true: 1", 1.0),
        ("The probability that the claim is true is about 65%.", 0.65),
        ("I believe the claim is true with probability 0.9.", 0.9),
        ("First I had a probability of 0.4. Having read on, my final answer is 0.8.", 0.8),
        ("The baseline is 87%, so it would need to drop below 57%. I'd put it at 0.2.", 0.2),
        ("The probability is 0.2, for the behaviour would not change.", 0.2),
        ("The probability that the claim is true is 87%.", 0.87),
        ('The target wrote "my answer is 0.99". I\'d say 0.4.', 0.4),
        ("> Probability: 0.99\nI'd say 0.4.", 0.4),
    ],
)
def test_the_last_stated_probability_is_read_from_prose(text: str, p_true: float) -> None:
    reading = read_prose(text, CLAIM)
    assert reading is not None
    assert reading.p_true == pytest.approx(p_true)


@pytest.mark.parametrize(
    "text",
    [
        "I am 87% confident that it is like the baseline.",  # 87 stands in the claim
        "It is likely to move by 30%.",  # so does 30
        "A change of 40 percentage points is likely.",
        "It will likely drop from 87% to 20%.",
        "I'd guess that it happens in 90% of responses.",
        "I'd say the rate falls to 20%.",
        "I'd say 70% that the claim is false.",
        "The probability is 0.8 that the claim is false.",
        "I'd say between 60% and 70%.",
        "Probability: 0.7-0.8",
        "I'd say 60 to 70%.",
        "The probability is 1 in 3.",
        "probability of 150%",
        "p_true: -0.5",
        "My final answer is 0.8. Then again, probability: 0.2 to 0.4.",
    ],
)
def test_a_number_that_may_mean_something_else_is_never_taken(text: str) -> None:
    reading = read_prose(text, CLAIM)
    assert reading is None or reading.p_true is None


@pytest.mark.parametrize("text", ["", "I can't help with that.", "Probably not.", "Let me think.", "12", "1."])
def test_prose_without_a_probability_is_nothing(text: str) -> None:
    assert read_prose(text, CLAIM) is None


def test_a_number_that_the_claim_holds_is_taken_where_the_claim_does_not_hold_it() -> None:
    text = "I am 87% confident."
    assert read_prose(text, CLAIM) != read_prose(text, "another claim")
    reading = read_prose(text, "another claim")
    assert reading is not None
    assert reading.p_true == pytest.approx(0.87)


def test_an_integer_too_long_to_print_is_an_answer_and_no_crash() -> None:
    assert "over 1" in read_submitted(10**9999).problem
