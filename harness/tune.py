"""Trying prompts and budgets out, on clusters that no evaluation uses.

Every variant is a run of its own on the split `tune`, with the budgets as its grid; the report stands beside the runs.
Invariant: that a variant saw those clusters is written down before it is asked about the first of them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from agents.prompts import prompts_from
from harness.arms import budget_label
from harness.exits import UnfinishedError
from harness.files import write_text
from harness.money.ledger import NAME, Ledger
from harness.money.session import Money
from harness.plan import Plan, Request, make_plan
from harness.run import evaluate
from harness.splits import TUNE, TUNE_SHARE
from harness.tuned import record, tuning_of

HOUSE = "house"
"""Name of the prompts that ship."""


@dataclass(frozen=True)
class Tried:
    """One setting of one variant."""

    variant: str
    """Name of the variant's folder, or `house`."""
    arm: str
    """Name of the arm."""
    calls: int
    """Budget of tool calls."""
    positions: int
    """Most positions in one call."""
    auroc: float | None
    """On the claims of the split; None when it is not defined."""
    auroc_low: float | None
    """Lower bound."""
    auroc_high: float | None
    """Upper bound."""
    uplift: float | None
    """Over the variant's own baseline; None for the baseline."""
    n_claims: int
    """Claims it was computed from."""
    n_clusters: int
    """Their clusters."""
    unanswered: int
    """Claims without an answer."""
    run: str
    """Name of the run's folder."""


@dataclass(frozen=True)
class Tuned:
    """A tuning that is complete."""

    folder: Path
    """Where its report is."""
    report: str
    """The text of the report."""


def tune(
    request: Request,
    variants: Sequence[Path],
    root: Path,
    *,
    url: str | None = None,
    say: Callable[[str], None],
    money: Money,
) -> Tuned:
    """Run every variant and the house's prompts on the split `tune`.

    Args:
        request: What to run; its split and prompts are replaced.
        variants: Folders of prompts.
        root: The results folder.
        url: Of a tool server to attach to; None starts one for every variant.
        say: Shows one line to the user.
        money: Cap, prices and consent; the cap is for all variants together.

    Raises:
        UserError: A variant is none.
        UnfinishedError: The cap is reached, or a run could not be completed.
    """
    plans = {
        name_of(prompts): make_plan(replace(request, split=TUNE, prompts=prompts)) for prompts in (None, *variants)
    }
    left, tried = money.max_cost, []
    for name, plan in plans.items():
        say(f"Variant {name}: {len(plan.claims)} claims of the split {TUNE} (seed {request.split_seed})")
        with prompts_from(plan.request.prompts):
            record(tuning_of(plan), filter(None, (root, plan.request.prompts)))
        if left is not None and left <= 0:
            raise UnfinishedError("The cap is reached. Give the same command with a higher --max-cost to continue.")
        finished = evaluate(plan, root, url=url, say=say, money=replace(money, max_cost=left))
        left = None if left is None else left - Ledger(finished.folder / NAME).dollars
        tried += list(_rows(name, finished.folder))
    first = next(iter(plans.values()))
    folder = root / f"tune-{first.target.name}-{request.predictor.replace('/', '-')}"
    report = report_of(tried, first)
    write_text(folder / "tune.md", report)
    write_text(folder / "tune.json", _json(tried, request))
    return Tuned(folder, report)


def name_of(prompts: Path | None) -> str:
    """What a variant is called."""
    return prompts.resolve().name if prompts else HOUSE


def _rows(name: str, folder: Path) -> list[Tried]:
    rows = json.loads((folder / "uplift.json").read_text(encoding="utf-8"))
    return [_tried(name, row, folder.name) for row in rows]


def _tried(name: str, row: Mapping[str, object], run: str) -> Tried:
    outcomes = row["outcomes"]
    assert isinstance(outcomes, Mapping)
    return Tried(
        variant=name,
        arm=str(row["arm"]),
        calls=int(str(row["calls"])),
        positions=int(str(row["positions"])),
        auroc=_number(row["auroc"]),
        auroc_low=_number(row["auroc_low"]),
        auroc_high=_number(row["auroc_high"]),
        uplift=_number(row["uplift"]),
        n_claims=int(str(row["n_claims"])),
        n_clusters=int(str(row["n_clusters"])),
        unanswered=sum(outcomes.values()) - outcomes.get("answered", 0),
        run=run,
    )


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def _json(tried: Sequence[Tried], request: Request) -> str:
    found = {
        "split": TUNE,
        "split_seed": request.split_seed,
        "share": TUNE_SHARE,
        "tried": [asdict(one) for one in tried],
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def report_of(tried: Sequence[Tried], plan: Plan) -> str:
    """The whole of `tune.md`: variants by the mean AUROC of their arms, the best first."""
    request = plan.request
    order = sorted(dict.fromkeys(one.variant for one in tried), key=lambda name: -_mean(tried, name))
    lines = [
        f"Split: {TUNE} (seed {request.split_seed}, about {TUNE_SHARE:.0%} of the clusters). Target: "
        f"{plan.target.name}. Predictor: {request.predictor}. Nothing here is a result: evaluate with --split eval "
        f"--split-seed {request.split_seed}, and with --prompts for a variant.",
        "",
        "| variant | arm | budget | AUROC | uplift | claims | clusters | unanswered |",
        "|---|---|---|---|---|---:|---:|---:|",
    ]
    lines += [_line(one) for name in order for one in tried if one.variant == name]
    lines += ["", f"Variants are in the order of the mean AUROC of their arms; {order[0]} has the highest."]
    return "\n".join(lines) + "\n"


def _mean(tried: Sequence[Tried], name: str) -> float:
    """Undefined AUROCs count as chance, so that a variant gains nothing by being undefined."""
    values = [0.5 if one.auroc is None else one.auroc for one in tried if one.variant == name]
    return sum(values) / len(values)


def _line(one: Tried) -> str:
    budget = budget_label(one.calls, one.positions)
    bounds = "" if one.auroc_low is None else f" ({one.auroc_low:.3f} to {one.auroc_high:.3f})"
    auroc = "undefined" if one.auroc is None else f"{one.auroc:.3f}{bounds}"
    uplift = "-" if one.uplift is None else f"{one.uplift:+.3f}"
    cells = (one.variant, one.arm, budget, auroc, uplift, str(one.n_claims), str(one.n_clusters), str(one.unanswered))
    return f"| {' | '.join(cells)} |"
