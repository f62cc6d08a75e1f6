"""From prompts to investigations: sample, find habits, make edits.

Invariant: an edit that takes the habit's own words out of the prompt is no experiment on that habit and is left out.
"""

import logging
import re
from collections.abc import Sequence

from claims.build.discover.found import Found
from claims.build.discover.habits import Habit, find_habits
from claims.build.discover.vary import variations
from claims.build.draw import seeded
from claims.build.sampler import Sampler
from claims.build.spec import Edit
from claims.prompts.record import Prompt
from claims.schema import Message

logger = logging.getLogger(__name__)

N_RESPONSES = 10
"""Responses that habits are found in."""
SEED_AHEAD = 2
"""Habits are found under the bank's seed plus this: the labels use the seed, the second sampling the next one."""
PER_PROMPT = 2
"""Habits of one prompt at most."""
MIN_EDITS = 2
"""Fewest edits worth an investigation."""


def discover(sampler: Sampler, prompts: Sequence[Prompt], seed: int) -> list[Found]:
    """Investigations of the prompts: at most `PER_PROMPT` habits each, drawn by the seed.

    Args:
        sampler: Of the target.
        prompts: To look at.
        seed: Of the bank that will be built.
    """
    drawn = sampler.draw([prompt.messages for prompt in prompts], N_RESPONSES, seed + SEED_AHEAD)
    found = []
    for prompt in prompts:
        responses = [sample.text for sample in drawn[prompt.messages]]
        edits = variations(prompt.messages, seed=seed)
        for habit in _chosen(find_habits(responses), prompt.prompt_id, seed):
            fair = tuple(edit for edit in edits if not _obvious(habit, prompt.messages, edit))
            n_yes = sum(map(habit.program, responses))
            if len(fair) >= MIN_EDITS:
                found.append(
                    Found(
                        prompt_id=prompt.prompt_id,
                        messages=prompt.messages,
                        habit=habit,
                        edits=fair,
                        n_yes=n_yes,
                        n=len(responses),
                        seed=seed + SEED_AHEAD,
                        source=prompt.source,
                    )
                )
    logger.info("%d habits of %d prompts", len(found), len({one.prompt_id for one in found}))
    return found


def _chosen(habits: Sequence[Habit], prompt_id: str, seed: int) -> list[Habit]:
    """One habit a form, and of the forms some."""
    order = sorted(habits, key=lambda one: seeded(seed, f"{prompt_id}\n{one.form}\n{' '.join(one.words)}"))
    firsts = {one.form: one for one in reversed(order)}
    return [one for one in order if firsts[one.form] is one][:PER_PROMPT]


def _obvious(habit: Habit, prompt: tuple[Message, ...], edit: Edit) -> bool:
    """Whether the edit removes from the prompt a word that the habit is about."""
    words = {word for text in habit.words for word in _words(text)}
    return not words.isdisjoint(_all_words(prompt) - _all_words(edit.messages))


def _all_words(prompt: tuple[Message, ...]) -> set[str]:
    return {word for message in prompt for word in _words(message.content)}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
