"""The two tables of a run: what was left after every filter (the paper's Table 2), and what it cost (Table 3).

Invariant: a view of records; nothing is decided or measured here.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from claims.build.wild.filters import FILTERS, Columns, kept_ids
from claims.build.wild.money import Entry, Usage, totals
from claims.build.wild.records import INVESTIGATED, OUTCOMES, Investigated

STAGES = ("screen", "investigate", "classify", "verify", "claims", "filters")
"""Rows of the cost table."""


@dataclass(frozen=True)
class Count:
    """One line of the first table."""

    step: str
    """What was done."""
    n: int
    """How many are left."""
    n_true: int | None = None
    """Of claims, the true ones; None where the line counts something else."""

    def as_row(self) -> dict[str, object]:
        """JSON-ready."""
        return {"step": self.step, "n": self.n, **({} if self.n_true is None else {"n_true": self.n_true})}


def filter_counts(investigated: Sequence[Investigated], n_verified: int, columns: Sequence[Columns]) -> list[Count]:
    """Prompts, investigations and claims after every step, in the paper's order."""
    outcomes = Counter(one.outcome for one in investigated)
    n_screened_in = sum(outcomes[outcome] for outcome in (*INVESTIGATED, "rare", "unmeasured"))
    counts = [
        Count("prompts", len(investigated)),
        Count("+ unexpected enough", n_screened_in),
        Count("+ frequent enough: investigated", sum(outcomes[outcome] for outcome in INVESTIGATED)),
        Count("+ report filed", outcomes["filed"]),
        Count("investigations (verified)", n_verified),
        _claims("counterfactual claims", columns, ()),
    ]
    names = tuple(FILTERS)
    shown = {"concrete": "+ concreteness >= 3", "balanced": "+ balanced, capped", "single-factor": "+ single-factor"}
    counts += [_claims(shown.get(name, f"+ {name}"), columns, names[: at + 1]) for at, name in enumerate(names)]
    return counts


def _claims(step: str, columns: Sequence[Columns], names: Sequence[str]) -> Count:
    kept = kept_ids(columns, names)
    return Count(step, len(kept), sum(one.label for one in columns if one.claim_id in kept))


def faults(investigated: Sequence[Investigated], lost: Mapping[str, int]) -> dict[str, int]:
    """What went wrong and was counted instead of guessed: outcomes, verdicts, scores, forms."""
    outcomes = Counter(one.outcome for one in investigated)
    batches = [one.baseline for one in investigated if one.baseline]
    batches += [experiment.batch for one in investigated for experiment in one.experiments]
    counts = {f"prompts {outcome}": outcomes[outcome] for outcome in OUTCOMES if outcome != "filed"}
    counts["verdicts unusable"] = sum(batch.n_unusable for batch in batches)
    counts["verdicts asked for"] = sum(len(batch.verdicts) for batch in batches)
    counts["scores unusable"] = sum(score is None for one in investigated for score in one.scores.given)
    counts["scores asked for"] = sum(len(one.scores.given) for one in investigated)
    return {**counts, **lost}


def render_counts(counts: Sequence[Count], notes: Mapping[str, int]) -> str:
    """The first table as Markdown, and what was counted beside it."""
    lines = ["| step | left | true | false |", "|---|---:|---:|---:|"]
    for one in counts:
        sides = ("", "") if one.n_true is None else (f"{one.n_true:,}", f"{one.n - one.n_true:,}")
        lines.append(f"| {one.step} | {one.n:,} | {sides[0]} | {sides[1]} |")
    beside = ", ".join(f"{name} {count:,}" for name, count in notes.items() if count)
    return "\n".join([*lines, "", f"Counted beside it: {beside or 'nothing'}."]) + "\n"


def cost_rows(entries: Sequence[Entry], n_investigations: int) -> list[dict[str, object]]:
    """Tokens and money of every stage and of the run, JSON-ready; money without a price is None."""
    by_stage = totals(entries, "stage")
    rows = [_cost_row(stage, *by_stage.get(stage, (Usage(), 0.0)), n_investigations) for stage in STAGES]
    whole = sum((usage for usage, _ in by_stage.values()), Usage())
    dollars = math.fsum(dollars for _, dollars in by_stage.values())
    return [*rows, _cost_row("total", whole, dollars, n_investigations)]


def _cost_row(stage: str, usage: Usage, dollars: float, n_investigations: int) -> dict[str, object]:
    known = not math.isnan(dollars)
    each = round(dollars / n_investigations, 6) if known and n_investigations else None
    return {"stage": stage, **usage.as_row(), "dollars": round(dollars, 6) if known else None, "dollars_each": each}


def render_costs(rows: Sequence[Mapping[str, object]], n_investigations: int, as_of: str) -> str:
    """The second table as Markdown."""
    lines = [
        "| stage | calls | input | cache read | cache write | output | cost | per investigation |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    names = ("n_calls", "input", "cache_read", "cache_write", "output")
    for row in rows:
        numbers = " | ".join(f"{row[name]:,}" for name in names)
        lines.append(f"| {row['stage']} | {numbers} | {_money(row['dollars'])} | {_money(row['dollars_each'])} |")
    lines += ["", f"{n_investigations:,} investigations; prices of {as_of}; the target's own responses are not priced."]
    return "\n".join(lines) + "\n"


def _money(value: object) -> str:
    return f"${value:,.4f}" if isinstance(value, int | float) else "no price"
