"""What an OpenAI-compatible server answers, read into choices: text, reasoning, token ids where they are told.

Invariant: a shape that is not understood is an error, never an empty response.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from claims.schema import UserError

_TOKEN_ID = re.compile(r"token_id:(\d+)")
_THOUGHT = re.compile(r"\A\s*(?:<think>)?(.*?)</think>\s*(.*)\Z", re.DOTALL)


@dataclass(frozen=True)
class Choice:
    """One response as a server tells it."""

    text: str
    """The answer."""
    reasoning: str | None
    """The chain of thought, or None."""
    token_ids: tuple[int, ...] | None
    """Of the response without the token that ended it, or None when they are not told."""
    finished: bool
    """False when the limit cut it off."""


def read_choices(answer: Mapping[str, object]) -> list[Choice]:
    """The choices of an answer, by their index.

    Raises:
        UserError: The answer has another shape.
    """
    rows = answer.get("choices")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"The server's answer has no choices (found: {', '.join(map(str, answer))}). Check --server.")
    return [_choice(row) for row in sorted(rows, key=lambda row: int(row.get("index", 0)))]


def read_prompt_ids(answer: Mapping[str, object]) -> tuple[int, ...] | None:
    """Token ids of the prompt, where they are told: beside the choices, or on each."""
    rows = answer.get("choices")
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    return _ids(answer.get("prompt_token_ids")) or _ids(first.get("prompt_token_ids"))


def _choice(row: Mapping[str, object]) -> Choice:
    message = row.get("message")
    holder: Mapping[str, object] = message if isinstance(message, dict) else row
    text = holder.get("content") if "content" in holder else holder.get("text")
    if text is not None and not isinstance(text, str):
        raise UserError(f"A choice of the server's answer holds no text: {sorted(row)}. Check --server.")
    reasoning = holder.get("reasoning") or holder.get("reasoning_content")
    answer = text or ""
    if not isinstance(reasoning, str):
        reasoning, answer = _split(answer)
    return Choice(answer, reasoning, _sampled_ids(row), row.get("finish_reason") != "length")


def _split(text: str) -> tuple[str | None, str]:
    """Reasoning and answer of a text in which a server without a reasoning parser left both."""
    match = _THOUGHT.match(text)
    if match:
        return match.group(1).strip("\n"), match.group(2)
    # The limit came before the end of the thought: there is no answer.
    start = text.lstrip()
    return (start.removeprefix("<think>").strip("\n"), "") if start.startswith("<think>") else (None, text)


def _sampled_ids(row: Mapping[str, object]) -> tuple[int, ...] | None:
    ids = _ids(row.get("token_ids")) or _from_logprobs(row.get("logprobs"))
    # The id of the token that ended the response is told, too; a stop text (a string as the reason) has none.
    ended = row.get("finish_reason") == "stop" and not isinstance(row.get("stop_reason"), str)
    return ids[:-1] if ids and ended else ids


def _ids(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not value or not all(isinstance(item, int) for item in value):
        return None
    return tuple(value)


def _from_logprobs(value: object) -> tuple[int, ...] | None:
    """Ids from log-probabilities whose tokens are named by id, as vLLM does on request."""
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list):
        return None
    found = [_TOKEN_ID.fullmatch(str(item.get("token"))) if isinstance(item, dict) else None for item in content]
    return tuple(int(match.group(1)) for match in found if match) if found and all(found) else None
