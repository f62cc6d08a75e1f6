"""Positions: which tokens a call asks about, and which of them a tool does not read by default.

Invariant: a position is an index into the transcript's `token_ids`, from 0. What a predictor got wrong is
answered with a `ToolError` that says what was found, what was expected and what to do.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float
from mcp.server.mcpserver.exceptions import ToolError
from torch import Tensor

OUTLIER_FACTOR = 10.0
"""A token whose activation norm is more than this many times the transcript's median is an outlier."""


def mistake(found: str, expected: str, remedy: str) -> ToolError:
    """What a predictor did wrong, in the three parts that every such answer has."""
    return ToolError(f"{found} Expected {expected}. {remedy}")


def read_positions(positions: object, *, n_tokens: int, limit: int) -> tuple[int, ...]:
    """The positions of one call, checked; in the order asked for.

    Args:
        positions: What the predictor sent.
        n_tokens: Length of the transcript.
        limit: Most positions in one call.

    Raises:
        ToolError: Not a list, empty, too long, or an entry is no integer, out of range or repeated.
    """
    last = n_tokens - 1
    if not isinstance(positions, list):
        raise mistake(f"positions is {_shown(positions)}.", "a list of integers", "Write it like [3, 17].")
    if not positions:
        raise mistake("positions is empty.", f"1 to {limit} integers from 0 to {last}", "Name at least one token.")
    if len(positions) > limit:
        raise mistake(
            f"positions has {len(positions)} entries.", f"at most {limit}", f"Keep the {limit} that matter most."
        )
    for position in positions:
        _check(position, last)
    repeated = [position for position, count in Counter(positions).items() if count > 1]
    if repeated:
        raise mistake(
            f"positions has {_listed(repeated)} more than once.", "each position once", "Remove the repetitions."
        )
    return tuple(positions)


def _check(position: object, last: int) -> None:
    if isinstance(position, bool) or not isinstance(position, int):
        raise mistake(
            f"positions has {_shown(position)}, which is not an integer.",
            f"integers from 0 to {last}",
            "Use the index printed before a token, not its text.",
        )
    if not 0 <= position <= last:
        side = "negative" if position < 0 else "past the last token"
        raise mistake(
            f"positions has {position}, which is {side}.",
            f"integers from 0 to {last}",
            "Count from 0 at the first token; there is no counting from the end.",
        )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(positions: Sequence[int]) -> str:
    return ", ".join(str(position) for position in positions[:8]) + (", ..." if len(positions) > 8 else "")


def masked_positions(residual: Float[Tensor, "tokens d_model"], *, has_bos: bool) -> dict[int, str]:
    """Positions that say nothing about the text, each with the reason.

    The first token of a model with a BOS, and every token whose norm is more than `OUTLIER_FACTOR` times the
    transcript's median: their activations are attention sinks, many times larger than any other, and features
    fitted to the rest mean nothing there. Template tokens are not among them: the token before the response is
    often the most telling one.
    """
    norms = torch.linalg.vector_norm(residual.float(), dim=-1)
    median = float(norms.median())
    reasons = {
        index: f"its norm is {float(norms[index]) / median:.0f} times the transcript's median"
        for index in torch.nonzero(norms > OUTLIER_FACTOR * median).flatten().tolist()
    }
    if has_bos:
        reasons[0] = "it is the beginning-of-sequence token"
    return dict(sorted(reasons.items()))
