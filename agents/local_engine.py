"""The local predictor's model: token ids in, the chance of Yes and of No as the next token out.

Invariants: one thread owns the model. Rows that wait together are run as one padded batch, and a row is padded to a
length that depends on nothing but its own, so an answer does not depend on what it was batched with: measured equal
to the last bit on CPU, promised to `TOLERANCE`. What many questions begin with (the worked examples) is run once.
"""

import asyncio
import copy
import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# libgomp reads this once, when torch is loaded. Its default, to spin between parallel regions, made this model 4 to 6
# times slower (22 against 140 tokens a second) beside one other busy process on two cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.utils import logging as hf_logging

from agents.local_prompt import Chat

BUCKET = 64
"""Rows are padded to a multiple of this many tokens and share a batch only with rows of the same padded length."""
MAX_BATCH_TOKENS = 4096
"""Most tokens, padding included, in one batch of more than one row."""
TOLERANCE = 1e-3
"""Largest difference of a probability between a row run alone and the same row run in any batch."""

_YES = ("Yes", " Yes", "yes", " yes", "YES")
_NO = ("No", " No", "no", " no", "NO")


@dataclass(frozen=True)
class YesNo:
    """Chances of the next token, each summed over its spellings."""

    yes: float
    """Chance of Yes, in [0, 1]."""
    no: float
    """Chance of No, in [0, 1]."""

    @property
    def mass(self) -> float:
        """Chance of either; what is missing to 1 went to other tokens."""
        return self.yes + self.no

    @property
    def p_yes(self) -> float:
        """Chance of Yes given either."""
        return self.yes / self.mass


@dataclass(frozen=True)
class _Row:
    prefix: tuple[int, ...]
    ids: Sequence[int]
    answer: "Future[YesNo]"

    @property
    def shape(self) -> tuple[tuple[int, ...], int]:
        """What rows of one batch have in common: their prefix and their padded length."""
        return self.prefix, -(-len(self.ids) // BUCKET) * BUCKET


def fast_dtype() -> torch.dtype:
    """bfloat16 where the hardware multiplies in it, else float32 (emulated bfloat16 is several times slower)."""
    native = torch.cuda.is_available() or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if native else torch.float32


class Engine:
    """A causal model that answers yes/no questions in micro-batches."""

    def __init__(self, folder: Path, dtype: torch.dtype | None = None) -> None:
        """Load the tokenizer from `folder` now and the model on the owner thread when first asked."""
        self.folder = folder
        self.dtype = dtype or fast_dtype()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.batches: list[int] = []
        self._rows: queue.SimpleQueue[_Row] = queue.SimpleQueue()
        self._started = threading.Lock()
        self._thread: threading.Thread | None = None

    def encode(self, examples: Chat, question: Chat) -> tuple[tuple[int, ...], list[int]]:
        """Token ids of a chat up to where the model answers: those of the examples, and the rest."""
        prefix = self._tokens(self._text(examples, ask=False))
        whole = self._tokens(self._text([*examples, *question], ask=True))
        if tuple(whole[: len(prefix)]) != tuple(prefix):
            return (), whole
        return tuple(prefix), whole[len(prefix) :]

    def _text(self, chat: Chat, *, ask: bool) -> str:
        return str(self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=ask))

    def _tokens(self, rendered: str) -> list[int]:
        return list(self.tokenizer(rendered, add_special_tokens=False)["input_ids"])

    async def ask(self, ids: Sequence[int], prefix: tuple[int, ...] = ()) -> YesNo:
        """The chances of Yes and No after `prefix` and `ids`."""
        row = _Row(prefix, ids, Future())
        self._start()
        self._rows.put(row)
        return await asyncio.wrap_future(row.answer)

    def _start(self) -> None:
        with self._started:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="local-predictor", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        """Owner thread: take what waits, answer the oldest row and those that fit with it, for ever."""
        model: _Model | None = None
        waiting: list[_Row] = []
        while True:
            waiting += self._take(block=not waiting)
            batch = _batch(waiting)
            waiting = [row for row in waiting if row not in batch]
            live = [row for row in batch if row.answer.set_running_or_notify_cancel()]
            try:
                model = model or _Model(self.folder, self.dtype, self.tokenizer)
                answers = model.answer(batch[0].shape, [row.ids for row in live]) if live else []
            except Exception as error:  # noqa: BLE001 - handed to those who wait for it
                for row in live:
                    row.answer.set_exception(error)
                continue
            self.batches.append(len(live))
            for row, answer in zip(live, answers, strict=True):
                row.answer.set_result(answer)

    def _take(self, *, block: bool) -> list[_Row]:
        taken = [self._rows.get()] if block else []
        while True:
            try:
                taken.append(self._rows.get_nowait())
            except queue.Empty:
                return taken


def _batch(waiting: Sequence[_Row]) -> list[_Row]:
    """The oldest row, and younger ones of the same padded length while they fit."""
    shape = waiting[0].shape
    room = max(1, MAX_BATCH_TOKENS // shape[1])
    return [row for row in waiting if row.shape == shape][:room]


class _Model:
    """The weights; touched by the owner thread alone."""

    def __init__(self, folder: Path, dtype: torch.dtype, tokenizer: AutoTokenizer) -> None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        # The run has a progress line of its own.
        hf_logging.disable_progress_bar()
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
        self.head = self.model.get_output_embeddings().weight.float()
        self.device = device
        self.yes = _first_tokens(tokenizer, _YES)
        self.no = _first_tokens(tokenizer, _NO)
        self.prefixes: dict[tuple[int, ...], DynamicCache] = {}

    def _started(self, prefix: tuple[int, ...], rows: int) -> DynamicCache | None:
        """The state after `prefix`, once for each of `rows` rows; None where there is no prefix."""
        if not prefix:
            return None
        if prefix not in self.prefixes:
            ids = torch.tensor([prefix], device=self.device)
            self.prefixes[prefix] = self.model.base_model(input_ids=ids, use_cache=True).cache
        state = copy.deepcopy(self.prefixes[prefix])
        state.batch_repeat_interleave(rows)
        return state

    @torch.inference_mode()
    def answer(self, shape: tuple[tuple[int, ...], int], rows: Sequence[Sequence[int]]) -> list[YesNo]:
        """One padded forward pass; the head is applied to each row's last token only, in float32.

        Padding is on the right, where causal attention keeps it from reaching a row's own tokens.
        """
        prefix, padded = shape
        ids = torch.zeros(len(rows), padded, dtype=torch.long)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row)
        state = self._started(prefix, len(rows))
        run = self.model.base_model(input_ids=ids.to(self.device), cache=state, use_cache=state is not None)
        # Row by row: a product with several rows at once differs in the last bits from the same rows alone.
        last = [run.last_hidden_state[index, len(row) - 1].float() for index, row in enumerate(rows)]
        chances = torch.softmax(torch.stack([self.head @ row for row in last]).double(), dim=-1).cpu()
        yes, no = chances[:, self.yes].sum(dim=1), chances[:, self.no].sum(dim=1)
        return [YesNo(float(yes[index]), float(no[index])) for index in range(len(rows))]


def _first_tokens(tokenizer: AutoTokenizer, spellings: Sequence[str]) -> list[int]:
    """The tokens that are one of the spellings as a whole; of a tokenizer without any, the first one's first token."""
    encoded = [tokenizer(spelling, add_special_tokens=False)["input_ids"] for spelling in spellings]
    return sorted({ids[0] for ids in encoded if len(ids) == 1}) or [encoded[0][0]]


@cache
def engine(folder: Path) -> Engine:
    """The one engine of this process for the weights in `folder`."""
    return Engine(folder)
