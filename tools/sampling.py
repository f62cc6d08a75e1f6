"""Responses of a target: many prompts and many rows at a time, each row with its own random numbers.

Invariant: row `index` of a request uses the numbers seeded by (key, index, seed) and no others, so order, batching
and sharding never change them. The same batches give the same tokens; other batches give the same tokens up to the
rounding of the model's dtype (bfloat16 sums differ in the last bit with the shape of a batch, and a row whose number
falls into that gap takes another token).
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import Cache

from claims.schema import Message, UserError
from tools.chat import encode_prompt
from tools.draw import draw
from tools.kv_cache import positions_of, roomy_cache
from tools.model import Loaded
from tools.targets import Sampling
from tools.thoughts import Thoughts

MAX_ROWS = 128
"""Rows decoded together; beyond it two cores gain nothing."""
MAX_POSITIONS = 2**15
"""Rows times positions kept in the cache: 0.75 GB for SmolLM2-135M in bfloat16."""
COMPACT_BELOW = 0.92
"""Finished rows are dropped when fewer than this share of the rows is still running."""

Progress = Callable[[int, "list[Sample]"], None]
"""Called with a request's place and its samples as soon as it has all of them."""


@dataclass(frozen=True)
class Request:
    """Samples wanted of one prompt."""

    messages: tuple[Message, ...]
    """The prompt."""
    n: int
    """How many samples."""
    key: str
    """Names the stream of random numbers, together with `seed`."""
    seed: int
    """Another seed, other samples."""
    first: int = 0
    """Index of the first sample; 10 to 29 extend the ten that 0 to 9 gave."""


@dataclass(frozen=True)
class Sample:
    """One response."""

    text: str
    """Without special tokens, cut before the stop text."""
    token_ids: tuple[int, ...]
    """The response's tokens, without the one that ended it; the last may reach into the stop text."""
    finished: bool
    """False when `max_tokens` cut it off."""


def row_uniforms(key: str, index: int, seed: int, n: int) -> np.ndarray:
    """The `n` numbers in [0, 1) that row `index` of a request uses, one a token."""
    digest = hashlib.sha256(f"{seed}\n{index}\n{key}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big")).random(n)


@dataclass
class _Row:
    """One response in the making."""

    request: int
    """Place of its request."""
    index: int
    """Its own index in the request."""
    prompt: tuple[int, ...]
    """The prompt's token ids."""
    uniforms: np.ndarray
    """Its random numbers, shape (max_tokens,)."""
    token_ids: list[int] = field(default_factory=list)
    """Sampled so far."""
    sample: Sample | None = None
    """Set when it is complete."""


def sample(
    loaded: Loaded,
    requests: Sequence[Request],
    *,
    sampling: Sampling | None = None,
    progress: Progress | None = None,
) -> list[list[Sample]]:
    """Draw the samples of every request.

    Args:
        loaded: The target.
        requests: Prompts and how many samples of each.
        sampling: Settings, the target's own by default.
        progress: Told of every completed request.

    Returns:
        For every request its samples, by index.

    Raises:
        UserError: A prompt with its response does not fit the target's context.
    """
    settings = sampling or loaded.target.sampling
    halt = threading.Event()
    try:
        return loaded.thread.run(lambda: _sample(loaded, requests, settings, progress, halt))
    except BaseException:
        # Ctrl-C reaches the caller's thread only; the model's would go on to the last request.
        halt.set()
        raise


def _sample(
    loaded: Loaded,
    requests: Sequence[Request],
    settings: Sampling,
    progress: Progress | None,
    halt: threading.Event,
) -> list[list[Sample]]:
    ending = _Ending(loaded, settings)
    thoughts = Thoughts(loaded, settings)
    cache = roomy_cache(loaded.model.config.get_text_config(decoder=True))
    done: dict[int, list[Sample]] = {place: [] for place in range(len(requests))}
    for batch in _batches(_rows(loaded, requests, settings), settings.max_tokens):
        _decode(_Stream(loaded, cache, batch), batch, settings, thoughts, ending, halt)
        for row in batch:
            assert row.sample is not None
            done[row.request].append(row.sample)
        for place in dict.fromkeys(row.request for row in batch):
            if progress is not None and len(done[place]) == requests[place].n:
                progress(place, done[place])
    return list(done.values())


def _rows(loaded: Loaded, requests: Sequence[Request], settings: Sampling) -> list[_Row]:
    rows = []
    for place, request in enumerate(requests):
        thinking = settings.max_thinking is not None
        prompt = encode_prompt(loaded.tokenizer, loaded.target, request.messages, thinking=thinking)
        _check_fits(loaded, request, len(prompt), settings)
        for index in range(request.first, request.first + request.n):
            uniforms = row_uniforms(request.key, index, request.seed, settings.max_tokens)
            rows.append(_Row(place, index, prompt, uniforms))
    # Longest first: the first batch takes all the memory that any later one needs.
    return sorted(rows, key=lambda row: (-len(row.prompt), row.request, row.index))


