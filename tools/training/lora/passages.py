"""The texts that items are made from: what the target wrote, prose of packages, and made texts with known facts.

Invariant: whether a passage is held out is fixed by sha256 of its document; chats whose user says something so short
that others may ask it too are left out, so that no claim's prompt is among them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from claims.schema import Message, Transcript
from tools.chat import Span, encode_prompt, spans
from tools.model import Loaded
from tools.training.corpus import Document
from tools.training.lora.made import MadeText, made_texts
from tools.training.lora.seeds import number
from tools.training.prompts import chat_prompts

MIN_PROMPT_CHARS = 40
"""A chat whose user says less than this is a stock question, which a claim's prompt may ask too."""
HELD_OUT_EVERY = 10
"""One document in so many is held out; among them are those that the autoencoder's training holds out."""
MAX_TOKENS = 256
"""Passages are cut to this length."""


@dataclass(frozen=True)
class Passage:
    """One text, as the target reads it."""

    name: str
    """Unique."""
    kind: str
    """`chat`, `written`, `package` or `made`."""
    token_ids: tuple[int, ...]
    """With BOS where the target has one, and with the chat template where it is a chat."""
    spans: tuple[Span, ...]
    """Its tokens by role, as in `tools.chat.spans`; `text` outside chats."""
    facts: Mapping[str, str]
    """What is known of it, such as `language`."""
    held_out: bool
    """Whether it is kept from training."""

    @property
    def content(self) -> tuple[Span, ...]:
        """The spans that are somebody's words."""
        return tuple(span for span in self.spans if span.role != "template")


@dataclass(frozen=True)
class Size:
    """How many passages of each kind, at most."""

    chats: int
    """Prompts that the target answered."""
    written: int
    """Texts that the target continued."""
    package: int
    """Pieces of package prose."""
    made: int
    """Texts with known facts."""


def passages(loaded: Loaded, documents: Sequence[Document], size: Size, *, seed: int = 0) -> list[Passage]:
    """Every passage, in a fixed order.

    Args:
        loaded: The target.
        documents: Its corpus, as `tools.training.corpus.build_corpus` gives it.
        size: How many of each kind.
        seed: Of the chat prompts and the made texts.
    """
    n_chats = sum(document.kind == "chat" for document in documents)
    prompts = chat_prompts(n_chats, seed=seed)
    found = [passage for document in documents if (passage := _from_document(loaded, document, prompts)) is not None]
    room = Counter({"chat": size.chats, "written": size.written, "package": size.package})
    kept = list(_first(found, room))
    return [*kept, *(_from_made(loaded, text) for text in made_texts(size.made, seed=seed))]


def _first(found: Iterable[Passage], room: Counter[str]) -> Iterable[Passage]:
    for passage in found:
        if room[passage.kind] > 0:
            room[passage.kind] -= 1
            yield passage


def _from_document(loaded: Loaded, document: Document, prompts: Sequence[tuple[Message, ...]]) -> Passage | None:
    messages = prompts[int(document.name.split()[1])] if document.kind == "chat" else ()
    if any(message.role == "user" and len(message.content) < MIN_PROMPT_CHARS for message in messages):
        return None
    length = min(len(document.token_ids), MAX_TOKENS)
    owned = _owned(loaded, messages, document.token_ids) if messages else _plain(loaded, len(document.token_ids))
    return Passage(
        name=document.name,
        kind=document.kind,
        token_ids=document.token_ids[:length],
        spans=tuple(replace(span, end=min(span.end, length)) for span in owned if span.start < length),
        facts={},
        held_out=number(document.name.partition("#")[0]) % HELD_OUT_EVERY == 0,
    )


def _owned(loaded: Loaded, messages: tuple[Message, ...], token_ids: tuple[int, ...]) -> tuple[Span, ...]:
    transcript = Transcript("corpus", messages, None, "", token_ids, "corpus")
    return spans(loaded.tokenizer, loaded.target, transcript)


def _plain(loaded: Loaded, length: int) -> tuple[Span, ...]:
    start = int(loaded.target.chat.bos)
    return (Span(start, length, "text", None),)


def _from_made(loaded: Loaded, made: MadeText) -> Passage:
    # Half of them as a user's message: what is learnt must hold inside a chat, too.
    in_chat = number(f"{made.text} in a chat") % 2 == 0
    if in_chat:
        messages = (Message("user", made.text),)
        token_ids = encode_prompt(loaded.tokenizer, loaded.target, messages)
        owned = _owned(loaded, messages, token_ids)
    else:
        start = (loaded.tokenizer.bos_token_id,) if loaded.target.chat.bos else ()
        token_ids = (*start, *loaded.tokenizer(made.text, add_special_tokens=False)["input_ids"])
        owned = _plain(loaded, len(token_ids))
    return Passage(f"made {made.text}", "made", token_ids, owned, {made.fact: made.value}, made.held_out)
