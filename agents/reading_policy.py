"""Where the local predictor looks: a fixed rule, a function of what the message shows and nothing else.

The rule, for n positions, masked tokens left out throughout:

1. the last token before the response, where the target is about to answer;
2. the first and the last token of the response;
3. the rest, spread evenly over the tokens of the prompt that the INTERVENTION names: those of passages that it quotes
   and the prompt contains; failing that, those of words of four letters or more that both have;
4. where that is too few, the remainder spread evenly over the other tokens of the prompt's messages, then over those of
   the response.

Of a tool that is asked about segments it asks, in this order and as far as the budget goes:

1. what the text is about, where the INTERVENTION names tokens of the prompt (else at its beginning);
2. which words come next, about the last tokens before the response;
3. the claim's BEHAVIOR, as a yes/no question, there too: last, for small oracles answer such questions by rote.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agents.served import Token, TokenList

_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|'([^'\n]{2,})'(?!\w)|‘([^’\n]+)’|`([^`\n]+)`")
_NOT_PROMPT = ("response", "reasoning", "template")
_WORD = re.compile(r"[^\W\d_]{4,}")

QUESTION_CHARS = 300
"""A longer BEHAVIOR is cut before it is asked."""
SEGMENT = 16
"""Most tokens of a segment where the tool's description states no limit."""


@dataclass(frozen=True)
class SegmentQuestion:
    """One question about one segment."""

    question: str
    """In plain language."""
    start: int
    """First position."""
    end: int
    """Last position, part of the segment."""


def intervention_of(claim: str) -> str:
    """The INTERVENTION part of a claim's text; the whole text where the template has no such part."""
    return _part("INTERVENTION", claim) or claim


def _part(name: str, claim: str) -> str | None:
    match = re.search(rf"^{name}[^:\n]*:(.*?)(?=^[A-Z]{{5,}}[^:\n]*:|\Z)", claim, re.MULTILINE | re.DOTALL)
    return match.group(1).strip() if match else None


def spread(pool: Sequence[int], count: int) -> list[int]:
    """`count` entries of `pool`, evenly spaced from its first to its last; all of it where it is shorter."""
    if count <= 0:
        return []
    if count >= len(pool):
        return list(pool)
    if count == 1:
        return [pool[len(pool) // 2]]
    return [pool[round(step * (len(pool) - 1) / (count - 1))] for step in range(count)]


def _covering(tokens: Sequence[Token], passages: Collection[str]) -> list[int]:
    """Indices of the tokens that overlap any of the passages."""
    text, starts = "", []
    for token in tokens:
        starts.append(len(text))
        text += token.text.casefold()
    ends = [*starts[1:], len(text)]
    covered: set[int] = set()
    for passage in passages:
        for found in re.finditer(re.escape(passage.casefold()), text):
            covered |= {
                tokens[i].index for i, end in enumerate(ends) if starts[i] < found.end() and end > found.start()
            }
    return sorted(covered)


def named_positions(prompt: Sequence[Token], intervention: str) -> list[int]:
    """Positions of the prompt that the intervention names, by quotation or else by shared words."""
    quoted = {next(filter(None, groups)).strip() for groups in _QUOTED.findall(intervention)} - {""}
    return _covering(prompt, quoted) or _covering(prompt, set(_WORD.findall(intervention)))


def choose_positions(listed: TokenList, claim: str, count: int) -> list[int]:
    """At most `count` positions, in ascending order, by the rule at the top of this module."""
    masked = set(listed.masked)
    readable = [token for token in listed.tokens if token.index not in masked]
    response = [token.index for token in readable if token.role == "response"]
    prompt = [token for token in readable if token.role not in _NOT_PROMPT]
    before = [token.index for token in readable if response and token.index < response[0]]
    chosen = list(dict.fromkeys([*before[-1:], *response[:1], *response[-1:]]))[:count]
    for pool in (named_positions(prompt, intervention_of(claim)), [token.index for token in prompt], response):
        chosen += spread([index for index in pool if index not in chosen], count - len(chosen))
    return sorted(chosen)


def longest_segment(description: str) -> int:
    """The most tokens of a segment that a tool's description states."""
    stated = re.search(r"both included, at most (\d+) tokens?", description)
    return int(stated.group(1)) if stated else SEGMENT


def choose_questions(listed: TokenList, claim: str, count: int, longest: int) -> list[SegmentQuestion]:
    """At most `count` questions about segments of at most `longest` tokens, by the rule at the top of this module."""
    masked = set(listed.masked)
    readable = [token for token in listed.tokens if token.index not in masked]
    answer = next((token.index for token in listed.tokens if token.role in ("response", "reasoning")), None)
    before = [token.index for token in readable if answer is None or token.index < answer]
    prompt = [token for token in readable if token.role not in _NOT_PROMPT]
    if not before:
        return []
    edge = (max(before[-1] - longest + 1, before[0]), before[-1])
    named = named_positions(prompt, intervention_of(claim)) or [token.index for token in prompt] or before
    theme = (named[0], min(named[0] + longest - 1, before[-1]))
    behaviour = " ".join((_part("BEHAVIOR", claim) or claim).split())[:QUESTION_CHARS]
    planned = [
        SegmentQuestion("What is the text about?", *theme),
        SegmentQuestion("Which words come next?", *edge),
        SegmentQuestion(f"{behaviour} Answer yes or no.", *edge),
    ]
    return planned[:count]
