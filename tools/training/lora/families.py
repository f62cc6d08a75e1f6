"""What the oracle is asked in training: families of questions whose answers are known.

Invariant: an answer stands in the passage or follows from how the passage was made; in a family of yes/no questions
both answers are as likely; every option of a question starts with another token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tools.training.lora.made import GRAMMAR
from tools.training.lora.passages import Passage
from tools.training.lora.seeds import choose
from tools.training.lora.words import Reader, Segment, draw_segment

LONGEST = 16
"""Most tokens of a segment in training."""
SPOKEN = 6
"""Tokens of context that an answer tells."""
NATURAL_SHARE = 0.8
"""Share of the questions about context that are certainly about texts that no grammar made."""
ROLES = {"user": "user", "response": "assistant", "assistant": "assistant", "system": "system"}
"""Whose words a chat's tokens are, as an answer says it."""

PHRASES: dict[str, tuple[str, ...]] = {
    "before": ("Which words come right before this?", "What was said just before this?"),
    "inside": ("Which words are these?", "Repeat this text."),
    "after": ("Which words come next?", "How does the text go on?"),
    "mentioned": (
        "Is '{value}' in the text? Answer yes or no.",
        "Does the text mention '{value}'? Answer yes or no.",
    ),
    "topic": ("What is the text about?", "What is the topic?"),
    "language": ("Which language is this?", "What language is the text in?"),
    "sentiment": ("Is the opinion positive or negative?", "What is the sentiment?"),
    "tense": ("Is this about the past or the future?", "Which tense is this, past or future?"),
    "form": ("Is this a question or an order?", "Does the speaker ask a question or give an order?"),
    "role": ("Who says this: user, assistant or system?", "Whose words are these?"),
}
"""How each family asks."""

STATEMENTS: dict[str, tuple[str, ...]] = {
    "topic": ("Is the text about {value}? Answer yes or no.", "True or false as yes or no: the topic is {value}."),
    "language": ("Is the text in {value}? Answer yes or no.", "True or false as yes or no: this is {value}."),
    "sentiment": ("Is the opinion {value}? Answer yes or no.", "True or false as yes or no: the writer is {value}."),
    "tense": ("Is this about the {value}? Answer yes or no.", "True or false as yes or no: it is the {value} tense."),
    "form": ("Is this a {value}? Answer yes or no.", "True or false as yes or no: the speaker uses a {value}."),
    "role": ("Does the {value} say this? Answer yes or no.", "True or false as yes or no: the {value} is speaking."),
}
"""The binary classification of the oracles' paper: one fact, asserted."""

WEIGHTS: dict[str, float] = {
    "before": 0.12,
    "inside": 0.10,
    "after": 0.14,
    "mentioned": 0.14,
    "topic": 0.08,
    "language": 0.05,
    "sentiment": 0.05,
    "tense": 0.04,
    "form": 0.04,
    "role": 0.06,
    "yes/no": 0.18,
}
"""Share of each family in training."""

YES_NO = ("Yes", "No")


@dataclass(frozen=True)
class Question:
    """One question about one segment."""

    family: str
    """A key of `WEIGHTS`."""
    passage: Passage
    """What the target read."""
    segment: Segment
    """Which activations the oracle is given."""
    text: str
    """The question."""
    answer: str
    """What is right."""
    options: tuple[str, ...]
    """What the answer is chosen from, the right one among them."""


