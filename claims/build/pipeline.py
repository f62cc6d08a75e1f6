"""The offline builder: from investigations written as data to a bank of labelled claims, without any judge model.

Invariant: the same investigations, target and seed give the same bank, in one run or in many that were killed.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claims.atomic import write_atomically
from claims.build.bank import write_bank
from claims.build.measure import Measured, deepen, screen
from claims.build.read import read_excluded, read_investigations
from claims.build.report import report
from claims.build.sampler import Sampler, StoredSampler
from claims.build.second import sample_again
from claims.build.select import select
from claims.build.spec import Investigation
from claims.load import load_claims
from tools.model import load
from tools.targets import Sampling, Target
from tools.weights import cache_root

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """What to build."""

    target: Target
    """Whose responses are measured."""
    out: Path
    """The bank's folder."""
    seed: int = 0
    """Of the samples behind the labels and of every choice; the second sampling uses the next one."""
    only: str | None = None
    """A shell pattern of investigation ids."""
    screen_only: bool = False
    """Stop after ten responses of every prompt."""
    most: int | None = None
    """Investigations to sample in full at most; None takes all."""
    grow: Path | None = None
    """A bank whose investigations go before all others, if there is one to grow."""
    report: Path | None = None
    """Where the Markdown report goes, if one is wanted."""


def build(plan: Plan) -> None:
    """Load the target, sample it and write the bank.

    Raises:
        UserError: No investigations, no weights, or no claim came out.
    """
    investigations = read_investigations(plan.target.name, plan.only)
    sampler = sampler_of(plan.target)
    card = {"target": plan.target.name, "revision": plan.target.revision, "weights": sampler.loaded.weights}
    excluded = read_excluded(plan.target.name)
    build_with(sampler, investigations, plan, sampling=plan.target.sampling, card=card, excluded=excluded)


def sampler_of(target: Target) -> StoredSampler:
    """Load the target; its samples are kept under the cache root."""
    return StoredSampler(load(target), target.sampling, cache_root() / "sampling" / target.name)


def build_with(
    sampler: Sampler,
    investigations: tuple[Investigation, ...],
    plan: Plan,
    *,
    sampling: Sampling,
    card: Mapping[str, object],
    excluded: Mapping[str, str] | None = None,
) -> None:
    """Measure the investigations through `sampler`, and write the report and the bank that the plan asks for."""
    measured = screen(sampler, investigations, plan.seed)
    if not plan.screen_only:
        measured = deepen(sampler, measured, plan.seed, most=plan.most, kept=_investigations_of(plan.grow))
    if plan.report is not None:
        plan.report.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(plan.report, report(measured))
        logger.info("the report is %s", plan.report)
    if not plan.screen_only:
        left_out = {
            one: why for one, why in (excluded or {}).items() if one in {i.investigation_id for i in investigations}
        }
        kept = [one for one in measured if one.investigation.investigation_id not in left_out]
        _write(sampler, kept, plan, {**card, "excluded_by_hand": left_out, "sampling": sampling.as_row()})


def _investigations_of(folder: Path | None) -> frozenset[str]:
    return frozenset() if folder is None else frozenset(claim.investigation_id for claim in load_claims(folder).claims)


def _write(sampler: Sampler, measured: list[Measured], plan: Plan, card: dict[str, object]) -> None:
    candidates, counts = select(measured, plan.seed)
    logger.info("left after every filter: %s", counts)
    checked = sample_again(sampler, candidates, plan.seed + 1)
    seeds = {"seed": plan.seed, "second_seed": plan.seed + 1, "most_investigations": plan.most}
    grown_from = {} if plan.grow is None else {"grown_from": load_claims(plan.grow).sha256}
    write_bank(
        plan.out, checked, sampler=sampler, seed=plan.seed, card={**card, **seeds, **grown_from, "counts": counts}
    )
    logger.info(
        "%s holds %d claims; the second sampling agrees on %d", plan.out, len(checked), sum(c.agrees for c in checked)
    )
