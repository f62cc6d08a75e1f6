"""What `uplift power` prints: from a pilot, or from stated assumptions.

Invariant: the assumptions and the source of every number stand above the table.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from claims.build.wild.money import Usage
from claims.schema import UserError
from harness.arm_result import ArmResult
from harness.arms import BASELINE, is_control
from harness.declared import Declared
from harness.manifest import load_manifest
from harness.money.pricing import Tariff, shown_dollars, tariff_of
from harness.outcomes import Outcome, read_outcomes
from harness.power import POWER, Planned, detectable, detectable_at, scaled, simulated_error
from harness.results import LOGS, run_results
from harness.simulate import Design
from harness.tabular import grid, number_text

PAPER_CLAIMS = 1294
"""Claims of the paper's main evaluation."""
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Sizes of study that are shown, as multiples of the one asked for."""


@dataclass(frozen=True)
class Assumed:
    """A study that nobody has run."""

    claims: int | None
    """Claims; None takes the paper's number."""
    investigations: int | None
    """Clusters; None follows from the claims per investigation."""
    claims_per: float
    """Claims per investigation."""
    auroc: float
    """Of the baseline."""
    between_arms: float
    """Correlation of the arms."""
    within: float
    """Correlation within an investigation."""
    predictor: str
    """Whose tokens are paid."""
    tokens_in: int
    """Read per claim by both arms together."""
    tokens_out: int
    """Written per claim by both arms together."""


def plan_assumed(assumed: Assumed) -> str:
    """The table for a study under assumptions.

    Raises:
        UserError: An assumption is out of range.
    """
    _check(assumed)
    n_claims = assumed.claims or PAPER_CLAIMS
    per = n_claims / assumed.investigations if assumed.investigations else assumed.claims_per
    tariff = tariff_of(assumed.predictor)
    price = tariff.dollars(Usage(2, assumed.tokens_in, 0, 0, assumed.tokens_out))
    size = max(1, round(per))
    rows = []
    for multiple in SIZES:
        clusters = max(4, round(n_claims * multiple / per))
        design = Design(clusters, size, assumed.auroc, 0.0, assumed.between_arms, assumed.within, size == 1)
        claims = round(clusters * per)
        rows.append(Planned(claims, clusters, simulated_error(design), detectable(design), claims * price))
    lines = [
        f"Assumed: baseline AUROC {assumed.auroc:g}, correlation of the arms {assumed.between_arms:g} and within an "
        f"investigation {assumed.within:g} (label given), {per:.3g} claims per investigation.",
        f"Cost: {assumed.predictor}, {assumed.tokens_in:,} tokens read and {assumed.tokens_out:,} written per claim by "
        f"the two arms together, {_priced(tariff)}.",
    ]
    return _shown(lines, rows)


def _check(assumed: Assumed) -> None:
    limits = {
        "--auroc": (assumed.auroc, 0.5, 0.99),
        "--between-arms": (assumed.between_arms, 0.0, 0.999),
        "--within": (assumed.within, 0.0, 0.999),
        "--claims-per": (assumed.claims_per, 1.0, 1000.0),
        "--claims": (assumed.claims or PAPER_CLAIMS, 20, 1_000_000),
        "--investigations": (assumed.investigations or 20, 10, assumed.claims or PAPER_CLAIMS),
    }
    for name, (value, low, high) in limits.items():
        if not low <= value <= high:
            raise UserError(f"{name} is {value:g}; expected a number from {low:g} to {high:g}.")


def plan_pilot(folder: Path, arm: str | None, claims: int | None, predictor: str) -> str:
    """The table for a study like a pilot, larger or smaller.

    Args:
        folder: Of a run.
        arm: Whose uplift is planned for; None takes the first tool.
        claims: Of the study; None takes the pilot's.
        predictor: Whose tokens are paid.

    Raises:
        UserError: It is no run, it has no such arm, or its uplift has no standard error.
    """
    manifest = load_manifest(folder)
    outcomes = read_outcomes(folder / LOGS)
    result = _arm(run_results(manifest, Declared.of(manifest), outcomes), arm, folder)
    uplift = result.uplift
    if uplift is None or uplift.tests is None or not uplift.tests.delong.standard_error > 0:
        raise UserError(
            f"The uplift of {result.setting.arm} in {folder} has no standard error above 0. Expected a pilot with both "
            "classes in several clusters, and answers that differ between the arms. Take another run or arm."
        )
    error, per = uplift.tests.delong.standard_error, uplift.n_claims / uplift.n_clusters
    usage = _usage(outcomes, {BASELINE, result.setting.arm})
    tariff = tariff_of(predictor)
    rows = []
    for multiple in SIZES:
        clusters = max(4, round((claims or uplift.n_claims) * multiple / per))
        there = scaled(error, uplift.n_clusters, clusters)
        n_claims = round(clusters * per)
        rows.append(Planned(n_claims, clusters, there, detectable_at(there), n_claims * tariff.dollars(usage)))
    lines = [
        f"Pilot {manifest.run}: {result.setting.label}, {uplift.n_claims} claims in {uplift.n_clusters} clusters, "
        f"uplift {uplift.value:+.3f}, standard error {error:.4f} (DeLong over clusters).",
        f"Cost: {predictor}, {usage.read:,} tokens read and {usage.output:,} written per claim by the two arms, as in "
        f"the pilot, {_priced(tariff)}.",
    ]
    return _shown(lines, rows)


def _arm(results: tuple[ArmResult, ...], arm: str | None, folder: Path) -> ArmResult:
    there = [result for result in results if result.uplift is not None]
    wanted = [r for r in there if (r.setting.arm == arm if arm else not is_control(r.setting.arm))]
    if not wanted:
        raise UserError(
            f"{folder} has no {f'arm {arm!r}' if arm else 'tool arm'} to plan for; it has "
            f"{', '.join(result.setting.arm for result in there) or 'none'}. Name one with --arm."
        )
    return wanted[0]


def _usage(outcomes: tuple[Outcome, ...], arms: set[str]) -> Usage:
    """Mean tokens of a claim, summed over arms."""
    rows: dict[str, list[Outcome]] = defaultdict(list)
    for row in outcomes:
        if row.setting.arm in arms:
            rows[row.setting.arm].append(row)

    def mean(tokens: Callable[[Outcome], int]) -> int:
        return round(sum(sum(map(tokens, listed)) / len(listed) for listed in rows.values()))

    cached, kept = mean(lambda row: row.cache_read_tokens), mean(lambda row: row.cache_write_tokens)
    read, written = mean(lambda row: row.input_tokens), mean(lambda row: row.output_tokens)
    return Usage(len(rows), read - cached - kept, cached, kept, written)


def _priced(tariff: Tariff) -> str:
    if tariff.free:
        return "which nobody bills"
    return f"prices of {tariff.as_of}" if tariff.known else "whose price is unknown"


def _shown(lines: list[str], rows: list[Planned]) -> str:
    head = ("claims", "clusters", "standard error", f"uplift detected in {POWER:.0%}", "cost")
    body = [
        (
            f"{row.n_claims:,}",
            f"{row.n_clusters:,}",
            f"{row.standard_error:.4f}",
            "none" if math.isnan(row.detectable) else f"+{number_text(row.detectable)}",
            shown_dollars(row.dollars),
        )
        for row in rows
    ]
    foot = "Detected: the 95 % interval leaves out zero. Costs are of the baseline and one tool arm, without controls."
    return "\n".join([*lines, "", *grid(head, body), "", foot]) + "\n"