class Asker:
    """Asks about passages of one split."""

    def __init__(self, reader: Reader, passages: Sequence[Passage]) -> None:
        """Sort `passages` by what may be asked about them."""
        self.reader = reader
        self._all = [passage for passage in passages if any(span.end - span.start > 2 for span in passage.content)]
        self._natural = [passage for passage in self._all if passage.kind != "made"]
        self._by_kind = {kind: [one for one in self._all if one.kind == kind] for kind in {p.kind for p in self._all}}
        self._chats = [passage for passage in self._all if passage.kind == "chat"]
        self._by_fact = {fact: [passage for passage in self._all if fact in passage.facts] for fact in GRAMMAR}
        self._makers: dict[str, Callable[[np.random.Generator], Question | None]] = {
            **{family: self._context_maker(family) for family in ("before", "inside", "after")},
            "mentioned": self._mentioned,
            "yes/no": self._statement,
            **{fact: self._fact_maker(fact) for fact in (*GRAMMAR, "role")},
        }

    def ask(self, family: str, *, rng: np.random.Generator) -> Question:
        """A question of this family; a passage that does not allow one is passed over."""
        for _ in range(200):
            question = self._makers[family](rng)
            if question is not None:
                return question
        raise AssertionError(f"no passage allows a question of the family {family!r}")

    def _draw(self, passages: Sequence[Passage], *, longest: int, rng: np.random.Generator) -> tuple[Passage, Segment]:
        passage = choose(passages, rng=rng)
        spans = [span for span in passage.content if span.end - span.start > 2]
        if not spans:
            return self._draw(passages, longest=longest, rng=rng)
        span = choose(spans, rng=rng)
        # Facts that a made text was built with are not clear from its first words.
        start = span.start + (span.end - span.start) // 2 if passage.facts else span.start
        return passage, draw_segment(start, span.end, longest=longest, rng=rng)

    def _pool(self, *, rng: np.random.Generator) -> Sequence[Passage]:
        # Made texts repeat their sentences: context is learnt from the others.
        return self._natural if rng.random() < NATURAL_SHARE else self._all

    def _context_maker(self, family: str) -> Callable[[np.random.Generator], Question | None]:
        longest = SPOKEN if family == "inside" else LONGEST

        def draw(rng: np.random.Generator) -> tuple[Passage, Segment]:
            return self._draw(self._pool(rng=rng), longest=longest, rng=rng)

        def answer(passage: Passage, segment: Segment) -> str:
            if family == "before":
                return self.reader.before(passage, segment, SPOKEN)
            if family == "inside":
                return self.reader.inside(passage, segment)
            return self.reader.after(passage, segment, SPOKEN)

        def make(rng: np.random.Generator) -> Question | None:
            passage, segment = draw(rng)
            right = answer(passage, segment)
            # Twelve draws are enough to find three others that start differently.
            others = [answer(*draw(rng)) for _ in range(12)]
            options = [right, *_first_different(right, [other for other in others if other], 3)]
            if not right or len(options) < 4:
                return None
            return Question(family, passage, segment, choose(PHRASES[family], rng=rng), right, tuple(options))

        return make

    def _mentioned(self, rng: np.random.Generator) -> Question | None:
        # The answer first, then a passage that allows it: else words that are everywhere would tip the balance.
        true = bool(rng.random() < 0.5)
        for _ in range(50):
            passage, segment = self._draw(self._pool(rng=rng), longest=LONGEST, rng=rng)
            word = self._word(passage, segment, present=true, rng=rng)
            if word is not None:
                text = choose(PHRASES["mentioned"], rng=rng).format(value=word)
                return Question("mentioned", passage, segment, text, YES_NO[not true], YES_NO)
        return None

    def _word(self, passage: Passage, segment: Segment, *, present: bool, rng: np.random.Generator) -> str | None:
        if present:
            words = self.reader.near(passage, segment)
            return choose(words, rng=rng) if words else None
        # Drawn as the present ones are, from a passage of the same kind, so that the word alone tells little.
        words = self.reader.near(*self._draw(self._by_kind[passage.kind], longest=LONGEST, rng=rng))
        word = choose(words, rng=rng) if words else None
        return word if word is not None and word not in self.reader.whole(passage) else None

    def _known(self, fact: str, *, rng: np.random.Generator) -> tuple[Passage, Segment, str, tuple[str, ...]]:
        if fact == "role":
            passage, segment = self._draw(self._chats, longest=LONGEST, rng=rng)
            span = next(span for span in passage.content if span.start <= segment.start < span.end)
            return passage, segment, ROLES[span.role], tuple(dict.fromkeys(ROLES.values()))
        values = tuple(GRAMMAR[fact])
        passage, segment = self._draw(self._by_fact[fact], longest=LONGEST, rng=rng)
        return passage, segment, passage.facts[fact], values

    def _fact_maker(self, fact: str) -> Callable[[np.random.Generator], Question | None]:
        def make(rng: np.random.Generator) -> Question:
            passage, segment, value, values = self._known(fact, rng=rng)
            return Question(fact, passage, segment, choose(PHRASES[fact], rng=rng), value, values)

        return make

    def _statement(self, rng: np.random.Generator) -> Question:
        fact = choose(tuple(STATEMENTS), rng=rng)
        passage, segment, value, values = self._known(fact, rng=rng)
        true = bool(rng.random() < 0.5)
        stated = value if true else choose([other for other in values if other != value], rng=rng)
        text = choose(STATEMENTS[fact], rng=rng).format(value=stated)
        return Question("yes/no", passage, segment, text, YES_NO[not true], YES_NO)


def _first_different(right: str, others: Sequence[str], n: int) -> list[str]:
    # By first word here; by first token when they are encoded, where fewer may be left.
    found: dict[str, str] = {right.split(" ")[0].lower() if right else "": right}
    for other in others:
        found.setdefault(other.split(" ")[0].lower(), other)
    return list(found.values())[1 : n + 1]
