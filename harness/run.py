"""One evaluation: arms over the same claims, started, resumed, audited, written down.

Invariants: the folder's name is derived from everything that could change an answer, so the same command continues
its own run and never another; no answer that was paid for is asked again; no table is made of a run that is not
complete or did not pass the leak audit.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from inspect_ai import Task, eval_set
from inspect_ai.log import EvalLog
from inspect_ai.model import Model

from agents.foreign import is_foreign
from agents.predictors import build_predictor, check_predictor
from agents.prompts import prompts_from
from agents.provider import closed, listen
from claims.schema import Claim, UserError
from harness.arms import is_sham, tool_of
from harness.declared import check_margin, manifest_of
from harness.exits import UnfinishedError
from harness.files import DiskFullError, disk_full, disk_full_said
from harness.identity import axes_of, run_name, setup_of, suffix_of
from harness.leaks import check_leaks
from harness.logs import Setting, first_error, read_headers
from harness.manifest import save_manifest
from harness.money.guard import admitting, paying
from harness.money.pricing import Tariff
from harness.money.purse import Purse
from harness.money.session import Money, Say, agree, paid, purse_of
from harness.outcomes import read_outcomes
from harness.plan import Plan, arm_name
from harness.progress import Advance, progress
from harness.results import LOGS, write_results
from harness.reuse import reuse_logs
from harness.server import Attached, Wanted, tool_server
from harness.task import Axes, arm_task, claim_samples
from harness.tuned import n_seen

ATTEMPTS = 3
"""Times that claims which ended in an error are run before the run gives up for now."""
WORKING_LIMIT_S = 3600
"""Longest that one claim may take."""
LOG_BUFFER = 5
"""Claims that may be lost to `kill -9`, per arm, where nobody pays for them; else none but those in flight."""
NO_LIMIT = Money()
"""Nothing said about money."""


@dataclass(frozen=True)
class Finished:
    """A run that is complete."""

    folder: Path
    """Where everything is."""
    table: str
    """The text of its table."""


def evaluate(plan: Plan, root: Path, *, url: str | None = None, say: Say, money: Money = NO_LIMIT) -> Finished:
    """Run a plan, or continue it, or find it done.

    Args:
        plan: From `make_plan`.
        root: The results folder.
        url: Of a tool server to attach to; None starts one.
        say: Shows one line to the user.
        money: Cap, prices and consent.

    Raises:
        UserError: The server does not fit, nobody agreed to the cost, or the disk is full.
        UnfinishedError: A server died, claims kept failing, or the cap is reached.
        LeakError: The audit found a leak.
    """
    check_predictor(plan.request.predictor)
    tariff = money.tariff(plan.request.predictor)
    with prompts_from(plan.request.prompts), disk_full_said(root), _servers(plan, root, url, say) as attached:
        tuned_on = n_seen(plan, root)
        model, _ = build_predictor(plan.request.predictor, plan.request.effort)
        axes = {setting: axes_of(plan, setting, attached, model) for setting in plan.settings}
        folder = root / run_name(plan, axes)
        check_margin(plan, folder)
        say(f"Run: {folder}")
        if _missing(plan, folder):
            for line in reuse_logs(axes, folder, root):
                say(line)
        missing = _missing(plan, folder)
        if missing:
            agree(plan, money, tariff, left_of(plan, folder), say)
        save_manifest(manifest_of(plan, folder.name, axes, attached, tariff=tariff, tuned_on=tuned_on), folder)
        if missing:
            batched = (
                build_predictor(plan.request.predictor, plan.request.effort, batch=True)[0] if tariff.batched else model
            )
            models = {arm: batched if arm in tariff.batched else model for arm in plan.arms}
            for one in models.values():
                listen(one, say)
            _run_settings(plan, folder, axes, attached, Payer(models, money, tariff))
            say(paid(folder, tariff))
    check_leaks(plan, folder)
    return Finished(folder, write_results(folder))


@contextmanager
def _servers(plan: Plan, root: Path, url: str | None, say: Callable[[str], None]) -> Iterator[Mapping[str, Attached]]:
    """The server of every tool that an arm reads, by the tool's arm."""
    if url is not None and len(plan.tools) > 1:
        raise UserError(f"--server names one server, but the arms read {', '.join(plan.tools)}. Leave --server out.")
    shams = {tool_of(arm) for arm in plan.arms if is_sham(arm)}
    with ExitStack() as stack:
        attached = {}
        for tool in plan.tools:
            arm = arm_name(tool)
            wanted = Wanted(
                tool,
                plan.target.name,
                plan.claim_set.path / "transcripts.jsonl",
                plan.most_positions,
                plan.donors if arm in shams else None,
            )
            where = tool if is_foreign(tool) else url
            say(f"Tool server: {f'attaching to {where}' if where else f'starting {tool} for {wanted.target}'}")
            attached[arm] = stack.enter_context(tool_server(wanted, root, url=url))
            unmarked = attached[arm].about.raw.get("not_marked")
            if isinstance(unmarked, list) and unmarked:
                say(f"It does not say whether {', '.join(unmarked)} only read; they are taken to, on your word.")
        yield attached


