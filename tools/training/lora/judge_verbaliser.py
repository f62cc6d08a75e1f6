"""What descriptions are worth: which context they come from, and how much of the activation they rebuild.

Invariant: each kind of description is rebuilt by a reconstructor that was fitted to descriptions of that kind, at fresh
places of training passages; so a describer is not blamed for what a reconstructor expected of another.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from peft import PeftModel
from torch import Tensor
from torch.nn import functional

from tools.nla_prompt import scaled, verbaliser_prompt
from tools.steered import AtEmbedding, Steered, generate
from tools.training.corpus import Progress
from tools.training.lora.cards import OTHER, OWN, TEMPLATE, TOKEN, Explained
from tools.training.lora.describing import Describer, Place, draw_place
from tools.training.lora.plan import LoraPlan
from tools.training.lora.reconstruct import Reconstructor, explained_variance, fit_reconstructor
from tools.training.lora.retrieval import Retrieval, retrieve, trials
from tools.training.lora.run import Workshop
from tools.training.lora.seeds import choose, generator
from tools.training.lora.verbaliser import MAX_TOKENS, VerbaliserSet, read_places
from tools.training.lora.words import Reader

SAMPLES = 8
"""Descriptions that the card shows."""
GROUP = 64
"""Descriptions between two words about progress."""


@dataclass(frozen=True)
class Held:
    """Places and the activations there, less the centre."""

    places: tuple[Place, ...]
    """Tokens of passages."""
    vectors: Tensor
    """Shape (places, d_model)."""


@dataclass(frozen=True)
class JudgedPlaces:
    """Everything that is read of the target before the adapter is put on."""

    fitting: Held
    """Fresh places of training passages, which reconstructors are fitted to."""
    retrieval: Held
    """Held-out places that share their token with others."""
    contexts: tuple[tuple[Place, ...], ...]
    """For each of those: itself, then the others."""
    drawn: Held
    """Held-out places drawn as in training."""

    @property
    def held_out(self) -> Held:
        """Those of the retrieval, then those drawn."""
        vectors = torch.cat([self.retrieval.vectors, self.drawn.vectors])
        return Held((*self.retrieval.places, *self.drawn.places), vectors)


@dataclass(frozen=True)
class Judged:
    """What descriptions of held-out activations are worth."""

    reconstructor: Reconstructor
    """From the verbaliser's descriptions to activations."""
    retrieval: dict[str, Retrieval]
    """Which context a description comes from."""
    explained: dict[str, Explained]
    """Of the reconstruction from different descriptions."""
    unfinished: float
    """Share of descriptions without a closing tag."""
    samples: tuple[tuple[str, str], ...]
    """Texts and descriptions."""


def judged_places(
    workshop: Workshop, plan: LoraPlan, layer: int, data: VerbaliserSet, *, progress: Progress
) -> JudgedPlaces:
    """Draw the places and read the target there."""
    seed = plan.schedule.seed
    pool = [passage for passage in workshop.passages if not passage.held_out]
    fresh = [draw_place(pool, rng=generator(f"rebuilt {number} {seed}")) for number in range(plan.rebuilt)]
    kept = [passage for passage in workshop.passages if passage.held_out]
    tried = trials(kept, plan.per_family, seed=seed)

    def held(places: Sequence[Place]) -> Held:
        rows, _ = read_places(workshop.reader, places, layer, workshop.folder, progress=progress)
        none = data.centre.new_empty(0, len(data.centre))
        return Held(tuple(places), torch.cat([none, *(row.float() for row in rows)]) - data.centre)

    return JudgedPlaces(
        fitting=held(fresh),
        retrieval=held([trial.place for trial in tried]),
        contexts=tuple((trial.place, *trial.others) for trial in tried),
        drawn=Held(data.held_out_places, torch.cat([example.vectors for example in data.held_out])),
    )


def judge_verbaliser(
    workshop: Workshop, model: PeftModel, data: VerbaliserSet, at: JudgedPlaces, *, progress: Progress
) -> Judged:
    """Fit the reconstructors, then judge descriptions of held-out activations."""
    fitting = _texts(workshop, model, data, at.fitting, progress)
    right = functional.normalize(at.fitting.vectors, dim=-1)
    rebuilders = {name: fit_reconstructor(said, right).as_shipped() for name, said in fitting.items()}
    held = at.held_out
    moved = torch.cat([one.vectors.roll(1, dims=0) for one in (at.retrieval, at.drawn)])
    texts = _texts(workshop, model, data, held, progress)
    texts[OTHER] = describe(workshop, model, data, moved, progress=progress)
    rebuilders[OTHER] = rebuilders[OWN]
    n = len(at.retrieval.places)
    describer = Describer(Reader(workshop.loaded.tokenizer))
    contexts = [[describer.context(place) for place in places] for places in at.contexts]
    return Judged(
        reconstructor=rebuilders[OWN],
        retrieval={name: retrieve(texts[name][:n], contexts) for name in (OWN, OTHER, TOKEN)},
        explained={
            name: _explained(rebuilders[name].rebuild(texts[name]), at) for name in (OWN, OTHER, TOKEN, TEMPLATE)
        },
        unfinished=sum("</explanation>" not in said for said in texts[OWN]) / len(texts[OWN]),
        samples=_samples(workshop, at.drawn.places, texts[OWN][n:]),
    )


def _texts(
    workshop: Workshop, model: PeftModel, data: VerbaliserSet, at: Held, progress: Progress
) -> dict[str, list[str]]:
    """What each describer says at some places."""
    describer = Describer(Reader(workshop.loaded.tokenizer))
    return {
        OWN: describe(workshop, model, data, at.vectors, progress=progress),
        TOKEN: _by_token(describer, data, at.places),
        TEMPLATE: [describer.describe(place) for place in at.places],
    }


def _explained(rebuilt: Tensor, at: JudgedPlaces) -> Explained:
    n = len(at.retrieval.places)
    shared, drawn = (functional.normalize(held.vectors, dim=-1) for held in (at.retrieval, at.drawn))
    return Explained(drawn=explained_variance(rebuilt[n:], drawn), shared_token=explained_variance(rebuilt[:n], shared))


def describe(
    workshop: Workshop, model: PeftModel, data: VerbaliserSet, vectors: Tensor, *, progress: Progress
) -> list[str]:
    """The verbaliser's descriptions of activations, as the tool generates them."""
    tokenizer = workshop.loaded.tokenizer
    prompt_ids, position = verbaliser_prompt(tokenizer, data.sidecar, workshop.loaded.target)
    items = [Steered(prompt_ids, (position,), row[None], seed=0) for row in scaled(vectors, data.sidecar)]
    said: list[str] = []
    for start in range(0, len(items), GROUP):
        group = items[start : start + GROUP]
        written = generate(
            model, tokenizer, group, AtEmbedding(), max_tokens=MAX_TOKENS, stop="</explanation>", prefix=position
        )
        said += [one.text for one in written]
        progress("descriptions", len(said), len(items))
    return said


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


def _samples(workshop: Workshop, places: Sequence[Place], said: Sequence[str]) -> tuple[tuple[str, str], ...]:
    reader = Reader(workshop.loaded.tokenizer)
    shown = list(zip(places, said, strict=True))[:SAMPLES]
    return tuple((reader.text(place.passage.token_ids[: place.position + 1])[-70:], one) for place, one in shown)
