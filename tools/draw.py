"""The next token of every row: temperature, then the top-k cut, then top-p inside it, then one uniform number.

Invariant: a row's token depends on its own logits and its own uniform number only. Kept tokens are laid out by id
before the number picks one, so that rounding noise moves a boundary a little and never swaps two tokens.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tools.targets import Sampling

CHUNK = 64
"""Tokens whose maximum stands for them in the first pass of `top_logits`."""
WIDTHS = (64, 1024)
"""Without top-k, top-p is looked for among this many tokens before the whole vocabulary is sorted."""


def top_logits(logits: Float[Tensor, "rows vocab"], k: int) -> tuple[Float[Tensor, "rows k"], Int[Tensor, "rows k"]]:
    """The k largest logits of every row, largest first, and their token ids.

    The k largest lie in the k chunks with the largest maxima, so only these are searched: exact, and far cheaper
    than `topk` over 262,144 tokens.
    """
    rows, vocab = logits.shape
    n_chunks = vocab // CHUNK
    if vocab % CHUNK or n_chunks < 4 * k:
        values, ids = logits.topk(min(k, vocab))
        return values, ids
    chunks = logits.view(rows, n_chunks, CHUNK)
    best = chunks.amax(-1).topk(k).indices
    inside = chunks.gather(1, best[:, :, None].expand(-1, -1, CHUNK)).flatten(1)
    values, at = inside.topk(k)
    return values, best.gather(1, at // CHUNK) * CHUNK + at % CHUNK


def draw(
    logits: Float[Tensor, "rows vocab"], sampling: Sampling, uniforms: Float[Tensor, " rows"]
) -> Int[Tensor, " rows"]:
    """One token id for every row.

    Args:
        logits: Of the next token.
        sampling: Temperature, top-k and top-p.
        uniforms: One number in [0, 1) for every row.

    Raises:
        FloatingPointError: A row's logits hold nan or infinity.
    """
    if sampling.top_k > 0:
        values, ids = top_logits(logits, sampling.top_k)
        probabilities = torch.softmax(_scaled(values, sampling), -1)
        return _pick(_nucleus(probabilities, sampling.top_p), ids, uniforms)
    if sampling.top_p >= 1:
        ids = torch.arange(logits.shape[-1], device=logits.device).expand_as(logits)
        return _pick(torch.softmax(_scaled(logits, sampling), -1), ids, uniforms)
    return _draw_nucleus(logits, sampling, uniforms)


def _draw_nucleus(logits: Tensor, sampling: Sampling, uniforms: Tensor) -> Tensor:
    """Top-p over all tokens; only rows whose mass is spread thin are searched further."""
    log_total = torch.logsumexp(logits.float() / sampling.temperature, -1, keepdim=True)
    tokens = torch.empty_like(uniforms, dtype=torch.long)
    left = torch.arange(len(logits), device=logits.device)
    for width in (*WIDTHS, logits.shape[-1]):
        values, ids = top_logits(logits[left], width)
        probabilities = torch.exp(_scaled(values, sampling) - log_total[left])
        enough = (probabilities.sum(-1) >= sampling.top_p) | (width >= logits.shape[-1])
        kept = _nucleus(probabilities[enough], sampling.top_p)
        tokens[left[enough]] = _pick(kept, ids[enough], uniforms[left[enough]])
        left = left[~enough]
        if not len(left):
            break
    return tokens


def _scaled(values: Tensor, sampling: Sampling) -> Tensor:
    scaled = values.double() / sampling.temperature
    if not bool(torch.isfinite(scaled).all()):
        raise FloatingPointError("the target's logits hold nan or infinity; load it with dtype float32 and try again")
    return scaled


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Zero what lies beyond the smallest set of mass `top_p`; probabilities are sorted, largest first."""
    before = probabilities.cumsum(-1) - probabilities
    return torch.where(before < top_p, probabilities, 0.0)


def _pick(probabilities: Tensor, ids: Tensor, uniforms: Tensor) -> Tensor:
    """The token of every row at its uniform number; probabilities need not sum to 1."""
    by_id = ids.argsort(-1)
    cdf = probabilities.gather(1, by_id).cumsum(-1)
    total = cdf[:, -1:]
    # Rounding may bring the product up to the total, which no token's share lies above.
    wanted = torch.minimum(uniforms.to(cdf)[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    return ids.gather(1, by_id.gather(1, torch.searchsorted(cdf, wanted, right=True)))[:, 0]
