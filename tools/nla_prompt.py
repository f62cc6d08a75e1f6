"""What a natural-language autoencoder is given: its own prompt, one of whose embeddings is an activation.

Invariant: the activation is scaled here and only here, after the embedding module has done its own scaling of
everything else; the prompt comes from the sidecar and is held against it.
"""

import jinja2
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from claims.schema import Message, UserError
from tools.chat import encode_prompt
from tools.nla_sidecar import Sidecar, check_marker, place_of_marker
from tools.targets import Target


def verbaliser_prompt(
    tokenizer: PreTrainedTokenizerFast, sidecar: Sidecar, target: Target | None = None
) -> tuple[tuple[int, ...], int]:
    """The token ids of the prompt, and the position of the marker in it.

    Args:
        tokenizer: The autoencoder's own.
        sidecar: Its facts.
        target: The base model of an adapter, whose chat template then applies; None for a full checkpoint, which is
            asked through the template of its tokenizer.

    Raises:
        UserError: The marker is not the tokenizer's, or not where it was in training.
    """
    check_marker(sidecar, tokenizer)
    try:
        content = sidecar.template.format(injection_char=sidecar.marker)
    except (KeyError, IndexError, ValueError) as error:
        raise UserError(
            f"The natural-language autoencoder's prompt template cannot be filled in ({error!r}). Expected a text with "
            "{injection_char} in it and no other braces. Download or train the checkpoint again."
        ) from error
    if target is None:
        token_ids = _encode_plainly(tokenizer, content)
    else:
        token_ids = encode_prompt(tokenizer, target, [Message("user", content)], thinking=False)
    return token_ids, place_of_marker(sidecar, token_ids)


def _encode_plainly(tokenizer: PreTrainedTokenizerFast, content: str) -> tuple[int, ...]:
    # With no word about thinking: that is how the released checkpoints were trained and are run.
    try:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
        )
    except (ValueError, jinja2.TemplateError) as error:
        raise UserError(
            f"The natural-language autoencoder's tokenizer cannot render a prompt ({error}). Expected a chat template "
            "in its folder. Download the checkpoint again."
        ) from error
    return tuple(tokenizer.encode(str(text), add_special_tokens=False))


def scaled(activations: Float[Tensor, "n d_model"], sidecar: Sidecar) -> Float[Tensor, "n d_model"]:
    """Activations brought to the norm that the autoencoder was trained on; a zero stays zero."""
    return torch.nn.functional.normalize(activations.float(), dim=-1) * sidecar.injection_scale
