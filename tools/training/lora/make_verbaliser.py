"""From a target to a trained and measured natural-language autoencoder, and to the folder that is shipped.

Invariant: the figures are about the weights as they are written, and the descriptions judged are generated as the
tool generates them.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors.torch import save_file

from tools.sae_loader import file_sha256
from tools.training.corpus import Progress
from tools.training.lora.adapter import save_adapter
from tools.training.lora.artefact import write_centres, write_folder, write_json
from tools.training.lora.cards import VerbaliserCard, render_verbaliser
from tools.training.lora.inject import through_verbaliser
from tools.training.lora.judge_verbaliser import Judged, judge_verbaliser, judged_places
from tools.training.lora.picture import draw_losses
from tools.training.lora.plan import LoraPlan
from tools.training.lora.run import Fitted, Workshop, fit_adapter, training_of
from tools.training.lora.score import Losses, measure_losses
from tools.training.lora.verbaliser import VerbaliserSet, build_verbaliser_set, sidecar_fields, write_sidecar


@dataclass(frozen=True)
class MadeVerbaliser:
    """A natural-language autoencoder and everything that is known about it."""

    layer: int
    """Described are activations after this block."""
    fitted: Fitted
    """On its target."""
    data: VerbaliserSet
    """What it was trained on."""
    losses: Losses
    """Held out."""
    judged: Judged
    """On held-out places."""


def make_verbaliser(workshop: Workshop, plan: LoraPlan, layer: int, *, progress: Progress) -> MadeVerbaliser:
    """Describe, read, train and judge."""
    schedule = plan.schedule
    data = build_verbaliser_set(
        workshop.loaded,
        workshop.reader,
        workshop.passages,
        layer,
        (plan.examples, plan.held_out),
        workshop.folder,
        seed=schedule.seed,
        progress=progress,
    )
    places = judged_places(workshop, plan, layer, data, progress=progress)
    hidden = through_verbaliser(data.sidecar)
    fitted = fit_adapter(workshop, plan, hidden, data.train, first=0, progress=progress)
    losses = measure_losses(fitted.model, hidden, data.held_out)
    judged = judge_verbaliser(workshop, fitted.model, data, places, progress=progress)
    progress("measured", 1, 1)
    return MadeVerbaliser(layer, fitted, data, losses, judged)


def write_verbaliser(folder: Path, workshop: Workshop, plan: LoraPlan, made: MadeVerbaliser) -> None:
    """Write the adapter, its sidecar, the reconstructor, the card and the loss curve into `folder`."""

    def fill(draft: Path) -> None:
        target = workshop.loaded.target.name
        save_adapter(made.fitted.model, target, draft)
        write_centres(draft, {made.layer: made.data.centre})
        rebuild = made.judged.reconstructor
        rebuilder = {"weight": rebuild.weight.half().contiguous(), "bias": rebuild.bias.half()}
        save_file(rebuilder, draft / "reconstructor.safetensors")
        write_sidecar(draft, sidecar_fields(workshop.loaded, made.layer, made.data.sidecar.injection_scale))
        levels = {"right": made.losses.right, "shuffled": made.losses.shuffled, "none": made.losses.zero}
        title = f"Natural-language autoencoder, {target}"
        draw_losses(made.fitted.losses, draft / "loss.png", title=title, levels=levels)
        card = VerbaliserCard(
            training=training_of("nla", workshop, plan, made.fitted.losses),
            layer=made.layer,
            losses=made.losses,
            retrieval=made.judged.retrieval,
            explained=made.judged.explained,
            unfinished=made.judged.unfinished,
            samples=made.judged.samples,
            sha256={path.name: file_sha256(path) for path in sorted(draft.iterdir())},
        )
        write_json(draft / "card.json", asdict(card))
        (draft / "card.md").write_text(render_verbaliser(card), encoding="utf-8")

    write_folder(folder, fill)
