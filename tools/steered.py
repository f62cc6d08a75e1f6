"""Answers of a model whose prompts carry activation vectors: many at a time, each with its own random numbers.

Invariant: an answer depends on its item and the settings alone. The neighbours in a batch, the shared prefix and a
split for lack of memory change nothing but the rounding of the model's dtype: equal answers in float32; in bfloat16
two tokens whose logits lie within a rounding of each other may swap (`tests/test_steered.py` states the tolerance).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from tools.draw import draw
from tools.memory import halving
from tools.sampling import row_uniforms
from tools.steered_state import AfterBlock, AtEmbedding, Injection, Steered, SteeredState, causal_model, forget_states
from tools.target_types import Sampling

__all__ = ["AfterBlock", "AtEmbedding", "Generated", "Injection", "Steered", "generate"]

MAX_ROWS = 64
"""Items decoded together; two cores gain nothing beyond 32, a GPU a little."""
MAX_POSITIONS = 2**15
"""Rows times positions kept in the cache."""
COMPACT_BELOW = 0.92
"""Finished rows are dropped when fewer than this share of the rows is still running."""


@dataclass(frozen=True)
class Generated:
    """One answer."""

    text: str
    """Without special tokens; up to and with the stop text, if that came."""
    token_ids: tuple[int, ...]
    """The answer's tokens, without the end token; the last may reach beyond the stop text."""
    finished: bool
    """False when `max_tokens` cut it off."""


def generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    items: Sequence[Steered],
    injection: Injection,
    *,
    max_tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    stop: str | None = None,
    prefix: int = 0,
) -> list[Generated]:
    """Answer every item. Call it in the thread that owns the model.

    Args:
        model: A causal language model, with or without a PEFT adapter, which is used as it is switched.
        tokenizer: Of the model.
        items: Prompts with their vectors.
        injection: Where the vectors go.
        max_tokens: Longest answer.
        temperature: 0 takes the most likely token (the lowest id of equals).
        top_p: Smallest set that holds this much mass, if the temperature is above 0.
        stop: Text that ends an answer.
        prefix: Number of leading tokens that all prompts share; they are computed once.

    Raises:
        ValueError: An item cannot be: no prompt, too long for the model, a position outside it or inside the prefix.
        OutOfMemory: One item alone does not fit.
        FloatingPointError: The model's logits hold nan or infinity.
    """
    _check(model, items, max_tokens=max_tokens, prefix=prefix)
    endings = _Endings(model, tokenizer, max_tokens, stop)
    choice = _Choice(Sampling(max(temperature, 1e-6), 0, top_p, max_tokens), greedy=temperature == 0)
    answers: dict[int, Generated] = {}

    def run(places: Sequence[int]) -> list[Generated]:
        state = SteeredState(model, [items[place] for place in places], injection, prefix)
        return _decode(state, [items[place] for place in places], choice, endings)

    with torch.inference_mode():
        for places in _batches(items, max_tokens):
            answers.update(zip(places, halving(run, places, forget=lambda: forget_states(model)), strict=True))
    return [answers[place] for place in range(len(items))]


def _check(model: PreTrainedModel, items: Sequence[Steered], *, max_tokens: int, prefix: int) -> None:
    context = causal_model(model).config.get_text_config().max_position_embeddings
    for item in items:
        n_prompt, n_positions = len(item.prompt_ids), len(item.positions)
        if not 0 < n_prompt <= context - max_tokens:
            raise ValueError(f"a prompt of {n_prompt} tokens; expected 1 to {context} less {max_tokens} for the answer")
        if item.vectors.ndim != 2 or len(item.vectors) != n_positions:
            raise ValueError(f"vectors of shape {tuple(item.vectors.shape)} for {n_positions} positions")
        if any(not prefix <= position < n_prompt for position in item.positions):
            raise ValueError(f"positions {item.positions}: expected each from {prefix} (the prefix) to {n_prompt - 1}")
        if item.prompt_ids[:prefix] != items[0].prompt_ids[:prefix] or n_prompt < prefix:
            raise ValueError(f"the prompts differ within their first {prefix} tokens; expected a shared prefix")


def _batches(items: Sequence[Steered], max_tokens: int) -> Iterator[list[int]]:
    """Places of the items, longest prompt first so that the first batch takes the most memory, in batches that fit."""
    batch: list[int] = []
    for place in sorted(range(len(items)), key=lambda place: -len(items[place].prompt_ids)):
        longest = len(items[batch[0]].prompt_ids) if batch else 0
        if batch and (len(batch) == MAX_ROWS or (len(batch) + 1) * (longest + max_tokens) > MAX_POSITIONS):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


class _Choice:
    """Chooses the next token of every row."""

    def __init__(self, settings: Sampling, *, greedy: bool) -> None:
        self.settings = settings
        self.greedy = greedy

    def uniforms(self, item: Steered) -> np.ndarray:
        return row_uniforms("steered", 0, item.seed, 0 if self.greedy else self.settings.max_tokens)

    def __call__(self, logits: Float[Tensor, "rows vocab"], rows: Sequence["_Row"]) -> Tensor:
        if self.greedy:
            highest, tokens = logits.max(-1)
            if not bool(torch.isfinite(highest).all()):
                raise FloatingPointError("the model's logits hold nan or infinity; load it in bfloat16 or float32")
            return tokens
        numbers = torch.tensor([row.uniforms[len(row.token_ids)] for row in rows], device=logits.device)
        return draw(logits, self.settings, numbers)


@dataclass
class _Row:
    """One answer in the making."""

    uniforms: np.ndarray
    """Its random numbers."""
    token_ids: list[int]
    """So far."""
    answer: Generated | None = None
    """Set when it is complete."""


class _Endings:
    """Decides when an answer is complete."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, max_tokens: int, stop: str | None
    ) -> None:
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.stop = stop
        # A stop text of c characters lies within the last c tokens and the rest of a split character.
        self.tail = len(stop or "") + 8
        ids = causal_model(model).generation_config.eos_token_id
        self.eos = {ids} if isinstance(ids, int) else set(ids or ())

    def push(self, row: _Row, token_id: int) -> None:
        """Give `row` its next token."""
        if token_id in self.eos:
            row.answer = self._answer(row, finished=True)
            return
        row.token_ids.append(token_id)
        if self.stop is not None and self.stop in self._text(row.token_ids[-self.tail :]):
            row.answer = self._answer(row, finished=True)
        elif len(row.token_ids) == self.max_tokens:
            row.answer = self._answer(row, finished=False)

    def _text(self, token_ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def _answer(self, row: _Row, *, finished: bool) -> Generated:
        text = self._text(row.token_ids)
        if self.stop is not None and self.stop in text:
            text = text[: text.index(self.stop) + len(self.stop)]
        return Generated(text, tuple(row.token_ids), finished)


def _decode(state: SteeredState, items: Sequence[Steered], choice: _Choice, endings: _Endings) -> list[Generated]:
    rows = [_Row(choice.uniforms(item), []) for item in items]
    live = rows
    while True:
        tokens = choice(state.logits, live)
        for row, token_id in zip(live, tokens.tolist(), strict=True):
            if row.answer is None:
                endings.push(row, token_id)
        running = [place for place, row in enumerate(live) if row.answer is None]
        if not running:
            return [row.answer for row in rows if row.answer is not None]
        if len(running) < COMPACT_BELOW * len(live):
            kept = torch.tensor(running, device=tokens.device)
            state.select(kept)
            live, tokens = [live[place] for place in running], tokens[kept]
        state.advance(tokens)
