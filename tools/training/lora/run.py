"""What the training of both tools has in common: the target, its passages, the adapter and its fitting.

Invariant: the target is read before the adapter is put on.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from peft import PeftModel

from tools.activations import ActivationReader, PlainHookReader
from tools.model import Loaded, load
from tools.targets import get_target
from tools.training.corpus import Progress, build_corpus, corpus_folder
from tools.training.lora.adapter import attach, round_as_shipped
from tools.training.lora.artefact import checkpoint, thinned
from tools.training.lora.cards import Training, versions
from tools.training.lora.examples import Example
from tools.training.lora.inject import Hidden
from tools.training.lora.loop import fit
from tools.training.lora.passages import Passage, passages
from tools.training.lora.plan import LoraPlan, get_plan
from tools.training.recipe import get_recipe
from tools.weights import cache_root

ARTIFACTS = Path(__file__).parents[2] / "artifacts"
"""One folder a tool, in it one a target."""


@dataclass(frozen=True)
class Workshop:
    """A target and what is read of it."""

    loaded: Loaded
    """The target."""
    reader: ActivationReader
    """Reads its activations."""
    passages: tuple[Passage, ...]
    """Its corpus."""
    folder: Path
    """Where what takes long is kept."""


def open_workshop(tool: str, name: str, plan: LoraPlan, *, progress: Progress) -> Workshop:
    """Load the target and gather its passages.

    Raises:
        UserError: The target is unknown, or its weights cannot be had.
    """
    loaded = load(get_target(name), device="cpu")
    corpus = get_recipe(name).plan
    documents = build_corpus(loaded, corpus, corpus_folder(loaded, corpus), progress=progress)
    found = passages(loaded, documents, plan.size, seed=plan.schedule.seed)
    folder = cache_root() / "training" / tool / name
    return Workshop(loaded, PlainHookReader(loaded), tuple(found), folder)


@dataclass(frozen=True)
class Fitted:
    """A trained adapter on its target."""

    model: PeftModel
    """With the values that are shipped."""
    losses: tuple[float, ...]
    """Of every step."""


def fit_adapter(
    workshop: Workshop,
    plan: LoraPlan,
    hidden: Hidden,
    examples: Sequence[Example],
    *,
    first: int,
    progress: Progress,
) -> Fitted:
    """Put an adapter on the target's blocks from `first` on and train it."""
    model = attach(workshop.loaded, plan, first=first)
    saved = checkpoint(workshop.folder, plan, workshop.loaded.weights, examples)
    losses = fit(model, hidden, examples, plan.schedule, saved, progress=progress)
    round_as_shipped(model)
    return Fitted(model, losses)


def training_of(tool: str, workshop: Workshop, plan: LoraPlan, losses: Sequence[float]) -> Training:
    """The part of a card that both tools have."""
    target = workshop.loaded.target.name
    in_plan = get_plan(tool, target).schedule.n_steps == len(losses)
    counts: dict[str, dict[str, int]] = defaultdict(lambda: {"passages": 0, "held_out": 0, "tokens": 0})
    for passage in workshop.passages:
        counts[passage.kind]["passages"] += 1
        counts[passage.kind]["held_out"] += passage.held_out
        counts[passage.kind]["tokens"] += len(passage.token_ids)
    return Training(
        target=target,
        target_weights=workshop.loaded.weights,
        fidelity="demo",
        command=f"uplift artifacts {tool} {target}" + ("" if in_plan else f" --steps {len(losses)}"),
        plan=asdict(plan),
        n_steps=len(losses),
        n_examples=len(losses) * plan.schedule.batch,
        passages=dict(counts),
        loss_curve=thinned(losses),
        versions=versions(),
    )
