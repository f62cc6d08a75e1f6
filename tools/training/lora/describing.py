"""What the verbaliser learns to say of an activation: its token, the words around it, and what kind of text it is.

Invariant: a description is made from the text alone, by a template; the words that follow are those that followed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tools.training.lora.families import ROLES
from tools.training.lora.passages import Passage
from tools.training.lora.seeds import choose
from tools.training.lora.words import Reader, Segment

BEFORE, AFTER = 8, 4
"""Tokens before and after that a description tells."""
NATURAL_SHARE = 0.75
"""Share of the places that are certainly in texts that no grammar made."""
TEMPLATE_SHARE = 0.15
"""Share of the places in chats that are tokens of the chat template."""

_KINDS = {"written": "A text", "package": "Documentation", "made": "A short text"}
_FACTS = {
    "topic": "about {}",
    "language": "in {}",
    "sentiment": "a {} opinion",
    "tense": "about the {}",
    "form": "form: {}",
}


@dataclass(frozen=True)
class Place:
    """One token of a passage."""

    passage: Passage
    """What the target read."""
    position: int
    """Index into its tokens."""

    @property
    def token_id(self) -> int:
        """The token there."""
        return self.passage.token_ids[self.position]

    @property
    def role(self) -> str:
        """Whose token it is, as in `tools.chat.spans`; `text` outside chats."""
        return next(span.role for span in self.passage.spans if span.start <= self.position < span.end)


def draw_place(passages: Sequence[Passage], *, rng: np.random.Generator) -> Place:
    """A token of one of `passages`, never the first."""
    natural = [passage for passage in passages if passage.kind != "made"]
    passage = choose(natural if natural and rng.random() < NATURAL_SHARE else passages, rng=rng)
    template = rng.random() < TEMPLATE_SHARE
    spans = [span for span in passage.spans if (span.role == "template") == template] or passage.spans
    allowed = [position for span in spans for position in range(max(1, span.start), span.end)]
    if not allowed:
        return draw_place(passages, rng=rng)
    return Place(passage, choose(allowed, rng=rng))


class Describer:
    """Writes descriptions."""

    def __init__(self, reader: Reader) -> None:
        """Read passages through `reader`."""
        self._reader = reader

    def describe(self, place: Place) -> str:
        """The description of the activation at `place`, in tags."""
        here = Segment(place.position, place.position + 1)
        token = self._reader.token(place.token_id)
        before = self._reader.before(place.passage, here, BEFORE)
        after = self._reader.after(place.passage, here, AFTER)
        return f'<explanation>"{token}" after "{before}", then "{after}". {self._kind(place)}.</explanation>'

    def context(self, place: Place) -> str:
        """More of the text around `place` than a description tells, and the kind."""
        here = Segment(place.position, place.position + 1)
        near = (
            self._reader.before(place.passage, here, 3 * BEFORE),
            self._reader.token(place.token_id),
            self._reader.after(place.passage, here, 2 * AFTER),
            self._kind(place),
        )
        return " ".join(near)

    def _kind(self, place: Place) -> str:
        kind = _KINDS[place.passage.kind] if place.role == "text" else f"Chat, {ROLES.get(place.role, 'template')}"
        return ", ".join([kind, *(_FACTS[fact].format(value) for fact, value in place.passage.facts.items())])


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, without tags."""
    return [match.group().lower() for match in re.finditer(r"\w+", re.sub(r"</?explanation>", " ", text))]
