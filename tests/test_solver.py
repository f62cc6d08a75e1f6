"""The predictor loop against predictors of every temper: the budget holds, calls are answered, nothing is made up."""

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from inspect_ai import Task
from inspect_ai import eval as run_inspect
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample

from agents import scripted
from agents.outcome import OUTCOMES
from agents.prompts import text, user_message
from agents.solver import MAX_BAD_SUBMITS, ArmSetup, default_max_turns, predict
from claims.schema import Message, Transcript
from tests.tool_servers import N_TOKENS, Running, about, build, features, serving

TRANSCRIPT = Transcript("t1", (Message("user", "Say hi"),), None, "hi there", (0, 1), "test")
MESSAGE = user_message(TRANSCRIPT, "BEHAVIOR: Is it yes?\nBASELINE: 87%.\nPREDICTION: 30 points.")


@pytest.fixture(scope="module")
def tool_server() -> Iterator[Running]:
    with serving(build()) as running:
        yield running


def setup(url: str | None, calls: int = 2, positions: int = 4) -> ArmSetup:
    return ArmSetup("sae" if url else "transcript", url, calls, positions, default_max_turns(calls))


def evaluate(model: str, arm: ArmSetup, folder: Path, n: int = 1, **options: object) -> EvalLog:
    samples = [Sample(id=f"c{i}", input=MESSAGE, metadata={"transcript_id": f"t{i}"}) for i in range(1, n + 1)]
    task = Task(dataset=samples, solver=predict(arm), name="arm")
    (log,) = run_inspect(task, model=model, display="none", log_dir=str(folder), log_format="json", **options)
    return log


def play(script: str, arm: ArmSetup, folder: Path) -> EvalSample:
    log = evaluate(f"scripted/{script}", arm, folder)
    assert log.status == "success", log.error
    assert log.samples is not None
    return log.samples[0]


def answered_calls(sample: EvalSample) -> None:
    """Every tool call of the log has exactly one answer, before the next turn."""
    pending: list[str] = []
    for message in sample.messages:
        if message.role == "assistant":
            assert pending == []
            pending = [call.id for call in message.tool_calls or []]
        elif message.role == "tool":
            assert message.tool_call_id in pending
            pending.remove(message.tool_call_id)
        else:
            assert pending == []
    assert pending == []


@pytest.mark.parametrize(
    ("script", "outcome", "p_true", "calls", "how"),
    [
        ("steady", "answered", 0.7, 0, "submitted"),
        ("percent", "answered", 0.85, 0, "submitted"),
        ("reader", "answered", 0.5, 1, "submitted"),
        ("mends", "answered", 0.17, 0, "submitted"),
        ("asker", "answered", 0.5, 0, "submitted"),
        ("bad_arguments", "answered", 0.4, 0, "submitted"),
        ("unknown_tool", "answered", 0.3, 0, "submitted"),
        ("both", "answered", 0.8, 0, "submitted"),
        ("greedy", "answered", 0.6, 2, "forced"),
        ("late", "answered", 0.9, 0, "forced"),
        ("prose", "answered", 0.7, 0, "prose"),
        ("nan", "malformed", None, 0, None),
        ("over_one", "malformed", None, 0, None),
        ("torn", "malformed", None, 0, None),
        ("broken_json", "malformed", None, 0, None),
        ("never", "no_answer", None, 2, None),
        ("refuses", "no_answer", None, 0, None),
        ("empty", "no_answer", None, 0, None),
        ("truncated", "truncated", None, 0, None),
        ("cut", "truncated", None, 0, None),
        ("blocked", "blocked", None, 0, None),
        ("overflow", "overflow", None, 0, None),
    ],
)
def test_each_temper_has_its_outcome(
    tool_server: Running, tmp_path: Path, script: str, outcome: str, p_true: float | None, calls: int, how: str | None
) -> None:
    sample = play(script, setup(tool_server.url), tmp_path)
    prediction = sample.metadata["prediction"]
    found = {key: prediction[key] for key in ("outcome", "p_true", "calls", "how")}
    assert found == {"outcome": outcome, "p_true": p_true, "calls": calls, "how": how}
    assert outcome in OUTCOMES
    answered_calls(sample)


def test_every_script_has_a_case_above() -> None:
    (marker,) = test_each_temper_has_its_outcome.pytestmark
    assert {case[0] for case in marker.args[1]} == set(scripted.SCRIPTS)


