"""How often the oracle chooses the right answer, by family, beside the majority answer and a reader of the text.

Invariant: everyone chooses among the same options by the probability of their first token after the same question;
an option whose first token is the right one's does not count.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from peft import PeftModel
from torch import Tensor, nn

from claims.schema import Message
from tools.chat import encode_prompt
from tools.model import Loaded
from tools.training.lora.examples import Example, collate, encode_start
from tools.training.lora.inject import Hidden, option_logits, through_oracle, through_text
from tools.training.lora.oracle import Asked
from tools.training.lora.score import GROUP, shuffled
from tools.training.lora.words import NEAR, Reader


@dataclass(frozen=True)
class Accuracy:
    """Of one family of questions; shares of 1."""

    oracle: float
    """The oracle, given the right activations."""
    shuffled: float
    """The oracle, given another question's activations."""
    reader: float
    """The target itself, adapters off, given the text up to the segment's end instead of activations."""
    majority: float
    """Always the most frequent answer, or a guess among the options, whichever is better."""
    n: int
    """Questions."""


def judge(loaded: Loaded, model: PeftModel, asked: Sequence[Asked], examples: Sequence[Example]) -> dict[str, Accuracy]:
    """Accuracy by family."""
    firsts = [_firsts(loaded, one, example.prompt_ids) for one, example in zip(asked, examples, strict=True)]
    oracle = _right(model, through_oracle, examples, firsts)
    control = _right(model, through_oracle, shuffled(examples), firsts)
    with cast(Callable[[], torch.autograd.graph.saved_tensors_hooks], model.disable_adapter)():
        reading = [_as_text(loaded, one, example) for one, example in zip(asked, examples, strict=True)]
        told = [_firsts(loaded, one, example.prompt_ids) for one, example in zip(asked, reading, strict=True)]
        reader = _right(model, through_text, reading, told)
    families = dict.fromkeys(one.question.family for one in asked)
    chosen = {family: [i for i, one in enumerate(asked) if one.question.family == family] for family in families}
    return {
        family: Accuracy(
            oracle=_mean(oracle, places),
            shuffled=_mean(control, places),
            reader=_mean(reader, places),
            majority=majority([asked[i] for i in places]),
            n=len(places),
        )
        for family, places in chosen.items()
    }


def majority(asked: Sequence[Asked]) -> float:
    """What always giving the most frequent answer gets, or guessing among the options if that is better."""
    most = Counter(one.question.answer for one in asked).most_common(1)[0][1] / len(asked)
    guess = sum(1 / len(one.question.options) for one in asked) / len(asked)
    return max(most, guess)


def _mean(right: Sequence[bool], places: Sequence[int]) -> float:
    return sum(right[i] for i in places) / len(places)


@dataclass(frozen=True)
class _Firsts:
    """First tokens of a question's options."""

    right: int
    """Of the right answer."""
    others: tuple[int, ...]
    """Of the other options, where they differ from it."""


def _firsts(loaded: Loaded, asked: Asked, prompt_ids: Sequence[int]) -> _Firsts:
    question = asked.question
    right = encode_start(loaded.tokenizer, prompt_ids, question.answer)[0]
    others = {encode_start(loaded.tokenizer, prompt_ids, option)[0] for option in question.options}
    return _Firsts(right, tuple(sorted(others - {right})))


def _as_text(loaded: Loaded, asked: Asked, example: Example) -> Example:
    question = asked.question
    passage, segment = question.passage, question.segment
    span = next(span for span in passage.content if span.start <= segment.start < span.end)
    start = max(span.start, segment.end - 2 * NEAR)
    text = Reader(loaded.tokenizer).text(passage.token_ids[start : segment.end])
    message = Message("user", f"Text: {text}\nQuestion: {question.text}")
    prompt_ids = encode_prompt(loaded.tokenizer, loaded.target, [message])
    return Example(prompt_ids, (0,), torch.zeros(1, loaded.d_model), example.answer_ids, example.layer)


@torch.inference_mode()
def _right(model: nn.Module, hidden: Hidden, examples: Sequence[Example], firsts: Sequence[_Firsts]) -> list[bool]:
    device = next(model.parameters()).device
    order = sorted(range(len(examples)), key=lambda i: examples[i].length)
    found: dict[int, bool] = {}
    for at in range(0, len(order), GROUP):
        group = order[at : at + GROUP]
        batch = collate([examples[i] for i in group], device)
        states = hidden(model, batch)
        for row, i in enumerate(group):
            last = states[row, len(examples[i].prompt_ids) - 1 - len(batch.prefix_ids)]
            found[i] = _chosen(option_logits(model, last, [firsts[i].right, *firsts[i].others]))
    return [found[i] for i in range(len(examples))]


def _chosen(logits: Tensor) -> bool:
    return len(logits) > 1 and bool((logits[0] > logits[1:]).all())
