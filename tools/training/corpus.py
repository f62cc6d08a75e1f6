"""The text that a sparse autoencoder is fitted to: chats and prose that the target wrote, and prose of packages.

Invariant: documents have a fixed order and fixed names; whether one is held out depends on its name alone. What the
target wrote is kept in batches, so that a run that was killed goes on where it was.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from claims.schema import Message, read_rows
from tools.chat import encode_prompt
from tools.model import Loaded
from tools.sampling import Request, sample
from tools.targets import Chat, Sampling
from tools.training.package_texts import package_texts
from tools.training.prompts import WORDS, chat_prompts, openers
from tools.weights import cache_root

HELD_OUT_EVERY = 20
"""One document in so many is held out."""
MAX_PIECES = 3
"""Pieces of one text, from its beginning."""
BATCH = 128
"""Documents that the target writes between two savings."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Plan:
    """How much text of each kind."""

    n_chats: int
    """Prompts that the target answers."""
    chat_tokens: int
    """Longest answer."""
    n_written: int
    """Beginnings that the target continues, without a chat around them."""
    written_tokens: int
    """Longest continuation."""
    package_tokens: int
    """Tokens of package prose, at least."""
    context: int
    """Longest piece of package prose; longer texts are cut into several."""
    seed: int
    """Of prompts, beginnings and sampling."""


@dataclass(frozen=True)
class Document:
    """One text, as the target reads it."""

    name: str
    """Where it is from; unique. Pieces of one text share what is before `#`."""
    kind: str
    """`chat`, `written` or `package`."""
    token_ids: tuple[int, ...]
    """With BOS where the target has one."""

    @property
    def held_out(self) -> bool:
        """Whether it is kept from training and from labelling; pieces of one text stay together."""
        return _number(self.name.partition("#")[0]) % HELD_OUT_EVERY == 0


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def build_corpus(loaded: Loaded, plan: Plan, folder: Path, *, progress: Progress) -> list[Document]:
    """Every document of `plan`: what the target writes (kept in `folder`), then package prose.

    Raises:
        UserError: A package of the pinned environment is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chats = [_Task("chat", index, prompt) for index, prompt in enumerate(chat_prompts(plan.n_chats, seed=plan.seed))]
    bos = loaded.tokenizer.bos_token if loaded.target.chat.bos else ""
    begun = [
        _Task("written", index, (Message("user", bos + text),))
        for index, text in enumerate(openers(plan.n_written, seed=plan.seed))
    ]
    documents: list[Document] = []
    for write, tasks in ((_answer, chats), (_continue, begun)):
        for start in range(0, len(tasks), BATCH):
            documents += _kept(loaded, plan, folder, tasks[start : start + BATCH], write)
            progress(f"{tasks[0].kind} documents", min(start + BATCH, len(tasks)), len(tasks))
    return [*documents, *package_documents(loaded, plan)]


@dataclass(frozen=True)
class _Task:
    """Something for the target to write."""

    kind: str
    """`chat` or `written`."""
    index: int
    """Its place among its kind."""
    messages: tuple[Message, ...]
    """What it is given."""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.index}"


Write = Callable[[Loaded, Plan, Sequence[_Task]], list[Document]]


def _kept(loaded: Loaded, plan: Plan, folder: Path, tasks: Sequence[_Task], write: Write) -> list[Document]:
    path = folder / f"{tasks[0].kind}-{tasks[0].index:05d}-{len(tasks)}.jsonl"
    if not path.exists():
        lines = [
            json.dumps({"name": document.name, "kind": document.kind, "token_ids": document.token_ids}) + "\n"
            for document in write(loaded, plan, tasks)
        ]
        partial = path.with_suffix(".partial")
        partial.write_text("".join(lines), encoding="utf-8")
        partial.replace(path)
    return [Document(row.text("name"), row.text("kind"), row.ids("token_ids")) for row in read_rows(path)]


def _answer(loaded: Loaded, plan: Plan, tasks: Sequence[_Task]) -> list[Document]:
    return _write(loaded, plan, tasks, replace(loaded.target.sampling, max_tokens=plan.chat_tokens))


def _continue(loaded: Loaded, plan: Plan, tasks: Sequence[_Task]) -> list[Document]:
    # Without a chat around it: the text as it is, to be continued.
    chat = Chat("plain.jinja", roles=("user",), alternate=False, bos=loaded.target.chat.bos)
    plain = replace(loaded, target=replace(loaded.target, chat=chat))
    return _write(plain, plan, tasks, Sampling(temperature=0.8, top_k=0, top_p=0.95, max_tokens=plan.written_tokens))


def _write(loaded: Loaded, plan: Plan, tasks: Sequence[_Task], sampling: Sampling) -> list[Document]:
    requests = [Request(task.messages, 1, f"corpus {task.name}", plan.seed) for task in tasks]
    drawn = loaded.thread.run(lambda: sample(loaded, requests, sampling=sampling))
    prompts = [encode_prompt(loaded.tokenizer, loaded.target, task.messages) for task in tasks]
    return [
        Document(task.name, task.kind, prompt + samples[0].token_ids)
        for task, prompt, samples in zip(tasks, prompts, drawn, strict=True)
    ]


def package_documents(loaded: Loaded, plan: Plan) -> list[Document]:
    """Package prose in pieces of at most `plan.context` tokens, texts in an order fixed by their names.

    The sources take turns, so that a small corpus is not one large package's documentation.
    """
    texts = package_texts() if plan.package_tokens else {}
    turns: Counter[str] = Counter()
    order: list[tuple[int, str]] = []
    for name in sorted(texts, key=_number):
        source = name.partition(" ")[0].partition("/")[0]
        order.append((turns[source], name))
        turns[source] += 1
    documents: list[Document] = []
    n_tokens = 0
    for _, name in sorted(order, key=lambda turn: turn[0]):
        if n_tokens >= plan.package_tokens:
            break
        pieces = list(_pieces(loaded, name, texts[name], plan.context))
        documents += pieces
        n_tokens += sum(len(piece.token_ids) for piece in pieces)
    return documents


def _pieces(loaded: Loaded, name: str, text: str, context: int) -> Iterator[Document]:
    start = (loaded.tokenizer.bos_token_id,) if loaded.target.chat.bos else ()
    token_ids = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
    room = context - len(start)
    for number, at in enumerate(range(0, len(token_ids), room)[:MAX_PIECES]):
        yield Document(f"{name}#{number}", "package", (*start, *token_ids[at : at + room]))


def corpus_folder(loaded: Loaded, plan: Plan) -> Path:
    """Where what the target wrote is kept.

    Another target, grammar or length has another folder; a longer corpus of the same kind extends a shorter one.
    """
    sampling = replace(loaded.target.sampling, max_tokens=plan.chat_tokens)
    key = f"{loaded.weights} {loaded.target.chat} {sampling} {plan.written_tokens} {plan.seed} {sorted(WORDS.items())}"
    return cache_root() / "training" / f"{loaded.target.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
