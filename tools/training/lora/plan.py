"""How the adapters of each local target are trained.

Invariant: everything that a training run depends on and that is not the target is in its plan.
"""

from dataclasses import dataclass, replace

from claims.schema import UserError
from tools.target_types import Target
from tools.training.lora.loop import Schedule
from tools.training.lora.passages import Size


@dataclass(frozen=True)
class LoraPlan:
    """One adapter."""

    size: Size
    """Its corpus."""
    schedule: Schedule
    """Its training."""
    examples: int
    """Different training examples, however many steps are taken."""
    rank: int
    """Of every low-rank pair."""
    alpha: int
    """What a pair adds is scaled by alpha / rank."""
    held_out: int
    """Held-out examples on which the losses are measured."""
    per_family: int
    """Held-out questions of each family; for the autoencoder, descriptions that are judged."""
    rebuilt: int
    """Places whose descriptions the autoencoder's reconstructor is fitted to; 0 for an oracle."""


_LARGE = LoraPlan(
    size=Size(chats=500, written=100, package=120, made=1000),
    schedule=Schedule(n_steps=1280, batch=8, learning_rate=6e-4, seed=0),
    examples=10_240,
    rank=16,
    alpha=32,
    held_out=192,
    per_family=64,
    rebuilt=2048,
)
# Every text is read once through three quarters of the target: half the texts leave more of the time for training.
_SMALL = replace(
    _LARGE,
    size=Size(chats=300, written=60, package=60, made=500),
    schedule=replace(_LARGE.schedule, n_steps=960),
    examples=7_680,
)
_SMALLEST = LoraPlan(
    size=Size(chats=40, written=8, package=20, made=300),
    schedule=Schedule(n_steps=4, batch=4, learning_rate=1e-3, seed=0),
    examples=16,
    rank=2,
    alpha=4,
    held_out=12,
    per_family=4,
    rebuilt=24,
)

PLANS: dict[tuple[str, str], LoraPlan] = {
    ("ao", "gemma-3-270m"): replace(_SMALL, rebuilt=0),
    ("ao", "smollm2-135m"): replace(_SMALL, rebuilt=0),
    ("ao", "tiny-gemma"): replace(_SMALLEST, rebuilt=0),
    ("ao", "tiny-qwen"): replace(_SMALLEST, rebuilt=0),
    ("nla", "gemma-3-270m"): _SMALL,
    ("nla", "smollm2-135m"): _LARGE,
    ("nla", "tiny-gemma"): _SMALLEST,
    ("nla", "tiny-qwen"): _SMALLEST,
}


def get_plan(tool: str, target: str, *, minutes: float | None = None, n_steps: int | None = None) -> LoraPlan:
    """The plan of a tool for a target, with another length if one is given.

    Raises:
        UserError: There is none.
    """
    if (tool, target) not in PLANS:
        known = ", ".join(name for kind, name in PLANS if kind == tool)
        raise UserError(
            f"There is no plan to train {tool!r} for {target!r}. Expected one of: {known}. "
            "Add a row to PLANS in tools/training/lora/plan.py."
        )
    plan = PLANS[tool, target]
    schedule = replace(plan.schedule, minutes=minutes, n_steps=n_steps or plan.schedule.n_steps)
    return replace(plan, schedule=schedule)


def oracle_layers(target: Target) -> tuple[int, int, int]:
    """The layers that an oracle is trained on: after a quarter, half and three quarters of the blocks."""
    n_layers = target.n_layers
    return (n_layers // 4, n_layers // 2, 3 * n_layers // 4)
