"""What came of every claim under every arm: Inspect logs to rows, and rows to JSON Lines.

Invariant: one row a (setting, claim). A sample that ended in an error is a fault of ours and gives no row; logs that
a killed run left behind never count a claim twice.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log, read_eval_log_samples

from agents.outcome import OUTCOMES
from claims.schema import UserError

SCORE = "outcome"
"""Name of the scorer whose score carries the row."""
_UNREAD = {"messages", "output", "store", "events", "events_data", "timelines", "attachments", "input"}


@dataclass(frozen=True, order=True)
class Setting:
    """What one arm was run with: outcomes are compared within a target and a predictor."""

    target: str
    """Name of the target."""
    predictor: str
    """Name of the predictor, as it was asked for."""
    arm: str
    """`transcript`, a tool's name, or a control."""
    calls: int
    """Budget of tool calls; 0 for an arm without a tool."""
    positions: int
    """Most positions in one call; 0 for an arm without a tool."""


@dataclass(frozen=True)
class Outcome:
    """What came of one claim under one setting."""

    setting: Setting
    """Arm, budget, target, predictor."""
    claim_id: str
    """The claim."""
    cluster_id: str
    """What is resampled."""
    investigation_id: str
    """The claim's investigation."""
    label: bool
    """The measured truth."""
    outcome: str
    """One of `agents.outcome.OUTCOMES`."""
    p_true: float | None
    """In [0, 1]; None unless answered."""
    calls_used: int
    """Tool calls that were charged."""
    how: str | None
    """`submitted`, `forced` or `prose`; None unless answered."""
    detail: str
    """One line for a reader."""
    input_tokens: int
    """Tokens that the predictor read, cached ones included."""
    output_tokens: int
    """Tokens that the predictor wrote."""


def read_outcomes(logs: Path) -> tuple[Outcome, ...]:
    """One row for every (setting, claim) that any log under `logs` completed, in a fixed order.

    Where a resumed run copied a claim from a log that a killed run left, the finished log's row is taken.

    Raises:
        UserError: There is no log, or a log was not written by this harness.
    """
    found: dict[tuple[Setting, str], Outcome] = {}
    for header in _headers(logs):
        for sample in _samples(header):
            outcome = _outcome(header, sample)
            found[outcome.setting, outcome.claim_id] = outcome
    return tuple(found[key] for key in sorted(found))


def _headers(logs: Path) -> list[EvalLog]:
    """Headers of all logs, the ones to be believed last."""
    infos = list_eval_logs(str(logs), formats=["eval"]) if logs.is_dir() else []
    if not infos:
        raise UserError(f"{logs} holds no log. Expected the logs of a run: give the folder of one.")
    headers = [read_eval_log(info, header_only=True) for info in infos]
    return sorted(headers, key=lambda header: (header.status == "success", header.eval.created, header.location))


def _samples(header: EvalLog) -> Iterator[EvalSample]:
    for sample in read_eval_log_samples(header.location, all_samples_required=False, exclude_fields=_UNREAD):
        if sample.error is None and sample.scores:
            yield sample


def setting_of(header: EvalLog) -> Setting:
    """The setting that a log was written under.

    Raises:
        UserError: The log is not one of this harness.
    """
    axes = header.eval.task_args
    try:
        return Setting(
            target=str(axes["target"]),
            predictor=str(axes["predictor"]),
            arm=str(axes["arm"]),
            calls=int(axes["calls"]),
            positions=int(axes["positions"]),
        )
    except KeyError as error:
        raise UserError(
            f"{header.location} has no {error.args[0]!r} among its task arguments, so it is not a log of this harness. "
            "Move it out of the folder."
        ) from None


def _outcome(header: EvalLog, sample: EvalSample) -> Outcome:
    score = (sample.scores or {}).get(SCORE)
    if score is None or not isinstance(sample.target, str):
        raise UserError(f"{header.location}: sample {sample.id!r} has no {SCORE!r} score. Move the log away.")
    made: Mapping[str, object] = score.metadata or {}
    usage = sample.model_usage.values()
    return Outcome(
        setting=setting_of(header),
        claim_id=str(sample.id),
        cluster_id=str(sample.metadata["cluster_id"]),
        investigation_id=str(sample.metadata["investigation_id"]),
        label={"true": True, "false": False}[sample.target],
        outcome=_kind(str(made["outcome"]), sample),
        p_true=_probability(made["p_true"]),
        calls_used=int(str(made["calls"])),
        how=None if made["how"] is None else str(made["how"]),
        detail=str(made["detail"]),
        input_tokens=sum(
            used.input_tokens + (used.input_tokens_cache_read or 0) + (used.input_tokens_cache_write or 0)
            for used in usage
        ),
        output_tokens=sum(used.output_tokens for used in usage),
    )


def _kind(outcome: str, sample: EvalSample) -> str:
    if outcome not in OUTCOMES:
        raise RuntimeError(f"sample {sample.id!r}: unknown outcome {outcome!r}, expected one of {OUTCOMES}")
    return outcome


def _probability(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and 0 <= value <= 1):
        raise RuntimeError(f"a probability in a log is {value!r}, expected a number from 0 to 1")
    return float(value)


def outcome_lines(outcomes: Iterable[Outcome]) -> str:
    """`outcomes.jsonl`: one object a row, the setting's fields beside the others."""
    rows = ({**asdict(outcome.setting), **asdict(outcome)} for outcome in outcomes)
    return "".join(json.dumps(_without_setting(row), ensure_ascii=False) + "\n" for row in rows)


def _without_setting(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "setting"}
