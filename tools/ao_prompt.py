"""What an activation oracle is asked: a line that names the layer, a placeholder for each activation, the question.

Invariant: the oracle's authors trained on this very text, so training and serving both come here for it. The n
placeholders are n tokens in a row; what follows decides nothing about where they are.
"""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

from claims.schema import Message, UserError
from tools.chat import encode_prompt
from tools.targets import Target

PLACEHOLDER = " ?"
"""Stands where an activation is added; one token in every tokenizer that oracles exist for."""


def placeholder_id(tokenizer: PreTrainedTokenizerFast) -> int:
    """The token id of the placeholder.

    Raises:
        UserError: It is no single token.
    """
    token_ids = tokenizer.encode(PLACEHOLDER, add_special_tokens=False)
    if len(token_ids) != 1:
        raise UserError(
            f"The oracle's placeholder {PLACEHOLDER!r} is {len(token_ids)} tokens in the target's tokenizer. Expected "
            "one. No activation oracle of this recipe fits this target: choose another tool or target."
        )
    return int(token_ids[0])


def oracle_prompt(
    tokenizer: PreTrainedTokenizerFast, target: Target, layer: int, n: int, question: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The token ids of one question about `n` activations, and where the placeholders are.

    Args:
        tokenizer: The target's.
        target: Whose chat template is used, without thinking.
        layer: The block, from 0, after which the activations were read.
        n: How many activations, at least 1.
        question: Free text.

    Raises:
        UserError: The placeholder is no single token, the template cannot render the question, or `n` placeholders
            in a row are not `n` tokens.
    """
    text = f"Layer: {layer}\n{PLACEHOLDER * n} \n{question}"
    token_ids = encode_prompt(tokenizer, target, [Message("user", text)], thinking=False)
    start = _start(token_ids, placeholder_id(tokenizer), n)
    return token_ids, tuple(range(start, start + n))


def _start(token_ids: Sequence[int], placeholder: int, n: int) -> int:
    start = token_ids.index(placeholder) if placeholder in token_ids else 0
    found = next((i for i, token_id in enumerate(token_ids[start:]) if token_id != placeholder), len(token_ids))
    if n < 1 or found != n:
        raise UserError(
            f"{n} placeholders {PLACEHOLDER!r} became {found} tokens in a row. Expected as many, at least 1. The "
            "target's tokenizer joins them, or its chat template has one of its own: this recipe does not fit it."
        )
    return start
