"""Who does what, and how thoroughly: the models of every stage and the regimes of a run, as tables.

Invariant: a row is data; nothing here calls a model.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from claims.schema import UserError
from tools.targets import Sampling


@dataclass(frozen=True)
class Role:
    """One job in the pipeline and the model that has it."""

    model: str
    """Inspect's name: provider/model."""
    max_tokens: int
    """Longest reply, reasoning not counted."""
    reasoning_tokens: int | None = None
    """Thinking budget, where the provider has one; None leaves it off."""
    temperature: float | None = None
    """None leaves it to the provider: newer models refuse one."""
    batch: bool = False
    """Whether calls go through the provider's batch API: half the price, hours of waiting."""


_OPUS = "anthropic/claude-opus-4-6"
_SONNET = "anthropic/claude-sonnet-4-6"

ROLES: dict[str, Role] = {
    "screener": Role(_OPUS, 2_000, reasoning_tokens=4_096, batch=True),
    "investigator": Role(_OPUS, 4_000, reasoning_tokens=4_096),
    "classifier": Role(_SONNET, 400),
    "judge": Role(_OPUS, 1_500, reasoning_tokens=4_096, batch=True),
    # Models from 4.7 on think by themselves, out of the same allowance.
    "selector": Role("anthropic/claude-opus-4-8", 6_000),
    "describer": Role(_SONNET, 1_000),
    "grader": Role(_SONNET, 800),
    "reproducer": Role(_OPUS, 4_000, reasoning_tokens=4_096),
}
"""The paper's models. It names none for `grader` (concreteness) and `reproducer`: those of the describing judge and of
the investigator stand in."""


def choose_roles(model: str | None = None, named: Mapping[str, str] | None = None) -> dict[str, Role]:
    """The table with other models in it.

    Args:
        model: Takes every role that `named` does not name.
        named: Models by role.

    Raises:
        UserError: A role is unknown, or a model has no provider in its name.
    """
    named = dict(named or {})
    unknown = sorted(set(named) - set(ROLES))
    if unknown:
        raise UserError(f"Unknown roles: {', '.join(unknown)}. Known roles: {', '.join(ROLES)}.")
    for name in (model, *named.values()):
        if name is not None and "/" not in name:
            raise UserError(f"The model {name!r} names no provider. Expected provider/model, such as {_OPUS}.")
    return {role: _with_model(row, named.get(role, model)) for role, row in ROLES.items()}


def _with_model(role: Role, model: str | None) -> Role:
    # A budget for thinking and a batch API are facts about the table's models, not about others.
    return role if model in (None, role.model) else Role(str(model), role.max_tokens)


@dataclass(frozen=True)
class Regime:
    """How much is spent on each prompt and what is kept."""

    name: str
    """On the command line."""
    n: int
    """Responses of every prompt, original and edited alike."""
    mode: Literal["thorough", "light"]
    """How the investigator is told to work."""
    experiments: tuple[int, int]
    """Fewest that the investigator is asked for, and most that it is allowed."""
    n_judges: int
    """Independent scores of every report."""
    keep_score: int
    """Least average score, of 1 to 10."""
    min_interest: int = 3
    """Least rating by the screener, of 1 to 5."""
    min_rate_percent: int = 30
    """Least share of the original prompt's responses that show the behaviour."""
    cap: int = 2000
    """Most claims of the balanced set."""

    def with_n(self, n: int) -> "Regime":
        """The same with another number of responses.

        Raises:
            UserError: Not a number of responses.
        """
        if n < 1:
            raise UserError(f"{n} responses a prompt are not possible. Expected at least 1.")
        return replace(self, n=n)

    @property
    def min_usable(self) -> int:
        """Fewest usable verdicts of a batch behind a rate: four fifths of it."""
        return math.ceil(self.n * 4 / 5)


REGIMES = {
    regime.name: regime
    for regime in (
        Regime("evaluation", n=30, mode="thorough", experiments=(10, 15), n_judges=5, keep_score=8),
        Regime("training", n=10, mode="light", experiments=(5, 8), n_judges=1, keep_score=7),
    )
}
"""The paper's two."""


def thinking_sampling(sampling: Sampling) -> Sampling:
    """A target's settings with the paper's limits for reasoning runs: 1,024 tokens of thinking, 2,048 in all."""
    return replace(sampling, max_tokens=2048, max_thinking=1024)


def paper_sampling(sampling: Sampling) -> Sampling:
    """A target's settings as the paper has them: temperature 1.0, 500 tokens, the checkpoint's own top-p and top-k."""
    return replace(sampling, temperature=1.0, max_tokens=500)


PAPER_SHARES = {"wildchat": 91.3, "toolace": 5.2, "systemchat": 2.5, "hermes": 1.0}
"""The paper's mixture, in percent, by the format of each source's file."""
PAPER_FIRST = 5000
"""The fixed slice: this many prompts of the mixture, before those of the training data are left out."""
