"""Which of 32 contexts a description comes from, when all of them end in the same token.

Invariant: a description is compared with contexts by the words they share, rare ones counting more; nothing that was
trained takes part. Contexts are places of held-out passages.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tools.training.lora.describing import Place, plain_words
from tools.training.lora.passages import Passage
from tools.training.lora.seeds import generator

CONTEXTS = 32
"""Contexts that a description is looked for among."""
APART = 24
"""A context from the same text is at least so many tokens away."""


@dataclass(frozen=True)
class Trial:
    """One description's contexts."""

    place: Place
    """Where the activation is from."""
    others: tuple[Place, ...]
    """Other places with the same token."""


def trials(passages: Sequence[Passage], n: int, *, seed: int) -> list[Trial]:
    """At most `n` places whose token stands in enough others, spread over such tokens.

    Made texts are left out, which share whole sentences, and so are tokens of the chat template.
    """
    by_token: dict[int, list[Place]] = defaultdict(list)
    for passage in passages:
        for position in range(1, len(passage.token_ids) if passage.kind != "made" else 0):
            place = Place(passage, position)
            if place.role != "template":
                by_token[place.token_id].append(place)
    shared = [places for _, places in sorted(by_token.items()) if len(places) >= CONTEXTS * 5 // 4]
    found = [_trial(shared[i % len(shared)], generator(f"trial {i} {seed}")) for i in range(n if shared else 0)]
    return [trial for trial in found if len(trial.others) == CONTEXTS - 1]


def _trial(places: Sequence[Place], rng: np.random.Generator) -> Trial:
    first, *rest = (places[i] for i in rng.permutation(len(places)))
    others = [place for place in rest if place.passage != first.passage or abs(place.position - first.position) > APART]
    return Trial(first, tuple(others[: CONTEXTS - 1]))


@dataclass(frozen=True)
class Retrieval:
    """How well descriptions find their contexts."""

    top1: float
    """Share found first; ties count as a share of one."""
    rank: float
    """Mean rank, 1 is best, (contexts + 1) / 2 is chance."""
    n: int
    """Descriptions."""


def retrieve(descriptions: Sequence[str], contexts: Sequence[Sequence[str]]) -> Retrieval:
    """Look for each description among its contexts, the first of which is the right one."""
    hits, ranks = 0.0, 0.0
    for description, texts in zip(descriptions, contexts, strict=True):
        scores = _scores(description, texts)
        above = sum(score > scores[0] for score in scores)
        level = sum(score == scores[0] for score in scores)
        hits += 1 / level if above == 0 else 0.0
        ranks += above + (level + 1) / 2
    n = len(descriptions)
    return Retrieval(hits / n if n else math.nan, ranks / n if n else math.nan, n)


def _scores(description: str, texts: Sequence[str]) -> list[float]:
    bags = [set(plain_words(text)) for text in texts]
    frequency = Counter(word for bag in bags for word in bag)
    said = set(plain_words(description))
    weight = {word: math.log(len(texts) / frequency[word]) for word in said if word in frequency}
    return [sum(value for word, value in weight.items() if word in bag) for bag in bags]
