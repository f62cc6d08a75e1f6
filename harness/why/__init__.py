"""Why a tool helps or not: what its outputs state and hint, what that predicts, and which claims it moved."""

from harness.why.explain import Wanted, explain
from harness.why.judge import Allowance

__all__ = ["Allowance", "Wanted", "explain"]
