"""Who writes the answers of a tool: the model in this process, or a server elsewhere.

Invariant: a writer is asked in its own thread, and gives an answer for each item, in order.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from tools.owner import ModelThread
from tools.steered import Generated, Injection, Steered, generate


@dataclass(frozen=True)
class Decoding:
    """How answers are drawn."""

    max_tokens: int
    """Longest answer."""
    temperature: float
    """0 takes the most likely token."""
    top_p: float
    """Smallest set that holds this much mass."""
    stop: str | None
    """Text that ends an answer and stays in it."""


class Writer(Protocol):
    """Answers prompts that carry activation vectors."""

    @property
    def thread(self) -> ModelThread:
        """Where `write` is called."""
        ...

    def write(
        self, items: Sequence[Steered], injection: Injection, decoding: Decoding, *, prefix: int
    ) -> list[Generated]:
        """An answer to each item, whose first `prefix` tokens are shared."""
        ...


@dataclass(frozen=True)
class LocalWriter:
    """The model in this process."""

    model: PreTrainedModel
    """A causal language model."""
    tokenizer: PreTrainedTokenizerFast
    """Its own."""
    thread: ModelThread
    """Owns it."""
    writing: Callable[[], AbstractContextManager[None]] = nullcontext
    """Open while it writes."""

    def write(
        self, items: Sequence[Steered], injection: Injection, decoding: Decoding, *, prefix: int
    ) -> list[Generated]:
        """As `tools.steered.generate`."""
        with self.writing():
            return generate(
                self.model,
                self.tokenizer,
                items,
                injection,
                max_tokens=decoding.max_tokens,
                temperature=decoding.temperature,
                top_p=decoding.top_p,
                stop=decoding.stop,
                prefix=prefix,
            )
