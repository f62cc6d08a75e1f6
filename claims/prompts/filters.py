"""The filters between what was read and what is sampled, in the paper's order, each with its reason.

Invariant: filters run in the order of `build_filters`; a prompt is counted at the first that refuses it.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

from claims.prompts.record import Prompt, PromptsError
from claims.schema import Message

CountTokens = Callable[[tuple[Message, ...]], int]
"""Length of a rendered prompt in the target's tokens."""


@dataclass(frozen=True)
class Limits:
    """What a prompt must keep to; None switches a filter off. The defaults are the paper's for its WildChat mixture."""

    min_chars: int | None = 400
    """Fewest characters, all turns together."""
    max_chars: int | None = 8000
    """Most characters, all turns together."""
    per_group: int | None = 5
    """Most prompts whose user text starts alike."""
    group_chars: int = 100
    """How many characters of the user text, white space left out, make a group."""
    max_tokens: int | None = None
    """Most tokens of the rendered prompt."""
    first: int | None = None
    """Keep the first so many of what passed the filters above."""


PETRI_LIMITS = Limits(min_chars=None, max_chars=None, per_group=None, max_tokens=4096)
"""The paper's for PETRI: cuts of one transcript start alike by construction."""


@dataclass(frozen=True)
class Filter:
    """One filter."""

    reason: str
    """Printed beside the count of what it dropped."""
    keep: Callable[[Prompt], bool]
    """True when the prompt goes on; called once a prompt, in order."""


def build_filters(
    limits: Limits, *, count_tokens: CountTokens | None = None, excluded: Collection[str] = ()
) -> tuple[Filter, ...]:
    """The filters, fresh: some of them remember what they have seen.

    Args:
        limits: What to keep to.
        count_tokens: Needed when `limits.max_tokens` is given.
        excluded: Prompt ids of the training data. They go last, after the fixed slice, as in the paper: the slice
            stays the same whatever is excluded from it.

    Raises:
        PromptsError: A limit in tokens without a way to count them.
    """
    steps = [Filter("the same messages as an earlier prompt", _unseen())]
    if limits.min_chars is not None:
        steps.append(Filter(f"fewer than {limits.min_chars:,} characters", _longer(limits.min_chars)))
    if limits.max_chars is not None:
        steps.append(Filter(f"more than {limits.max_chars:,} characters", _shorter(limits.max_chars)))
    if limits.max_tokens is not None:
        steps.append(Filter(f"more than {limits.max_tokens:,} tokens", _within(limits.max_tokens, count_tokens)))
    if limits.per_group is not None:
        reason = (
            f"after the first {limits.per_group} whose user text starts with the same {limits.group_chars} characters"
        )
        steps.append(Filter(reason, _first_of_group(limits.per_group, limits.group_chars)))
    if limits.first is not None:
        steps.append(Filter(f"after the first {limits.first:,}", _first(limits.first)))
    if excluded:
        left_out = frozenset(excluded)
        steps.append(Filter("excluded by id", lambda prompt: prompt.prompt_id not in left_out))
    return tuple(steps)


def count_chars(prompt: Prompt) -> int:
    """Characters of all turns together, without anything that a template adds."""
    return sum(len(message.content) for message in prompt.messages)


def group_key(prompt: Prompt, n_chars: int) -> str:
    """The first characters of the user turns, one after the other, all white space left out."""
    text = "".join(message.content for message in prompt.messages if message.role == "user")
    return "".join(text.split())[:n_chars]


def _longer(limit: int) -> Callable[[Prompt], bool]:
    return lambda prompt: count_chars(prompt) >= limit


def _shorter(limit: int) -> Callable[[Prompt], bool]:
    return lambda prompt: count_chars(prompt) <= limit


def _within(limit: int, count_tokens: CountTokens | None) -> Callable[[Prompt], bool]:
    if count_tokens is None:
        raise PromptsError(
            f"The limit of {limit:,} tokens needs a target to count them with. Give --target, or switch the limit off."
        )
    count = count_tokens
    return lambda prompt: count(prompt.messages) <= limit


def _unseen() -> Callable[[Prompt], bool]:
    seen: set[str] = set()

    def keep(prompt: Prompt) -> bool:
        new = prompt.prompt_id not in seen
        seen.add(prompt.prompt_id)
        return new

    return keep


def _first_of_group(limit: int, n_chars: int) -> Callable[[Prompt], bool]:
    counts: Counter[str] = Counter()

    def keep(prompt: Prompt) -> bool:
        key = group_key(prompt, n_chars)
        counts[key] += 1
        return counts[key] <= limit

    return keep


def _first(limit: int) -> Callable[[Prompt], bool]:
    kept = 0

    def keep(_prompt: Prompt) -> bool:
        nonlocal kept
        kept += 1
        return kept <= limit

    return keep
