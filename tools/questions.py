"""A question about a segment of a transcript: what a predictor sends, checked.

Invariant: `start` and `end` are both part of the segment, as in the token list that a predictor is shown. What is
wrong is answered with what was found, what was expected and what to do.
"""

from transformers import PreTrainedTokenizerFast

from tools.positions import mistake

MAX_CHARS = 1000
"""Longest question."""


def read_segment(start: object, end: object, *, n_tokens: int, limit: int) -> range:
    """The positions of a segment, checked.

    Args:
        start: What the predictor sent as its first token.
        end: As its last.
        n_tokens: Length of the transcript.
        limit: Most tokens.

    Raises:
        ToolError: Not two integers in range, in order, with at most `limit` tokens.
    """
    first, last = _whole("start", start, n_tokens), _whole("end", end, n_tokens)
    if first > last:
        raise mistake(
            f"The segment from start {first} to end {last} is empty.",
            "start at most as large as end (both are part of the segment)",
            f"Write start {last} and end {first}, or the same index twice for one token.",
        )
    if last - first + 1 > limit:
        raise mistake(
            f"The segment from {first} to {last} has {last - first + 1} tokens.",
            f"at most {limit}, the oracle's own limit",
            f"Ask about a part of it, such as {last - limit + 1} to {last}.",
        )
    return range(first, last + 1)


def _whole(name: str, value: object, n_tokens: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        shown = repr(value)
        raise mistake(
            f"{name} is {shown if len(shown) <= 60 else shown[:57] + '...'}, which is not an integer.",
            f"an integer from 0 to {n_tokens - 1}",
            "Use the index printed before a token, not its text.",
        )
    if not 0 <= value < n_tokens:
        raise mistake(
            f"{name} is {value}, which is {'negative' if value < 0 else 'past the last token'}.",
            f"an integer from 0 to {n_tokens - 1}",
            "Count from 0 at the first token; there is no counting from the end.",
        )
    return value


def check_question(question: object, tokenizer: PreTrainedTokenizerFast) -> str:
    """The question without white space around it.

    Raises:
        ToolError: It is no text, empty or too long, or spells a control token.
    """
    if not isinstance(question, str):
        raise mistake(f"question is {type(question).__name__}.", "a text", "Write one question in plain words.")
    if len(question) > MAX_CHARS:
        raise mistake(
            f"question has {len(question)} characters.",
            f"at most {MAX_CHARS}",
            "Ask one short question; the oracle sees the segment's activations anyway.",
        )
    asked = question.strip()
    if not asked:
        raise mistake("question is empty.", "a text", "Write one question in plain words.")
    if any("\ud800" <= letter <= "\udfff" for letter in asked):
        raise mistake("question has half a character in it.", "plain text", "Leave out what is no letter.")
    spelt = next((token for token in control_tokens(tokenizer) if token in asked), None)
    if spelt is not None:
        raise mistake(f"question spells the control token {spelt!r}.", "plain text", "Leave it out.")
    return asked


def control_tokens(tokenizer: PreTrainedTokenizerFast) -> list[str]:
    """Texts that the tokenizer does not read as text."""
    added = tokenizer.added_tokens_decoder.values()
    return [token.content for token in added if token.special and token.content.strip()]
