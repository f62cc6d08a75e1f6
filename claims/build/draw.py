"""Chance that is the same every time."""

import hashlib


def seeded(seed: int, key: str) -> str:
    """A number, as hex, that orders things by chance and the same way every time."""
    return hashlib.sha256(f"{seed}\n{key}".encode()).hexdigest()
