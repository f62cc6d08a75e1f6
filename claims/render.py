"""A claim as the text that a predictor reads: BEHAVIOR, BASELINE, INTERVENTION, PREDICTION, and the question.

Invariant: the text is a function of the claim, the temperature and the template alone.
"""

from functools import cache
from importlib.resources import files
from string import Formatter

from claims.schema import Claim, ClaimsError

FIELDS = frozenset({"behaviour", "temperature", "baseline", "intervention"})
"""What a template may name in braces, each at least once."""


@cache
def default_template() -> str:
    """The template that ships with the project, `claims/claim.txt`."""
    return files("claims").joinpath("claim.txt").read_text(encoding="utf-8")


def check_template(template: str, name: str) -> str:
    """Return `template` when it names every field of `FIELDS` and nothing else.

    Args:
        template: Text with fields in braces.
        name: What to call it in an error, such as its path.

    Raises:
        ClaimsError: A field is missing or unknown, or the braces do not match.
    """
    try:
        found = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
    except ValueError as error:
        raise ClaimsError(f"{name}: {error}. Write a literal brace twice, as in '{{{{'.") from None
    if found != FIELDS:
        raise ClaimsError(
            f"{name}: found the fields {sorted(found)}, expected exactly {sorted(FIELDS)}. "
            "Name each of them in braces at least once."
        )
    return template


def render_claim(claim: Claim, *, temperature: float, template: str | None = None) -> str:
    """The claim as text, baseline rounded to a whole percentage.

    Args:
        claim: The claim.
        temperature: At which the target was sampled.
        template: Text with the fields of `FIELDS`; None takes the default.
    """
    return (template or default_template()).format(
        behaviour=claim.behaviour,
        temperature=f"{temperature:g}",
        baseline=round(100 * claim.baseline_rate),
        intervention=claim.intervention,
    )
