"""The clue that needs no judge: how many of an edit's own words a tool says.

Invariant: a word counts once, in any form that begins alike; words that every edit holds count nowhere.
"""

import re

STEM = 5
"""Words that agree in this many first letters are taken for forms of one word."""
_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
_LISTED = """
the and for are was were has have had not but with from that this these those its his her their our your you they
them she him who whom which what when where why how all any both each few more most other some such than too very
can will just into onto over under after before between about above below out off again then once here there only
own same while because until during does did doing being been would should could also instead
prompt message user assistant system response question sentence text word words phrase line edit edited change
changed changes remove removed removes delete deleted deletes replace replaced replaces add added adds insert
inserted swap swapped rewrite rewritten
"""
_COMMON = frozenset(_LISTED.split())
"""Function words, and the words in which edits are described."""


def content_words(text: str) -> frozenset[str]:
    """What a text is about, as lower-case stems."""
    return frozenset(_stem(word) for word in _WORD.findall(text.casefold()) if word not in _COMMON)


def _stem(word: str) -> str:
    return word[:STEM]


def lexical_share(intervention: str, *outputs: str) -> float:
    """Share of the content words of an edit that the outputs hold, together; 0 where the edit has none.

    Args:
        intervention: The edit, in words.
        outputs: What a tool said.
    """
    wanted = content_words(intervention)
    said = frozenset().union(*map(content_words, outputs))
    return len(wanted & said) / len(wanted) if wanted else 0.0
