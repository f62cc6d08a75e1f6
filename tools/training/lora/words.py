"""What stands where in a passage: words before, inside and after a stretch of tokens.

Invariant: texts have single spaces and no line breaks, so that an answer is one line in every chat format.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerFast

from tools.chat import token_texts
from tools.training.lora.passages import Passage

NEAR = 24
"""A word is in the text of a segment when it is among so many tokens up to the segment's end."""
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{5,}(?![^\W_])")


@dataclass(frozen=True)
class Segment:
    """A stretch of a passage's tokens."""

    start: int
    """First token."""
    end: int
    """One past the last token."""


def draw_segment(start: int, end: int, *, longest: int, rng: np.random.Generator) -> Segment:
    """A segment inside `start` to `end`: a third are one token, the longest have `longest`."""
    kind = rng.random()
    low, high = (1, 1) if kind < 0.35 else (2, 4) if kind < 0.6 else (5, 16)
    length = min(int(rng.integers(low, high + 1)), longest, end - start)
    first = int(rng.integers(start, end - length + 1))
    return Segment(first, first + length)


class Reader:
    """Reads passages as text."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        """Keep the target's tokenizer."""
        self._tokenizer = tokenizer

    def text(self, token_ids: Sequence[int]) -> str:
        """The words of `token_ids`; pieces of a character are left out."""
        text = self._tokenizer.decode(list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return " ".join(text.replace("\ufffd", "").split())

    def token(self, token_id: int) -> str:
        """One token, as the tools show it."""
        return token_texts(self._tokenizer, [token_id])[0].strip()

    def before(self, passage: Passage, segment: Segment, n: int) -> str:
        """The last `n` tokens' words in front of the segment; where there are none, an empty text."""
        start = max(int(passage.token_ids[0] == self._tokenizer.bos_token_id), segment.start - n)
        return self.text(passage.token_ids[start : segment.start])

    def inside(self, passage: Passage, segment: Segment) -> str:
        """The segment's own words."""
        return self.text(passage.token_ids[segment.start : segment.end])

    def after(self, passage: Passage, segment: Segment, n: int) -> str:
        """The words of the next `n` tokens."""
        return self.text(passage.token_ids[segment.end : segment.end + n])

    def near(self, passage: Passage, segment: Segment) -> list[str]:
        """The different longer words among the `NEAR` tokens up to the segment's end, in lower case, as they come."""
        span = next(span for span in passage.content if span.start < segment.end <= span.end)
        start = max(span.start, segment.end - NEAR)
        text = self.text(passage.token_ids[start : segment.end])
        found = [match.group().lower() for match in _WORD.finditer(text)]
        # The first and the last may be cut in the middle.
        inner = found[int(start > span.start) : len(found) - int(segment.end < span.end)]
        return list(dict.fromkeys(inner))

    def whole(self, passage: Passage) -> str:
        """All of it, in lower case."""
        return self.text(passage.token_ids).lower()
