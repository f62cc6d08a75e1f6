"""Money: what tokens cost, how three families count them, the cap that holds, the ledger that survives."""

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from anthropic.types import Message as AnthropicMessage
from google.genai.types import GenerateContentResponseUsageMetadata
from inspect_ai.model import GenerateConfig, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.model._openai_responses import model_usage_from_response_usage
from inspect_ai.model._providers.anthropic import model_output_from_message
from inspect_ai.model._providers.google import usage_metadata_to_model_usage
from openai.types.responses import ResponseUsage

from claims.build.wild.money import Price, Usage, read_prices
from claims.build.wild.usage import normalised
from claims.schema import UserError
from harness.money.guard import paying
from harness.money.ledger import Ledger, Payment
from harness.money.pricing import Tariff, shown_dollars, tariff_in, tariff_of, unknown_price
from harness.money.purse import CapReachedError, Purse

# The same work in the words of each family: 700 fresh input tokens, 300 from the cache, 50 out of which 20 reasoned.
WORK = Usage(1, input=700, cache_read=300, output=50, reasoning=20)


def anthropic() -> ModelUsage:
    usage = {"input_tokens": 700, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 0, "output_tokens": 50}
    message = AnthropicMessage.model_validate(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "content": [{"type": "text", "text": "yes"}],
            "usage": usage,
        }
    )
    output, _ = asyncio.run(model_output_from_message(None, None, message, []))
    assert output.usage is not None
    return output.usage


def openai() -> ModelUsage:
    usage = ResponseUsage.model_validate(
        {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 0},
            "output_tokens": 50,
            "output_tokens_details": {"reasoning_tokens": 20},
            "total_tokens": 1050,
        }
    )
    found = model_usage_from_response_usage(usage)
    assert found is not None
    return found


def google(**more: int) -> ModelUsage:
    counts = {"prompt_token_count": 1000, "cached_content_token_count": 300, "candidates_token_count": 30}
    total = 1050 + sum(more.values())
    metadata = GenerateContentResponseUsageMetadata(**counts, thoughts_token_count=20, total_token_count=total, **more)
    found = usage_metadata_to_model_usage(metadata)
    assert found is not None
    return found


def test_three_families_that_did_the_same_work_give_the_same_usage() -> None:
    assert normalised(openai()) == WORK
    assert normalised(google()) == WORK
    # Anthropic reports no share of reasoning within its output.
    assert normalised(anthropic()) == Usage(1, input=700, cache_read=300, output=50)


def test_tokens_that_only_the_total_holds_are_billed_as_input() -> None:
    assert normalised(google(tool_use_prompt_token_count=40)).input == 740


def test_reasoning_that_is_reported_beside_the_output_is_added_to_it() -> None:
    used = ModelUsage(input_tokens=10, output_tokens=5, reasoning_tokens=80, total_tokens=95)
    assert normalised(used) == Usage(1, 10, 0, 0, 85, 80)


def test_reasoning_that_was_counted_larger_than_the_output_that_holds_it_adds_nothing() -> None:
    used = ModelUsage(input_tokens=10, output_tokens=8, reasoning_tokens=12, total_tokens=18)
    assert normalised(used) == Usage(1, 10, 0, 0, 8, 8)


def test_a_price_is_plain_arithmetic_with_reasoning_and_batch() -> None:
    price = Price(input=2, output=10, cache_read=0.5, cache_write=4, batch=0.5, reasoning=20)
    usage = Usage(1, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 1_000_000)
    # 2 + 2·0.5 + 3·4 + 3·10 + 1·20 dollars.
    assert price.cost(usage, batch=False) == 65
    assert price.cost(usage, batch=True) == 32.5


def test_every_price_of_the_house_is_positive_ordered_and_halved_in_batches() -> None:
    prices = read_prices()
    assert prices.as_of >= "2026-08-21"
    assert {name.split("/")[0] for name in prices.models} == {"anthropic", "openai", "google"}
    for name, price in prices.models.items():
        assert 0 < price.cache_read <= price.input <= price.cache_write <= 1.25 * price.input, name
        assert price.input < price.output == price.reasoning, name
        assert price.batch == 0.5, name


def test_a_dated_snapshot_has_the_price_of_its_model_and_a_relative_has_none() -> None:
    prices = read_prices()
    assert prices.find("openai/gpt-5-2025-08-07") == prices.models["openai/gpt-5"]
    assert prices.find("anthropic/claude-opus-4-8-20260512") == prices.models["anthropic/claude-opus-4-8"]
    assert prices.find("openai/gpt-5-codex") is None
    assert prices.find("anthropic/bedrock/claude-opus-4-8") is None


def test_an_unknown_price_is_said_and_never_nothing() -> None:
    tariff = tariff_of("vllm/some-model")
    assert not tariff.known
    assert math.isnan(tariff.dollars(Usage(1, 1000)))
    assert shown_dollars(tariff.dollars(Usage())) == "price unknown"
    assert "price unknown: prices.json has no price for 'vllm/some-model'" in unknown_price("vllm/some-model")
    local = tariff_of("local")
    assert (local.known, local.dollars(Usage(1, 1000))) == (True, 0.0)


def test_a_tariff_comes_back_from_a_manifest_as_it_went_in() -> None:
    for tariff in (tariff_of("openai/gpt-5", batched=frozenset({"transcript"})), tariff_of("local"), tariff_of("x/y")):
        assert tariff_in(json.loads(json.dumps(tariff.as_record()))) == tariff
    assert not tariff_in({}).known


def test_only_what_has_a_batch_api_can_go_through_one() -> None:
    for name in ("local", "vllm/m", "anthropic/bedrock/claude-opus-4-8"):
        with pytest.raises(UserError, match="has no batch API here"):
            tariff_of(name, batched=frozenset({"transcript"}))


