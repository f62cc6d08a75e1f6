"""Faults of a provider: waited for, repeated, given up, and never taken for an answer."""

import json
from dataclasses import replace
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest
from google.genai.errors import ClientError
from inspect_ai import Task
from inspect_ai import eval as run_inspect
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import Model
from tenacity import Future, RetryCallState

from agents import predictors, provider
from agents.predictors import build_predictor, family_of
from agents.provider import LONGEST_WAIT_S, MOST_FAILED, closed, is_quota_spent, listen, told_to_wait
from agents.solver import ArmSetup, predict
from tests.fakes import Faults, Received
from tests.wire_runs import CHAT_GPT, CLAUDE, FAMILIES, GEMINI, GPT, message_of, play, wired

URL = httpx2.Request("POST", "http://127.0.0.1/")


def anthropic_error(status: int, message: str, **headers: str) -> Exception:
    response = httpx2.Response(status, headers=headers, request=URL)
    return anthropic.APIStatusError(message, response=response, body={"error": {"message": message}})


def openai_error(status: int, message: str, code: str | None = None, **headers: str) -> Exception:
    response = httpx2.Response(status, headers=headers, request=URL)
    return openai.RateLimitError(message, response=response, body={"message": message, "code": code})


def google_error(quota: str, delay: str) -> Exception:
    details = [{"violations": [{"quotaId": quota}]}, {"retryDelay": delay}]
    words = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": words, "status": "RESOURCE_EXHAUSTED", "details": details}
    return ClientError(429, {"error": error}, None)


@pytest.mark.parametrize("fault", ["429", "500", "503", "reset", "malformed"])
def test_a_fault_that_passes_is_waited_for_and_costs_one_answer(tmp_path: Path, fault: str) -> None:
    with wired("steady", Faults(each=(fault,))) as fake:
        played = play(fake, tmp_path, FAMILIES)
    for model, one in played.items():
        assert (one.outcome, one.prediction["p_true"]) == ("answered", 0.93), (model, one.sample.error)
    kept = [record for record in fake.bill.records if not record.fault]
    assert len(kept) == len(FAMILIES)
    assert fake.counts[f"fault {fault}"] == len(FAMILIES)


def test_a_reply_that_never_comes_is_given_up_and_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("anthropic", "openai", "google", "vllm"):
        family = predictors.PREDICTORS[name]
        quick = replace(family, settings=replace(family.settings, attempt_timeout_s=2))
        monkeypatch.setitem(predictors.PREDICTORS, name, quick)
    with wired("steady", Faults(each=("hang",))) as fake:
        played = play(fake, tmp_path, FAMILIES)
    assert {one.outcome for one in played.values()} == {"answered"}
    assert sum(record.fault == "hang" for record in fake.bill.records) == len(FAMILIES)


def test_a_fault_that_stays_ends_the_claim_after_bounded_tries_and_has_no_outcome(tmp_path: Path) -> None:
    with wired("steady", Faults(rates={"500": 1.0})) as fake:
        played = play(fake, tmp_path, (CLAUDE, GPT, CHAT_GPT, GEMINI))
    for model, one in played.items():
        assert one.outcome == "error", model
        assert len(one.requests) == 1 + predictors.PREDICTORS["openai"].settings.max_retries, model
        said = one.sample.error.message
        assert said.startswith(f"ProviderError('{model}: ") or said.startswith(f'ProviderError("{model}: ')
        assert len(said) < 500
        assert "fake 500" in said, "what went wrong last, and not that it went wrong often"
        assert "quick brown fox" not in said
    assert fake.bill.records == []


def test_the_providers_own_word_on_when_to_come_back_is_kept(tmp_path: Path) -> None:
    with wired("steady", Faults(each=("429",), retry_after_s=0.02)) as fake, pytest.MonkeyPatch.context() as patch:
        # Without it, the wait would be longer than the test.
        patch.setattr(provider, "FIRST_WAIT_S", 500.0)
        played = play(fake, tmp_path, (CLAUDE, GPT, CHAT_GPT, GEMINI))
    assert {one.outcome for one in played.values()} == {"answered"}


def test_waits_double_where_nothing_is_said_and_are_bounded() -> None:
    def wait(attempt: int, error: Exception) -> float:
        state = RetryCallState(None, None, (), {})  # type: ignore[arg-type]
        state.attempt_number, state.outcome = attempt, Future(attempt)
        state.outcome.set_exception(error)
        return provider._Wait()(state)

    silent = anthropic_error(500, "internal")
    assert [wait(attempt, silent) for attempt in (1, 2, 3)] == [3.0, 6.0, 12.0]
    assert wait(60, silent) == LONGEST_WAIT_S
    assert wait(1, anthropic_error(429, "slow down", **{"retry-after": "41"})) == 41.0
    assert wait(5, google_error("GenerateRequestsPerMinutePerProjectPerModel", "34.5s")) == 34.5


