"""From a target and a recipe to a labelled, measured autoencoder, and to the folder that is shipped.

Invariant: the figures are about the weights as they are written, float16 rounding included; a folder is complete or
as it was before.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from tools.activations import ActivationReader
from tools.chat import token_texts
from tools.model import Loaded
from tools.sae_loader import file_sha256
from tools.sae_local import CONFIG, WEIGHTS, TopK
from tools.sae_random import topk_config
from tools.training.card import Card, recipe_row, render_card, shares, versions
from tools.training.corpus import Document, Progress, build_corpus, corpus_folder
from tools.training.firings import Firings, firings
from tools.training.fit import fit
from tools.training.harvest import Harvest, harvest
from tools.training.label_check import LabelCheck, check_labels
from tools.training.labelling import SOURCE, FeatureLabel, Labeller
from tools.training.measure import Prediction, Reconstruction, prediction, reconstruction
from tools.training.recipe import Recipe

PREDICTED = 60
"""Held-out documents on which the target's loss is measured."""


@dataclass(frozen=True)
class Source:
    """What an autoencoder is made from."""

    loaded: Loaded
    """The target."""
    reader: ActivationReader
    """Reads its activations."""
    reader_name: str
    """As in `tools.activations.make_reader`."""
    layer: int
    """Residual stream after this block, from 0."""
    recipe: Recipe
    """Sizes, schedule and corpus."""


@dataclass(frozen=True)
class Made:
    """An autoencoder and everything that is known about it."""

    topk: TopK
    """float32 values that float16 holds exactly."""
    labels: tuple[FeatureLabel, ...]
    """By feature."""
    documents: tuple[Document, ...]
    """The corpus."""
    trained_on: int
    """Different training tokens."""
    held_out: dict[str, Reconstruction]
    """`all`, and each kind of document."""
    dead_in_training: float
    """Share of features never active on a training token."""
    prediction: Prediction
    """The target's loss on held-out documents."""
    checks: dict[str, LabelCheck]
    """Labels against held-out firings."""
    losses: tuple[float, ...]
    """Over training."""


def make(source: Source, *, progress: Progress) -> Made:
    """Write the corpus, read it, train, label and measure."""
    folder = corpus_folder(source.loaded, source.recipe.plan)
    documents = build_corpus(source.loaded, source.recipe.plan, folder, progress=progress)
    everything = harvest(source.reader, documents, source.layer, folder, progress=progress)
    held_out = torch.tensor([document.held_out for document in documents])[everything.document]
    train, test = everything.select(~held_out), everything.select(held_out)
    fitted = fit(train.residual, source.recipe, folder, progress=progress)
    topk = _rounded(fitted.topk)
    texts = _texts(source.loaded, documents)
    progress("features labelled", 0, source.recipe.d_sae)
    fired = firings(topk, train.residual)
    labels = _labels(Labeller(documents, train, texts), fired, source.recipe.d_sae, progress)
    return Made(
        topk=topk,
        labels=labels,
        documents=tuple(documents),
        trained_on=len(train.residual),
        held_out=_by_kind(topk, test, documents),
        dead_in_training=float((fired.starts[1:] == fired.starts[:-1]).mean()),
        prediction=_prediction(source, topk, documents, train.residual),
        checks=check_labels(labels, Labeller(documents, test, texts), firings(topk, test.residual)),
        losses=fitted.losses,
    )


def _rounded(topk: TopK) -> TopK:
    tensors = {name: getattr(topk, name).half() for name in ("w_enc", "b_enc", "w_dec", "b_dec", "centre")}
    # Activations of Gemma come near to what float16 cannot hold.
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values()), "float16 overflow"
    return replace(topk, **{name: tensor.float() for name, tensor in tensors.items()})


def _texts(loaded: Loaded, documents: Sequence[Document]) -> dict[int, str]:
    token_ids = sorted({token_id for document in documents for token_id in document.token_ids})
    return dict(zip(token_ids, token_texts(loaded.tokenizer, token_ids), strict=True))


def _labels(labeller: Labeller, fired: Firings, d_sae: int, progress: Progress) -> tuple[FeatureLabel, ...]:
    labels = []
    for feature in range(d_sae):
        labels.append(labeller.label(fired, feature))
        progress("features labelled", feature + 1, d_sae)
    return tuple(label for label in labels if label is not None)


def _by_kind(topk: TopK, test: Harvest, documents: Sequence[Document]) -> dict[str, Reconstruction]:
    figures = {"all": reconstruction(topk, test.residual)}
    for kind in dict.fromkeys(document.kind for document in documents):
        of_kind = torch.tensor([document.kind == kind for document in documents])[test.document]
        if bool(of_kind.any()):
            figures[kind] = reconstruction(topk, test.select(of_kind).residual)
    return figures


def _prediction(source: Source, topk: TopK, documents: Sequence[Document], residual: Tensor) -> Prediction:
    held_out = [document for document in documents if document.held_out]
    # Every kind in its share: documents come kind by kind.
    chosen = held_out[:: max(1, len(held_out) // PREDICTED)]
    return prediction(source.loaded, topk, chosen, source.layer, residual.float().mean(dim=0))


def write(folder: Path, source: Source, made: Made, *, command: str) -> None:
    """Write the weights, labels and cards into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        draft = Path(name)
        _write_weights(draft, source, made)
        _write_labels(draft, made)
        card = _card(draft, source, made, command)
        (draft / "card.json").write_text(json.dumps(asdict(card), indent=1) + "\n", encoding="utf-8")
        (draft / "card.md").write_text(render_card(card), encoding="utf-8")
        for path in sorted(draft.iterdir()):
            path.replace(folder / path.name)


def _write_weights(folder: Path, source: Source, made: Made) -> None:
    topk = made.topk
    weights = {"W_enc": topk.w_enc, "b_enc": topk.b_enc, "W_dec": topk.w_dec, "b_dec": topk.b_dec}
    save_file({name: tensor.half().contiguous() for name, tensor in weights.items()}, folder / WEIGHTS)
    config = topk_config(
        model=source.loaded.target.name,
        layer=source.layer,
        d_model=source.loaded.d_model,
        d_sae=source.recipe.d_sae,
        k=source.recipe.k,
        dtype="float16",
    )
    (folder / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def _write_labels(folder: Path, made: Made) -> None:
    lines = [json.dumps({**asdict(label), "source": SOURCE}, ensure_ascii=False) + "\n" for label in made.labels]
    (folder / "labels.jsonl").write_text("".join(lines), encoding="utf-8")


def _card(folder: Path, source: Source, made: Made, command: str) -> Card:
    return Card(
        target=source.loaded.target.name,
        target_weights=source.loaded.weights,
        layer=source.layer,
        fidelity="demo",
        recipe=recipe_row(source.recipe),
        command=command,
        versions=versions(),
        reader=source.reader_name,
        corpus=shares(made.documents),
        trained_on=made.trained_on,
        held_out=made.held_out,
        dead_in_training=made.dead_in_training,
        prediction=made.prediction,
        recovered=made.prediction.recovered,
        labelled=dict(Counter(label.kind for label in made.labels)),
        labels=made.checks,
        loss_curve=made.losses,
        sha256={path.name: file_sha256(path) for path in sorted(folder.iterdir())},
    )
