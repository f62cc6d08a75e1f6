"""Random generators that depend on what they are for, and on nothing else.

Invariant: the same key gives the same draws in every process and on every machine; `hash()` is never used.
"""

import hashlib
import json

import numpy as np


def digest(*key: str | int) -> int:
    """The sha256 of a key as an integer.

    Args:
        key: What the draw is for, such as ("ceiling", 0, "claim-7"). Strings and integers stay distinct.
    """
    text = json.dumps(key, ensure_ascii=True)
    return int.from_bytes(hashlib.sha256(text.encode("ascii")).digest(), "big")


def keyed_rng(*key: str | int) -> np.random.Generator:
    """A generator of its own for a key, see `digest`."""
    return np.random.default_rng(digest(*key))
