"""What comes of realistic replies on every wire, which of them are asked again, and how often at most."""

from pathlib import Path

import pytest

from agents.outcome import OUTCOMES
from tests.wire_runs import CLAUDE, FAMILIES, GEMINI, GPT, VLLM, play, wired

REPLIES = [
    # script, outcome, p_true, how, replies that were paid for
    ("steady", "answered", 0.93, "submitted", 1),
    ("text_value", "answered", 0.85, "submitted", 1),
    ("mends", "answered", 0.17, "submitted", 2),
    ("late", "answered", 0.9, "forced", 3),
    ("prose", "answered", 0.7, "prose", 3),
    ("truncated", "truncated", None, None, 1),
    ("cut", "truncated", None, None, 3),
    ("refused", "blocked", None, None, 1),
    ("refuses", "blocked", None, None, 1),
    ("over_one", "malformed", None, None, 3),
    ("broken_json", "malformed", None, None, 3),
    ("thinks_only", "no_answer", None, None, 3),
    ("hedges", "no_answer", None, None, 3),
]
"""The same on every wire."""


@pytest.mark.parametrize(("script", "outcome", "p_true", "how", "paid"), REPLIES)
def test_every_wire_gives_a_reply_the_same_outcome_for_the_same_money(
    tmp_path: Path, script: str, outcome: str, p_true: float | None, how: str | None, paid: int
) -> None:
    with wired(script) as fake:
        played = play(fake, tmp_path, FAMILIES, message=None)
    for model, one in played.items():
        assert one.sample.error is None, (model, one.sample.error)
        assert one.problems == [], model
        found = (one.outcome, one.prediction["p_true"], one.prediction["how"], len(one.requests))
        assert found == (outcome, p_true, how, paid), model
    assert len(fake.bill.records) == paid * len(FAMILIES)


@pytest.mark.parametrize(
    ("script", "models", "outcome", "paid"),
    [
        ("prompt_blocked", (CLAUDE, GEMINI), "blocked", 1),
        ("prompt_blocked", (GPT,), "blocked", 0),
        ("overflow", FAMILIES, "overflow", 0),
        ("window", (CLAUDE,), "overflow", 1),
        ("malformed_call", (GEMINI,), "malformed", 3),
    ],
)
def test_replies_that_only_some_wires_have(
    tmp_path: Path, script: str, models: tuple[str, ...], outcome: str, paid: int
) -> None:
    with wired(script) as fake:
        played = play(fake, tmp_path, models)
    assert {one.outcome for one in played.values()} == {outcome}
    assert len(fake.bill.records) == paid * len(models)
    assert all(len(one.requests) == max(paid, 1) for one in played.values())


def test_a_limit_of_the_run_is_an_outcome_and_ends_what_is_paid(tmp_path: Path) -> None:
    with wired("hedges") as fake:
        played = play(fake, tmp_path, (GPT,), token_limit=2000)
    assert played[GPT].outcome == "limit"
    assert len(fake.bill.records) == 1


def test_every_outcome_has_a_case_on_the_wires() -> None:
    (marker,) = test_every_wire_gives_a_reply_the_same_outcome_for_the_same_money.pytestmark
    assert {row[1] for row in marker.args[1]} | {"overflow", "limit"} == set(OUTCOMES)


def test_a_request_that_the_provider_finds_wrong_is_a_fault_and_no_outcome(tmp_path: Path) -> None:
    with wired("steady") as fake:
        played = play(fake, tmp_path, (CLAUDE, "anthropic/claude-nobody"))
    wrong = played["anthropic/claude-nobody"]
    assert wrong.outcome == "error"
    assert len(wrong.requests) == 1, "a wrong request was repeated"
    said = wrong.sample.error.message
    assert "NotFoundError" in said
    assert len(said) < 400, "the request itself is no part of what a user is told"
    assert played[CLAUDE].outcome == "answered"


def test_a_tool_loop_answers_wrong_calls_on_every_wire(tmp_path: Path) -> None:
    with wired("unknown_tool") as fake:
        played = play(fake, tmp_path, (*FAMILIES, VLLM.replace("vllm", "ollama")))
    assert {(one.outcome, one.prediction["p_true"], len(one.requests)) for one in played.values()} == {
        ("answered", 0.3, 2)
    }
    assert all(one.problems == [] for one in played.values())
