"""Responses of the target, from whichever engine runs it.

Invariant: response `index` of a prompt under a seed is drawn once and kept; asking again, or for more, pays only for
what is missing. A prompt that the target cannot take is refused before anything is drawn.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

from claims.schema import Message

Messages = tuple[Message, ...]
"""A prompt as the target gets it."""


class PromptRefusedError(Exception):
    """A prompt that the target cannot take: its roles or its length; the text says why."""


@dataclass(frozen=True)
class Response:
    """One response of the target."""

    text: str
    """The answer."""
    reasoning: str | None
    """The visible chain of thought of a thinking target, else None."""
    token_ids: tuple[int, ...]
    """Of the whole response, reasoning included; empty when the engine does not tell them."""
    finished: bool
    """False when the limit cut it off."""
    sampled_ids: bool = True
    """False when the ids were not those sampled but made from the text afterwards."""

    def as_row(self) -> dict[str, object]:
        """JSON-ready."""
        return {**asdict(self), "token_ids": list(self.token_ids)}


class Engine(Protocol):
    """What the pipeline needs of a target."""

    def identity(self) -> Mapping[str, object]:
        """What the responses depend on besides prompt and seed, for the card."""
        ...

    def check(self, prompt: Messages) -> None:
        """Raise `PromptRefusedError` when the target cannot take the prompt."""
        ...

    async def draw(self, prompt: Messages, n: int, seed: int) -> tuple[Response, ...]:
        """The first `n` responses of the prompt under `seed`."""
        ...

    async def prompt_ids(self, prompt: Messages) -> tuple[int, ...]:
        """Token ids of the prompt as the target saw it; known for every prompt that was drawn."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


Encode = Callable[[Messages, str], tuple[int, ...]]
"""Token ids of a prompt and of a response after it."""


def row_seed(key: str, index: int, seed: int) -> int:
    """The seed of one response of one prompt: 31 bits, which every server takes."""
    digest = hashlib.sha256(json.dumps([key, index, seed]).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
