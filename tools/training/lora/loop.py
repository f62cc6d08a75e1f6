"""Fitting a low-rank adapter to examples: one loop for both tools.

Invariant: the result is determined by the examples, the schedule and the base model on one machine with one number of
threads; a run that was killed goes on from its last checkpoint and ends at the same weights. The base model's weights
stay as they are; the adapter's are kept in float32, whatever the model computes in.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.training.corpus import Progress
from tools.training.lora.examples import Example, batches, collate
from tools.training.lora.inject import Hidden, logits, vocabulary_size
from tools.training.lora.vocabulary import Vocabulary

WARM_UP = 20
"""Steps over which the learning rate rises."""
DECAY = 0.35
"""Share of the steps, the last ones, over which it falls to 0 as a cosine."""
CLIP = 1.0
"""Largest norm of the gradient."""
SAVE_EVERY_S = 120.0
"""Seconds between two checkpoints."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast."""

    n_steps: int
    """Steps, unless `minutes` ends them sooner."""
    batch: int
    """Examples in a step."""
    learning_rate: float
    """AdamW's, at its highest."""
    seed: int
    """Of the order of examples."""
    minutes: float | None = None
    """Longest training; the learning rate then falls in time to end properly."""


@dataclass
class _State:
    """What training changes, and what a checkpoint holds."""

    weights: list[Tensor]
    optimizer: torch.optim.AdamW
    n_steps: int
    step: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)


def fit(
    model: nn.Module,
    hidden: Hidden,
    examples: Sequence[Example],
    schedule: Schedule,
    saved: Path,
    *,
    progress: Progress,
) -> tuple[float, ...]:
    """Train the parameters of `model` that want gradients; return the loss of every step.

    Args:
        model: A peft model.
        hidden: Runs it on a batch.
        examples: What it learns from.
        schedule: How long and how fast.
        saved: The checkpoint.
        progress: Told of every step.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    weights = [parameter.detach().float().clone() for parameter in trained]
    state = _State(weights, torch.optim.AdamW(weights, weight_decay=0.0, betas=(0.9, 0.99)), schedule.n_steps)
    _restore(state, saved)
    _put(state.weights, trained)
    vocabulary = Vocabulary(vocabulary_size(model), examples, seed=schedule.seed)
    order: list[list[int]] = []
    began, kept = time.monotonic() - state.seconds, time.monotonic()
    while state.step < state.n_steps:
        per_pass = len(examples) // schedule.batch
        if not order or state.step % per_pass == 0:
            order = batches(examples, schedule.batch, seed=schedule.seed * 1000 + state.step // per_pass)
        _rate(state, schedule)
        chosen = [examples[i] for i in order[state.step % len(order)]]
        _step(state, model, hidden, trained, chosen, vocabulary.at(state.step))
        state.seconds = time.monotonic() - began
        _shorten(state, schedule)
        progress(f"loss {_recent(state.losses):.3f}, training steps", state.step, state.n_steps)
        if time.monotonic() - kept > SAVE_EVERY_S or state.step == state.n_steps:
            _save(state, saved)
            kept = time.monotonic()
    return tuple(state.losses)


def learning_rate_share(step: int, n_steps: int) -> float:
    """The learning rate at `step`, as a share of the highest."""
    rising = (step + 1) / WARM_UP
    left = (n_steps - step) / max(1.0, DECAY * n_steps)
    return min(1.0, rising) * (0.5 - 0.5 * math.cos(math.pi * min(1.0, left)))


def _rate(state: _State, schedule: Schedule) -> None:
    for group in state.optimizer.param_groups:
        group["lr"] = schedule.learning_rate * learning_rate_share(state.step, state.n_steps)


def _shorten(state: _State, schedule: Schedule) -> None:
    # The rate has not begun to fall yet: the steps so far become the share of the schedule before it does.
    before = 1 - DECAY
    limit = math.inf if schedule.minutes is None else 60 * schedule.minutes
    if state.seconds >= before * limit and state.step < before * state.n_steps:
        state.n_steps = max(state.step, round(state.step / before))


def _recent(losses: Sequence[float], n: int = 20) -> float:
    return sum(losses[-n:]) / len(losses[-n:])


def batch_losses(
    model: nn.Module, hidden: Hidden, examples: Sequence[Example], *, tokens: Tensor | None = None
) -> Tensor:
    """The loss of each example, in nats a token of its answer.

    Args:
        model: A language model.
        hidden: Runs it on a batch.
        examples: Prompts, activations and answers.
        tokens: What the model chooses among, ascending, the answers included; None for its whole vocabulary.
    """
    device = next(model.parameters()).device
    batch = collate(examples, device)
    at_answers = hidden(model, batch)[batch.answer_rows, batch.answer_columns]
    answers = batch.answers if tokens is None else torch.searchsorted(tokens, batch.answers)
    each = functional.cross_entropy(logits(model, at_answers, tokens), answers, reduction="none")
    return torch.zeros(len(examples), device=device).index_add(0, batch.answer_rows, each * batch.weights)


def _step(
    state: _State,
    model: nn.Module,
    hidden: Hidden,
    trained: Sequence[nn.Parameter],
    examples: Sequence[Example],
    tokens: Tensor | None,
) -> None:
    loss = batch_losses(model, hidden, examples, tokens=tokens).mean()
    torch.autograd.backward(loss)
    for weight, parameter in zip(state.weights, trained, strict=True):
        assert parameter.grad is not None, "a parameter that nothing depends on is trained"
        weight.grad = parameter.grad.float()
        parameter.grad = None
    torch.nn.utils.clip_grad_norm_(state.weights, CLIP)
    state.optimizer.step()
    _put(state.weights, trained)
    state.losses.append(float(loss.detach()))
    state.step += 1


@torch.no_grad()
def _put(weights: Sequence[Tensor], trained: Sequence[nn.Parameter]) -> None:
    for weight, parameter in zip(weights, trained, strict=True):
        parameter.copy_(weight)


def _save(state: _State, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    kept = {
        "weights": state.weights,
        "optimizer": state.optimizer.state_dict(),
        "n_steps": state.n_steps,
        "step": state.step,
        "seconds": state.seconds,
        "losses": state.losses,
    }
    torch.save(kept, partial)
    partial.replace(path)


def _restore(state: _State, path: Path) -> None:
    if not path.exists():
        return
    kept = torch.load(path, weights_only=True)
    for weight, stored in zip(state.weights, kept["weights"], strict=True):
        weight.copy_(stored)
    state.optimizer.load_state_dict(kept["optimizer"])
    state.n_steps, state.step = int(kept["n_steps"]), int(kept["step"])
    state.seconds, state.losses = float(kept["seconds"]), list(kept["losses"])
