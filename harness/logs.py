"""Reading Inspect's logs of a run.

Invariant: a log that a killed run left behind is read before the finished one, so that the finished one has the last
word; a sample that ended in an error is never taken for an answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inspect_ai.log import (
    EvalLog,
    EvalSample,
    EvalSampleSummary,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
)

from claims.schema import UserError
from harness.arms import arm_label


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
    """Most positions in one call; 0 for an arm without a tool, or with one that takes no positions."""
    epoch: int = 0
    """Which repetition, from 0."""

    @property
    def label(self) -> str:
        """Short, for progress and messages: `sae 5x32`, `transcript (2)`."""
        repetition = f" ({self.epoch + 1})" if self.epoch else ""
        return arm_label(self.arm, self.calls, self.positions) + repetition


def read_headers(logs: Path) -> list[EvalLog]:
    """Headers of all logs in a folder, the ones to be believed last; none when there is no log yet."""
    infos = list_eval_logs(str(logs), formats=["eval"]) if logs.is_dir() else []
    headers = [read_eval_log(info, header_only=True) for info in infos]
    return sorted(headers, key=lambda header: (header.status == "success", header.eval.created, header.location))


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
            epoch=int(axes.get("epoch", 0)),
        )
    except KeyError as error:
        raise UserError(
            f"{header.location} has no {error.args[0]!r} among its task arguments, so it is not a log of this harness. "
            "Move it out of the folder."
        ) from None


def answered(header: EvalLog) -> Iterator[EvalSampleSummary]:
    """The samples of a log that were scored, without their conversations."""
    for sample in read_eval_log_sample_summaries(header.location):
        if sample.error is None and sample.scores:
            yield sample


def whole_samples(logs: Path, arm: str) -> Iterator[EvalSample]:
    """The samples of one arm's finished logs, with everything that was said."""
    for header in read_headers(logs):
        if header.status == "success" and setting_of(header).arm == arm:
            yield from read_eval_log_samples(header.location, resolve_attachments="full")


def first_error(logs: Path) -> str | None:
    """What the first thing that failed died of, newest log first; None when nothing failed."""
    for header in reversed(read_headers(logs)):
        for sample in read_eval_log_sample_summaries(header.location):
            if sample.error is not None:
                return f"Claim {sample.id!r} of the {header.eval.task} arm failed: {sample.error.strip()}"
        if header.error is not None:
            return f"The {header.eval.task} arm failed: {header.error.message.strip()}"
    return None