@pytest.mark.parametrize(
    ("error", "spent"),
    [
        (anthropic_error(429, "rate_limit_error: 50 requests per minute", **{"retry-after": "20"}), False),
        (anthropic_error(429, "rate limit", **{"retry-after": "40000"}), True),
        (anthropic_error(400, "You have reached your specified API usage limits. You will regain access on …"), True),
        (anthropic_error(400, "Your credit balance is too low to access the Anthropic API."), True),
        (anthropic_error(400, "messages.0: all messages per day must have content"), False),
        (anthropic_error(529, "Overloaded"), False),
        (openai_error(429, "You exceeded your current quota", "insufficient_quota"), True),
        (openai_error(429, "Rate limit reached for gpt-5 on requests per day (RPD): Limit 200, Used 200"), True),
        (openai_error(429, "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000"), False),
        (google_error("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "34s"), True),
        (google_error("GenerateRequestsPerMinutePerProjectPerModel", "34s"), False),
    ],
)
def test_a_quota_of_the_day_is_told_from_one_of_the_minute(error: Exception, spent: bool) -> None:
    assert is_quota_spent(error) is spent


def test_only_google_names_delays_in_the_body() -> None:
    assert told_to_wait(google_error("x", "7s")) == 7.0
    assert told_to_wait(google_error("x", "soon")) is None
    assert told_to_wait(ValueError("no response at all")) is None


def asked_in_turn(folder: Path, name: str, n: int, faults: Faults) -> tuple[EvalLog, Model, int, list[str]]:
    """The log, the model, how many requests arrived, and what was said meanwhile."""
    said: list[str] = []
    with wired("steady", faults) as fake:
        model, _ = build_predictor(name)
        listen(model, said.append)
        samples = [Sample(id=i, input=message_of(), metadata={"transcript_id": "t1"}) for i in range(n)]
        task = Task(dataset=samples, solver=predict(ArmSetup("transcript", None, 0, 0, 6)), model=model)
        (log,) = run_inspect(
            task, display="none", log_dir=str(folder), log_format="json", max_samples=1, continue_on_fail=True
        )
        return log, model, len([request for request in fake.requests if not request.free]), said


@pytest.mark.parametrize("name", [CLAUDE, GPT, CHAT_GPT, GEMINI])
def test_once_the_quota_of_the_day_is_spent_nothing_more_is_sent(tmp_path: Path, name: str) -> None:
    log, model, n_sent, _ = asked_in_turn(tmp_path, name, 4, Faults(rates={"429_day": 1.0}))
    assert n_sent == 1
    assert all("ClosedError" in sample.error.message for sample in log.samples)
    assert closed(model).startswith(f"{name} gives no more answers today (")
    assert "Request:" not in closed(model)


@pytest.mark.parametrize("name", [CLAUDE, GPT, GEMINI])
def test_a_provider_that_nothing_comes_back_from_is_left_alone_and_the_user_hears_of_it(
    tmp_path: Path, name: str
) -> None:
    log, model, n_sent, said = asked_in_turn(tmp_path, name, MOST_FAILED + 3, Faults(rates={"500": 1.0}))
    tries = family_of(name).settings.max_retries + 1
    assert n_sent == MOST_FAILED * tries
    kinds = ["ClosedError" in sample.error.message for sample in log.samples]
    assert kinds == [False] * MOST_FAILED + [True] * 3
    assert closed(model).startswith(f"{name} failed {MOST_FAILED} requests in a row (")
    assert len(said) == 1
    assert said[0].startswith(f"{name}: ")


def test_an_answer_in_between_begins_the_count_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "MOST_FAILED", 3)
    log, model, _, _ = asked_in_turn(tmp_path, CLAUDE, 30, Faults(rates={"401_echo": 0.4}, seed=2))
    assert closed(model) == ""
    assert 0 < sum(sample.error is not None for sample in log.samples) < 30


def test_a_stream_that_breaks_off_is_no_message(tmp_path: Path) -> None:
    """Anthropic's SDK makes a message of what has come when a stream ends: half an answer would count as one."""

    def half(received: Received) -> bool:
        return received.problem == "malformed"

    with wired("prose", Faults(each=("malformed",))) as fake:
        played = play(fake, tmp_path, (CLAUDE,))
    assert sum(map(half, played[CLAUDE].requests)) == 1
    events = [event for event in played[CLAUDE].sample.events if event.event == "model" and event.error]
    assert "the stream ended before the message did" in json.dumps([event.error for event in events])
    assert played[CLAUDE].prediction["how"] == "prose"
