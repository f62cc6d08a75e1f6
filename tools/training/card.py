"""The quality card of a trained autoencoder: what it was made of, and how good it is.

Invariant: every figure is about the weights as they are shipped and, unless it says otherwise, about held-out
documents.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version

from tools.training.corpus import Document
from tools.training.label_check import LabelCheck
from tools.training.measure import Prediction, Reconstruction
from tools.training.recipe import Recipe

LIBRARIES = ("torch", "transformers", "numpy", "safetensors", "sae-lens", "transformer-lens", "nnsight")


@dataclass(frozen=True)
class Share:
    """How much of the corpus is of one kind."""

    documents: int
    """Documents, those held out included."""
    tokens: int
    """Their tokens."""
    held_out_documents: int
    """Documents kept from training and labelling."""
    held_out_tokens: int
    """Their tokens."""


@dataclass(frozen=True)
class Card:
    """What `card.json` holds."""

    target: str
    """Name of the target."""
    target_weights: str
    """Which weights of it."""
    layer: int
    """Residual stream after this block, from 0."""
    fidelity: str
    """`demo`."""
    recipe: dict[str, object]
    """Sizes, schedule, corpus plan and seeds."""
    command: str
    """What rebuilds it."""
    versions: dict[str, str]
    """Of the libraries that it was made with."""
    reader: str
    """The backend that read the activations."""
    corpus: dict[str, Share]
    """By kind of document."""
    trained_on: int
    """Different training tokens, exclusions left out."""
    held_out: dict[str, Reconstruction]
    """`all`, and each kind of document."""
    dead_in_training: float
    """Share of features never active on a training token."""
    prediction: Prediction
    """The target's loss with its residual stream replaced."""
    recovered: float
    """Share of the cross-entropy that is recovered."""
    labelled: dict[str, int]
    """Labelled features by kind of label."""
    labels: dict[str, LabelCheck]
    """How well labels predict, single-token ones and the others."""
    loss_curve: tuple[float, ...]
    """Unexplained share of the variance in training."""
    sha256: dict[str, str]
    """Of the files beside it."""


def versions() -> dict[str, str]:
    """Of the interpreter and the libraries that matter."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def shares(documents: Sequence[Document]) -> dict[str, Share]:
    """The corpus by kind of document."""
    by_kind: dict[str, list[Document]] = {}
    for document in documents:
        by_kind.setdefault(document.kind, []).append(document)
    return {
        kind: Share(
            documents=len(members),
            tokens=sum(len(member.token_ids) for member in members),
            held_out_documents=sum(member.held_out for member in members),
            held_out_tokens=sum(len(member.token_ids) for member in members if member.held_out),
        )
        for kind, members in by_kind.items()
    }


def recipe_row(recipe: Recipe) -> dict[str, object]:
    """A recipe as JSON holds it."""
    return asdict(recipe)


def render_card(card: Card) -> str:
    """The card for people, as Markdown."""
    overall = card.held_out["all"]
    return "\n".join(
        (
            f"# Sparse autoencoder for {card.target}, layer {card.layer}",
            "",
            f"{card.recipe['d_sae']} features, the {card.recipe['k']} largest active at each token (TopK), on the "
            f"residual stream after block {card.layer} (from 0). Fidelity: **{card.fidelity}**. It was trained in "
            "minutes on a small corpus to make the tool run anywhere; it is no substitute for a released one.",
            *_licence(card.target),
            "",
            f"Rebuild: `{card.command}`. Target weights: `{card.target_weights}`.",
            "",
            "## Quality, on held-out documents",
            "",
            "| figure | value |",
            "|---|---|",
            f"| explained variance | {overall.explained_variance:.3f} |",
            *_by_kind(card.held_out),
            f"| mean cosine | {overall.cosine:.3f} |",
            f"| cross-entropy recovered | {card.recovered:.3f} ({card.prediction.clean:.2f} nats clean, "
            f"{card.prediction.rebuilt:.2f} rebuilt, {card.prediction.mean:.2f} with the mean, "
            f"{card.prediction.n_tokens} tokens) |",
            f"| active features a token (L0) | {overall.l0:.1f} |",
            f"| dead features | {card.dead_in_training:.1%} of {card.recipe['d_sae']} in {card.trained_on} training "
            f"tokens; {overall.dead_share:.1%} in {overall.n_tokens} held-out ones |",
            "",
            *_labels(card),
            "",
            *_corpus(card),
            "",
            "## Versions",
            "",
            ", ".join(f"{name} {number}" for name, number in card.versions.items()) + f"; reader: {card.reader}.",
            "",
            "Loss (unexplained share of variance) over training: "
            + " ".join(f"{loss:.3f}" for loss in card.loss_curve[:: max(1, len(card.loss_curve) // 12)])
            + ".",
            "",
        )
    )


def _licence(target: str) -> tuple[str, ...]:
    if not target.startswith("gemma"):
        return ()
    return (
        "",
        "It derives from Gemma (its activations and text that it wrote): the Gemma Terms of Use apply, see `NOTICE`.",
    )


def _by_kind(held_out: Mapping[str, Reconstruction]) -> list[str]:
    return [
        f"| explained variance, {kind} | {figures.explained_variance:.3f} ({figures.n_tokens} tokens) |"
        for kind, figures in held_out.items()
        if kind != "all"
    ]


def _labels(card: Card) -> list[str]:
    counts = ", ".join(f"{n} {kind}" for kind, n in card.labelled.items())
    return [
        "## Labels",
        "",
        "Automatic (`auto-token`): the tokens, or the token before, that a feature is most active on, and its "
        f"strongest context. By kind: {counts}. How well a label predicts, on held-out text where its feature fires:",
        "",
        "| features | n | AUROC | AUROC with another's label | recall | precision |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {check.n_features} | {check.auroc:.3f} | {check.auroc_shuffled:.3f} | {check.recall:.3f} | "
            f"{check.precision:.3f} |"
            for name, check in card.labels.items()
        ),
    ]


def _corpus(card: Card) -> list[str]:
    return [
        "## Corpus",
        "",
        "Chats and prose that the target wrote itself, and prose of installed packages (descriptions, licences, "
        "docstrings). Held out by document. Left out: position 0, norm outliers, repeated beginnings.",
        "",
        "| kind | documents | tokens | held-out documents | held-out tokens |",
        "|---|---|---|---|---|",
        *(
            f"| {kind} | {share.documents} | {share.tokens} | {share.held_out_documents} | {share.held_out_tokens} |"
            for kind, share in card.corpus.items()
        ),
    ]
