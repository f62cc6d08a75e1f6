"""A random generator for every item, from the item's key.

Invariant: item number `i` is the same however many items there are and in whatever order they are made.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

_Item = TypeVar("_Item")


def number(key: str) -> int:
    """A number of 64 bits that depends on `key` alone."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")


def generator(key: str) -> np.random.Generator:
    """The generator of the item called `key`."""
    return np.random.default_rng(number(key))


def choose(options: Sequence[_Item], *, rng: np.random.Generator) -> _Item:
    """One of `options`, all as likely."""
    return options[int(rng.integers(len(options)))]
