"""What a run has cost, from its outcomes: per setting, per claim, and how much came from a cache.

Invariant: rows whose price is unknown make a sum unknown, never smaller; what nobody bills is not reported as cheap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.logs import Setting
from harness.money.pricing import Tariff, shown_dollars
from harness.outcomes import Outcome
from harness.tabular import Cell, Column, Table, count, words


@dataclass(frozen=True)
class Spend:
    """What one setting has cost, all its repetitions together."""

    setting: Setting
    """Arm and budget."""
    n_rows: int
    """Claims, times repetitions."""
    read: int
    """Input tokens."""
    cached: int
    """Those that came from a provider's cache."""
    written: int
    """Output tokens."""
    reasoning: int
    """Those that were reasoning."""
    dollars: float
    """Their price; `nan` when it is unknown for some row."""

    @property
    def cached_share(self) -> float:
        """Share of the input that came from a cache; `nan` without input."""
        return self.cached / self.read if self.read else math.nan

    @property
    def per_claim(self) -> float:
        """Dollars of one claim."""
        return self.dollars / self.n_rows


def spends_of(outcomes: Sequence[Outcome]) -> tuple[Spend, ...]:
    """One spend a setting, in the order of the outcomes."""
    settings = dict.fromkeys(replace(row.setting, epoch=0) for row in outcomes)
    return tuple(
        _spend(setting, [row for row in outcomes if replace(row.setting, epoch=0) == setting]) for setting in settings
    )


def _spend(setting: Setting, rows: Sequence[Outcome]) -> Spend:
    return Spend(
        setting,
        len(rows),
        sum(row.input_tokens for row in rows),
        sum(row.cache_read_tokens for row in rows),
        sum(row.output_tokens for row in rows),
        sum(row.reasoning_tokens for row in rows),
        math.fsum(math.nan if row.dollars is None else row.dollars for row in rows),
    )


def spend_line(spends: Sequence[Spend], tariff: Tariff) -> str:
    """The spend of a run in one sentence; empty where nobody bills it."""
    if tariff.silent or not spends:
        return ""
    dollars = math.fsum(one.dollars for one in spends)
    read, cached = sum(one.read for one in spends), sum(one.cached for one in spends)
    share = f"{cached / read:.0%} of {read:,} input tokens" if read else "no input token"
    if math.isnan(dollars):
        return f"Spent: price unknown; {share} came from a cache, {sum(one.written for one in spends):,} were written."
    arms = ", ".join(f"{one.setting.label} {shown_dollars(one.dollars)}" for one in spends)
    return f"Spent: {shown_dollars(dollars)} by the prices of {tariff.as_of} ({arms}); {share} came from a cache."


def spend_table(spends: Sequence[Spend], tariff: Tariff) -> Table:
    """The spend of every setting."""
    heads = (
        ("setting", "setting"),
        ("claims", "n_rows"),
        ("input tokens", "input_tokens"),
        ("from a cache", "cached_share"),
        ("output tokens", "output_tokens"),
        ("reasoning", "reasoning_tokens"),
        ("cost", "dollars"),
        ("cost a claim", "dollars_per_claim"),
    )
    title = f"What {tariff.predictor} cost by the prices of {tariff.as_of}"
    notes = ("replies that a fault lost on the way are in spend.jsonl, not here",)
    return Table("spend", title, tuple(Column(head, (key,)) for head, key in heads), tuple(map(_cells, spends)), notes)


def _cells(one: Spend) -> tuple[Cell, ...]:
    share = one.cached_share
    cached = Cell("-", (None,)) if math.isnan(share) else Cell(f"{share:.0%}", (share,))
    counts = (count(one.n_rows), count(one.read), cached, count(one.written), count(one.reasoning))
    return (words(one.setting.label), *counts, _money(one.dollars), _money(one.per_claim))


def _money(dollars: float) -> Cell:
    return Cell(shown_dollars(dollars), (None if math.isnan(dollars) else dollars,))


def spend_fields(spends: Sequence[Spend], setting: Setting) -> dict[str, object]:
    """What `uplift.json` says of one setting's money; null where it is unknown."""
    one = next((one for one in spends if one.setting == replace(setting, epoch=0)), None)
    known = one is not None and not math.isnan(one.dollars)
    share = math.nan if one is None else one.cached_share
    return {
        "dollars": one.dollars if one and known else None,
        "dollars_per_claim": one.per_claim if one and known else None,
        "cached_share": None if math.isnan(share) else share,
    }