PLAIN = Tariff("p", Price(1, 1, 1, 1, batch=0.5), free=False, as_of="d", batched=frozenset({"batched"}))
ONE_DOLLAR = Usage(1, input=1_000_000)


def purse(folder: Path, cap: float | None = None, **expected: float) -> Purse:
    return Purse(PLAIN, Ledger(folder / "spend.jsonl"), cap=cap, expected=expected)


def test_a_ledger_outlives_its_process_and_a_line_that_was_cut(tmp_path: Path) -> None:
    first = purse(tmp_path)
    first.pay(ONE_DOLLAR)
    first.pay(Usage(1, output=500_000))
    first.lose()
    path = tmp_path / "spend.jsonl"
    path.write_bytes(path.read_bytes() + b'{"setting": "sae", "doll')
    again = Ledger(path)
    # 1 + 0.5, and the mean of the two for the reply that was lost.
    assert (again.dollars, again.n_paid, again.n_lost) == (2.25, 2, 1)
    again.add(Payment("sae", "claim", ONE_DOLLAR, 1.0, lost=False))
    assert Ledger(path).dollars == 3.25


def test_claims_are_let_in_until_the_next_could_exceed_the_cap_and_those_in_flight_end(tmp_path: Path) -> None:
    one = purse(tmp_path, cap=3.5, sae=1.0)
    ended = []

    async def ask(name: str) -> None:
        async with one.claim("sae", name):
            await asyncio.sleep(0)
            one.pay(ONE_DOLLAR)
            ended.append(name)

    async def steps() -> None:
        results = await asyncio.gather(*(ask(str(number)) for number in range(6)), return_exceptions=True)
        assert [isinstance(one, CapReachedError) for one in results] == [False] * 3 + [True] * 3

    asyncio.run(steps())
    assert ended == ["0", "1", "2"]
    assert one.ledger.dollars == 3
    assert one.stopped == "Stopped before the cap of $3.50: $3.00 are spent, and the next claim could cost $1.00."


def test_a_claim_that_turns_out_cheap_makes_room_for_one_that_waits(tmp_path: Path) -> None:
    one = purse(tmp_path, cap=1.5, sae=1.0)

    async def ask() -> None:
        async with one.claim("sae", "c"):
            await asyncio.sleep(0)
            one.pay(Usage(1, input=100_000))

    async def steps() -> None:
        await asyncio.gather(*(ask() for _ in range(5)))

    asyncio.run(steps())
    assert one.stopped is None
    assert one.ledger.dollars == pytest.approx(0.5)


def test_after_enough_claims_their_own_cost_replaces_the_estimate(tmp_path: Path) -> None:
    one = purse(tmp_path, cap=1.0, sae=0.9)

    async def steps() -> None:
        for _ in range(8):
            async with one.claim("sae", "c"):
                one.pay(Usage(1, input=10_000))
        # 0.08 spent: an estimate of 0.9 would still fit once, five times 0.0125 fit together.
        async with one.claim("sae", "a"), one.claim("sae", "b"), one.claim("sae", "c"):
            pass

    asyncio.run(steps())
    assert one.stopped is None


def test_requests_wait_for_room_and_the_cap_is_never_passed_even_by_the_dearest_replies(tmp_path: Path) -> None:
    one = purse(tmp_path, cap=2.5)
    seen = []

    async def request() -> None:
        ticket = await one.hold(1.0)
        seen.append(one.ledger.dollars + len(one._held))
        await asyncio.sleep(0)
        one.pay(ONE_DOLLAR)
        one.release(ticket)

    async def steps() -> None:
        results = await asyncio.gather(*(request() for _ in range(5)), return_exceptions=True)
        assert sum(isinstance(one, CapReachedError) for one in results) == 3

    asyncio.run(steps())
    assert max(seen) <= 2.5
    assert one.ledger.dollars == 2


def test_the_most_that_a_request_can_cost_is_by_hand(tmp_path: Path) -> None:
    # 4,000 bytes are at most 2,000 tokens, with 1,000 of overhead, and 7,000 of output, at a dollar a million.
    assert purse(tmp_path).most(4000, 7000) == pytest.approx(0.01)


def scripted(reply: Callable[[], ModelOutput]) -> Model:
    model = get_model("mockllm/model", memoize=False, config=GenerateConfig(max_retries=0, max_tokens=100))

    async def generate(*_: object, **__: object) -> ModelOutput:
        return reply()

    model.api.generate = generate
    return model


class RefusedError(Exception):
    status_code = 429


def test_a_model_pays_what_was_reported_loses_what_broke_and_is_left_as_it_was(tmp_path: Path) -> None:
    output = ModelOutput.from_content("m", "hello")
    output.usage = ModelUsage(input_tokens=1_000_000, total_tokens=1_000_000)
    replies = [output, ConnectionResetError("reset"), RefusedError("slow down")]

    def reply() -> ModelOutput:
        made = replies.pop(0)
        if isinstance(made, Exception):
            raise made
        return made

    model = scripted(reply)
    before = dict(vars(model)), dict(vars(model.api))
    one = purse(tmp_path, cap=10.0)

    async def steps() -> None:
        with paying([model, model], one):
            assert (await model.generate("hi")).completion == "hello"
            for kind in (ConnectionResetError, RefusedError):
                with pytest.raises(kind):
                    await model.generate("hi")
            assert one._held == {}

    asyncio.run(steps())
    rows = [json.loads(line) for line in (tmp_path / "spend.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [(row["dollars"], row["lost"]) for row in rows] == [(1.0, False), (1.0, True)]
    assert before == (dict(vars(model)), dict(vars(model.api)))
