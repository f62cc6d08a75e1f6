"""Outcomes of arms, made by hand, and their comparison by arm."""

from collections.abc import Sequence

import numpy as np

from harness.logs import Setting
from harness.outcomes import Outcome
from harness.uplift import BASELINE, ArmResult, compare

N_CLAIMS = 48


def rows(arm: str, p_true: Sequence[float | None], labels: Sequence[bool], *, per_cluster: int = 2) -> list[Outcome]:
    calls = 0 if arm in (BASELINE, "ceiling") else 5
    return [
        Outcome(
            setting=Setting("tiny-gemma", "mockllm/model", arm, calls, 32 if calls else 0),
            claim_id=f"claim-{index:03}",
            cluster_id=f"cluster-{index // per_cluster:03}",
            investigation_id=f"investigation-{index // per_cluster:03}",
            label=label,
            outcome="answered" if value is not None else "no_answer",
            p_true=value,
            calls_used=min(calls, 1),
            how="submitted" if value is not None else None,
            detail="",
            input_tokens=10,
            output_tokens=1,
        )
        for index, (value, label) in enumerate(zip(p_true, labels, strict=True))
    ]


def by_arm(outcomes: Sequence[Outcome], seed: str = "s") -> dict[str, ArmResult]:
    return {result.setting.arm: result for result in compare(outcomes, seed=seed)}


def example() -> tuple[list[float], list[float], list[bool]]:
    """A weak baseline and a better arm, two claims a cluster."""
    rng = np.random.default_rng(1)
    labels = [bool(value) for value in rng.random(N_CLAIMS) < 0.5]
    weak = [float(value) for value in np.round(rng.random(N_CLAIMS), 2)]
    strong = [round(0.5 * p + 0.4 * label, 3) for p, label in zip(weak, labels, strict=True)]
    return weak, strong, labels
