"""Short texts whose topic, language, sentiment, tense or form is known, because a grammar over `made.toml` made them.

Invariant: held-out texts end their sentences in words that no training text has.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.training.lora.seeds import choose, generator, number

GRAMMAR: dict[str, dict[str, dict[str, list[str]]]] = tomllib.loads(
    (Path(__file__).parent / "made.toml").read_text(encoding="utf-8")
)
"""Fact, then value, then the words of sentences for which the fact has that value."""
HELD_OUT_ENDINGS = 2
"""Endings of each value that only held-out texts use."""
HELD_OUT_EVERY = 5
"""One text in so many is held out."""


@dataclass(frozen=True)
class MadeText:
    """One text and what is known about it."""

    text: str
    """One to three sentences."""
    fact: str
    """`topic`, `language`, `sentiment`, `tense` or `form`."""
    value: str
    """Such as `cooking`."""
    held_out: bool
    """Whether it is kept from training."""


def made_texts(n: int, *, seed: int = 0) -> list[MadeText]:
    """`n` different texts, values of every fact equally often.

    Args:
        n: How many.
        seed: Another seed, other texts.
    """
    kinds = [(fact, value) for fact, values in GRAMMAR.items() for value in values]
    texts: dict[str, MadeText] = {}
    index = 0
    while len(texts) < n:
        text = _text(index, *kinds[index % len(kinds)], seed)
        texts.setdefault(text.text, text)
        index += 1
    return list(texts.values())


def endings(fact: str, value: str, *, held_out: bool) -> list[str]:
    """The endings that training texts have, or those that held-out texts have."""
    ordered = sorted(GRAMMAR[fact][value]["ending"], key=number)
    return ordered[:HELD_OUT_ENDINGS] if held_out else ordered[HELD_OUT_ENDINGS:]


def _text(index: int, fact: str, value: str, seed: int) -> MadeText:
    key = f"made {index} {seed}"
    rng = generator(key)
    held_out = number(f"{key} held out") % HELD_OUT_EVERY == 0
    chosen = rng.permutation(endings(fact, value, held_out=held_out))[: int(rng.integers(1, 4))]
    mark = "?" if value == "question" else "."
    subjects = GRAMMAR[fact][value]["subject"]
    sentences = [f"{choose(subjects, rng=rng)} {ending}{mark}" for ending in chosen]
    return MadeText(" ".join(sentences), fact, value, held_out)
