"""The table of predictors: unknown names and missing keys are answered, and no key is ever shown."""

import re

import pytest

from agents.predictors import (
    LOCAL_BUDGET,
    PAPER_BUDGET,
    PREDICTORS,
    build_predictor,
    check_predictor,
    default_budget,
    is_local,
)
from claims.schema import UserError


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for family in PREDICTORS.values():
        for key in family.keys:
            monkeypatch.delenv(key, raising=False)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "gpt5",
            "Unknown predictor 'gpt5'. Known predictors: local, anthropic/<model>, openai/<model>, google/<model>",
        ),
        ("", "Unknown predictor ''"),
        ("openai", "names no model. Expected openai/<model>"),
        ("anthropic/", "names no model. Expected anthropic/<model>"),
        ("local/llama", "The local predictor is smollm2-135m: write 'local'"),
        ("scripted/nobody", "Unknown script 'nobody'. Known scripts: reader, asker, steady"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(name: str, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        check_predictor(name)


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("anthropic/claude-x", "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"),
        ("openai/gpt-x", "OPENAI_API_KEY"),
        ("google/gemini-x", "GOOGLE_API_KEY or GEMINI_API_KEY"),
    ],
)
def test_a_missing_key_is_named_by_its_variable(name: str, variables: str) -> None:
    with pytest.raises(UserError, match=f"needs a key: {variables} is not set"):
        build_predictor(name)


@pytest.mark.parametrize(
    ("name", "variable"),
    [("anthropic/claude-x", "ANTHROPIC_API_KEY"), ("openai/gpt-x", "OPENAI_API_KEY"), ("google/gem", "GOOGLE_API_KEY")],
)
def test_with_its_key_a_family_is_built_with_bounded_retries_and_the_key_in_no_record(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "sk-secret-value")
    model, settings = build_predictor(name)
    assert str(model) == name
    assert model.config.max_retries == settings.max_retries == 6
    assert model.config.attempt_timeout == settings.attempt_timeout_s == 600
    assert "sk-secret-value" not in str(settings.as_record()) + model.config.model_dump_json()


def test_every_family_that_sends_anything_bounds_its_retries_and_its_waits() -> None:
    for family in PREDICTORS.values():
        if family.name not in ("local", "scripted", "mockllm"):
            assert family.settings.max_retries is not None
            assert family.settings.attempt_timeout_s is not None


def test_scripts_and_the_local_predictor_need_no_key() -> None:
    model, _ = build_predictor("scripted/reader")
    assert str(model) == "scripted/reader"
    assert check_predictor("local").keys == ()
    assert check_predictor("ollama/x").keys == ()


def test_services_in_the_cloud_are_left_to_their_own_credentials() -> None:
    assert check_predictor("anthropic/bedrock/claude-x").name == "anthropic"


def test_the_local_predictor_has_a_budget_of_its_own() -> None:
    assert default_budget("local") == default_budget("local/smollm2-135m") == LOCAL_BUDGET
    assert (LOCAL_BUDGET.calls, LOCAL_BUDGET.positions) == (1, 8)
    assert default_budget("anthropic/claude-x") == PAPER_BUDGET
    assert (PAPER_BUDGET.calls, PAPER_BUDGET.positions) == (5, 32)
    assert is_local("local")
    assert not is_local("locality/x")


@pytest.mark.real
def test_the_local_predictor_is_built_from_its_wheel(real_cache: object) -> None:
    model, settings = build_predictor("local")
    assert str(model) == "local/smollm2-135m"
    assert settings.max_connections > 1
