"""Thinking targets: a bounded thought, the prompt that asks for it, targets that cannot."""

from dataclasses import replace

import pytest

from claims.schema import Message, UserError
from tools.model import Loaded
from tools.sampling import Request, sample
from tools.targets import Sampling

FREE = Sampling(temperature=1.0, top_k=0, top_p=1.0, max_tokens=12)


def ask(text: str, n: int = 1) -> Request:
    return Request((Message("user", text),), n, text, 0)


def test_a_thought_is_ended_at_its_limit_and_the_answer_goes_on(tiny_qwen: Loaded) -> None:
    end = tiny_qwen.tokenizer.convert_tokens_to_ids("</think>")
    settings = replace(FREE, max_tokens=12, max_thinking=5)
    (samples,) = sample(tiny_qwen, [ask("Which one?", n=40)], sampling=settings)
    open_at_limit = [one.token_ids for one in samples if len(one.token_ids) > 5 and end not in one.token_ids[:5]]
    assert len(open_at_limit) > 20
    assert all(ids[5] == end for ids in open_at_limit)
    assert any(len(ids) == 12 for ids in open_at_limit)


def test_a_thinking_target_is_asked_with_the_prompt_that_asks_for_thought(tiny_qwen: Loaded) -> None:
    # The prompt differs, so the same random numbers draw other tokens.
    request = [ask("Which one?", n=4)]
    assert sample(tiny_qwen, request, sampling=FREE) != sample(
        tiny_qwen, request, sampling=replace(FREE, max_thinking=FREE.max_tokens)
    )


def test_a_target_that_cannot_think_says_so(tiny_gemma: Loaded) -> None:
    with pytest.raises(UserError, match="no token </think>"):
        sample(tiny_gemma, [ask("Which one?")], sampling=replace(FREE, max_thinking=5))
