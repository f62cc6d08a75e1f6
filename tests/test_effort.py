"""Reasoning effort: one setting, what every generation is sent for it, and that this is what arrives."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.effort import EFFORTS, reasoning_for
from agents.predictors import build_predictor
from claims.schema import UserError
from tests.wire_runs import play, wired

THINKING, OUTPUT = "thinking.type", "output_config.effort"
BUDGET, LEVEL = (f"generationConfig.thinkingConfig.{name}" for name in ("thinking_budget", "thinking_level"))

SENT: dict[str, dict[str, dict[str, str | int]]] = {
    "anthropic/claude-3-5-sonnet-20241022": {effort: {} for effort in EFFORTS},
    "anthropic/claude-3-7-sonnet-20250219": {
        effort: {THINKING: "enabled", "thinking.budget_tokens": tokens}
        for effort, tokens in (("low", 4096), ("medium", 10_000), ("high", 16_000))
    },
    "anthropic/claude-opus-4-1-20250805": {"high": {THINKING: "enabled", "thinking.budget_tokens": 16_000}},
    "anthropic/claude-sonnet-4-5": {"low": {THINKING: "enabled", "thinking.budget_tokens": 4096}},
    "anthropic/claude-opus-4-6": {effort: {THINKING: "adaptive", OUTPUT: effort} for effort in EFFORTS},
    "anthropic/claude-opus-4-7": {"medium": {THINKING: "adaptive", OUTPUT: "medium"}},
    "anthropic/claude-opus-5-5": {"high": {THINKING: "adaptive", OUTPUT: "high"}},
    "openai/gpt-4o": {effort: {} for effort in EFFORTS},
    "openai/gpt-5-chat-latest": {"high": {}},
    "openai/o3": {"low": {"reasoning.effort": "low"}},
    "openai/gpt-5": {effort: {"reasoning.effort": effort} for effort in EFFORTS},
    "openai/gpt-5.2": {"medium": {"reasoning.effort": "medium"}},
    "google/gemini-2.0-flash": {"high": {}},
    "google/gemini-2.5-pro": {
        effort: {BUDGET: tokens} for effort, tokens in (("low", 1024), ("medium", 8192), ("high", 24_576))
    },
    "google/gemini-2.5-flash": {"high": {BUDGET: 24_576}},
    "google/gemini-3-pro-preview": {"low": {LEVEL: "LOW"}, "high": {LEVEL: "HIGH"}},
    "google/gemini-3-flash-preview": {effort: {LEVEL: effort.upper()} for effort in EFFORTS},
    "google/gemini-3.1-pro-preview": {"medium": {LEVEL: "MEDIUM"}},
    "vllm/qwen": {"high": {}},
    "ollama/qwen": {"high": {}},
}
"""By predictor and effort."""


def fields(body: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every leaf of a body with its dotted path."""
    if isinstance(body, dict):
        for name, inner in body.items():
            yield from fields(inner, f"{path}.{name}" if path else name)
    else:
        yield path, body


def about_reasoning(body: dict) -> dict[str, object]:
    """All that a request says of how hard to think."""
    said = {path: value for path, value in fields(body) if any(key in path.lower() for key in ("thinking", "effort"))}
    said |= {path: value for path, value in fields(body) if path.startswith("reasoning")}
    # How thoughts are shown, and what becomes of those that no longer fit, is no matter of effort.
    shown = ("include_thoughts", "includeThoughts", "display", "prefix_mismatch_behavior")
    return {path: value for path, value in said.items() if not path.endswith(shown)}


# The SDK tells of models that will be taken off.
@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")
@pytest.mark.parametrize("effort", EFFORTS)
def test_what_is_recorded_is_what_every_generation_is_sent(tmp_path: Path, effort: str) -> None:
    asked = {name: sent[effort] for name, sent in SENT.items() if effort in sent}
    assert {name: dict(reasoning_for(name, effort).sent) for name in asked} == asked
    with wired("steady") as fake:
        played = play(fake, tmp_path, tuple(asked), effort=effort)
    for name, one in played.items():
        assert one.outcome == "answered", (name, one.sample.error)
        assert about_reasoning(one.requests[0].body) == asked[name], name
        assert len(one.requests) == 1, "a request of the library's own was sent beside the claim's"


def test_the_default_is_high_as_in_the_paper() -> None:
    for name, sent in SENT.items():
        if "high" in sent:
            assert dict(build_predictor_settings(name)) == sent["high"]


def build_predictor_settings(name: str) -> dict[str, object]:
    with pytest.MonkeyPatch.context() as patch:
        for key in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
            patch.setenv(key, "none")
        patch.setenv("VLLM_BASE_URL", "http://127.0.0.1:9/v1")
        _, settings = build_predictor(name)
    assert json.loads(json.dumps(settings.as_record()))["sent"] == dict(settings.sent)
    return dict(settings.sent)


@pytest.mark.parametrize(
    ("name", "effort", "said"),
    [
        ("openai/gpt-5", "max", "Unknown effort 'max'. Known efforts: low, medium, high. Choose one of them."),
        ("local", "", "Unknown effort ''"),
        (
            "google/gemini-3-pro-preview",
            "medium",
            "does not take the effort 'medium'. It takes: low, high. Give --effort high.",
        ),
        ("openai/gpt-5-pro", "low", "does not take the effort 'low'. It takes: high"),
    ],
)
def test_an_effort_that_a_model_does_not_take_is_refused(name: str, effort: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        reasoning_for(name, effort)
    assert said in str(refused.value)


def test_the_effort_is_part_of_a_predictors_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    for name in ("anthropic/claude-opus-4-6", "anthropic/claude-sonnet-4-5"):
        configs = {build_predictor(name, effort)[0].config.model_dump_json() for effort in EFFORTS}
        assert len(configs) == len(EFFORTS)


@pytest.mark.parametrize("name", ["local", "scripted/reader", "mockllm/model", "vllm/x", "ollama/x"])
def test_models_without_the_setting_are_sent_none(name: str) -> None:
    assert reasoning_for(name, "low") == reasoning_for(name, "high")
    assert reasoning_for(name, "high").config == {}
