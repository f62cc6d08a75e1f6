"""The label of one foreign claim: from counts, from rates and sizes, or as given.

Invariant: a label that can be measured is measured; counts are never made up: where they are unknown both are 0.
"""

from dataclasses import dataclass
from fractions import Fraction

from claims.build.importing.fields import Fields
from claims.build.importing.mapping import ImportMap
from claims.build.thresholds import measured_label
from claims.schema import ClaimsError

TOLERANCE = 0.005 + 1e-9
"""How far a published rate may be from a share of its responses: rates are often rounded to a whole percentage."""


@dataclass(frozen=True)
class Measured:
    """What is known of one claim's truth."""

    label: bool | None
    """The label; None when the change lies between the thresholds, so that the claim is not used."""
    baseline_rate: float
    """Share of yes on the prompt."""
    baseline_yes: int
    """Number of yes on the prompt, 0 when unknown."""
    baseline_n: int
    """Number of responses to the prompt, 0 when unknown."""
    edited_yes: int
    """Number of yes on the edited prompt, 0 when unknown."""
    edited_n: int
    """Number of responses to the edited prompt, 0 when unknown."""


def measure(fields: Fields, mapping: ImportMap) -> Measured:
    """The label of one row.

    Raises:
        ClaimsError: A count or rate that cannot be, or a given label that the counts contradict.
    """
    if mapping.labels == "given":
        return _given(fields, mapping)
    baseline_n, edited_n = _size(fields, "baseline_n"), _size(fields, "edited_n")
    if mapping.labels == "counts":
        baseline_yes, edited_yes = fields.count("baseline_yes"), fields.count("edited_yes")
    else:
        baseline = _rate(fields, "baseline_rate", mapping)
        if fields.has("edited_rate"):
            edited = _rate(fields, "edited_rate", mapping)
        else:
            edited = baseline + fields.number("change") / (100 if mapping.percent else 1)
        baseline_yes = _yes(baseline, baseline_n, "baseline_rate", fields.place)
        edited_yes = _yes(edited, edited_n, "edited_rate", fields.place)
    if baseline_yes > baseline_n or edited_yes > edited_n:
        raise ClaimsError(
            f"{fields.place}: found {baseline_yes} yes of {baseline_n} responses and {edited_yes} of {edited_n}. "
            "Expected no more yes than responses."
        )
    label = measured_label(Fraction(baseline_yes, baseline_n), Fraction(edited_yes, edited_n))
    if fields.has("label") and fields.flag("label", mapping.label_words) is not label:
        said = fields.flag("label", mapping.label_words)
        raise ClaimsError(
            f"{fields.place}: the label given is {said}, but {baseline_yes}/{baseline_n} to {edited_yes}/{edited_n} "
            f"makes it {'neither true nor false' if label is None else label}. Mend the row, or map no label."
        )
    return Measured(label, baseline_yes / baseline_n, baseline_yes, baseline_n, edited_yes, edited_n)


def _given(fields: Fields, mapping: ImportMap) -> Measured:
    rate = _rate(fields, "baseline_rate", mapping)
    label = fields.flag("label", mapping.label_words)
    if not fields.has("baseline_n"):
        return Measured(label, rate, 0, 0, 0, 0)
    n = _size(fields, "baseline_n")
    yes = _yes(rate, n, "baseline_rate", fields.place)
    return Measured(label, yes / n, yes, n, 0, 0)


def _size(fields: Fields, name: str) -> int:
    n = fields.count(name)
    if n == 0:
        raise ClaimsError(f"{fields.place}: {name} is 0. Expected the number of responses behind the rate.")
    return n


def _rate(fields: Fields, name: str, mapping: ImportMap) -> float:
    rate = fields.number(name) / (100 if mapping.percent else 1)
    if not 0 <= rate <= 1:
        written = "percent" if mapping.percent else "share"
        raise ClaimsError(
            f"{fields.place}: {name} is {fields.number(name):g}, which is no rate with rates = {written!r}. "
            "Say in the map how rates are written: share (0 to 1) or percent."
        )
    return rate


def _yes(rate: float, n: int, name: str, place: str) -> int:
    yes = round(rate * n)
    if abs(yes / n - rate) > TOLERANCE:
        raise ClaimsError(
            f"{place}: {name} {rate:.4g} is no share of {n} responses (the nearest is {yes}/{n} = {yes / n:.4g}). "
            "Expected the number of responses behind this rate: mend baseline_n or edited_n in the map."
        )
    return yes
