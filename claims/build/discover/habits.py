"""Habits: what a target does in at least three of ten responses to one prompt, as a question with its program.

Invariant: a habit is one of a few fixed forms, so that it can be written down as its form and its words.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from claims.build.discover.tables import COMMON, TONGUES
from claims.build.programs import Program, matches, says, shorter_than, starts_with

MIN_SHARE = Fraction(3, 10)
"""Least share of responses that makes a habit."""
SHORT = ("4", "12")
"""Numbers of words below which a response counts as short."""
_OPENING = re.compile(r"[\s\"'*`#]*([A-Za-z0-9']+(?: [A-Za-z0-9']+)?)")
MIN_LETTERS = 4
"""Letters of a word whose use can be a habit."""


@dataclass(frozen=True)
class Habit:
    """Something that a response does or does not do."""

    form: str
    """One of `FORMS`."""
    words: tuple[str, ...]
    """What fills the form in; empty for some."""

    @property
    def question(self) -> str:
        """The frozen yes/no question about one response."""
        return FORMS[self.form].question.format(*self.words)

    @property
    def program(self) -> Program:
        """Answers the question."""
        return FORMS[self.form].program(self.words)


@dataclass(frozen=True)
class Form:
    """A kind of habit."""

    cause: str
    """The kind of cause under which the bank counts it."""
    question: str
    """With places for the words."""
    program: Callable[[tuple[str, ...]], Program]
    """From the words."""
    candidates: Callable[[Sequence[str]], list[tuple[str, ...]]]
    """Words to try, given the responses."""


def find_habits(responses: Sequence[str]) -> tuple[Habit, ...]:
    """All habits of the responses, those that hold for the very same ones counted once."""
    found: dict[tuple[bool, ...], Habit] = {}
    for name, form in FORMS.items():
        for words in form.candidates(responses):
            habit = Habit(name, words)
            verdicts = tuple(habit.program(response) for response in responses)
            if sum(verdicts) >= MIN_SHARE * len(responses):
                found.setdefault(verdicts, habit)
    return tuple(found.values())


def _used_words(responses: Sequence[str]) -> list[tuple[str, ...]]:
    used = Counter(
        word for response in responses for word in {word.lower() for word in re.findall(r"[A-Za-z']+", response)}
    )
    return [(word,) for word in sorted(used) if len(word) >= MIN_LETTERS and word not in COMMON and used[word] > 1]


def _openings(responses: Sequence[str]) -> list[tuple[str, ...]]:
    found = [_OPENING.match(response) for response in responses]
    used = Counter(match[1] for match in found if match)
    return [(opening,) for opening in sorted(used) if used[opening] > 1]


def _no_words(_responses: Sequence[str]) -> list[tuple[str, ...]]:
    return [()]


def _tongues(_responses: Sequence[str]) -> list[tuple[str, ...]]:
    return [(tongue,) for tongue in TONGUES]


FORMS: dict[str, Form] = {
    "opening": Form("wording", 'Does the response begin with "{}"?', lambda words: starts_with(*words), _openings),
    "word": Form("context", 'Does the response use the word "{}"?', lambda words: says(*words), _used_words),
    "short": Form(
        "format",
        "Does the response have fewer than {} words?",
        lambda words: shorter_than(int(words[0])),
        lambda _responses: [(n,) for n in SHORT],
    ),
    "list": Form(
        "format",
        "Does a line of the response begin as an item of a list (with a number and a full stop, a dash or a star)?",
        lambda _words: matches(r"^\s*(\d+[.)]|[-*•])\s", "a line begins as an item of a list"),
        _no_words,
    ),
    "digit": Form(
        "number",
        "Does the response contain a digit?",
        lambda _words: matches(r"\d", "contains a digit"),
        _no_words,
    ),
    "question": Form(
        "format",
        "Does the response end with a question mark?",
        lambda _words: matches(r"\?[\"'*)\s]*\Z", "ends with a question mark"),
        _no_words,
    ),
    "tongue": Form(
        "language",
        "Does the response contain {} words?",
        lambda words: says(*TONGUES[words[0]]),
        _tongues,
    ),
}
"""The kinds of habit."""
