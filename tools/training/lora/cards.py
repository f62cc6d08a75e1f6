"""The quality cards of the two adapters.

Invariant: every figure is about the weights as they are shipped and about held-out documents; a tool that does not
beat its own shuffled control says so in its first line.
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from tools.training.lora.judge import Accuracy
from tools.training.lora.retrieval import CONTEXTS, Retrieval
from tools.training.lora.score import Losses

OWN, OTHER, TOKEN, TEMPLATE = (
    "of the activation",
    "of another activation",
    "knowing the token alone",
    "of the text, by the template",
)
"""What a description is of."""
LIBRARIES = ("torch", "transformers", "peft", "numpy", "safetensors")


@dataclass(frozen=True)
class Training:
    """How an adapter came to be."""

    target: str
    """Name of the target."""
    target_weights: str
    """Which weights of it."""
    fidelity: str
    """`demo`."""
    command: str
    """What rebuilds it."""
    plan: dict[str, object]
    """Corpus, schedule and sizes."""
    n_steps: int
    """Steps taken."""
    n_examples: int
    """Examples seen."""
    passages: dict[str, dict[str, int]]
    """By kind: how many, how many of them held out, and their tokens."""
    loss_curve: tuple[float, ...]
    """Training loss, means of neighbouring steps."""
    versions: dict[str, str]
    """Of the libraries that it was made with."""


@dataclass(frozen=True)
class OracleCard:
    """What `card.json` of an oracle holds."""

    training: Training
    """How it came to be."""
    layers: tuple[int, ...]
    """Trained on; the middle one is read by the tool and measured here."""
    losses: Losses
    """Held out, all families in their shares of training."""
    families: dict[str, Accuracy]
    """By family of questions."""
    sha256: dict[str, str]
    """Of the files beside it."""


@dataclass(frozen=True)
class Explained:
    """Explained variance of activations; 0 is their mean."""

    drawn: float
    """At held-out places drawn as training places are."""
    shared_token: float
    """At the places of the retrieval, whose tokens are few and say little."""


@dataclass(frozen=True)
class VerbaliserCard:
    """What `card.json` of a natural-language autoencoder holds."""

    training: Training
    """How it came to be."""
    layer: int
    """Described are activations after this block, from 0."""
    losses: Losses
    """Held out."""
    retrieval: dict[str, Retrieval]
    """Which context a description comes from: the verbaliser's, with others' activations, knowing the token alone."""
    explained: dict[str, Explained]
    """Of the reconstruction from different descriptions."""
    unfinished: float
    """Share of descriptions without a closing tag."""
    samples: tuple[tuple[str, str], ...]
    """A text up to its token, and the description of the activation there."""
    sha256: dict[str, str]
    """Of the files beside it."""


def versions() -> dict[str, str]:
    """Of the interpreter and the libraries that matter."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def render_oracle(card: OracleCard) -> str:
    """The oracle's card for people, as Markdown."""
    training = card.training
    layers = ", ".join(map(str, card.layers))
    return "\n".join(
        (
            *_warning(card.losses),
            f"# Activation oracle for {training.target}, layer {card.layers[1]}",
            "",
            f"A LoRA adapter on the target, trained on activations after blocks {layers} (from 0). Fidelity: "
            f"**{training.fidelity}**: at most an hour or so of one CPU core, to make the tool run anywhere.",
            *_origin(training),
            *_losses(card.losses),
            "",
            "## Right answers by family of questions, on held-out documents",
            "",
            "All choose among the same options. `reader` is the target itself, given the text instead of activations; "
            "`majority` the most frequent answer, or a guess if that is better.",
            "",
            "| family | oracle | shuffled activations | reader of the text | majority | n |",
            "|---|---|---|---|---|---|",
            *(
                f"| {family} | {of.oracle:.2f} | {of.shuffled:.2f} | {of.reader:.2f} | {of.majority:.2f} | {of.n} |"
                for family, of in card.families.items()
            ),
            "",
            _beaten(card.families),
            "",
            *_made_of(training),
        )
    )


