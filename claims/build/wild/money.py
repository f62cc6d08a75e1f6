"""Tokens and money: prices from a dated file, what was spent, and the cap that is never exceeded.

Invariant: a call is let through only when the most that it could cost still fits under the cap together with the most
that every call in flight could cost; money without a price is unknown, never 0.
"""

import asyncio
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from claims.schema import UserError

PRICES = Path(__file__).parent / "data" / "prices.json"
"""Dollars per million tokens, with the day they were written down."""
BYTES_A_TOKEN = 2
"""No tokenizer in use makes more than one token of two bytes of text, but for long runs of rare symbols."""
OVERHEAD_TOKENS = 1000
"""More than the system text that a provider adds for tools."""
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
"""What the name of a snapshot ends in."""


class CostCapError(UserError):
    """The next call could exceed the cap; everything paid for is kept, and the run continues under a higher one."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one or several calls."""

    n_calls: int = 0
    """Replies received."""
    input: int = 0
    """Input tokens at the full price."""
    cache_read: int = 0
    """Input tokens read from a provider's cache."""
    cache_write: int = 0
    """Input tokens written to it."""
    output: int = 0
    """Output tokens, those of reasoning included."""
    reasoning: int = 0
    """The part of `output` that was reasoning."""

    def __add__(self, other: "Usage") -> "Usage":
        """Both together."""
        return Usage(
            self.n_calls + other.n_calls,
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )

    @property
    def read(self) -> int:
        """All input tokens, whatever each of them cost."""
        return self.input + self.cache_read + self.cache_write

    def as_row(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens of one model."""

    input: float
    """Input."""
    output: float
    """Output."""
    cache_read: float
    """Input read from the cache."""
    cache_write: float
    """Input written to the cache."""
    batch: float = 1.0
    """Factor on all of it when the call goes through a batch API."""
    reasoning: float | None = None
    """Output that is reasoning; None where it costs what other output costs."""

    def cost(self, usage: Usage, *, batch: bool) -> float:
        """Dollars."""
        reasoning = self.output if self.reasoning is None else self.reasoning
        full = (
            usage.input * self.input
            + (usage.output - usage.reasoning) * self.output
            + usage.reasoning * reasoning
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        )
        return full / 1e6 * (self.batch if batch else 1.0)


@dataclass(frozen=True)
class Prices:
    """The price list of a run."""

    as_of: str
    """The day the prices were written down."""
    models: Mapping[str, Price]
    """By Inspect's name of the model."""

    def find(self, model: str) -> Price | None:
        """The price of a model, or of the one that it is a dated snapshot of; None when there is none."""
        return self.models.get(model) or self.models.get(_DATED.sub("", model))

    def cost(self, model: str, usage: Usage, *, batch: bool) -> float:
        """Dollars; `nan` when the model has no price."""
        price = self.find(model)
        return price.cost(usage, batch=batch) if price else math.nan

    def require(self, models: Iterable[str], path: Path) -> None:
        """Refuse a capped run with a model whose calls cannot be priced.

        Raises:
            UserError: A model has no price.
        """
        missing = sorted(model for model in set(models) if self.find(model) is None)
        if missing:
            raise UserError(
                f"--max-cost needs a price for every model, and {path.name} has none for {', '.join(missing)}. "
                "Copy the file, add the models (dollars per million tokens) and give it with --prices."
            )


def read_prices(path: Path = PRICES) -> Prices:
    """The prices in a file.

    Raises:
        UserError: The file is absent or broken.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        models = {name: _price(row) for name, row in found["models"].items()}
        return Prices(str(found["as_of"]), models)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist. Expected a file of prices like {PRICES.name}.") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path}: not a file of prices ({error}). Expected one like {PRICES.name}.") from None


def _price(row: Mapping[str, object]) -> Price:
    return Price(**{name: float(str(value)) for name, value in row.items()})


@dataclass(frozen=True)
class Entry:
    """One reply that the run used."""

    stage: str
    """Which step asked."""
    item: str
    """Which prompt it was about."""
    usage: Usage
    """Its tokens."""
    dollars: float
    """Its price when it was paid, or `nan`."""


class Purse:
    """What may still be spent."""

    def __init__(self, prices: Prices, cap: float | None, spent: float) -> None:
        """Start with what earlier runs of the same work folder have spent."""
        self.prices = prices
        self.cap = cap
        self.spent = spent
        self._held: dict[int, float] = {}
        self._next = 0
        self._changed = asyncio.Condition()

    async def hold(self, model: str, n_bytes: int, max_output: int, *, batch: bool) -> int:
        """Set aside the most that a call can cost; waits while only calls in flight stand in its way.

        Raises:
            CostCapError: It does not fit under the cap.
        """
        n_input = math.ceil(n_bytes / BYTES_A_TOKEN) + OVERHEAD_TOKENS
        most = self.prices.cost(model, Usage(1, cache_write=n_input, output=max_output), batch=batch)
        async with self._changed:
            while self.cap is not None and self.spent + sum(self._held.values()) + most > self.cap:
                if not self._held:
                    raise CostCapError(
                        f"Stopped before the cap of ${self.cap:,.2f}: ${self.spent:,.2f} are spent and the next call "
                        f"could cost ${most:,.4f}. Everything paid for is kept: give the same command with a higher "
                        "--max-cost to continue."
                    )
                await self._changed.wait()
            self._next += 1
            self._held[self._next] = most
            return self._next

    async def settle(self, ticket: int, dollars: float) -> None:
        """Replace what was set aside by what was paid."""
        async with self._changed:
            del self._held[ticket]
            if not math.isnan(dollars):
                self.spent += dollars
            self._changed.notify_all()


def totals(entries: Iterable[Entry], key: str) -> dict[str, tuple[Usage, float]]:
    """Tokens and money of the entries by `stage` or `item`."""
    usage: dict[str, Usage] = defaultdict(Usage)
    dollars: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        name = str(getattr(entry, key))
        usage[name] += entry.usage
        dollars[name].append(entry.dollars)
    return {name: (usage[name], math.fsum(sorted(dollars[name]))) for name in usage}
