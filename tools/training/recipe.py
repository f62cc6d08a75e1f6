"""How the autoencoder of each local target is trained.

Invariant: everything that a training run depends on and that is not the target is in its recipe.
"""

from dataclasses import dataclass, replace

from claims.schema import UserError
from tools.training.corpus import Plan


@dataclass(frozen=True)
class Recipe:
    """One autoencoder."""

    plan: Plan
    """Its corpus."""
    d_sae: int
    """Number of features."""
    k: int
    """Most features active at one token."""
    passes: int
    """How often every training token is seen."""
    batch: int
    """Tokens in one step."""
    learning_rate: float
    """Adam's, at its highest, for activations scaled to a mean norm of sqrt(d_model)."""
    seed: int
    """Of initialisation and order."""


_SMOLLM2 = Plan(
    n_chats=896,
    chat_tokens=72,
    n_written=128,
    written_tokens=128,
    package_tokens=120_000,
    context=512,
    seed=0,
)
# Gemma answers in one line: more and shorter answers make up the same share. What it writes without a chat is left out:
# each token draws from 262,144, which takes longer than everything else.
_GEMMA = replace(_SMOLLM2, n_chats=1536, chat_tokens=32, n_written=0, written_tokens=96)
_TINY = Plan(n_chats=40, chat_tokens=6, n_written=8, written_tokens=6, package_tokens=600, context=64, seed=0)
_SMALL = Recipe(_SMOLLM2, d_sae=4096, k=32, passes=6, batch=512, learning_rate=3e-3, seed=0)
_SMALLEST = Recipe(_TINY, d_sae=128, k=8, passes=2, batch=64, learning_rate=1e-3, seed=0)

RECIPES: dict[str, Recipe] = {
    "gemma-3-270m": replace(_SMALL, plan=_GEMMA, passes=4),
    "smollm2-135m": _SMALL,
    "tiny-gemma": _SMALLEST,
    "tiny-qwen": _SMALLEST,
}


def get_recipe(target: str) -> Recipe:
    """The recipe for the target of this name.

    Raises:
        UserError: There is none.
    """
    if target not in RECIPES:
        raise UserError(
            f"There is no training recipe for {target!r}. Expected one of: {', '.join(RECIPES)}. "
            "Add a row to RECIPES in tools/training/recipe.py."
        )
    return RECIPES[target]
