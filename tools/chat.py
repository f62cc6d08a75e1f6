"""From messages to token ids, and from token ids back to whose words they are.

Invariant: this is the only way from a prompt to token ids, for sampling and for activations alike. A prompt is
rendered once, encoded without the tokenizer's own additions, and has exactly one BOS where the target has one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from claims.schema import Message, Transcript, UserError
from tools.roles import JOINT, Turn, fit_roles
from tools.targets import Target

TEMPLATES = Path(__file__).parent / "chat_templates"
END_OF_THOUGHT = "</think>"
"""The token after which a thinking target answers."""

# Private-use characters that stand for a message's content while the template's own text is measured.
_OPEN, _CLOSE = "\ue000", "\ue001"
_SENTINEL = re.compile(f"{_OPEN}(\\d+){_CLOSE}")

_BYTE_OF = {letter: byte for byte, letter in bytes_to_unicode().items()}


@dataclass(frozen=True)
class Span:
    """A stretch of tokens with one origin."""

    start: int
    """First token."""
    end: int
    """One past the last token."""
    role: str
    """`template`, the role of a message, `reasoning` or `response`."""
    message: int | None
    """Which message of the prompt; None for the template's and the response's tokens."""


def encode_prompt(
    tokenizer: PreTrainedTokenizerFast, target: Target, messages: Sequence[Message], *, thinking: bool = False
) -> tuple[int, ...]:
    """The token ids that the target is given for `messages`, up to where its answer starts.

    Args:
        tokenizer: The target's.
        target: Whose template and role policy apply.
        messages: The prompt.
        thinking: Whether a target that can think before it answers is asked to.

    Raises:
        UserError: The template cannot render these messages, or their text contains the BOS token.
    """
    return _encode(tokenizer, target, render(tokenizer, target, messages, thinking=thinking))[0]


def render(
    tokenizer: PreTrainedTokenizerFast, target: Target, messages: Sequence[Message], *, thinking: bool = False
) -> str:
    """The prompt as text, special tokens spelt out.

    Raises:
        UserError: The template cannot render these messages.
    """
    contents = [message.content for message in messages]
    return _render(tokenizer, target, fit_roles(target, messages).turns, contents, thinking)


def _render(
    tokenizer: PreTrainedTokenizerFast, target: Target, turns: Sequence[Turn], contents: Sequence[str], thinking: bool
) -> str:
    chat = [{"role": turn.role, "content": JOINT.join(contents[i] for i in turn.members)} for turn in turns]
    own = target.chat.template == "tokenizer"
    try:
        rendered = tokenizer.apply_chat_template(
            chat,
            chat_template=None if own else (TEMPLATES / target.chat.template).read_text(encoding="utf-8"),
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=thinking,
        )
    except jinja2.TemplateError as error:
        roles = ", ".join(turn.role for turn in turns)
        raise UserError(
            f"The chat template of {target.name} refuses a prompt with the turns {roles}: {error}. "
            "Rewrite the messages or leave this prompt out."
        ) from error
    return str(rendered)


def _encode(
    tokenizer: PreTrainedTokenizerFast, target: Target, text: str
) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    token_ids = tuple(encoded["input_ids"])
    bos = tokenizer.bos_token_id
    if target.chat.bos and (token_ids[0] != bos or token_ids.count(bos) != 1):
        raise UserError(
            f"A prompt for {target.name} has {token_ids.count(bos)} {tokenizer.bos_token} tokens, expected exactly "
            f"one, in front. Remove the text {tokenizer.bos_token!r} from its messages."
        )
    return token_ids, encoded["offset_mapping"]


def token_texts(tokenizer: PreTrainedTokenizerFast, token_ids: Sequence[int]) -> tuple[str, ...]:
    """One printable text a token: control characters escaped, pieces of a character as their bytes."""
    return tuple(_token_text(tokenizer, token_id) for token_id in token_ids)


def _token_text(tokenizer: PreTrainedTokenizerFast, token_id: int) -> str:
    text = tokenizer.decode([token_id], skip_special_tokens=False, clean_up_tokenization_spaces=False)
    if "\ufffd" in text:
        return "".join(_byte_text(letter) for letter in tokenizer.convert_ids_to_tokens(token_id))
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _byte_text(letter: str) -> str:
    byte = _BYTE_OF.get(letter)
    if byte is None:
        return letter
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"


def check_prefix(tokenizer: PreTrainedTokenizerFast, target: Target, transcript: Transcript) -> int:
    """The number of prompt tokens in a transcript, once they are known to be what the target would be given now.

    Raises:
        UserError: The stored token ids do not start with this prompt's.
    """
    thinking = transcript.reasoning is not None
    prompt = encode_prompt(tokenizer, target, transcript.messages, thinking=thinking)
    stored = transcript.token_ids
    if stored[: len(prompt)] != prompt:
        at = next((i for i, pair in enumerate(zip(prompt, stored, strict=False)) if pair[0] != pair[1]), len(stored))
        found = token_texts(tokenizer, stored[at : at + 1]) or ("nothing",)
        raise UserError(
            f"Transcript {transcript.transcript_id!r} was not rendered as {target.name} renders it now: at position "
            f"{at} its token_ids hold {found[0]!r}, expected {token_texts(tokenizer, prompt[at : at + 1])[0]!r}. "
            "The transcripts are another target's, or the chat template changed: rebuild them."
        )
    return len(prompt)


def spans(tokenizer: PreTrainedTokenizerFast, target: Target, transcript: Transcript) -> tuple[Span, ...]:
    """Whose words a transcript's tokens are: stretches that cover all of them, in order.

    Raises:
        UserError: The stored token ids are not this target's rendering, or the template altered a message.
    """
    n_prompt = check_prefix(tokenizer, target, transcript)
    owners = _prompt_owners(tokenizer, target, transcript)
    owners += _answer_owners(tokenizer, target, transcript, transcript.token_ids[n_prompt:])
    found: list[Span] = []
    for index, (role, message) in enumerate(owners):
        if found and (found[-1].role, found[-1].message) == (role, message):
            found[-1] = Span(found[-1].start, index + 1, role, message)
        else:
            found.append(Span(index, index + 1, role, message))
    return tuple(found)


def token_roles(tokenizer: PreTrainedTokenizerFast, target: Target, transcript: Transcript) -> tuple[str, ...]:
    """The role of each of a transcript's tokens, as in `Span.role`."""
    return tuple(span.role for span in spans(tokenizer, target, transcript) for _ in range(span.start, span.end))


