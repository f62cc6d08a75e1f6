"""Prompts of several turns, written as alternating texts.

Invariant: a talk begins and ends with the user.
"""

from claims.schema import Message


def talk(*texts: str, system: str | None = None) -> tuple[Message, ...]:
    """User and assistant take turns, the user first and last.

    Raises:
        ValueError: The last turn would be the assistant's.
    """
    if len(texts) % 2 == 0:
        raise ValueError(f"a talk must end with the user, so it has an odd number of texts; found {len(texts)}")
    front = () if system is None else (Message("system", system),)
    return (*front, *(Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)))
