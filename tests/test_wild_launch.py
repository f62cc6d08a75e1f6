"""From options to a run of claims from the wild: profile, roles, prices, estimate, mistakes."""

import json
import math
from pathlib import Path

import pytest

from claims.build.wild import REGIMES, ROLES, choose_roles
from claims.build.wild.estimate import estimate
from claims.build.wild.launch import Models, WildOptions, prepare_run
from claims.build.wild.money import Prices, Usage, read_prices
from claims.build.wild.paper import paper_prompts
from claims.build.wild.roles import PAPER_FIRST, PAPER_SHARES, Role, paper_sampling, thinking_sampling
from claims.build.wild.server_engine import Server, ServerEngine
from claims.prompts import PromptsError
from claims.schema import UserError
from tests.wild_models import sailor_prompts
from tools.targets import get_target


def conversations(path: Path, layout: str, n: int) -> Path:
    """A file of n conversations of one source, each long enough for the paper's limits."""
    rows = []
    for number in range(n):
        words = f"{layout} {number} " + "please tell me more about it " * 20
        if layout == "wildchat":
            turns = [{"role": "user", "content": words}]
            rows.append({"conversation": turns, "conversation_hash": str(number), "toxic": False})
        elif layout == "systemchat":
            turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": words}]
            rows.append({"messages": turns})
        else:
            turns = [{"from": "user", "value": words}]
            rows.append({"conversations": turns, "system": "s", "tools": "[]"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def sources(folder: Path, n: int) -> dict[str, list[Path]]:
    return {name: [conversations(folder / f"{name}.jsonl", name, n)] for name in PAPER_SHARES}


def test_the_papers_figures_are_the_preset() -> None:
    evaluation, training = REGIMES["evaluation"], REGIMES["training"]
    assert (evaluation.n, evaluation.n_judges, evaluation.keep_score, evaluation.experiments) == (30, 5, 8, (10, 15))
    assert (training.n, training.n_judges, training.keep_score, training.experiments) == (10, 1, 7, (5, 8))
    assert (evaluation.min_interest, evaluation.min_rate_percent, evaluation.cap) == (3, 30, 2000)
    assert PAPER_SHARES == {"wildchat": 91.3, "toolace": 5.2, "systemchat": 2.5, "hermes": 1.0}
    assert PAPER_FIRST == 5000
    reasoning = thinking_sampling(get_target("qwen3-8b").sampling)
    assert (reasoning.max_thinking, reasoning.max_tokens) == (1024, 2048)
    sampling = paper_sampling(get_target("gemma-3-27b-it").sampling)
    assert (sampling.temperature, sampling.max_tokens, sampling.top_k, sampling.top_p) == (1.0, 500, 64, 0.95)
    models = {name: role.model for name, role in ROLES.items()}
    assert models["investigator"] == models["screener"] == models["judge"] == "anthropic/claude-opus-4-6"
    assert models["selector"] == "anthropic/claude-opus-4-8"
    assert models["classifier"] == models["describer"] == "anthropic/claude-sonnet-4-6"


def test_the_mixture_keeps_its_shares_and_the_slice_is_fixed_before_anything_is_left_out(tmp_path: Path) -> None:
    files = sources(tmp_path, 120)
    prompts, rows = paper_prompts(files, first=100)
    counts = {name: sum(name in one.messages[-1].content for one in prompts) for name in PAPER_SHARES}
    # 91.3, 5.2, 2.5 and 1.0 percent of 100.
    assert counts["wildchat"] == 91
    assert 4 <= counts["toolace"] <= 6
    assert 2 <= counts["systemchat"] <= 3
    assert counts["hermes"] == 1
    left_out = {prompts[3].prompt_id}
    fewer, _ = paper_prompts(files, left_out, first=100)
    assert [one.prompt_id for one in fewer] == [one.prompt_id for one in prompts if one.prompt_id not in left_out]
    assert rows[-1]["left"] == 100


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    files = sources(tmp_path, 2)
    del files["hermes"]
    with pytest.raises(PromptsError, match="found systemchat, toolace, wildchat"):
        paper_prompts(files)


def test_other_models_take_roles_without_the_tables_thinking_budget() -> None:
    roles = choose_roles("openai/gpt-5", {"judge": "google/gemini-3-pro"})
    assert roles["judge"].model == "google/gemini-3-pro"
    assert {role.model for name, role in roles.items() if name != "judge"} == {"openai/gpt-5"}
    assert not any(role.batch or role.reasoning_tokens for role in roles.values())
    assert choose_roles() == ROLES
    with pytest.raises(UserError, match="Unknown roles: jury"):
        choose_roles(None, {"jury": "openai/gpt-5"})
    with pytest.raises(UserError, match="names no provider"):
        choose_roles("gpt-5")


def test_prices_are_the_papers_for_opus_and_cost_is_plain_arithmetic() -> None:
    prices = read_prices()
    # 1M input at 5, 1M read at 0.50, 1M written at 6.25, 1M output at 25 dollars; half of it through the batch API.
    usage = Usage(1, 1_000_000, 1_000_000, 1_000_000, 1_000_000)
    assert prices.cost("anthropic/claude-opus-4-6", usage, batch=False) == pytest.approx(36.75)
    assert prices.cost("anthropic/claude-opus-4-6", usage, batch=True) == pytest.approx(18.375)
    assert math.isnan(prices.cost("openai/unheard-of", usage, batch=False))
    assert {role.model for role in ROLES.values()} <= set(prices.models)


@pytest.mark.parametrize("text", ["{", "[]", '{"as_of": "x"}', '{"as_of": "x", "models": {"a": {"input": "dear"}}}'])
def test_a_broken_price_list_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="not a file of prices"):
        read_prices(path)


def test_an_estimate_is_near_the_papers_cost_of_an_evaluation_run() -> None:
    prompts = sailor_prompts(1)
    many = tuple(prompts[0].__class__(str(number), prompts[0].messages, "s") for number in range(1000))
    long = tuple(one.__class__(one.prompt_id, (one.messages[0].__class__("user", "x" * 2000),), "s") for one in many)
    entries = estimate(long, REGIMES["evaluation"], ROLES, read_prices(), max_response_tokens=500)
    dollars = {stage: sum(one.dollars for one in entries if one.stage == stage) / 370 for stage in ("screen", "verify")}
    # The paper: 0.20 dollars for screening and 0.75 for five judges, per investigation.
    assert dollars["screen"] == pytest.approx(0.20, rel=0.5)
    assert dollars["verify"] == pytest.approx(0.75, rel=0.5)
    investigating = sum(one.dollars for one in entries if one.stage == "investigate") / 370
    assert investigating == pytest.approx(0.96, rel=0.5)


def options(folder: Path, **changed: object) -> WildOptions:
    path = conversations(folder / "file.jsonl", "wildchat", 3)
    models = Models(work=folder / "work")
    values: dict[str, object] = {"target": "qwen3-8b", "prompts": (str(path),), "out": folder / "out", "models": models}
    return WildOptions(**{**values, "server": Server("http://127.0.0.1:1/v1", "m"), **changed})


def test_a_run_is_made_ready_without_asking_anyone(tmp_path: Path) -> None:
    ready = prepare_run(options(tmp_path, n=4, reproduce_all=True))
    assert len(ready.plan.prompts) == 3
    assert ready.lab.regime.n == 4
    assert ready.plan.reproduce_all
    assert isinstance(ready.lab.engine, ServerEngine)
    assert "| total |" in ready.estimate


def test_the_profile_takes_the_papers_settings(tmp_path: Path) -> None:
    files = tuple(f"{name}={paths[0]}" for name, paths in sources(tmp_path, 3).items())
    ready = prepare_run(options(tmp_path, profile="paper", prompts=files, target="qwen3-8b"))
    assert ready.plan.sampling.max_tokens == 500
    with pytest.raises(UserError, match="expected format=FILE"):
        prepare_run(options(tmp_path, profile="paper"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"regime": "lavish"}, "Unknown regime 'lavish'"),
        ({"target": "gpt-2"}, "Unknown target 'gpt-2'"),
        ({"n": 0}, "0 responses a prompt"),
        ({"models": Models(model="openai/unheard-of", max_cost=5.0)}, "has none for openai/unheard-of"),
    ],
)
def test_mistakes_are_told_before_anything_runs(tmp_path: Path, changed: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        prepare_run(options(tmp_path, **changed))


def test_a_model_whose_key_is_missing_is_told_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    ready = prepare_run(options(tmp_path))
    with pytest.raises(UserError, match="cannot be used: .*No ANTHROPIC_API_KEY defined"):
        ready.lab.clerk.check_models()


def test_money_without_a_price_is_unknown_and_never_zero() -> None:
    entries = estimate(
        sailor_prompts(2),
        REGIMES["training"],
        {name: Role("a/b", 10) for name in ROLES},
        Prices("2026-01-01", {}),
        max_response_tokens=10,
    )
    assert all(math.isnan(one.dollars) for one in entries)
