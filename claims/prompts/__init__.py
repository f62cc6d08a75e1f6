"""Prompts for the pipeline: readers for the public layouts, the paper's filters, and a count for every drop.

Invariant: imports `claims.schema` and nothing else of ours.
"""

from claims.prompts.collect import Collected, collect_prompts, default_limits, mix, read_excluded, save_prompts
from claims.prompts.filters import PETRI_LIMITS, Limits
from claims.prompts.reading import read_prompts, read_saved
from claims.prompts.record import Funnel, Prompt, PromptsError, Reading, Step, count_roles, prompt_id
from claims.prompts.shapes import FORMATS, SHAPES, Shape

__all__ = [
    "FORMATS",
    "PETRI_LIMITS",
    "SHAPES",
    "Collected",
    "Funnel",
    "Limits",
    "Prompt",
    "PromptsError",
    "Reading",
    "Shape",
    "Step",
    "collect_prompts",
    "count_roles",
    "default_limits",
    "mix",
    "prompt_id",
    "read_excluded",
    "read_prompts",
    "read_saved",
    "save_prompts",
]
