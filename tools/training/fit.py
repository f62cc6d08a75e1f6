"""Fitting a TopK autoencoder to activations.

Invariant: the result is determined by the activations and the recipe on one machine with one number of threads;
training goes on from its last saved pass.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from tools.sae_local import TopK
from tools.training.corpus import Progress
from tools.training.recipe import Recipe

WARM_UP = 0.05
"""Share of the steps over which the learning rate rises."""
DECAY = 0.3
"""Share of the steps, the last ones, over which it falls to 0."""


@dataclass
class _State:
    """What training changes."""

    w_enc: Float[Tensor, "d_model d_sae"]
    w_dec: Float[Tensor, "d_sae d_model"]
    b_enc: Float[Tensor, " d_sae"]
    b_dec: Float[Tensor, " d_model"]
    losses: list[float] = field(default_factory=list)

    @property
    def parameters(self) -> list[Tensor]:
        return [self.w_enc, self.w_dec, self.b_enc, self.b_dec]


@dataclass(frozen=True)
class Fitted:
    """A trained autoencoder."""

    topk: TopK
    """In the scale of the activations."""
    losses: tuple[float, ...]
    """Mean unexplained share of the squared norm, a figure for each tenth of a pass."""


def fit(residual: Tensor, recipe: Recipe, folder: Path, *, progress: Progress) -> Fitted:
    """Train on `residual`, shape (tokens, d_model), in the order that the recipe's seed gives.

    Args:
        residual: Activations, bfloat16 or float32.
        recipe: Sizes and schedule.
        folder: Where the state after each pass is kept.
        progress: Told of every tenth of a pass.
    """
    n_tokens, d_model = residual.shape
    scale = math.sqrt(d_model) / float(torch.linalg.vector_norm(residual.float(), dim=-1).mean())
    state = _initial(residual, scale, recipe)
    optimizer = torch.optim.Adam(state.parameters, lr=recipe.learning_rate, betas=(0.9, 0.999), fused=True)
    n_steps = recipe.passes * (n_tokens // recipe.batch)
    folder.mkdir(parents=True, exist_ok=True)
    saved = folder / f"fit-{_digest(residual, recipe)}.pt"
    done = _restore(state, optimizer, saved)
    for number in range(done, recipe.passes):
        for step, rows in _batches(n_tokens, number, recipe):
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * _schedule(number * (n_tokens // recipe.batch) + step, n_steps)
            _step(state, optimizer, residual[rows].float() * scale, recipe)
            progress("training steps", number * (n_tokens // recipe.batch) + step + 1, n_steps)
        _save(state, optimizer, saved, number + 1)
    return Fitted(_unscaled(state, scale, recipe.k), tuple(_thinned(state.losses)))


def _schedule(step: int, n_steps: int) -> float:
    rising = (step + 1) / max(1.0, WARM_UP * n_steps)
    falling = (n_steps - step) / max(1.0, DECAY * n_steps)
    return min(1.0, rising, falling)


def _batches(n_tokens: int, number: int, recipe: Recipe) -> Iterator[tuple[int, Tensor]]:
    generator = torch.Generator().manual_seed(recipe.seed * 1000 + number)
    order = torch.randperm(n_tokens, generator=generator)
    for step in range(n_tokens // recipe.batch):
        yield step, order[step * recipe.batch : (step + 1) * recipe.batch]


def _initial(residual: Tensor, scale: float, recipe: Recipe) -> _State:
    """Features start as random directions, read and written alike.

    Directions of random activations were tried: a third of them died, or they overshot for a whole pass.
    """
    generator = torch.Generator().manual_seed(recipe.seed)
    mean = residual.float().mean(dim=0) * scale
    w_dec = functional.normalize(torch.randn(recipe.d_sae, residual.shape[1], generator=generator), dim=-1)
    state = _State(
        w_enc=w_dec.T.contiguous(),
        w_dec=w_dec,
        b_enc=torch.zeros(recipe.d_sae),
        b_dec=mean,
    )
    for parameter in state.parameters:
        parameter.requires_grad_(True)
    return state


def _step(state: _State, optimizer: torch.optim.Optimizer, x: Float[Tensor, "batch d_model"], recipe: Recipe) -> None:
    # bfloat16 products with dense features: several times faster here than float32 or sparse ones.
    before = ((x - state.b_dec).bfloat16() @ state.w_enc.bfloat16()).float() + state.b_enc
    values, indices = before.topk(recipe.k, dim=-1)
    features = torch.zeros_like(before).scatter(-1, indices, values.relu())
    rest = x - (features.bfloat16() @ state.w_dec.bfloat16()).float() - state.b_dec
    power = (x - x.mean(dim=0)).square().sum()
    loss = rest.square().sum() / power
    state.losses.append(float(loss.detach()))
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
    with torch.no_grad():
        state.w_dec.copy_(functional.normalize(state.w_dec, dim=-1))


def _unscaled(state: _State, scale: float, k: int) -> TopK:
    b_dec = state.b_dec.detach() / scale
    return TopK(state.w_enc.detach(), state.b_enc.detach() / scale, state.w_dec.detach(), b_dec, b_dec, k)


def _thinned(losses: list[float], n: int = 40) -> list[float]:
    size = max(1, len(losses) // n)
    return [sum(losses[at : at + size]) / len(losses[at : at + size]) for at in range(0, len(losses), size)]


def _digest(residual: Tensor, recipe: Recipe) -> str:
    sums = residual.float().sum(dim=0).tolist()
    return hashlib.sha256(f"{recipe} {len(residual)} {sums}".encode()).hexdigest()[:16]


def _save(state: _State, optimizer: torch.optim.Optimizer, path: Path, passes: int) -> None:
    partial = path.with_suffix(".partial")
    kept = {
        "passes": passes,
        "tensors": [parameter.detach() for parameter in state.parameters],
        "losses": state.losses,
        "optimizer": optimizer.state_dict(),
    }
    torch.save(kept, partial)
    partial.replace(path)


def _restore(state: _State, optimizer: torch.optim.Optimizer, path: Path) -> int:
    if not path.exists():
        return 0
    kept = torch.load(path, weights_only=True)
    with torch.no_grad():
        for tensor, stored in zip(state.parameters, kept["tensors"], strict=True):
            tensor.copy_(stored)
    state.losses = kept["losses"]
    optimizer.load_state_dict(kept["optimizer"])
    return int(kept["passes"])
