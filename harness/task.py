"""Claims to Inspect tasks, one an arm.

Invariants: the label is the sample's target and nothing else; everything that could change an answer is an argument
of the task, so that Inspect never takes an old answer for a new question.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import Model
from inspect_ai.solver import Solver

from agents.prompts import ceiling_suffix, user_message
from agents.solver import ArmSetup, predict
from claims.labels import Evidence, Label
from claims.load import ClaimSet
from claims.render import render_claim
from claims.schema import Claim, UserError
from harness.arms import CEILING
from harness.scorer import record_outcome
from harness.seeding import keyed_rng

K_CEILING = 8
"""Fresh responses of the edited prompt that the ceiling arm shows."""


@dataclass(frozen=True)
class Axes:
    """Everything that could change an answer; the arguments of the Inspect task."""

    arm: str
    """Name of the arm."""
    target: str
    """Name of the target."""
    predictor: str
    """Name of the predictor."""
    calls: int
    """Budget of tool calls; 0 for an arm without a tool."""
    positions: int
    """Most positions in one call; 0 for an arm without a tool, or with one that takes no positions."""
    epoch: int
    """Which repetition, from 0."""
    seed: int
    """Of the run: picks claims under a limit, the ceiling's responses and the sham's donors."""
    prompt_sha256: str
    """Of every word that is not the claim's own, the claim template included."""
    claim_set_sha256: str
    """Of the claims folder."""
    claims_sha256: str
    """Of the ids of the run's claims."""
    n_claims: int
    """Claims of the run, after the limit."""
    split: str
    """Half of the clusters that they are from, with its seed; empty where they are from all of them."""
    tool_sha256: str
    """Of the tool's weights and a sham's donors; empty for an arm without a tool."""
    k_ceiling: int
    """Responses shown; 0 outside the ceiling arm."""
    predictor_sha256: str
    """Of the predictor's settings and weights."""


def claim_samples(
    claim_set: ClaimSet,
    claims: Sequence[Claim],
    labels: Mapping[str, Label],
    *,
    suffix: Callable[[Claim], str] = lambda _: "",
) -> list[Sample]:
    """One sample a claim: the baseline's user message, plus `suffix` of the claim.

    Args:
        claim_set: Holds the transcripts and the temperature.
        claims: Those to ask about.
        labels: By claim id; each goes into `Sample.target` and nowhere else.
        suffix: Text of an arm's own, added at the end.
    """
    return [
        Sample(
            id=claim.claim_id,
            input=user_message(
                claim_set.transcripts[claim.transcript_id], render_claim(claim, temperature=claim_set.temperature)
            )
            + suffix(claim),
            target="true" if labels[claim.claim_id].label else "false",
            metadata={
                "claim_id": claim.claim_id,
                "cluster_id": claim.cluster_id,
                "investigation_id": claim.investigation_id,
                "transcript_id": claim.transcript_id,
            },
        )
        for claim in claims
    ]


def ceiling_responses(evidence: Mapping[str, Evidence], claim: Claim, *, seed: int) -> tuple[str, ...]:
    """The `K_CEILING` fresh responses that the ceiling arm shows for `claim`, drawn by the seed.

    Raises:
        UserError: The claim set holds fewer.
    """
    fresh = evidence[claim.claim_id].fresh if claim.claim_id in evidence else ()
    if len(fresh) < K_CEILING:
        raise UserError(
            f"evidence.jsonl has {len(fresh)} fresh responses for claim {claim.claim_id!r}, and the {CEILING} arm "
            f"shows {K_CEILING}. Sample more, or leave the arm out with --arms."
        )
    drawn = keyed_rng(CEILING, seed, claim.claim_id).choice(len(fresh), size=K_CEILING, replace=False)
    return tuple(fresh[index] for index in drawn)


def ceiling_suffix_of(evidence: Mapping[str, Evidence], *, seed: int) -> Callable[[Claim], str]:
    """What the ceiling arm adds to the message about a claim."""
    return lambda claim: ceiling_suffix(ceiling_responses(evidence, claim, seed=seed))


def arm_task(
    axes: Axes,
    samples: list[Sample],
    setup: ArmSetup,
    model: Model,
    done: Callable[[], None],
    *,
    around: Callable[[Solver], Solver] = lambda inner: inner,
) -> Task:
    """The Inspect task of one arm.

    Args:
        axes: Its identity.
        samples: From `claim_samples`.
        setup: What the predictor is given.
        model: The predictor.
        done: Called once for every claim that is scored.
        around: Wraps the predictor loop in what is no part of the task's identity, such as a cap on its cost.
    """

    @task(name=axes.arm)
    def arm_of_claims(**axes: str | int) -> Task:  # noqa: ARG001 - Inspect reads a task's identity off its arguments
        return Task(
            dataset=MemoryDataset(samples), solver=around(predict(setup)), scorer=record_outcome(done), model=model
        )

    made = arm_of_claims(**asdict(axes))
    # inspect_ai 0.3.285 makes the task file's path, relative to the working directory, part of a task's identity:
    # the same command from another folder would be refused as a stranger to its own logs.
    vars(made).pop("__task_file__", None)
    return made
