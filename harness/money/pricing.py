"""What a predictor's tokens cost: the one dated price file of the house, and who is never billed.

Invariant: a model without a price is "price unknown", never free; what runs on this machine is free, never unknown.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from claims.build.wild.money import PRICES, Price, Usage, read_prices
from claims.schema import UserError

FREE = ("local", "scripted", "mockllm")
"""Families that nobody bills."""
BATCHED = ("anthropic", "openai", "google")
"""Families with a batch API that Inspect speaks."""


@dataclass(frozen=True)
class Tariff:
    """What a run pays for its predictor's tokens."""

    predictor: str
    """Name of the predictor."""
    price: Price | None
    """None when it is free or unknown."""
    free: bool
    """Whether nobody bills it."""
    as_of: str
    """The day the prices were written down."""
    batched: frozenset[str] = frozenset()
    """Arms whose calls go through a batch API."""

    @property
    def known(self) -> bool:
        """Whether its calls have a price, 0 included."""
        return self.free or self.price is not None

    @property
    def silent(self) -> bool:
        """Whether there is nothing to say about money: nobody bills it, or a run is older than price lists."""
        return self.free or not self.predictor

    def dollars(self, usage: Usage, *, batch: bool = False) -> float:
        """What `usage` cost, through a batch API or not; `nan` when the price is unknown."""
        if self.free:
            return 0.0
        return math.nan if self.price is None else self.price.cost(usage, batch=batch)

    def as_record(self) -> dict[str, object]:
        """JSON-ready, for the manifest."""
        price = asdict(self.price) if self.price else None
        return {
            "predictor": self.predictor,
            "price": price,
            "free": self.free,
            "as_of": self.as_of,
            "batched": sorted(self.batched),
        }


def tariff_of(predictor: str, *, batched: frozenset[str] = frozenset(), path: Path | None = None) -> Tariff:
    """The tariff of a predictor by its name.

    Args:
        predictor: Its name.
        batched: Arms whose calls go through a batch API.
        path: Another price file than the house's.

    Raises:
        UserError: The file is no price file, or there is no batch API to go through.
    """
    family = predictor.split("/", 1)[0]
    if batched and (family not in BATCHED or predictor.count("/") != 1):
        raise UserError(
            f"--batch-baseline: {predictor!r} has no batch API here. Expected a model of {', '.join(BATCHED)}. "
            "Leave the option out."
        )
    prices = read_prices(path or PRICES)
    free = family in FREE
    return Tariff(predictor, None if free else prices.find(predictor), free, prices.as_of, batched)


def tariff_in(record: Mapping[str, object]) -> Tariff:
    """A tariff read back from a manifest; an empty record is of a run that knew no prices."""
    price, batched = record.get("price"), record.get("batched")
    return Tariff(
        predictor=str(record.get("predictor", "")),
        price=Price(**price) if isinstance(price, dict) else None,
        free=record.get("free") is True,
        as_of=str(record.get("as_of", "")),
        batched=frozenset(map(str, batched)) if isinstance(batched, list) else frozenset(),
    )


def unknown_price(predictor: str, path: Path | None = None) -> str:
    """What to tell a user whose predictor has no price."""
    file = path or PRICES
    return (
        f"price unknown: {file.name} has no price for {predictor!r}. Copy {file}, add the model (dollars per million "
        "tokens) and give the copy with --prices."
    )


def shown_dollars(dollars: float) -> str:
    """Money for a reader: cents from a dollar on, four figures below; unknown money in words."""
    if math.isnan(dollars):
        return "price unknown"
    return f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"
