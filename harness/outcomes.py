"""What came of every claim under every arm: Inspect logs to rows, and rows to JSON Lines.

Invariant: one row a (setting, claim). A sample that ended in an error is a fault of ours and gives no row; logs that
a killed run left behind never count a claim twice.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from inspect_ai.log import EvalLog, EvalSampleSummary

from agents.outcome import OUTCOMES
from claims.atomic import json_lines
from claims.schema import UserError
from harness.logs import Setting, answered, read_headers, setting_of
from harness.money.pricing import Tariff
from harness.money.usage import usage_of

SCORE = "outcome"
"""Name of the scorer whose score carries the row."""


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
    """Tokens that the predictor wrote, reasoning included."""
    cache_read_tokens: int = 0
    """The part of `input_tokens` that came from the provider's cache."""
    cache_write_tokens: int = 0
    """The part of `input_tokens` that was written to it."""
    reasoning_tokens: int = 0
    """The part of `output_tokens` that was reasoning."""
    dollars: float | None = None
    """What the claim cost by the price list of its run; 0 where nobody bills it, None where the price is unknown."""


def read_outcomes(logs: Path, tariff: Tariff | None = None) -> tuple[Outcome, ...]:
    """One row for every (setting, claim) that any log under `logs` completed, in a fixed order.

    Where a resumed run copied a claim from a log that a killed run left, the finished log's row is taken.

    Args:
        logs: A folder of logs.
        tariff: What the predictor's tokens cost; without one the price of every row is unknown.

    Raises:
        UserError: There is no log, or a log was not written by this harness.
    """
    headers = read_headers(logs)
    if not headers:
        raise UserError(f"{logs} holds no log. Expected the logs of a run: give the folder of one.")
    found: dict[tuple[Setting, str], Outcome] = {}
    for header in headers:
        for sample in answered(header):
            outcome = _outcome(header, sample, tariff)
            found[outcome.setting, outcome.claim_id] = outcome
    return tuple(found[key] for key in sorted(found))


def _outcome(header: EvalLog, sample: EvalSampleSummary, tariff: Tariff | None) -> Outcome:
    score = (sample.scores or {}).get(SCORE)
    if score is None or not isinstance(sample.target, str):
        raise UserError(f"{header.location}: sample {sample.id!r} has no {SCORE!r} score. Move the log away.")
    made: Mapping[str, object] = score.metadata or {}
    usage = usage_of(sample)
    batch = bool(header.eval.model_generate_config.batch)
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
        input_tokens=usage.read,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        reasoning_tokens=usage.reasoning,
        dollars=_known(tariff.dollars(usage, batch=batch)) if tariff else None,
    )


def _known(dollars: float) -> float | None:
    return None if math.isnan(dollars) else round(dollars, 9)


def _kind(outcome: str, sample: EvalSampleSummary) -> str:
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
    return json_lines(_without_setting(row) for row in rows)


def _without_setting(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "setting"}
