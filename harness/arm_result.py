"""What is reported of one arm with one budget, and the correction of its p-values within declared families.

Invariant: a p-value is corrected with the whole of its family, as declared, and with nothing else.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.arms import BASELINE, is_control
from harness.estimates import Estimate
from harness.flips import Flips
from harness.intervals import holm
from harness.logs import Setting

TOOLS_FAMILY = "tools"
"""The hypotheses that a tool's uplift is zero, one a budget."""
SHAMS_FAMILY = "tools against shams"
"""The hypotheses that a tool does no better than its sham."""

Key = tuple[str, int, int]
"""A hypothesis: arm, calls, positions."""


@dataclass(frozen=True)
class ArmResult:
    """Everything that is reported of one arm with one budget."""

    setting: Setting
    """Target, predictor, arm, budget; of the first repetition."""
    auroc: Estimate
    """On the claims of the headline."""
    baseline_auroc: float
    """The `transcript` arm's AUROC on the same claims; nan for that arm itself."""
    uplift: Estimate | None
    """AUROC minus the baseline's, paired; None for the baseline itself."""
    half_credit: Estimate | None
    """The same over all claims, every pair with an unanswered claim earning half; None for the baseline."""
    accuracy: float
    """Share on the right side of 0.5, on the claims of the headline."""
    brier: float
    """Mean squared error of the probabilities, on the claims of the headline."""
    outcome_counts: tuple[tuple[str, int], ...]
    """How many claims ended in which way, in the order of `OUTCOMES`, over all claims and repetitions of the arm."""
    mean_calls_used: float
    """Tool calls charged per claim."""
    epochs: int = 1
    """Repetitions."""
    accuracy_low: float = float("nan")
    """Lower bound of the accuracy, over clusters."""
    accuracy_high: float = float("nan")
    """Upper bound."""
    worst_case: Estimate | None = None
    """The uplift if every answer that is missing had cost the arm, and none the baseline; None for the baseline."""
    flips: Flips | None = None
    """Against the baseline, on the claims of the headline; None for the baseline."""
    against_sham: Estimate | None = None
    """AUROC minus the sham's, paired; None without a sham."""
    family: str = ""
    """Of the hypotheses that its p-value is corrected with; empty outside every family."""
    p_holm: float = float("nan")
    """Adjusted p-value of the uplift within its family."""
    p_holm_sham: float = float("nan")
    """Adjusted p-value of the difference to the sham within the shams' family."""

    @property
    def key(self) -> Key:
        """The hypothesis that its uplift is zero."""
        return self.setting.arm, self.setting.calls, self.setting.positions


def corrected(results: Sequence[ArmResult], families: Mapping[str, Sequence[Key]] | None) -> tuple[ArmResult, ...]:
    """Results with their p-values adjusted within families, separately for each target and predictor.

    Args:
        results: Of any number of targets and predictors.
        families: Members of `TOOLS_FAMILY` and `SHAMS_FAMILY`; None puts every tool in.
    """
    groups: dict[tuple[str, str], list[ArmResult]] = defaultdict(list)
    for result in results:
        groups[result.setting.target, result.setting.predictor].append(result)
    adjusted = {name: _adjusted(group, families) for name, group in groups.items()}
    return tuple(
        adjusted[result.setting.target, result.setting.predictor].get(result.key, result) for result in results
    )


def _adjusted(group: Sequence[ArmResult], families: Mapping[str, Sequence[Key]] | None) -> dict[Key, ArmResult]:
    tools = [result.key for result in group if result.setting.arm != BASELINE and not is_control(result.setting.arm)]
    members = families if families is not None else {TOOLS_FAMILY: tools, SHAMS_FAMILY: tools}
    in_tools = [result for result in group if result.key in members.get(TOOLS_FAMILY, ())]
    in_shams = [result for result in group if result.key in members.get(SHAMS_FAMILY, ())]
    uplifts = holm({str(result.key): _p_value(result.uplift) for result in in_tools})
    shams = holm({str(result.key): _p_value(result.against_sham) for result in in_shams})
    return {
        result.key: replace(
            result,
            family=TOOLS_FAMILY if result in in_tools else "",
            p_holm=uplifts.get(str(result.key), math.nan),
            p_holm_sham=shams.get(str(result.key), math.nan),
        )
        for result in group
    }


def _p_value(estimate: Estimate | None) -> float:
    return estimate.tests.p_value if estimate is not None and estimate.tests is not None else math.nan
