"""Claims from the wild: unexpected behaviours found in real prompts, investigated by experiments, made into claims.

Invariant: every label follows from counts of sampled responses; models choose, describe and judge, they never label.
"""

from claims.build.wild.filters import parse_filters, read_columns, view
from claims.build.wild.investigate import Lab
from claims.build.wild.pipeline import WildPlan, WildResult, run_wild
from claims.build.wild.roles import REGIMES, ROLES, choose_roles

__all__ = [
    "REGIMES",
    "ROLES",
    "Lab",
    "WildPlan",
    "WildResult",
    "choose_roles",
    "parse_filters",
    "read_columns",
    "run_wild",
    "view",
]
