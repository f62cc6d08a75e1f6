"""What a sample used, as tokens that each have one price."""

from inspect_ai.log import EvalSample, EvalSampleSummary

from claims.build.wild.money import Usage
from claims.build.wild.usage import normalised


def usage_of(sample: EvalSample | EvalSampleSummary) -> Usage:
    """Tokens of every reply of a sample, whichever models gave them."""
    return sum((normalised(used, 0) for used in sample.model_usage.values()), Usage())
