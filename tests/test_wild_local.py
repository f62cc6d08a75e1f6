"""A target in this process: orders drawn together, thoughts kept apart from answers."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from claims.build.sampler import StoredSampler
from claims.build.wild.engine import PromptRefusedError
from claims.build.wild.local_engine import LocalEngine
from claims.schema import Message, Transcript
from tools.chat import token_roles
from tools.model import Loaded
from tools.sampling import Request, sample
from tools.targets import Sampling

SHORT = Sampling(temperature=1.0, top_k=0, top_p=1.0, max_tokens=12)
THINKING = replace(SHORT, max_thinking=5)
PROMPTS = [(Message("user", f"Which model is number {number}?"),) for number in range(3)]


def engine(loaded: Loaded, folder: Path, sampling: Sampling) -> LocalEngine:
    return LocalEngine(StoredSampler(loaded, sampling, folder))


def test_orders_that_come_together_are_answered_as_they_are_alone(tiny_qwen: Loaded, tmp_path: Path) -> None:
    async def together() -> list[list[str]]:
        here = engine(tiny_qwen, tmp_path / "together", SHORT)
        drawn = await asyncio.gather(*(here.draw(prompt, 4, 0) for prompt in PROMPTS))
        return [[one.text for one in responses] for responses in drawn]

    async def alone() -> list[list[str]]:
        here = engine(tiny_qwen, tmp_path / "alone", SHORT)
        return [[one.text for one in await here.draw(prompt, 4, 0)] for prompt in PROMPTS]

    assert asyncio.run(together()) == asyncio.run(alone())


def test_what_a_thinking_target_thought_is_kept_apart_and_its_tokens_are_told(
    tiny_qwen: Loaded, tmp_path: Path
) -> None:
    here = engine(tiny_qwen, tmp_path, THINKING)
    prompt_ids = asyncio.run(here.prompt_ids(PROMPTS[0]))
    responses = asyncio.run(here.draw(PROMPTS[0], 20, 0))
    end = tiny_qwen.tokenizer.convert_tokens_to_ids("</think>")
    for response in responses:
        assert response.reasoning is not None
        told = Transcript("t", PROMPTS[0], response.reasoning, response.text, prompt_ids + response.token_ids, "test")
        roles = token_roles(tiny_qwen.tokenizer, tiny_qwen.target, told)[len(prompt_ids) :]
        n_thought = response.token_ids.index(end) + 1 if end in response.token_ids else len(roles)
        assert roles == ("reasoning",) * n_thought + ("response",) * (len(roles) - n_thought)
    assert any(response.text and response.reasoning for response in responses)


def test_a_target_that_does_not_think_has_no_reasoning(tiny_qwen: Loaded, tmp_path: Path) -> None:
    responses = asyncio.run(engine(tiny_qwen, tmp_path, SHORT).draw(PROMPTS[0], 3, 0))
    (samples,) = sample(tiny_qwen, [Request(PROMPTS[0], 3, "another key", 0)], sampling=SHORT)
    assert [response.reasoning for response in responses] == [None] * len(samples)


def test_a_prompt_that_is_too_long_is_refused_before_anything_is_drawn(tiny_qwen: Loaded, tmp_path: Path) -> None:
    long = (Message("user", "model " * 3000),)
    with pytest.raises(PromptRefusedError, match="the target holds 8192"):
        asyncio.run(engine(tiny_qwen, tmp_path, SHORT).draw(long, 1, 0))
    assert not list(tmp_path.iterdir())
