"""The thresholds that make a measured change a claim's label.

Invariant: exact arithmetic on counts; 15 of 30 against 0 of 30 is a change of 50 points, never 49.999.
"""

from fractions import Fraction

TRUE_AT_LEAST = Fraction(50, 100)
"""A claim is true when the rate moved by at least this much, either way."""
FALSE_AT_MOST = Fraction(15, 100)
"""It is false when the rate moved by at most this much; in between it is not used."""


def measured_label(baseline: Fraction, edited: Fraction) -> bool | None:
    """The label of a claim from its two rates, or None when the change lies between the thresholds."""
    change = abs(edited - baseline)
    if change >= TRUE_AT_LEAST:
        return True
    return False if change <= FALSE_AT_MOST else None
