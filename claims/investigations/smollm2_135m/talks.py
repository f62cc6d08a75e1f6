"""The short talks and facts written for gemma-3-270m, put to this target as well.

They were written before either target answered them; what this target does with them was not known when this list was
committed. Left out is what only makes sense for the other target's dialogue template.
"""

from claims.build.spec import Investigation
from claims.investigations.gemma_3_270m import (
    authority,
    context,
    default,
    dialogues,
    facts,
    language,
    name,
    number,
    order,
    patterns,
    persona,
    questions,
    replies,
    rules,
    wording,
)
from claims.investigations.gemma_3_270m import format as formats

_MODULES = (
    authority,
    context,
    default,
    dialogues,
    facts,
    formats,
    language,
    name,
    number,
    order,
    patterns,
    persona,
    questions,
    replies,
    rules,
    wording,
)
_TEMPLATE_ONLY = {"example-leaks"}
"""Families about the example in the other target's dialogue template."""

INVESTIGATIONS: tuple[Investigation, ...] = tuple(
    one for module in _MODULES for one in module.INVESTIGATIONS if one.template not in _TEMPLATE_ONLY
)