def _done(folder: Path) -> Counter[Setting]:
    """Claims with an outcome, by setting."""
    logs = folder / LOGS
    return Counter(outcome.setting for outcome in read_outcomes(logs)) if read_headers(logs) else Counter()


def left_of(plan: Plan, folder: Path) -> dict[Setting, tuple[Claim, ...]]:
    """Claims that have no outcome yet, by setting."""
    logs = folder / LOGS
    rows = read_outcomes(logs) if read_headers(logs) else ()
    done = {(row.setting, row.claim_id) for row in rows}
    return {
        setting: tuple(claim for claim in plan.claims if (setting, claim.claim_id) not in done)
        for setting in plan.settings
    }


def _missing(plan: Plan, folder: Path) -> int:
    return len(plan.claims) * len(plan.settings) - _done(folder).total()


@dataclass(frozen=True)
class Payer:
    """Who answers, and who pays for it."""

    models: Mapping[str, Model]
    """The predictor of every arm."""
    money: Money
    """Cap and prices."""
    tariff: Tariff
    """What its tokens cost."""


def _run_settings(
    plan: Plan, folder: Path, axes: Mapping[Setting, Axes], attached: Mapping[str, Attached], payer: Payer
) -> None:
    totals = {setting.label: len(plan.claims) for setting in plan.settings}
    with progress(totals, {setting.label: count for setting, count in _done(folder).items()}) as advance:
        for _ in range(ATTEMPTS):
            purse = purse_of(plan, payer.money, payer.tariff, folder, left_of(plan, folder))
            with paying(payer.models.values(), purse):
                logs = _eval_set(_tasks(plan, axes, attached, payer, advance, purse), folder, careful=purse is not None)
            _check_disk(logs, folder)
            ended = next(filter(None, (server.ended() for server in attached.values())), None)
            ended = ended or next(filter(None, map(closed, payer.models.values())), None)
            ended = ended or (purse.stopped if purse else None)
            if ended is not None or not _missing(plan, folder):
                break
    n_missing = _missing(plan, folder)
    if n_missing:
        n_all = len(plan.claims) * len(plan.settings)
        raise UnfinishedError(
            f"{ended or first_error(folder / LOGS) or 'Some claims were not asked.'} "
            f"{n_all - n_missing} of {n_all} answers are in and kept in {folder}. "
            f"{_CONTINUE if purse is None or purse.stopped is None else _CONTINUE_CAPPED}"
        )


_CONTINUE = "Give the same command again: it asks only for the others."
_CONTINUE_CAPPED = "Give the same command with a higher --max-cost: it asks only for the others."


def _tasks(
    plan: Plan,
    axes: Mapping[Setting, Axes],
    attached: Mapping[str, Attached],
    payer: Payer,
    advance: Advance,
    purse: Purse | None,
) -> list[Task]:
    return [
        arm_task(
            axes[setting],
            claim_samples(plan.claim_set, plan.claims, plan.labels, suffix=suffix_of(plan, setting.arm)),
            setup_of(setting, attached),
            payer.models[setting.arm],
            partial(advance, setting.label),
            around=admitting(purse, setting.label, batch=setting.arm in payer.tariff.batched),
        )
        for setting in plan.settings
    ]


def _eval_set(tasks: list[Task], folder: Path, *, careful: bool) -> list[EvalLog]:
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
            log_buffer=1 if careful else LOG_BUFFER,
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
