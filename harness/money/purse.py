"""What a run may still spend.

A claim is let in when what claims like it cost still fits under the cap beside those in flight; a single request is let
through only when the most that it could cost fits. So a run stops short of its cap, and the claims in flight end.
Invariant: what was paid, and the most that the requests in flight could cost, never exceed the cap together.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from inspect_ai.util import suspend_working_limit

from claims.build.wild.money import BYTES_A_TOKEN, OVERHEAD_TOKENS, Usage
from harness.money.ledger import Ledger, Payment
from harness.money.pricing import Tariff, shown_dollars

N_TO_LEARN = 8
"""Claims of a setting after which their own cost replaces the estimate."""
_MARGIN = 1.25
"""What the next claim may cost beyond the dearest so far."""


class CapReachedError(Exception):
    """Something more could exceed the cap; the claim is asked when the run continues under a higher one."""


@dataclass(eq=False)
class _Open:
    """A claim that is being asked."""

    setting: str
    claim_id: str
    expected: float
    batch: bool
    spent: float = 0.0

    @property
    def left(self) -> float:
        return max(0.0, self.expected - self.spent)


_NO_CLAIM = _Open("", "", 0.0, batch=False)
_current: ContextVar[_Open] = ContextVar("uplift_claim", default=_NO_CLAIM)


class Purse:
    """The money of one start of a run; lives in one event loop."""

    def __init__(
        self, tariff: Tariff, ledger: Ledger, *, cap: float | None = None, expected: Mapping[str, float] | None = None
    ) -> None:
        """Pay by `tariff` and write down in `ledger`.

        Args:
            tariff: With a known price.
            ledger: Of the run, with what earlier starts have paid.
            cap: Dollars that the run may cost in all; None for no limit.
            expected: Dollars that one claim should cost at most, by setting; from the estimate.
        """
        self.tariff = tariff
        self.ledger = ledger
        self.cap = cap
        self.stopped: str | None = None
        self._expected = dict(expected or {})
        self._dearest: dict[str, float] = {}
        self._n_seen: dict[str, int] = {}
        self._claims: set[_Open] = set()
        self._held: dict[int, float] = {}
        self._next = 0
        self._largest = 0.0
        self._change = asyncio.Event()

    @asynccontextmanager
    async def claim(self, setting: str, claim_id: str, *, batch: bool = False) -> AsyncIterator[None]:
        """Ask one claim inside the block; waits while only claims in flight stand in its way.

        Args:
            setting: Short name of its arm and budget.
            claim_id: The claim.
            batch: Whether its requests go through a batch API.

        Raises:
            CapReachedError: It could exceed the cap.
        """
        opened = _Open(setting, claim_id, self._expect(setting), batch)
        await self._admit(opened)
        token = _current.set(opened)
        try:
            yield
            # A claim that failed half way says nothing of what a whole one costs.
            self._n_seen[setting] = self._n_seen.get(setting, 0) + 1
            self._dearest[setting] = max(self._dearest.get(setting, 0.0), opened.spent)
        finally:
            _current.reset(token)
            self._claims.discard(opened)
            self._tell()

    def _expect(self, setting: str) -> float:
        if self._n_seen.get(setting, 0) >= N_TO_LEARN:
            return self._dearest[setting] * _MARGIN
        return self._expected.get(setting, 0.0)

    async def _admit(self, opened: _Open) -> None:
        with suspend_working_limit():
            while self.stopped is not None or not self._fits(opened.expected + self._largest, self._promised()):
                if self.stopped is not None or not self._claims:
                    raise self._stop(opened.expected + self._largest, "claim")
                await self._change.wait()
        self._claims.add(opened)

    def _promised(self) -> float:
        return sum(claim.left for claim in self._claims)

    def _fits(self, more: float, promised: float) -> bool:
        return self.cap is None or self.ledger.dollars + promised + more <= self.cap

    def _stop(self, more: float, what: str) -> CapReachedError:
        if self.stopped is None:
            self.stopped = (
                f"Stopped before the cap of {shown_dollars(self.cap or 0.0)}: {shown_dollars(self.ledger.dollars)} are "
                f"spent, and the next {what} could cost {shown_dollars(more)}."
            )
            self._tell()
        return CapReachedError(self.stopped)

    async def hold(self, most: float) -> int:
        """Set aside the most that a request can cost; waits while only requests in flight stand in its way.

        Raises:
            CapReachedError: It could exceed the cap.
        """
        self._largest = max(self._largest, most)
        with suspend_working_limit():
            while not self._fits(most, sum(self._held.values())):
                if not self._held:
                    raise self._stop(most, "request")
                await self._change.wait()
        self._next += 1
        self._held[self._next] = most
        return self._next

    def release(self, ticket: int) -> None:
        """Give back what was set aside; what was paid has been written down by then."""
        del self._held[ticket]
        self._tell()

    def most(self, n_bytes: int, max_output: int) -> float:
        """The most that a request of the current claim can cost: every two bytes a token, all of it written to a cache.

        Args:
            n_bytes: Length of messages and tools.
            max_output: Most tokens of the reply.
        """
        n_input = n_bytes // BYTES_A_TOKEN + OVERHEAD_TOKENS
        return self._price(Usage(1, cache_write=n_input, output=max_output))

    def pay(self, usage: Usage) -> None:
        """Write down a reply."""
        self._write(usage, self._price(usage), lost=False)

    def lose(self) -> None:
        """Write down a reply that may have been made and billed, and never came."""
        self._write(Usage(1), self.ledger.mean, lost=True)

    def _price(self, usage: Usage) -> float:
        return self.tariff.dollars(usage, batch=_current.get().batch)

    def _write(self, usage: Usage, dollars: float, *, lost: bool) -> None:
        claim = _current.get()
        if claim is not _NO_CLAIM:
            claim.spent += dollars
        self.ledger.add(Payment(claim.setting, claim.claim_id, usage, dollars, lost))

    def _tell(self) -> None:
        """Wake everyone who waits."""
        self._change.set()
        self._change = asyncio.Event()
