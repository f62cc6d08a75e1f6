"""Which settings a run holds: every arm with its budget, every point of a grid, every repetition.

Invariant: arms that read no tool have one budget, so a grid shares them; every arm is repeated equally often.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.predictors import PAPER_BUDGET
from harness.arms import is_sham, shows_all, tool_of
from harness.logs import Setting
from tools import TOOLS


@dataclass(frozen=True, order=True)
class Budget:
    """What a tool arm may spend on one claim."""

    calls: int
    """Tool calls."""
    positions: int
    """Most positions in one call."""


@dataclass(frozen=True)
class Grid:
    """Budgets to sweep, one of the two at a time, as in the paper's Table 4."""

    calls: tuple[int, ...] = ()
    """Numbers of calls, at the main number of positions."""
    positions: tuple[int, ...] = ()
    """Numbers of positions, at the main number of calls."""

    def main(self, usual: Budget) -> Budget:
        """The setting that the others differ from in one number.

        The usual budget where the grid has it, else the paper's, else the middle of each list.
        """
        return Budget(
            _middle(self.calls, usual.calls, PAPER_BUDGET.calls),
            _middle(self.positions, usual.positions, PAPER_BUDGET.positions),
        )

    def budgets(self, main: Budget) -> tuple[Budget, ...]:
        """The main budget, then the others in order."""
        swept = {Budget(calls, main.positions) for calls in self.calls}
        swept |= {Budget(main.calls, positions) for positions in self.positions}
        return (main, *sorted(swept - {main}))


def _middle(swept: Sequence[int], *preferred: int) -> int:
    """The first preferred number that is swept, else the middle one; the first of all where nothing is swept."""
    if not swept:
        return preferred[0]
    return next((number for number in preferred if number in swept), sorted(swept)[(len(swept) - 1) // 2])


def takes_positions(tool: str) -> bool:
    """Whether a predictor chooses token positions for this tool."""
    return tool not in TOOLS or TOOLS[tool].takes_positions


def settings_of(
    target: str, predictor: str, arms: Sequence[str], budgets: Sequence[Budget], *, epochs: int
) -> tuple[Setting, ...]:
    """Every setting of a run, the baseline first.

    Args:
        target: Name of the target.
        predictor: Name of the predictor.
        arms: Names of arms, in order.
        budgets: The main one first.
        epochs: Repetitions of every setting.
    """
    return tuple(
        Setting(target, predictor, arm, budget.calls, budget.positions, epoch)
        for arm in arms
        for budget in dict.fromkeys(_budgets_of(arm, budgets))
        for epoch in range(epochs)
    )


def _budgets_of(arm: str, budgets: Sequence[Budget]) -> Iterator[Budget]:
    tool = tool_of(arm)
    if tool is None or shows_all(arm):
        yield Budget(0, 0)
        return
    for budget in budgets[:1] if is_sham(arm) else budgets:
        yield budget if takes_positions(tool) else Budget(budget.calls, 0)