_Owner = tuple[str, int | None]


def _prompt_owners(tokenizer: PreTrainedTokenizerFast, target: Target, transcript: Transcript) -> list[_Owner]:
    thinking = transcript.reasoning is not None
    text = render(tokenizer, target, transcript.messages, thinking=thinking)
    places = _message_places(tokenizer, target, transcript, text, thinking)
    owners: list[_Owner] = []
    for start, end in _encode(tokenizer, target, text)[1]:
        inside = [i for i, (first, last) in places.items() if start < last and end > first and end > start]
        owners.append((transcript.messages[inside[0]].role, inside[0]) if inside else ("template", None))
    return owners


def _message_places(
    tokenizer: PreTrainedTokenizerFast, target: Target, transcript: Transcript, text: str, thinking: bool
) -> dict[int, tuple[int, int]]:
    turns = fit_roles(target, transcript.messages).turns
    marks = [f"{_OPEN}{i}{_CLOSE}" for i in range(len(transcript.messages))]
    pieces = _SENTINEL.split(_render(tokenizer, target, turns, marks, thinking))
    places: dict[int, tuple[int, int]] = {}
    at = len(pieces[0])
    for index, literal in zip(map(int, pieces[1::2]), pieces[2::2], strict=True):
        content = _as_rendered(transcript.messages[index].content, text, at, literal)
        if content is None:
            raise UserError(
                f"Message {index} of transcript {transcript.transcript_id!r} is not in its prompt as written: the chat "
                f"template of {target.name} altered it. Expected its text, trimmed at most. Leave this transcript out."
            )
        places[index] = (at, at + len(content))
        at += len(content) + len(literal)
    return places


def _as_rendered(content: str, text: str, at: int, literal: str) -> str | None:
    # Templates trim; Qwen3's also drops what an earlier answer thought.
    answer = content.rpartition(END_OF_THOUGHT)[2]
    variants = (content, content.lstrip(), content.rstrip(), content.strip(), answer.lstrip("\n"), answer.strip())
    return next((variant for variant in variants if text.startswith(variant + literal, at)), None)


def _answer_owners(
    tokenizer: PreTrainedTokenizerFast, target: Target, transcript: Transcript, answer: Sequence[int]
) -> list[_Owner]:
    if transcript.reasoning is None:
        return [("response", None)] * len(answer)
    closing = tokenizer.convert_tokens_to_ids(END_OF_THOUGHT)
    if closing not in answer and transcript.response:
        raise UserError(
            f"Transcript {transcript.transcript_id!r} has a reasoning, but no {END_OF_THOUGHT} among its response's "
            f"tokens. Expected one, as {target.name} ends its thoughts. Set the reasoning to null or leave the "
            "transcript out."
        )
    # A target that stopped inside its thought has no answer.
    n_reasoning = answer.index(closing) + 1 if closing in answer else len(answer)
    return [("reasoning" if i < n_reasoning else "response", None) for i in range(len(answer))]