def test_parallel_calls_never_exceed_the_budget_and_the_server_sees_no_more(tmp_path: Path) -> None:
    seen: list[str] = []
    lock = threading.Lock()

    def count(transcript_id: str, positions: list[int]) -> str:
        with lock:
            seen.append(transcript_id)
        return features(transcript_id, positions)

    with serving(build(count)) as running:
        log = evaluate("scripted/greedy", setup(running.url, calls=3), tmp_path, n=4)
    assert log.samples is not None
    for sample in log.samples:
        prediction = sample.metadata["prediction"]
        assert prediction["calls"] == 3
        assert sum(call["charged"] for call in prediction["tool_calls"]) == 3
        refused = [call for call in prediction["tool_calls"] if not call["charged"]]
        assert len(refused) == 20 * default_max_turns(3) - 3
        answered_calls(sample)
    assert sorted(seen) == sorted(f"t{i}" for i in range(1, 5) for _ in range(3))


def test_after_the_budget_the_tools_stay_listed_and_say_so(tool_server: Running, tmp_path: Path) -> None:
    sample = play("never", setup(tool_server.url, calls=1), tmp_path)
    said = [message for message in sample.messages if message.role == "tool"]
    assert said[0].error is None
    assert all(answer.error.message == text("spent.md").replace("$calls", "1 call") for answer in said[1:])
    asked = [event for event in sample.events if event.event == "model" and event.tool_choice == "auto"]
    assert len(asked) == default_max_turns(1)
    assert all([tool.name for tool in event.tools] == ["read_features", "submit"] for event in asked)


def test_a_budget_of_nothing_answers_every_call_without_asking_the_server(tool_server: Running, tmp_path: Path) -> None:
    prediction = play("reader", setup(tool_server.url, calls=0), tmp_path).metadata["prediction"]
    assert (prediction["outcome"], prediction["calls"], len(prediction["tool_calls"])) == ("answered", 0, 1)


def test_bad_arguments_are_answered_with_found_expected_do_and_are_not_charged(
    tool_server: Running, tmp_path: Path
) -> None:
    sample = play("bad_arguments", setup(tool_server.url), tmp_path)
    said = [message.error.message for message in sample.messages if message.role == "tool" and message.error]
    assert len(said) == 4
    for answer, part in zip(
        said, ('"first"', "1.5", "Found positions [-1]; expected 0 to 11", "Found 999 positions"), strict=True
    ):
        assert part in answer
        assert "expected" in answer
        assert "Call" in answer
        assert "not charged" in answer
    records = sample.metadata["prediction"]["tool_calls"]
    assert [record["charged"] for record in records] == [False] * 4
    assert [record["output_chars"] > 0 for record in records] == [True] * 4
    assert sample.metadata["prediction"]["calls"] == 0


