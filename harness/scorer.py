"""The Inspect scorer: copies what the predictor loop made of a claim into the log.

Invariant: nothing is judged here. AUROC is not a mean over samples, so it is computed from the logs afterwards.
"""

from collections.abc import Callable

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from harness.outcomes import SCORE


@scorer(metrics=[], name=SCORE)
def record_outcome(done: Callable[[], None]) -> Scorer:
    """Record each prediction as the sample's score.

    Args:
        done: Called once for every claim that is scored.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's own signature
        made = state.metadata.get("prediction")
        if not isinstance(made, dict):
            raise RuntimeError(f"sample {state.sample_id!r}: the predictor loop left no prediction")
        done()
        value = made["outcome"] if made["p_true"] is None else made["p_true"]
        return Score(value=value, metadata=made)

    return score
