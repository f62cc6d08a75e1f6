"""The whole pipeline: from prompts to a claims folder, through stages that can be killed at any point.

Invariant: the same prompts, seed and stored replies give the same folder byte for byte; the folder appears complete or
not at all; a filter is a column, never a deletion.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from claims.atomic import write_atomically
from claims.build.check import check_claims
from claims.build.folder import write_folder
from claims.build.wild.engine import Response
from claims.build.wild.extract import Drafted, draft
from claims.build.wild.fence import FOLDER
from claims.build.wild.filters import COLUMNS_FILE, CONCRETE_AT_LEAST, Columns, choose_balanced, column_lines
from claims.build.wild.grade import grade
from claims.build.wild.investigate import Lab
from claims.build.wild.output import (
    Finished,
    claim_of,
    evidence_of,
    investigation_lines,
    label_of,
    screening_lines,
    transcript_of,
)
from claims.build.wild.records import INVESTIGATED, Investigated
from claims.build.wild.reproduce import Reproduction, reproduce
from claims.build.wild.screen import EXAMPLES
from claims.build.wild.study import study
from claims.build.wild.tables import Count, cost_rows, faults, filter_counts, render_costs, render_counts
from claims.build.wild.verify import is_verified
from claims.prompts.record import Prompt
from claims.schema import ClaimsError, UserError
from tools.targets import Sampling, Target

FRESH = 8
"""Responses of every edited prompt that are behind no label, for the ceiling arm."""
FRESH_STEP = 1
"""Added to the run's seed for them."""

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Told the stage, how many of its items are done, and how many there are."""


@dataclass(frozen=True)
class WildPlan:
    """What to build."""

    target: Target
    """Whose behaviour is investigated."""
    sampling: Sampling
    """How its responses are drawn."""
    prompts: tuple[Prompt, ...]
    """Where behaviours are looked for."""
    out: Path
    """The claims folder to make; must not exist."""
    work: Path
    """Where replies and responses are kept between runs, and where the tables go."""
    funnel: tuple[Mapping[str, object], ...] = ()
    """How the prompts were come by, for the card."""
    in_flight: int = 16
    """Prompts worked on at a time."""
    reproduce_all: bool = False
    """Whether edits outside the balanced set are reproduced as well."""


@dataclass(frozen=True)
class WildResult:
    """What came out."""

    out: Path | None
    """The claims folder, or None when no claim came out."""
    counts: tuple[Count, ...]
    """What was left after every step."""
    faults: dict[str, int]
    """What was counted instead of guessed."""
    costs: tuple[dict[str, object], ...]
    """Tokens and money of every stage."""
    text: str
    """Both tables as Markdown."""


def run_wild(plan: WildPlan, lab: Lab, *, progress: Progress | None = None) -> WildResult:
    """Run every stage, or what is left of it, and write the folder.

    Raises:
        UserError: `plan.out` exists, the cap was reached, a server or a provider fails, or no prompt can be sampled.
    """
    if plan.out.exists():
        raise ClaimsError(f"{plan.out} exists already. Remove it, or give another folder with --out.")
    if len({one.prompt_id for one in plan.prompts}) < len(plan.prompts):
        raise ValueError("a prompt comes twice")
    return asyncio.run(_run(plan, lab, progress or (lambda _stage, _done, _total: None)))


async def _run(plan: WildPlan, lab: Lab, progress: Progress) -> WildResult:
    try:
        runner = _Runner(plan, lab, progress)
        return await runner.run()
    finally:
        await lab.clerk.close()
        await lab.engine.close()


class _Runner:
    """One run."""

    def __init__(self, plan: WildPlan, lab: Lab, progress: Progress) -> None:
        self.plan = plan
        self.lab = lab
        self.progress = progress

    async def run(self) -> WildResult:
        studied = await self._each("prompts", (study(self.lab, prompt) for prompt in self.plan.prompts))
        _check_any(studied)
        verified = [one for one in studied if is_verified(self.lab, one)]
        drafts = await self._each("claims", (draft(self.lab, one) for one in verified))
        grades = await self._each("concreteness", (grade(self.lab, one) for one in verified))
        graded = {one.prompt.prompt_id: level for one, level in zip(verified, grades, strict=True)}
        finished = await self._filtered([claim for each in drafts for claim in each.claims], graded)
        lost = {
            "investigations unselected": sum(each.unselected for each in drafts),
            "experiments undescribed": sum(each.n_undescribed for each in drafts),
            "investigations ungraded": sum(level is None for level in grades),
        }
        return await self._write(studied, verified, finished, lost)

    async def _filtered(self, drafted: Sequence[Drafted], graded: Mapping[str, int | None]) -> list[Finished]:
        concrete = [
            (one.claim_id, one.label) for one in drafted if (graded[one.one.prompt.prompt_id] or 0) >= CONCRETE_AT_LEAST
        ]
        balanced = choose_balanced(concrete, self.lab.regime.cap, self.lab.seed)
        wanted = [one for one in drafted if self.plan.reproduce_all or one.claim_id in balanced]
        again = await self._each("reproduction", (reproduce(self.lab, one) for one in wanted))
        by_id = {one.claim_id: found for one, found in zip(wanted, again, strict=True)}
        fresh = await self._each("fresh responses", (self._fresh(one) for one in drafted))
        return [
            Finished(
                one,
                _columns(one, graded[one.one.prompt.prompt_id], one.claim_id in balanced, by_id.get(one.claim_id)),
                by_id.get(one.claim_id),
                responses,
            )
            for one, responses in zip(drafted, fresh, strict=True)
        ]

    async def _fresh(self, one: Drafted) -> tuple[Response, ...]:
        return await self.lab.engine.draw(one.experiment.messages, FRESH, self.lab.seed + FRESH_STEP)

    async def _each(self, stage: str, jobs: Iterable[Awaitable[T]]) -> list[T]:
        """Run the jobs, a bounded number at a time, and tell of every one that is done."""
        waiting = list(jobs)
        slots = asyncio.Semaphore(self.plan.in_flight)
        done = 0
        self.progress(stage, 0, len(waiting))

        async def bounded(job: Awaitable[T]) -> T:
            nonlocal done
            async with slots:
                result = await job
            done += 1
            self.progress(stage, done, len(waiting))
            return result

        return await self.lab.clerk.gather(bounded(job) for job in waiting)

    async def _write(
        self,
        studied: Sequence[Investigated],
        verified: Sequence[Investigated],
        finished: Sequence[Finished],
        lost: Mapping[str, int],
    ) -> WildResult:
        entries = list(self.lab.clerk.entries.values())
        columns = [one.columns for one in finished]
        counts = filter_counts(studied, len(verified), columns)
        notes = faults(studied, lost)
        n_investigated = sum(one.outcome in INVESTIGATED for one in studied)
        costs = cost_rows(entries, n_investigated)
        text = (
            f"{render_counts(counts, notes)}\n{render_costs(costs, n_investigated, self.lab.clerk.purse.prices.as_of)}"
        )
        names = frozenset(one.prompt.prompt_id for one in verified)
        more = {
            COLUMNS_FILE: column_lines(columns),
            "investigations.jsonl": investigation_lines(studied, names, finished, entries),
            "screening.jsonl": screening_lines(studied),
        }
        for name, body in {**more, "tables.md": text}.items():
            write_atomically(self.plan.work / name, body)
        if finished:
            card = {**self._card(), "counts": [one.as_row() for one in counts], "faults": notes, "costs": costs}
            await self._write_folder(finished, card, more)
        return WildResult(self.plan.out if finished else None, tuple(counts), notes, tuple(costs), text)

    async def _write_folder(
        self, finished: Sequence[Finished], card: Mapping[str, object], more: Mapping[str, str]
    ) -> None:
        ones = {one.draft.one.prompt.prompt_id: one.draft.one for one in finished}
        transcripts = [await transcript_of(self.lab.engine, one, self.lab.seed) for one in ones.values()]
        write_folder(
            self.plan.out,
            claims=[claim_of(one) for one in finished],
            labels=[label_of(one) for one in finished],
            transcripts=transcripts,
            evidence=[evidence_of(one) for one in finished],
            card=card,
            check=_check,
            more=more,
        )

    def _card(self) -> dict[str, object]:
        plan, lab = self.plan, self.lab
        return {
            "target": plan.target.name,
            "revision": plan.target.revision,
            **lab.engine.identity(),
            "sampling": plan.sampling.as_row(),
            "seed": lab.seed,
            "fresh_seed": lab.seed + FRESH_STEP,
            "regime": asdict(lab.regime),
            "models": {name: role.model for name, role in lab.clerk.roles.items()},
            "instructions_sha256": instructions_sha256(),
            "prompts": list(plan.funnel) or [{"reason": "given", "dropped": 0, "left": len(plan.prompts)}],
        }


def _columns(one: Drafted, level: int | None, balanced: bool, again: Reproduction | None) -> Columns:
    return Columns(
        claim_id=one.claim_id,
        label=one.label,
        concreteness=level,
        balanced=balanced,
        reproduced=None if again is None else again.kept,
        reproduced_yes=again.batch.n_yes if again else 0,
        reproduced_n=again.batch.n if again else 0,
        single_factor=not one.description.confounded,
    )


def _check_any(studied: Sequence[Investigated]) -> None:
    refused = [one for one in studied if one.outcome == "refused"]
    if studied and len(refused) == len(studied):
        raise UserError(f"The target took none of the {len(studied)} prompts. The first: {refused[0].detail}")


def _check(folder: Path) -> None:
    problems = check_claims(folder).problems
    if problems:
        raise ClaimsError(f"The claims were not written: {'. '.join(problems)}.")


def instructions_sha256() -> str:
    """Hash of every instruction file and of the pool of examples."""
    digest = hashlib.sha256()
    for path in (*sorted(FOLDER.glob("*.md")), EXAMPLES):
        digest.update(f"\n{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()
