"""What a tool server looks at: registered transcripts, their tokens, and the target's activations on them.

Invariant: the model is touched by its owner thread alone. One forward pass a transcript; what it gave is kept
until the memory allowed for it is used up, the longest unused first out.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from jaxtyping import Float
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from torch import Tensor

from claims.schema import Transcript, UserError
from tools.activation_cache import CachedReader
from tools.activations import ActivationReader
from tools.batching import BusyError
from tools.chat import token_roles, token_texts
from tools.engines.address import VllmAddress
from tools.model import Loaded
from tools.positions import masked_positions
from tools.registered import Registered

CACHE_BYTES = 512 * 2**20
"""Memory for activations that were read already."""
MAX_PENDING = 256
"""Calls that may wait for the model; a further one is told to come again."""

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Reading:
    """One transcript as a tool sees it."""

    texts: tuple[str, ...]
    """The printable text of each token."""
    roles: tuple[str, ...]
    """Whose token it is: `template`, a message's role, or `response`."""
    residual: Float[Tensor, "tokens d_model"]
    """float32, CPU: the residual stream after the tool's block."""
    masked: dict[int, str]
    """Positions that are not read, each with the reason."""

    @property
    def n_bytes(self) -> int:
        """Memory of the activations."""
        return self.residual.numel() * self.residual.element_size()


class _Kept:
    """Readings in memory; asked by the event loop, filled by the model's thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._readings: OrderedDict[str, Reading] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, transcript_id: str) -> Reading | None:
        with self._lock:
            if transcript_id in self._readings:
                self._readings.move_to_end(transcript_id)
            return self._readings.get(transcript_id)

    def put(self, transcript_id: str, reading: Reading) -> None:
        with self._lock:
            self._readings[transcript_id] = reading
            while len(self._readings) > 1 and sum(kept.n_bytes for kept in self._readings.values()) > self._max_bytes:
                self._readings.popitem(last=False)


class Readings:
    """The readings of every registered transcript, made when first asked for."""

    def __init__(
        self,
        loaded: Loaded,
        reader: ActivationReader | CachedReader,
        registered: Registered,
        *,
        layer: int,
        max_positions: int,
        show_masked: bool = False,
        cache_bytes: int = CACHE_BYTES,
        vllm: VllmAddress | None = None,
    ) -> None:
        """Check that the transcripts are this target's; read no activation yet.

        Args:
            loaded: The target.
            reader: Reads its residual stream.
            registered: The transcripts.
            layer: Residual stream after this block.
            max_positions: Most positions in one call.
            show_masked: Mask nothing.
            cache_bytes: Memory for activations.
            vllm: Where answers are generated; None for the models in this process.

        Raises:
            UserError: A transcript has tokens that are not the target's rendering of its messages, or more than the
                target reads.
        """
        self.loaded = loaded
        self.registered = registered
        self.layer = layer
        self.max_positions = max_positions
        self.show_masked = show_masked
        self.vllm = vllm
        self._reader = reader
        self._kept = _Kept(cache_bytes)
        self._tokens = {name: self._describe(transcript) for name, transcript in registered.transcripts.items()}

    def _describe(self, transcript: Transcript) -> tuple[tuple[str, ...], tuple[str, ...]]:
        tokenizer, target = self.loaded.tokenizer, self.loaded.target
        window = self.loaded.model.config.get_text_config().max_position_embeddings
        if len(transcript.token_ids) > window:
            raise UserError(
                f"Transcript {transcript.transcript_id!r} has {len(transcript.token_ids)} tokens. Expected at most "
                f"{window}, the window of {target.name}. Leave this transcript out of the claim set."
            )
        return token_texts(tokenizer, transcript.token_ids), token_roles(tokenizer, target, transcript)

    def n_tokens(self, transcript_id: str) -> int:
        """Length of one transcript.

        Raises:
            MCPError: No such transcript is registered. The host names it, so this is no predictor's mistake.
        """
        if transcript_id not in self.registered.transcripts:
            raise MCPError(
                INVALID_PARAMS,
                f"No transcript {transcript_id!r} is registered here ({len(self.registered.transcripts)} others are). "
                "Expected one of the claim set that this server was started with. Start it with the right one.",
            )
        return len(self.registered.transcripts[transcript_id].token_ids)

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Do `work` on the owner thread. A call that is cancelled before its turn is not done.

        Raises:
            BusyError: Too many calls wait already.
        """
        thread = self.loaded.thread
        if thread.n_pending >= MAX_PENDING:
            raise BusyError(thread.n_pending, MAX_PENDING)
        return await asyncio.wrap_future(thread.submit(work))

    async def get(self, transcript_id: str) -> Reading:
        """The reading of one transcript: at once if it is in memory, else after the model's thread has made it.

        Raises:
            MCPError: No such transcript is registered, or too many calls wait already.
        """
        self.n_tokens(transcript_id)
        kept = self._kept.get(transcript_id)
        return kept if kept is not None else await self.run(lambda: self._read(transcript_id))

    def _read(self, transcript_id: str) -> Reading:
        kept = self._kept.get(transcript_id)
        if kept is not None:
            return kept
        token_ids = self.registered.transcripts[transcript_id].token_ids
        residual = self._reader.read([token_ids], [self.layer])[0][self.layer]
        texts, roles = self._tokens[transcript_id]
        masked = {} if self.show_masked else masked_positions(residual, has_bos=self.loaded.target.chat.bos)
        reading = Reading(texts, roles, residual, masked)
        self._kept.put(transcript_id, reading)
        return reading
