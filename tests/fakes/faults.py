"""Faults of a provider, by rate and seed or one after the other."""

import hashlib
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

FREE = ("429", "429_day", "500", "503", "529", "401_echo", "500_echo")
"""Answered instead of a reply; nothing is billed. `429_day` is a daily quota; an `echo` repeats the key it was sent."""
PAID = ("reset", "hang", "malformed")
"""The work is done and billed, and the reply is lost."""


@dataclass
class Faults:
    """Which request meets which fault."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """Share of the requests, by fault."""
    seed: int = 0
    retry_after_s: float | None = 0.01
    """What a 429 says; None sends no such header."""
    queue: deque[str] = field(default_factory=deque)
    """Faults for the next requests, before any by rate; an empty text is none."""
    each: tuple[str, ...] = ()
    """Faults for the first requests of every model, in order."""
    _met: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        strange = sorted({*self.rates, *self.queue, *self.each} - {*FREE, *PAID, ""})
        assert not strange, f"unknown faults {strange}; known are {FREE + PAID}"
        assert sum(self.rates.values()) <= 1

    def then(self, *faults: str) -> None:
        """Let the next requests meet these."""
        self.queue.extend(faults)

    def draw(self, number: int, model: str) -> str:
        """The fault of request `number`, to `model`; empty for none."""
        with self._lock:
            place = self._met[model] = self._met.get(model, -1) + 1
            if place < len(self.each):
                return self.each[place]
            if self.queue:
                return self.queue.popleft()
        digest = hashlib.sha256(f"{self.seed}:{number}".encode()).digest()
        place, upto = int.from_bytes(digest[:8], "big") / 2**64, 0.0
        for fault, rate in self.rates.items():
            upto += rate
            if place < upto:
                return fault
        return ""


def parse_rates(text: str) -> dict[str, float]:
    """`429=0.05,reset=0.01` as a mapping."""
    pairs: Iterable[list[str]] = (part.split("=") for part in text.split(",") if part)
    return {name.strip(): float(rate) for name, rate in pairs}
