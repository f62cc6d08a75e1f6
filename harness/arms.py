"""The names of arms, and which tool an arm reads.

Invariant: an arm's name alone says what its predictor is given; nothing else in the house takes one apart.
"""

from agents.prompts import counted

BASELINE = "transcript"
"""The arm that every other one is compared with."""
REPEAT = "transcript-2"
"""The baseline run again: the A/A noise floor, and the run on which hard claims are chosen."""
CEILING = "ceiling"
"""The control whose predictor is shown fresh responses to the edited prompt."""
_SHAM = "sham-"
_ALL = "all-"


def sham_of(tool: str) -> str:
    """The control of `tool` whose activations are another transcript's."""
    return _SHAM + tool


def all_of(tool: str) -> str:
    """The arm that is shown the output of `tool` at every position at once."""
    return _ALL + tool


def tool_of(arm: str) -> str | None:
    """The tool that `arm` reads; None for an arm without one."""
    if arm in (BASELINE, REPEAT, CEILING):
        return None
    return arm.removeprefix(_SHAM).removeprefix(_ALL)


def is_sham(arm: str) -> bool:
    """Whether the activations behind the arm's tool are another transcript's."""
    return arm.startswith(_SHAM)


def shows_all(arm: str) -> bool:
    """Whether the arm is shown the tool's output at every position, with nothing to choose."""
    return arm.startswith(_ALL)


def is_control(arm: str) -> bool:
    """Whether the arm says something about the instrument and not about a tool."""
    return arm in (REPEAT, CEILING) or is_sham(arm)


def arm_place(arm: str) -> tuple[int, str, int]:
    """Order of the tables: the baseline, its repetition, each tool with its sham behind it, the ceiling."""
    fixed = {BASELINE: 0, REPEAT: 1, CEILING: 3}
    if arm in fixed:
        return fixed[arm], "", 0
    return 2, tool_of(arm) or "", 2 if is_sham(arm) else int(shows_all(arm))


def arm_label(arm: str, calls: int, positions: int) -> str:
    """An arm with its budget where it has one: `transcript`, `sae 5x32`, `ao 5 calls`."""
    return f"{arm} {budget_label(calls, positions)}" if calls else arm


def budget_label(calls: int, positions: int) -> str:
    """Calls, and positions in each where the tool takes any: `5x32`, `5 calls`; `-` for an arm without calls."""
    if not calls:
        return "-"
    return f"{calls}x{positions}" if positions else counted(calls, "call")
