"""The one normaliser: what a provider reported of a call, as tokens that each have one price.

The families count differently: Anthropic's input leaves out what was cached, OpenAI's and Google's include it;
OpenAI's and Anthropic's output holds the reasoning, Google reports it beside. Inspect (0.3.285) levels most of this
when it reads a reply; what it leaves is levelled here. Invariant: no token is counted twice, and none that a total
holds is lost.
"""

from inspect_ai.model import ModelUsage

from claims.build.wild.money import Usage


def normalised(used: ModelUsage | None, n_calls: int = 1) -> Usage:
    """Tokens by price, from a reply or from the sum of several.

    Args:
        used: As Inspect keeps it; None where a provider reported nothing, which counts as no token.
        n_calls: Replies behind it.
    """
    if used is None:
        return Usage(n_calls)
    cache_read, cache_write = used.input_tokens_cache_read or 0, used.input_tokens_cache_write or 0
    reasoning, output = used.reasoning_tokens or 0, used.output_tokens
    unnamed = max(0, used.total_tokens - used.input_tokens - cache_read - cache_write - output)
    if reasoning > output and unnamed >= reasoning:
        # Some servers of the OpenAI protocol report reasoning beside the output.
        output, unnamed = output + reasoning, unnamed - reasoning
    # For Anthropic Inspect counts the thoughts that it was shown, which may be more or fewer tokens than were billed.
    reasoning = min(reasoning, output)
    # Google's total also holds the tokens of built-in tools, which are billed as input and named nowhere else.
    return Usage(n_calls, used.input_tokens + unnamed, cache_read, cache_write, output, reasoning)