def _check_fits(loaded: Loaded, request: Request, n_prompt: int, settings: Sampling) -> None:
    context = loaded.model.config.get_text_config().max_position_embeddings
    if n_prompt + settings.max_tokens > context:
        raise UserError(
            f"{request.key}: a prompt of {n_prompt} tokens and a response of {settings.max_tokens} do not fit "
            f"{loaded.target.name}'s context of {context}. Shorten the prompt or lower max_tokens."
        )


def _batches(rows: list[_Row], max_tokens: int) -> Iterator[list[_Row]]:
    """Cut rows sorted by length into batches that fit."""
    batch: list[_Row] = []
    for row in rows:
        longest = len(batch[0].prompt) if batch else 0
        if batch and (len(batch) == MAX_ROWS or (len(batch) + 1) * (longest + max_tokens) > MAX_POSITIONS):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


class _Ending:
    """Decides when a row is complete and makes its sample."""

    def __init__(self, loaded: Loaded, settings: Sampling) -> None:
        self.tokenizer = loaded.tokenizer
        self.settings = settings
        ids = loaded.model.generation_config.eos_token_id
        self.eos = {ids} if isinstance(ids, int) else set(ids or ())
        # A stop text of c characters lies within the last c tokens: none that matters here decodes to nothing but
        # the rest of a split character, which the margin covers.
        self.tail = max((len(stop) for stop in settings.stop), default=0) + 8

    def text(self, token_ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def push(self, row: _Row, token_id: int) -> None:
        """Give `row` its next token."""
        if token_id in self.eos:
            row.sample = Sample(self.text(row.token_ids), tuple(row.token_ids), finished=True)
            return
        row.token_ids.append(token_id)
        if self._stops(row.token_ids):
            row.sample = self._cut(row.token_ids)
        elif len(row.token_ids) == self.settings.max_tokens:
            row.sample = Sample(self.text(row.token_ids), tuple(row.token_ids), finished=False)

    def _stops(self, token_ids: list[int]) -> bool:
        if not self.settings.stop:
            return False
        tail = self.text(token_ids[-self.tail :])
        return any(stop in tail for stop in self.settings.stop)

    def _cut(self, token_ids: list[int]) -> Sample:
        text = self.text(token_ids)
        cut = text[: min(text.find(stop) for stop in self.settings.stop if stop in text)]
        n_tokens = next(n for n in range(len(token_ids) + 1) if self.text(token_ids[:n]).startswith(cut))
        return Sample(cut, tuple(token_ids[:n_tokens]), finished=True)


def _decode(
    stream: "_Stream",
    rows: list[_Row],
    settings: Sampling,
    thoughts: Thoughts,
    ending: _Ending,
    halt: threading.Event,
) -> None:
    """Complete every row of one batch."""
    live = rows
    for step in range(settings.max_tokens):
        if halt.is_set():
            raise InterruptedError("sampling was stopped")
        uniforms = torch.from_numpy(np.array([row.uniforms[step] for row in live]))
        tokens = draw(stream.logits, settings, uniforms.to(stream.logits.device))
        tokens = thoughts.end_long_ones([row.token_ids for row in live], tokens)
        for row, token_id in zip(live, tokens.tolist(), strict=True):
            if row.sample is None:
                ending.push(row, token_id)
        running = [place for place, row in enumerate(live) if row.sample is None]
        if not running:
            return
        if len(running) < COMPACT_BELOW * len(live):
            kept = torch.tensor(running, device=tokens.device)
            stream.select(kept)
            live, tokens = [live[place] for place in running], tokens[kept]
        stream.advance(tokens)


class _Stream:
    """The model's state after every token so far of a batch."""

    def __init__(self, loaded: Loaded, cache: Cache, rows: list[_Row]) -> None:
        """Run every different prompt once and repeat its state for its rows."""
        self.model = loaded.model
        self.cache = cache
        self.cache.reset()
        prompts = list(dict.fromkeys(row.prompt for row in rows))
        width = max(len(prompt) for prompt in prompts)
        ids = [[0] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        self.mask = torch.tensor(mask, device=loaded.device)
        self._forward(torch.tensor(ids, device=loaded.device), positions_of(self.mask))
        place = {prompt: at for at, prompt in enumerate(prompts)}
        self.select(torch.tensor([place[row.prompt] for row in rows], device=loaded.device))

    def _forward(self, ids: Tensor, positions: Tensor) -> None:
        output = self.model(
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=positions,
            cache=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.logits: Tensor = output.logits[:, -1]

    def select(self, rows: Tensor) -> None:
        """Keep (or repeat) the rows."""
        self.cache.batch_select_indices(rows)
        self.mask, self.logits = self.mask[rows], self.logits[rows]

    def advance(self, tokens: Tensor) -> None:
        """Feed one token to every row."""
        self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], dim=1)
        self._forward(tokens[:, None], self.mask.sum(-1, keepdim=True) - 1)
