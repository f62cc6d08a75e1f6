"""From a target to a trained and measured natural-language autoencoder, and to the folder that is shipped.

Invariant: the figures are about the weights as they are written, and the descriptions judged are generated as the
tool generates them.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from tools.nla_prompt import scaled, verbaliser_prompt
from tools.sae_loader import file_sha256
from tools.steered import AtEmbedding, Generated, Steered, generate
from tools.training.corpus import Progress
from tools.training.lora.adapter import save_adapter
from tools.training.lora.artefact import write_centres, write_folder, write_json
from tools.training.lora.cards import Explained, VerbaliserCard, render_verbaliser
from tools.training.lora.describing import Describer, Place
from tools.training.lora.inject import through_verbaliser
from tools.training.lora.picture import draw_losses
from tools.training.lora.plan import LoraPlan
from tools.training.lora.reconstruct import Reconstructor, explained_variance, fit_reconstructor
from tools.training.lora.retrieval import Retrieval, Trial, retrieve, trials
from tools.training.lora.run import Fitted, Workshop, fit_adapter, training_of
from tools.training.lora.score import Losses, measure_losses
from tools.training.lora.seeds import choose, generator
from tools.training.lora.verbaliser import (
    MAX_TOKENS,
    VerbaliserSet,
    build_verbaliser_set,
    read_places,
    sidecar_fields,
    write_sidecar,
)
from tools.training.lora.words import Reader

SAMPLES = 8
"""Descriptions that the card shows."""


@dataclass(frozen=True)
class Judged:
    """What descriptions of held-out activations are worth."""

    retrieval: dict[str, Retrieval]
    """Which context a description comes from."""
    explained: dict[str, Explained]
    """Of the reconstruction from different descriptions."""
    unfinished: float
    """Share of descriptions without a closing tag."""
    samples: tuple[tuple[str, str], ...]
    """Texts and descriptions."""


@dataclass(frozen=True)
class MadeVerbaliser:
    """A natural-language autoencoder and everything that is known about it."""

    layer: int
    """Described are activations after this block."""
    fitted: Fitted
    """On its target."""
    data: VerbaliserSet
    """What it was trained on."""
    reconstructor: Reconstructor
    """From descriptions to activations."""
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
    kept = [passage for passage in workshop.passages if passage.held_out]
    tried = trials(kept, plan.per_family, seed=schedule.seed)
    vectors = _vectors(workshop, [trial.place for trial in tried], layer, data, progress)
    hidden = through_verbaliser(data.sidecar)
    fitted = fit_adapter(workshop, plan, hidden, data.train, first=0, progress=progress)
    reconstructor = _reconstructor(workshop, data)
    losses = measure_losses(fitted.model, hidden, data.held_out)
    judged = _judge(workshop, fitted.model, data, reconstructor, tried, vectors)
    progress("measured", 1, 1)
    return MadeVerbaliser(layer, fitted, data, reconstructor, losses, judged)


def _vectors(
    workshop: Workshop, places: Sequence[Place], layer: int, data: VerbaliserSet, progress: Progress
) -> Tensor:
    rows, _ = read_places(workshop.reader, places, layer, workshop.folder, progress=progress)
    return torch.cat([data.centre.new_empty(0, len(data.centre)), *(row.float() for row in rows)]) - data.centre


def _reconstructor(workshop: Workshop, data: VerbaliserSet) -> Reconstructor:
    describer = Describer(Reader(workshop.loaded.tokenizer))
    descriptions = [describer.describe(place) for place in data.places[: len(data.train)]]
    vectors = torch.cat([example.vectors for example in data.train])
    fitted = fit_reconstructor(descriptions, functional.normalize(vectors, dim=-1))
    return Reconstructor(fitted.weight.half().float(), fitted.bias.half().float(), fitted.penalty)


def _judge(
    workshop: Workshop,
    model: PeftModel,
    data: VerbaliserSet,
    reconstructor: Reconstructor,
    tried: Sequence[Trial],
    vectors: Tensor,
) -> Judged:
    describer = Describer(Reader(workshop.loaded.tokenizer))
    n = len(tried)
    drawn = torch.cat([example.vectors for example in data.held_out])
    places = [*(trial.place for trial in tried), *data.held_out_places]
    said = describe(workshop, model, data, torch.cat([vectors, drawn]))
    other = describe(workshop, model, data, torch.cat([vectors.roll(1, dims=0), drawn.roll(1, dims=0)]))
    texts = {
        "of the activation": [one.text for one in said],
        "of another activation": [one.text for one in other],
        "knowing the token alone": _by_token(describer, data, places),
    }
    contexts = [[describer.context(place) for place in (trial.place, *trial.others)] for trial in tried]
    truth = {"of the text, by the template": [describer.describe(place) for place in places]}
    rebuilt = {name: reconstructor.rebuild(found) for name, found in {**texts, **truth}.items()}
    return Judged(
        retrieval={name: retrieve(found[:n], contexts) for name, found in texts.items()},
        explained={name: _explained(found, vectors, drawn) for name, found in rebuilt.items()},
        unfinished=sum("</explanation>" not in one.text for one in said) / len(said),
        samples=_samples(workshop, data.held_out_places, said[n:]),
    )


def _explained(rebuilt: Tensor, tried: Tensor, drawn: Tensor) -> Explained:
    right = [functional.normalize(vectors, dim=-1) for vectors in (tried, drawn)]
    return Explained(
        drawn=explained_variance(rebuilt[len(tried) :], right[1]),
        shared_token=explained_variance(rebuilt[: len(tried)], right[0]),
    )


def describe(workshop: Workshop, model: PeftModel, data: VerbaliserSet, vectors: Tensor) -> list[Generated]:
    """The verbaliser's descriptions of activations, as the tool generates them."""
    tokenizer = workshop.loaded.tokenizer
    prompt_ids, position = verbaliser_prompt(tokenizer, data.sidecar, workshop.loaded.target)
    items = [Steered(prompt_ids, (position,), row[None], seed=0) for row in scaled(vectors, data.sidecar)]
    return generate(
        model, tokenizer, items, AtEmbedding(), max_tokens=MAX_TOKENS, stop="</explanation>", prefix=position
    )


def _by_token(describer: Describer, data: VerbaliserSet, places: Sequence[Place]) -> list[str]:
    """For each place the description of a training place with the same token: what the token alone suggests."""
    by_token: dict[int, list[Place]] = defaultdict(list)
    for place in data.places[: len(data.train)]:
        by_token[place.token_id].append(place)
    return [
        describer.describe(choose(by_token[place.token_id], rng=generator(f"token {number}")))
        if by_token[place.token_id]
        else ""
        for number, place in enumerate(places)
    ]


def _samples(workshop: Workshop, places: Sequence[Place], said: Sequence[Generated]) -> tuple[tuple[str, str], ...]:
    reader = Reader(workshop.loaded.tokenizer)
    shown = list(zip(places, said, strict=True))[:SAMPLES]
    return tuple((reader.text(place.passage.token_ids[: place.position + 1])[-70:], one.text) for place, one in shown)


def write_verbaliser(folder: Path, workshop: Workshop, plan: LoraPlan, made: MadeVerbaliser) -> None:
    """Write the adapter, its sidecar, the reconstructor, the card and the loss curve into `folder`."""

    def fill(draft: Path) -> None:
        target = workshop.loaded.target.name
        save_adapter(made.fitted.model, target, draft)
        write_centres(draft, {made.layer: made.data.centre})
        rebuilder = {"weight": made.reconstructor.weight.half().contiguous(), "bias": made.reconstructor.bias.half()}
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
