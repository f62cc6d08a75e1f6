"""The money of one evaluation: its tariff, the consent to its cost, and the purse that each start pays from.

Invariants: nobody is asked about what nobody bills; a cap needs a price; what an earlier start has paid counts against
the cap of the next.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from claims.schema import Claim, UserError
from harness.arms import BASELINE
from harness.logs import Setting
from harness.money.estimate import estimate, estimate_table, everything, per_claim, total
from harness.money.ledger import NAME, Ledger
from harness.money.pricing import Tariff, shown_dollars, tariff_of, unknown_price
from harness.money.purse import Purse
from harness.plan import Plan

ASK_ABOVE = 5.0
"""Dollars above which a run that could cost as much is not started without consent."""

Say = Callable[[str], None]
"""Shows one line to the user."""


@dataclass(frozen=True)
class Money:
    """What the user said about money."""

    max_cost: float | None = None
    """Dollars that the run may cost in all; itself a consent."""
    prices: Path | None = None
    """Another price list than the house's."""
    batch_baseline: bool = False
    """Send the baseline through the provider's batch API."""
    yes: bool = False
    """Whether the cost is agreed to, whatever it is."""
    confirm: Callable[[str], bool] | None = None
    """Asks a question on a terminal; None where nobody can answer."""

    def tariff(self, predictor: str) -> Tariff:
        """What the predictor's tokens cost.

        Raises:
            UserError: A cap is given and cannot be kept, or there is no batch API.
        """
        batched = frozenset({BASELINE}) if self.batch_baseline else frozenset()
        tariff = tariff_of(predictor, batched=batched, path=self.prices)
        if self.max_cost is None:
            return tariff
        if not self.max_cost > 0:
            raise UserError(f"--max-cost is {self.max_cost:g}; expected dollars above 0, such as 20.")
        if not tariff.known:
            raise UserError(f"--max-cost cannot be kept, {unknown_price(predictor, self.prices)}")
        return tariff

    def estimate(self, plan: Plan) -> str:
        """What a whole run should cost, as Markdown."""
        tariff = self.tariff(plan.request.predictor)
        unknown = "" if tariff.known else f"\n{unknown_price(plan.request.predictor, self.prices)}\n"
        return estimate_table(estimate(plan, tariff, everything(plan)), tariff) + unknown


def agree(plan: Plan, money: Money, tariff: Tariff, left: Mapping[Setting, Sequence[Claim]], say: Say) -> None:
    """Tell what the rest of a run should cost, and ask where that is much.

    Raises:
        UserError: It is much, and nobody agreed.
    """
    if tariff.free:
        return
    if not tariff.known:
        say(f"Cost: {unknown_price(plan.request.predictor, money.prices)} Nothing is asked, nothing limits the run.")
        return
    estimates = estimate(plan, tariff, left)
    dollars = total(estimates)
    low, likely, high = map(shown_dollars, dollars)
    say(f"Cost: about {likely} ({low} to {high}) by the prices of {tariff.as_of}; see `uplift cost`.")
    if money.yes or money.max_cost is not None or dollars[-1] <= ASK_ABOVE:
        return
    if money.confirm is None:
        raise UserError(
            f"The run could cost {high}, and nobody is here to agree: expected --yes, or "
            "--max-cost with the dollars that it may cost at most. Add one of them."
        )
    if not money.confirm(f"{estimate_table(estimates, tariff)}\nStart?"):
        raise UserError("Not started, nothing was paid. --limit makes it smaller, --max-cost sets a limit.")


def purse_of(
    plan: Plan, money: Money, tariff: Tariff, folder: Path, left: Mapping[Setting, Sequence[Claim]]
) -> Purse | None:
    """A purse for one start of a run; None where nobody bills it or the price is unknown."""
    if tariff.free or not tariff.known:
        return None
    expected = per_claim(estimate(plan, tariff, left))
    return Purse(tariff, Ledger(folder / NAME), cap=money.max_cost, expected=expected)


def paid(folder: Path, tariff: Tariff) -> str:
    """What all starts of a run have paid, in one line."""
    ledger = Ledger(folder / NAME)
    if tariff.free:
        return "Paid in all: nothing, nobody bills this predictor."
    if not tariff.known:
        return "Paid in all: price unknown."
    lost = f", {ledger.n_lost} of them lost on the way and counted at the mean price" if ledger.n_lost else ""
    return f"Paid in all: {shown_dollars(ledger.dollars)} for {ledger.n_paid + ledger.n_lost:,} replies{lost}."
