"""Chat prompts for the training corpus: a small grammar over `words.toml`, several hundred different ones.

Invariant: prompt number `i` depends on `i` and the seed alone, so a longer corpus extends a shorter one.
"""

import hashlib
import string
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from claims.schema import Message

WORDS: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
"""What may stand in each slot of the grammar; entries may have slots themselves."""


def chat_prompts(n: int, *, seed: int = 0) -> list[tuple[Message, ...]]:
    """`n` different prompts: plain questions, with a system message, and second turns.

    Args:
        n: How many.
        seed: Another seed, other prompts.
    """
    prompts: dict[tuple[Message, ...], None] = {}
    number = 0
    while len(prompts) < n:
        prompts.setdefault(_prompt(_rng(f"chat {number}", seed)))
        number += 1
    return list(prompts)


def openers(n: int, *, seed: int = 0) -> list[str]:
    """`n` different beginnings of a text that the target continues."""
    texts: dict[str, None] = {}
    number = 0
    while len(texts) < n:
        rng = _rng(f"opener {number}", seed)
        texts.setdefault(_fill(_choose(WORDS["opener"], rng), rng))
        number += 1
    return list(texts)


def _rng(key: str, seed: int) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(f"{key} {seed}".encode()).digest()[:8], "big"))


def _choose(options: Sequence[str], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]


def _fill(template: str, rng: np.random.Generator) -> str:
    fields = [field for _, field, _, _ in string.Formatter().parse(template) if field]
    return template.format(**{field: _choose(WORDS[field], rng) for field in dict.fromkeys(fields)})


def _prompt(rng: np.random.Generator) -> tuple[Message, ...]:
    kind = rng.random()
    shape: Callable[[np.random.Generator], tuple[Message, ...]]
    if kind < 0.08:
        shape = _small_talk
    elif kind < 0.70:
        shape = _one_turn
    elif kind < 0.88:
        shape = _with_system
    else:
        shape = _second_turn
    return shape(rng)


def _request(rng: np.random.Generator) -> str:
    return _fill(_choose(WORDS["request"], rng), rng)


def _small_talk(rng: np.random.Generator) -> tuple[Message, ...]:
    template = "{small_talk} {mood}" if rng.random() < 0.7 else "{small_talk} I am {name}."
    return (Message("user", _fill(template, rng)),)


def _one_turn(rng: np.random.Generator) -> tuple[Message, ...]:
    return (Message("user", _request(rng)),)


def _with_system(rng: np.random.Generator) -> tuple[Message, ...]:
    return (Message("system", _fill(_choose(WORDS["system"], rng), rng)), Message("user", _request(rng)))


def _second_turn(rng: np.random.Generator) -> tuple[Message, ...]:
    return (
        Message("user", _choose([*WORDS["small_talk"], _request(rng)], rng)),
        Message("assistant", _fill(_choose(WORDS["first_answer"], rng), rng)),
        Message("user", _request(rng)),
    )