def render_verbaliser(card: VerbaliserCard) -> str:
    """The autoencoder's card for people, as Markdown."""
    training = card.training
    return "\n".join(
        (
            *_warning(card.losses),
            f"# Natural-language autoencoder for {training.target}, layer {card.layer}",
            "",
            f"A LoRA adapter on the target that describes its activations after block {card.layer} (from 0), and a "
            f"linear reconstructor. Fidelity: **{training.fidelity}**: at most an hour or so of one CPU core, to make "
            "the tool run anywhere. Descriptions are learnt from a template, not from what explains activations best.",
            *_origin(training),
            *_losses(card.losses),
            "",
            f"## Which of {CONTEXTS} contexts does a description come from, all ending in the same token?",
            "",
            "| description | found first | mean rank | n |",
            "|---|---|---|---|",
            *(f"| {name} | {of.top1:.3f} | {of.rank:.1f} | {of.n} |" for name, of in card.retrieval.items()),
            f"| chance | {1 / CONTEXTS:.3f} | {(CONTEXTS + 1) / 2:.1f} | |",
            "",
            "## Explained variance of the activation through the reconstructor",
            "",
            "Of the activation less the centre, at norm 1, as the verbaliser gets it; 0 is the mean. Each kind of "
            f"description has a reconstructor of its own, fitted at {training.plan['rebuilt']:,} other places; "
            "that of another activation has the verbaliser's. Held-out places: "
            f"{card.losses.n} drawn as in training, and those of the retrieval, whose tokens are few and say little.",
            "",
            "| rebuilt from the description | drawn places | places of the retrieval |",
            "|---|---|---|",
            *(f"| {name} | {of.drawn:.3f} | {of.shared_token:.3f} |" for name, of in card.explained.items()),
            "",
            _rebuilt(card.explained),
            "",
            f"Descriptions without a closing tag: {card.unfinished:.1%}.",
            "",
            "## Samples, held out and not chosen",
            "",
            *(f"- …{text} → {said}" for text, said in card.samples),
            "",
            *_made_of(training),
        )
    )


def _warning(losses: Losses) -> tuple[str, ...]:
    if losses.beats_shuffled:
        return ()
    return ("**It does not beat its own shuffled control: what it says is not read from the activations.**", "")


def _origin(training: Training) -> tuple[str, ...]:
    licence = (
        "",
        "It derives from Gemma (an adapter on its weights, fitted to its activations): the Gemma Terms of Use apply, "
        "see `NOTICE`.",
    )
    return (
        *(licence if training.target.startswith("gemma") else ()),
        "",
        f"Rebuild: `{training.command}` ({training.n_steps} steps, {training.n_examples} examples). Target weights: "
        f"`{training.target_weights}`.",
    )


def _losses(losses: Losses) -> tuple[str, ...]:
    return (
        "",
        "## Loss of the right answer, on held-out documents",
        "",
        "| activations | nats a token |",
        "|---|---|",
        f"| right | {losses.right:.3f} |",
        f"| another example's | {losses.shuffled:.3f} |",
        f"| none | {losses.zero:.3f} |",
        "",
        f"Another example's cost {losses.margin:.3f} more (at least {losses.margin_low:.3f} at 95 %; n = {losses.n}).",
        "",
        "![loss](loss.png)",
    )


def _beaten(families: Mapping[str, Accuracy]) -> str:
    silent = [name for name, of in families.items() if of.oracle <= max(of.shuffled, of.majority)]
    if not silent:
        return "Every family beats both the shuffled activations and the majority answer."
    return f"Not above both the shuffled activations and the majority answer: {', '.join(silent)}."


def _rebuilt(explained: Mapping[str, Explained]) -> str:
    own, token = (explained[name].drawn for name in (OWN, TOKEN))
    if own > token:
        return "At drawn places a description rebuilds more of the activation than its token alone."
    return (
        "At drawn places a description rebuilds less of the activation than its token alone: too much of it is wrong."
    )


def _made_of(training: Training) -> list[str]:
    return [
        "## Corpus",
        "",
        "Chats and prose that the target wrote itself, prose of installed packages, and made texts whose topic, "
        "language, sentiment, tense or form is known. Held out by document, fixed by sha256; held-out made texts end "
        "in words that no training text has. No claim's prompt is in it.",
        "",
        "| kind | passages | held out | tokens |",
        "|---|---|---|---|",
        *(
            f"| {kind} | {of['passages']} | {of['held_out']} | {of['tokens']} |"
            for kind, of in training.passages.items()
        ),
        "",
        "## Versions",
        "",
        ", ".join(f"{name} {number}" for name, number in training.versions.items()) + ".",
        "",
    ]
