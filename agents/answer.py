"""A submitted value, or prose, to a probability.

Invariant: what cannot be read in one way only is unusable. Nothing here turns a missing answer into a number.
"""

import math
import re
from dataclasses import dataclass

_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_SUBMITTED = re.compile(rf"\+?({_NUMBER})(e[+-]?\d{{1,3}})?\s*(%|percent)?", re.IGNORECASE | re.ASCII)
_EXPECTED = "Expected: one number from 0 to 1, such as 0.35. Call submit again with p_true set to it."


@dataclass(frozen=True)
class Reading:
    """A probability, or why there is none."""

    p_true: float | None
    """In [0, 1], or None when the text is unusable."""
    problem: str = ""
    """For an unusable value: what was found, what was expected, what to do."""


def _unusable(found: str) -> Reading:
    return Reading(None, f"Not recorded. Found: {found}. {_EXPECTED}")


def _from_number(value: float, *, percent: bool, shown: str) -> Reading:
    """Scale a number; a bare one from 10 to 100 can only be meant as a percentage, one between 1 and 10 cannot be told.

    The shown text goes into the error.
    """
    if not math.isfinite(value):
        return _unusable(f"p_true = {shown}, which is not a finite number")
    if value < 0:
        return _unusable(f"p_true = {shown}, which is negative")
    if percent or 10 <= value <= 100:
        return Reading(value / 100) if value <= 100 else _unusable(f"p_true = {shown}, which is over 100 percent")
    return Reading(float(value)) if value <= 1 else _unusable(f"p_true = {shown}, which is over 1")


def read_submitted(value: object) -> Reading:
    """Read the argument of `submit`.

    Accepted are a number from 0 to 1, a number from 10 to 100 (read as a percentage), and either of them as text,
    with or without a percent sign ("0.85", ".7", "85", "85%", "0.5 %").
    """
    if isinstance(value, int) and not -1000 < value < 1000:
        value = 1000 if value > 0 else -1000  # out of range all the same, and Python refuses to print the longest ones
    shown = repr(value)[:60]
    if value is None:
        return _unusable("no p_true")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return _unusable(f"p_true = {shown}, which is not a number")
    if isinstance(value, int | float):
        return _from_number(value, percent=False, shown=shown)
    match = _SUBMITTED.fullmatch(value.strip())
    if match is None:
        return _unusable(f"p_true = {shown}, which is not one plain number")
    number = float(match.group(1) + (match.group(2) or ""))
    return _from_number(number, percent=match.group(3) is not None, shown=shown)
