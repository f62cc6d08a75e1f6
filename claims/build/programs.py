"""Checked programs: small, readable yes/no tests of one response, the classifiers of the local banks.

Invariant: a program looks at the response only, is deterministic, and says in words what it tests, so that
its verdicts can be compared with a person's reading.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A yes/no test of one response; combine with `&`, `|` and `~`."""

    text: str
    """The test in words, kept with the bank."""
    test: Callable[[str], bool]
    """True when the response shows the behaviour."""

    def __call__(self, response: str) -> bool:
        """Verdict on one response."""
        return self.test(response)

    def __and__(self, other: "Program") -> "Program":
        """Both hold."""
        return Program(f"({self.text} and {other.text})", lambda response: self(response) and other(response))

    def __or__(self, other: "Program") -> "Program":
        """At least one holds."""
        return Program(f"({self.text} or {other.text})", lambda response: self(response) or other(response))

    def __invert__(self) -> "Program":
        """The opposite."""
        return Program(f"not {self.text}", lambda response: not self(response))


def _word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)


def says(*words: str) -> Program:
    """Any of `words` appears as a whole word or phrase, in any case."""
    patterns = [_word(word) for word in words]
    return Program(f"says any of {list(words)}", lambda response: any(p.search(response) for p in patterns))


def matches(pattern: str, in_words: str) -> Program:
    """The regular expression is found anywhere (case ignored, multi-line); `in_words` says what it means."""
    compiled = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    return Program(in_words, lambda response: compiled.search(response) is not None)


def starts_with(*openings: str) -> Program:
    """The response begins with any of `openings` as whole words, leading spaces, quotes and stars ignored."""
    patterns = [re.compile(rf"{re.escape(opening)}(?!\w)", re.IGNORECASE) for opening in openings]

    def test(response: str) -> bool:
        text = response.lstrip(" \t\n\"'*`#")
        return any(pattern.match(text) for pattern in patterns)

    return Program(f"starts with any of {list(openings)}", test)


def says_first(word: str, before: str) -> Program:
    """`word` appears, and no later than the first `before` (which may be absent)."""
    first, second = _word(word), _word(before)

    def test(response: str) -> bool:
        found, other = first.search(response), second.search(response)
        return found is not None and (other is None or found.start() < other.start())

    return Program(f"says {word!r} before any {before!r}", test)


def shorter_than(n_words: int) -> Program:
    """The response has fewer than `n_words` words separated by white space."""
    return Program(f"has fewer than {n_words} words", lambda response: len(response.split()) < n_words)
