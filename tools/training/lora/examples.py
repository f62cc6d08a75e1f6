"""What one step of training sees: prompts with places for activations, and the answers that are wanted.

Invariant: rows are padded on the right. Under causal attention padding changes nothing in front of it, and positions
are those of a prompt that stands alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class Example:
    """One prompt, its activations and its answer."""

    prompt_ids: tuple[int, ...]
    """Up to where the answer starts."""
    positions: tuple[int, ...]
    """Where in the prompt an activation goes."""
    vectors: Float[Tensor, "n d_model"]
    """The activations, less the centre, one a position."""
    answer_ids: tuple[int, ...]
    """With the token that ends it."""
    layer: int
    """Where the activations are from."""

    @property
    def length(self) -> int:
        """Tokens of prompt and answer."""
        return len(self.prompt_ids) + len(self.answer_ids)


@dataclass(frozen=True)
class Batch:
    """Examples side by side."""

    prefix_ids: Int[Tensor, " shared"]
    """What all prompts begin with, up to the first activation at most; columns are counted from its end."""
    token_ids: Int[Tensor, "rows tokens"]
    """The rest of prompts and answers, padded with 0."""
    rows: Int[Tensor, " n"]
    """The row of each activation."""
    positions: Int[Tensor, " n"]
    """The column of each activation."""
    vectors: Float[Tensor, "n d_model"]
    """The activations, float32."""
    answer_rows: Int[Tensor, " answers"]
    """The row of each answer token."""
    answer_columns: Int[Tensor, " answers"]
    """The column that predicts it."""
    answers: Int[Tensor, " answers"]
    """The answer tokens."""
    weights: Float[Tensor, " answers"]
    """Of each answer token; an example's sum to 1."""


def collate(examples: Sequence[Example], device: torch.device) -> Batch:
    """Put examples into one batch."""
    shared = _shared(examples)
    length = max(example.length for example in examples)
    padded = [[*example.prompt_ids, *example.answer_ids, *[0] * (length - example.length)] for example in examples]
    spots = [(row, position - shared) for row, example in enumerate(examples) for position in example.positions]
    answers = [
        (row, len(example.prompt_ids) - 1 - shared + i, token_id, 1 / len(example.answer_ids))
        for row, example in enumerate(examples)
        for i, token_id in enumerate(example.answer_ids)
    ]
    rows, positions = (torch.tensor(numbers, device=device) for numbers in zip(*spots, strict=True))
    answer_rows, columns, answer_ids, weights = (
        torch.tensor(numbers, device=device) for numbers in zip(*answers, strict=True)
    )
    token_ids = torch.tensor(padded, device=device)
    return Batch(
        prefix_ids=token_ids[0, :shared],
        token_ids=token_ids[:, shared:],
        rows=rows,
        positions=positions,
        vectors=torch.cat([example.vectors for example in examples]).float().to(device),
        answer_rows=answer_rows,
        answer_columns=columns,
        answers=answer_ids,
        weights=weights,
    )


def _shared(examples: Sequence[Example]) -> int:
    first = examples[0].prompt_ids
    room = min(min(example.positions) for example in examples)
    return next((i for i in range(room) if any(example.prompt_ids[i] != first[i] for example in examples)), room)


def encode_answer(tokenizer: PreTrainedTokenizerFast, prompt_ids: Sequence[int], answer: str) -> tuple[int, ...]:
    """The answer as the model would write it after this prompt, and the end-of-sequence token."""
    return (*encode_start(tokenizer, prompt_ids, answer), tokenizer.eos_token_id)


def encode_start(tokenizer: PreTrainedTokenizerFast, prompt_ids: Sequence[int], answer: str) -> tuple[int, ...]:
    """The answer as the model would write it after this prompt: a space goes in front where there is no gap yet."""
    tail = tokenizer.decode(list(prompt_ids[-2:]), skip_special_tokens=False, clean_up_tokenization_spaces=False)
    gap = "" if not tail or tail[-1].isspace() else " "
    return tuple(tokenizer(gap + answer, add_special_tokens=False)["input_ids"])


def batches(examples: Sequence[Example], size: int, *, seed: int) -> list[list[int]]:
    """Indices of one pass over `examples`, `size` of like length together, in an order that the seed gives."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(examples), generator=generator).tolist()
    found: list[list[int]] = []
    for at in range(0, len(order), 16 * size):
        near = sorted(order[at : at + 16 * size], key=lambda index: examples[index].length)
        groups = [near[start : start + size] for start in range(0, len(near), size)]
        found += [groups[index] for index in torch.randperm(len(groups), generator=generator).tolist()]
    return [group for group in found if len(group) == size]
