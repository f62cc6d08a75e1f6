"""One turn of a source's conversation as a message, and the rule for where a prompt ends.

Invariant: a row whose structure is wrong is an error that names its place; a row that is well formed but cannot
be a prompt raises `UnusableError`, which the reader counts.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from claims.prompts.record import PromptsError
from claims.schema import Message

NO_USER = "no user turn"
EMPTY_USER = "last user turn is empty"
NOT_TEXT = "a turn holds something other than text"
NOT_UNICODE = "text with half a character (a lone surrogate)"
ODD_ROLE = "a role that is none of system, user, assistant, tool"

UNUSABLE = (NO_USER, EMPTY_USER, NOT_TEXT, NOT_UNICODE, ODD_ROLE)
"""Why a well-formed row is no prompt, in the order in which the counts are printed."""

ROLE_NAMES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}
"""Names of the four roles in the sources."""


class UnusableError(Exception):
    """A well-formed row that is no prompt; the text is one of `UNUSABLE`."""


def read_turns(turns: object, place: str) -> tuple[Message, ...]:
    """The messages of a list of turns, each `{role, content}` or `{from, value}`.

    Tool calls in a field of their own are written after the text, each as JSON between `<tool_call>` marks, because a
    message has no other place for them.

    Raises:
        PromptsError: Not a list of objects with a role and a text.
        UnusableError: A turn is not text, or its role is unknown.
    """
    if not isinstance(turns, list):
        raise PromptsError(f"{place}: expected a list of turns, found {_shown(turns)}.")
    return tuple(_message(turn, f"{place}, turn {number}") for number, turn in enumerate(turns, start=1))


def _message(turn: object, place: str) -> Message:
    if not isinstance(turn, dict):
        raise PromptsError(f"{place}: expected an object with role and content, found {_shown(turn)}.")
    role_field, text_field = ("from", "value") if "from" in turn else ("role", "content")
    if not isinstance(turn.get(role_field), str) or text_field not in turn:
        raise PromptsError(
            f"{place}: found the fields {sorted(turn)}, expected role and content, or from and value. "
            "Give --format if the file has another layout than was detected."
        )
    role = ROLE_NAMES.get(turn[role_field].strip().lower())
    if role is None:
        raise UnusableError(ODD_ROLE)
    return message(role, _text(turn[text_field]), turn.get("tool_calls"))


def message(role: str, text: str, tool_calls: object = None) -> Message:
    """A message of whole Unicode text, its tool calls (a list of objects, or None) written into it.

    Raises:
        UnusableError: The text holds half a surrogate pair, which no tokenizer reads.
    """
    calls = [_call(call) for call in tool_calls] if isinstance(tool_calls, list) else []
    content = "\n".join([text] * bool(text) + calls) if calls else text
    try:
        content.encode("utf-8")
    except UnicodeEncodeError:
        raise UnusableError(NOT_UNICODE) from None
    return Message(role, content)


def _call(call: object) -> str:
    function = call.get("function", call) if isinstance(call, dict) else call
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise UnusableError(NOT_TEXT)
    return tool_call_text(function["name"], function.get("arguments"))


def tool_call_text(name: str, arguments: object) -> str:
    """A call of a tool as text; arguments are an object, or the same as JSON."""
    if isinstance(arguments, str):
        # A model may have written broken JSON: then the text is what it said.
        with suppress(json.JSONDecodeError):
            arguments = json.loads(arguments)
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def _text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join(str(part.get("text", "")) for part in content)
    raise UnusableError(NOT_TEXT)


def end_at_user(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages up to the last user turn: what the target is to answer.

    Raises:
        UnusableError: There is no user turn, or the last one is empty.
    """
    ends = [number for number, message in enumerate(messages, start=1) if message.role == "user"]
    if not ends:
        raise UnusableError(NO_USER)
    if not messages[ends[-1] - 1].content.strip():
        raise UnusableError(EMPTY_USER)
    return messages[: ends[-1]]


def with_tools(messages: tuple[Message, ...], tools: Sequence[Mapping[str, object]]) -> tuple[Message, ...]:
    """The messages with the definitions of the target's tools at the end of the system turn, one JSON object a line.

    A message has no field for them, and a target that cannot see its tools is another experiment.
    """
    if not tools:
        return messages
    lines = "\n".join(json.dumps(tool, ensure_ascii=False, sort_keys=True) for tool in tools)
    note = (
        f"Tools you can call:\n<tools>\n{lines}\n</tools>\n"
        'To call one, write <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>'
    )
    if messages and messages[0].role == "system":
        return (Message("system", f"{messages[0].content}\n\n{note}".lstrip()), *messages[1:])
    return (Message("system", note), *messages)


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:80]