def test_a_declined_call_is_refunded(tool_server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(turn: scripted.Turn) -> scripted.Reply:
        plan = [[N_TOKENS], [1], [2], [3]]
        if turn.number < len(plan):
            return scripted.Reply(calls=(("read_features", {"positions": plan[turn.number]}),))
        return scripted.Reply(calls=(("submit", {"p_true": 0.5}),))

    monkeypatch.setitem(scripted.SCRIPTS, "refund", script)
    records = play("refund", setup(tool_server.url, calls=2), tmp_path).metadata["prediction"]["tool_calls"]
    assert [record["charged"] for record in records] == [False, True, True, False]


def test_a_call_may_hold_as_many_positions_as_the_cap(
    tool_server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(turn: scripted.Turn) -> scripted.Reply:
        plan = [list(range(5)), list(range(4))]
        if turn.number < len(plan):
            return scripted.Reply(calls=(("read_features", {"positions": plan[turn.number]}),))
        return scripted.Reply(calls=(("submit", {"p_true": 0.5}),))

    monkeypatch.setitem(scripted.SCRIPTS, "cap", script)
    records = play("cap", setup(tool_server.url, positions=4), tmp_path).metadata["prediction"]["tool_calls"]
    assert [record["charged"] for record in records] == [False, True]


def test_the_transcript_is_bound_by_the_host_and_cannot_be_named(
    tool_server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(turn: scripted.Turn) -> scripted.Reply:
        if turn.number == 0:
            return scripted.Reply(calls=(("read_features", {"positions": [1], "transcript_id": "t9"}),))
        if turn.number == 1:
            return scripted.Reply(calls=(("read_features", {"positions": [1]}),))
        return scripted.Reply(calls=(("submit", {"p_true": 0.5}),))

    monkeypatch.setitem(scripted.SCRIPTS, "peek", script)
    sample = play("peek", setup(tool_server.url), tmp_path)
    said = [message for message in sample.messages if message.role == "tool"]
    assert "expected positions (array of integers)" in said[0].error.message
    assert said[1].text == "t1: [1] feature 1"
    assert not any("transcript_id" in str(event.tools) for event in sample.events if event.event == "model")


def test_a_bad_submission_is_answered_and_may_be_mended(tool_server: Running, tmp_path: Path) -> None:
    sample = play("mends", setup(None), tmp_path)
    (first, last) = [message for message in sample.messages if message.role == "tool"]
    assert first.error.message.startswith("Not recorded. Found: p_true = 1.7, which is over 1. Expected: one number")
    assert last.text == "Recorded."


def test_bad_submissions_end_as_malformed_after_the_stated_tries(tmp_path: Path) -> None:
    sample = play("nan", setup(None), tmp_path)
    assert sum(message.role == "assistant" for message in sample.messages) == MAX_BAD_SUBMITS
    assert "not a finite number" in sample.metadata["prediction"]["detail"]


def test_blocked_and_truncated_replies_are_not_paid_for_twice(tmp_path: Path) -> None:
    for script in ("blocked", "truncated", "overflow"):
        sample = play(script, setup(None), tmp_path)
        assert sum(event.event == "model" for event in sample.events) == 1, script


def test_long_tool_output_reaches_the_predictor_whole(tmp_path: Path) -> None:
    with serving(build(lambda transcript_id, positions: "x" * 50_000 + " evidence: 0.93")) as running:
        sample = play("reader", setup(running.url), tmp_path)
    assert sample.metadata["prediction"]["p_true"] == pytest.approx(0.93)
    assert sample.metadata["prediction"]["tool_calls"][0]["output_chars"] == 50_015


def test_the_baseline_is_a_prefix_of_what_a_tool_arm_sends_and_the_prefix_never_changes(
    tool_server: Running, tmp_path: Path
) -> None:
    sample = play("never", setup(tool_server.url), tmp_path)
    turns = [event.input for event in sample.events if event.event == "model"]
    for before, after in pairwise(turns):
        assert [(m.role, m.text) for m in after[: len(before)]] == [(m.role, m.text) for m in before]
    assert sample.messages[0].text == text("system.md")
    assert sample.messages[1].text.startswith(MESSAGE)
    baseline = play("steady", setup(None), tmp_path)
    assert [message.text for message in baseline.messages[:2]] == [text("system.md"), MESSAGE]


def test_a_server_that_is_not_there_is_an_error_and_no_outcome(tmp_path: Path) -> None:
    with serving(build()) as running:
        url = running.url
    log = evaluate("scripted/steady", setup(url), tmp_path)
    assert log.status == "error"
    assert "ToolServerGone" in log.error.message


def test_a_server_that_dies_in_the_middle_errors_those_samples_and_no_others(tmp_path: Path) -> None:
    calls = []

    def mortal(transcript_id: str, positions: list[int]) -> str:
        calls.append(transcript_id)
        if len(calls) > 2:
            running.uvicorn.force_exit = running.uvicorn.should_exit = True
            raise RuntimeError("it died while it answered")
        return "evidence: 0.9"

    with serving(build(mortal)) as running:
        log = evaluate("scripted/reader", setup(running.url), tmp_path, n=6, max_samples=1, continue_on_fail=True)
    assert log.samples is not None
    fine = [sample for sample in log.samples if sample.error is None]
    assert [sample.metadata["prediction"]["p_true"] for sample in fine] == [0.9, 0.9]
    broken = [sample for sample in log.samples if sample.error is not None]
    assert len(broken) == 4
    assert all("ToolServerGone" in sample.error.message for sample in broken)
    tools_said = [message.text for sample in broken for message in sample.messages if message.role == "tool"]
    assert tools_said == []


def test_a_limit_of_the_run_leaves_the_outcome_limit(tool_server: Running, tmp_path: Path) -> None:
    log = evaluate("scripted/never", setup(tool_server.url), tmp_path, message_limit=6)
    assert log.status == "success"
    assert log.samples is not None
    assert log.samples[0].limit.type == "message"
    assert log.samples[0].metadata["prediction"]["outcome"] == "limit"


def test_the_url_of_the_server_is_no_part_of_the_runs_identity(tmp_path: Path) -> None:
    log = evaluate("scripted/steady", setup(None, calls=3), tmp_path)
    wanted = {"arm": "transcript", "calls": 3, "positions": 4, "max_turns": default_max_turns(3)}
    assert log.plan.steps[0].params_passed == {"setup": wanted}
    with serving(build(facts=about)) as running:
        log = evaluate("scripted/steady", setup(running.url, calls=3), tmp_path)
    assert running.url not in log.plan.model_dump_json()
