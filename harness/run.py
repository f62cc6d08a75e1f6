"""One evaluation: arms over the same claims, started, resumed, audited, written down.

Invariants: the folder's name is derived from everything that could change an answer, so the same command continues
its own run and never another; no answer that was paid for is asked again; no table is made of a run that is not
complete or did not pass the leak audit.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from inspect_ai import Task, eval_set
from inspect_ai.log import EvalLog
from inspect_ai.model import Model

from agents.predictors import build_predictor
from harness.exits import UnfinishedError
from harness.files import DiskFullError, disk_full, disk_full_said
from harness.leaks import check_leaks
from harness.logs import first_error, read_headers
from harness.manifest import Manifest, made_now, save_manifest, this_command
from harness.outcomes import read_outcomes
from harness.plan import Plan, axes_of, run_name, setup_of, suffix_of
from harness.progress import Advance, progress
from harness.results import LOGS, write_results
from harness.server import Attached, Wanted, tool_server
from harness.task import Axes, arm_task, claim_samples

ATTEMPTS = 3
"""Times that claims which ended in an error are run before the run gives up for now."""
WORKING_LIMIT_S = 3600
"""Longest that one claim may take."""
LOG_BUFFER = 5
"""Claims that may be lost to `kill -9`, per arm."""


@dataclass(frozen=True)
class Finished:
    """A run that is complete."""

    folder: Path
    """Where everything is."""
    table: str
    """The text of its table."""


def evaluate(plan: Plan, root: Path, *, url: str | None = None, say: Callable[[str], None]) -> Finished:
    """Run a plan, or continue it, or find it done.

    Args:
        plan: From `make_plan`.
        root: The results folder.
        url: Of a tool server to attach to; None starts one.
        say: Shows one line to the user.

    Raises:
        UserError: The server does not fit, or the disk is full.
        UnfinishedError: A server died or claims kept failing.
        LeakError: The audit found a leak.
    """
    wanted = Wanted(plan.request.tool, plan.target.name, plan.claim_set.path / "transcripts.jsonl", plan.positions)
    if plan.needs_server:
        say(f"Tool server: {f'attaching to {url}' if url else f'starting {wanted.tool} for {wanted.target}'}")
    with disk_full_said(root), tool_server(wanted, root, url=url) if plan.needs_server else nullcontext() as attached:
        model, _ = build_predictor(plan.request.predictor)
        about = attached.about if attached else None
        axes = {arm: axes_of(plan, arm, about, model) for arm in plan.arms}
        folder = root / run_name(plan, axes)
        save_manifest(_manifest(plan, folder.name, axes, attached), folder)
        say(f"Run: {folder}")
        if _missing(plan, folder):
            _run_arms(plan, folder, axes, attached, model)
    check_leaks(plan, folder)
    return Finished(folder, write_results(folder))


def _manifest(plan: Plan, run: str, axes: Mapping[str, Axes], attached: Attached | None) -> Manifest:
    request, first = plan.request, axes[plan.arms[0]]
    return Manifest(
        run=run,
        settings={
            "target": plan.target.name,
            "asked_target": request.target,
            "tool": request.tool,
            "predictor": request.predictor,
            "calls": plan.calls,
            "positions": plan.positions,
            "limit": request.limit,
            "seed": request.seed,
            "profile": request.profile,
        },
        arms=plan.arms,
        hashes={
            "claim_set": first.claim_set_sha256,
            "prompts": first.prompt_sha256,
            "predictor": first.predictor_sha256,
            **{f"tool {arm}": axis.tool_sha256 for arm, axis in axes.items() if axis.tool_sha256},
        },
        claims={
            "folder": str(request.claims.resolve()) if request.claims else f"claims/data/{plan.target.name}",
            "filters": request.filters,
            "n_all": len(plan.claim_set.claims),
            "n_used": len(plan.claims),
        },
        tools={request.tool: dict(attached.about.raw)} if attached else {},
        made=made_now(this_command()),
    )


def _done(folder: Path) -> Counter[str]:
    """Claims with an outcome, by arm."""
    logs = folder / LOGS
    return Counter(outcome.setting.arm for outcome in read_outcomes(logs)) if read_headers(logs) else Counter()


def _missing(plan: Plan, folder: Path) -> int:
    return len(plan.claims) * len(plan.arms) - _done(folder).total()


def _run_arms(plan: Plan, folder: Path, axes: Mapping[str, Axes], attached: Attached | None, model: Model) -> None:
    totals = dict.fromkeys(plan.arms, len(plan.claims))
    with progress(totals, _done(folder)) as advance:
        for _ in range(ATTEMPTS):
            logs = _eval_set(_tasks(plan, axes, attached, model, advance), folder)
            _check_disk(logs, folder)
            ended = attached.ended() if attached else None
            if ended is not None or not _missing(plan, folder):
                break
    n_missing = _missing(plan, folder)
    if n_missing:
        n_all = len(plan.claims) * len(plan.arms)
        raise UnfinishedError(
            f"{ended or first_error(folder / LOGS) or 'Some claims were not asked.'} "
            f"{n_all - n_missing} of {n_all} answers are in and kept in {folder}. "
            "Give the same command again: it asks only for the others."
        )


def _tasks(
    plan: Plan, axes: Mapping[str, Axes], attached: Attached | None, model: Model, advance: Advance
) -> list[Task]:
    return [
        arm_task(
            axes[arm],
            claim_samples(plan.claim_set, plan.claims, plan.labels, suffix=suffix_of(plan, arm)),
            setup_of(plan, arm, attached.url if attached else None),
            model,
            partial(advance, arm),
        )
        for arm in plan.arms
    ]


def _eval_set(tasks: list[Task], folder: Path) -> list[EvalLog]:
    with _inspect_speaks_to(folder / "inspect.log"):
        _, logs = eval_set(
            tasks,
            log_dir=str(folder / LOGS),
            retry_attempts=0,
            retry_immediate=False,
            continue_on_fail=True,
            max_tasks=len(tasks),
            working_limit=WORKING_LIMIT_S,
            display="none",
            log_realtime=False,
            log_buffer=LOG_BUFFER,
            log_level="error",
            ctl_server=False,
        )
    return logs


@contextmanager
def _inspect_speaks_to(path: Path) -> Iterator[None]:
    """Standard output is for our table: what Inspect prints goes to a file."""
    with path.open("a", encoding="utf-8") as file, redirect_stdout(file):
        yield


def _check_disk(logs: list[EvalLog], folder: Path) -> None:
    marks = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
    if any(log.error is not None and any(mark in log.error.message for mark in marks) for log in logs):
        raise DiskFullError(disk_full(folder))
