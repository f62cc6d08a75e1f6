"""From a target to a trained and measured oracle, and to the folder that is shipped.

Invariant: the figures are about the weights as they are written.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from tools.sae_loader import file_sha256
from tools.training.corpus import Progress
from tools.training.lora.adapter import save_adapter
from tools.training.lora.artefact import thinned, write_centres, write_folder, write_json
from tools.training.lora.cards import OracleCard, render_oracle
from tools.training.lora.families import LONGEST, WEIGHTS
from tools.training.lora.inject import BLOCK, through_oracle
from tools.training.lora.judge import Accuracy, judge
from tools.training.lora.oracle import Amounts, OracleSet, build_oracle_set
from tools.training.lora.picture import draw_losses
from tools.training.lora.plan import LoraPlan, oracle_layers
from tools.training.lora.run import Fitted, Workshop, fit_adapter, training_of
from tools.training.lora.score import Losses, measure_losses

FACTS = "ao.json"
MAX_TOKENS = 24
"""Longest answer: twice what training answers have."""


@dataclass(frozen=True)
class MadeOracle:
    """An oracle and everything that is known about it."""

    fitted: Fitted
    """On its target."""
    asked: OracleSet
    """What it was trained and judged on."""
    losses: Losses
    """Held out."""
    families: dict[str, Accuracy]
    """By family of questions."""


def make_oracle(workshop: Workshop, plan: LoraPlan, *, progress: Progress) -> MadeOracle:
    """Ask, read, train and judge."""
    schedule = plan.schedule
    amounts = Amounts(plan.examples, plan.held_out, plan.per_family)
    asked = build_oracle_set(
        workshop.loaded,
        workshop.reader,
        workshop.passages,
        amounts,
        workshop.folder,
        seed=schedule.seed,
        progress=progress,
    )
    fitted = fit_adapter(workshop, plan, through_oracle, asked.train, first=BLOCK + 1, progress=progress)
    progress("measured", 0, 2)
    losses = measure_losses(fitted.model, through_oracle, asked.held_out)
    progress("measured", 1, 2)
    families = judge(workshop.loaded, fitted.model, asked.judged, asked.judged_examples)
    progress("measured", 2, 2)
    return MadeOracle(fitted, asked, losses, families)


def write_oracle(folder: Path, workshop: Workshop, plan: LoraPlan, made: MadeOracle) -> None:
    """Write the adapter, its facts, its card and its loss curve into `folder`."""

    def fill(draft: Path) -> None:
        target = workshop.loaded.target
        layers = oracle_layers(target)
        save_adapter(made.fitted.model, target.name, draft)
        write_centres(draft, {layer: made.asked.centres[layer] for layer in layers if layer in made.asked.centres})
        levels = {"right": made.losses.right, "shuffled": made.losses.shuffled, "none": made.losses.zero}
        title = f"Activation oracle, {target.name}"
        draw_losses(made.fitted.losses, draft / "loss.png", title=title, levels=levels)
        write_json(draft / FACTS, _facts(draft, workshop, plan, made))
        card = OracleCard(
            training=training_of("ao", workshop, plan, made.fitted.losses),
            layers=layers,
            losses=made.losses,
            families=made.families,
            sha256={path.name: file_sha256(path) for path in sorted(draft.iterdir())},
        )
        write_json(draft / "card.json", asdict(card))
        (draft / "card.md").write_text(render_oracle(card), encoding="utf-8")

    write_folder(folder, fill)


def _facts(draft: Path, workshop: Workshop, plan: LoraPlan, made: MadeOracle) -> dict[str, object]:
    layers = oracle_layers(workshop.loaded.target)
    return {
        "target": workshop.loaded.target.name,
        "weights": workshop.loaded.weights,
        "layers": list(layers),
        "layer": layers[1],
        "block": BLOCK,
        "coefficient": 1.0,
        "max_segment": LONGEST,
        "max_tokens": MAX_TOKENS,
        "temperature": 0.0,
        "top_p": 1.0,
        "families": dict(WEIGHTS),
        "n_steps": len(made.fitted.losses),
        "loss_curve": list(thinned(made.fitted.losses)),
        "plan": asdict(plan),
        "sha256": {path.name: file_sha256(path) for path in sorted(draft.glob("*.safetensors"))},
    }
