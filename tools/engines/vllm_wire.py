"""The wire of a vLLM server: one completion whose prompt carries activation vectors.

Two ways in, as two tools need them. `AtEmbedding` sends the whole prompt as embeddings (`--enable-prompt-embeds`).
`AfterBlock` sends token ids and a steering vector of the plug-in vllm-lens, whose norm-matched addition is
h + scale * |h| * v / |v|, the very formula of `tools.activations.adding`, at the positions named.

Invariant: a request is a function of its item and settings, down to the byte.
"""

import base64
import io
import json
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from tools.steered import AfterBlock, Generated, Injection, Steered
from tools.writer import Decoding

SEEDS = 2**63
"""vLLM takes seeds below this."""

Embed = Callable[[tuple[int, ...]], Float[Tensor, "tokens d_model"]]
"""Gives the rows of a prompt's embedding, as the model's own module does, scale and all."""


class WireError(RuntimeError):
    """A vLLM server answered with an error or out of its contract. Our fault or its, never a predictor's."""


def completion_request(
    model: str, item: Steered, injection: Injection, decoding: Decoding, *, embed: Embed
) -> dict[str, object]:
    """The JSON body of `POST /v1/completions` for one item.

    Args:
        model: Its name on the server: a checkpoint, or a LoRA module.
        item: Prompt and vectors.
        injection: Where the vectors go.
        decoding: How the answer is drawn.
        embed: Embeds a prompt; used by `AtEmbedding` only.
    """
    body: dict[str, object] = {
        "model": model,
        "max_tokens": decoding.max_tokens,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "seed": item.seed % SEEDS,
        "skip_special_tokens": True,
        "return_token_ids": True,
    }
    if decoding.stop is not None:
        body |= {"stop": [decoding.stop], "include_stop_str_in_output": True}
    return body | _prompt(item, injection, embed)


def _prompt(item: Steered, injection: Injection, embed: Embed) -> dict[str, object]:
    if isinstance(injection, AfterBlock):
        vectors = steering_vectors(item, injection)
        # The plug-in reads JSON in a string: vLLM lets no nested values through.
        return {
            "prompt": list(item.prompt_ids),
            "vllm_xargs": {"apply_steering_vectors": json.dumps(vectors), "skip_reading_prefix_cache": 1},
        }
    rows = embed(item.prompt_ids).clone()
    if item.positions:
        rows[list(item.positions)] = item.vectors.to(rows)
    return {"prompt": "", "prompt_embeds": encoded(rows)}


def steering_vectors(item: Steered, injection: AfterBlock) -> list[dict[str, object]]:
    """The plug-in's steering vectors for one item: one layer, a vector a position, matched to the norm there."""
    if not item.positions:
        return []
    return [
        {
            "activations": packed(item.vectors[None].float()),
            "layer_indices": [injection.block],
            "scale": injection.coefficient,
            "norm_match": True,
            "position_indices": list(item.positions),
        }
    ]


def packed(value: Float[Tensor, "layers positions d_model"]) -> dict[str, object]:
    """A float32 tensor as the plug-in reads it: raw bytes in base64, with type and shape."""
    raw = value.contiguous().cpu().numpy()
    return {
        "data": base64.b64encode(raw.tobytes()).decode("ascii"),
        "dtype": str(raw.dtype),
        "original_dtype": "torch.float32",
        "shape": list(raw.shape),
    }


def encoded(rows: Float[Tensor, "tokens d_model"]) -> str:
    """A prompt's embeddings as vLLM reads them: what `torch.save` writes, in base64."""
    buffer = io.BytesIO()
    torch.save(rows.detach().cpu().contiguous(), buffer)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def read_answer(status: int, text: str) -> Generated:
    """What a completion's answer says.

    Raises:
        WireError: It is an error, or out of contract.
    """
    try:
        answer = json.loads(text)
        if status != 200 or "error" in answer:
            raise WireError(f"The vLLM server answered {status}: {_complaint(answer)}. Its own log says more.")
        choice = answer["choices"][0]
        reason, said, token_ids = choice["finish_reason"], choice["text"], choice.get("token_ids") or []
        if reason not in ("stop", "length") or not isinstance(said, str):
            raise WireError(f"The vLLM server ended an answer with {reason!r}. Expected 'stop' or 'length'.")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise WireError(
            f"The vLLM server answered {status} with {text!r:.200}. Expected a completion. Is --vllm-url its address?"
        ) from error
    return Generated(said, tuple(token_ids), reason == "stop")


def _complaint(answer: Mapping[str, object]) -> str:
    error = answer.get("error", answer)
    return str(error.get("message", error) if isinstance(error, Mapping) else error)[:300]
