"""The `sae` tool: the most active features of a sparse autoencoder at chosen tokens, each with its label.

Invariant: the same transcript, positions and weights give the same text, and its length is bounded by the number of
positions times `TOP_FEATURES` labels of at most `LABEL_CHARS` characters.
"""

from typing import Annotated

import torch
from pydantic import PlainValidator
from torch import Tensor

from tools.positions import read_positions
from tools.readings import Reading, Readings
from tools.sae_loader import Dictionary, check_model, load_dictionary
from tools.server import Facts, Offer
from tools.targets import Target

TOP_FEATURES = 15
"""Features shown at each position, as in the paper."""
LABEL_SOURCES = {"auto-token": "an automatic summary of tokens and contexts"}
"""What the names of label sources mean, where they do not say so themselves."""
LABEL_CHARS = 120
"""A longer label is cut."""

# Checked by `read_positions`, whose answers a predictor can act on; the schema still says what is wanted.
Positions = Annotated[list[int], PlainValidator(lambda value: value, json_schema_input_type=list[int])]


class SAETool:
    """Features of the residual stream of one target after one block."""

    def __init__(self, target: Target, dictionary: Dictionary, *, layer: int) -> None:
        """Hold a dictionary that was checked against the target's row."""
        self._target = target
        self._dictionary = dictionary
        self.facts = Facts(
            layer=layer,
            weights_sha256=dictionary.sha256,
            fidelity=dictionary.fidelity,
            card=dictionary.card,
            description=describe(dictionary, layer=layer, n_layers=target.n_layers),
        )

    def attach(self, readings: Readings) -> tuple[Offer, ...]:
        """`read_features` over `readings`.

        Raises:
            UserError: The autoencoder's width is not the model's.
        """
        check_model(self._dictionary, self._target, d_model=readings.loaded.d_model)

        async def read_features(transcript_id: str, positions: Positions) -> str:
            n_tokens = readings.n_tokens(transcript_id)
            chosen = read_positions(positions, n_tokens=n_tokens, limit=readings.max_positions)
            reading = await readings.get(transcript_id)
            return await readings.run(lambda: render(self._dictionary, reading, chosen))

        return (Offer("read_features", self.facts.description, read_features),)


def load(target: Target) -> SAETool:
    """The tool for `target`.

    Raises:
        UserError: The target has no sparse autoencoder, it cannot be had, or it is another model's.
    """
    dictionary = load_dictionary(target)
    assert target.sae is not None, target.name
    return SAETool(target, dictionary, layer=target.sae.layer)


def describe(dictionary: Dictionary, *, layer: int, n_layers: int) -> str:
    """What a predictor is told about the tool."""
    sources = ", ".join(LABEL_SOURCES.get(source, source) for source in dictionary.labels.sources) or "none"
    return (
        f"Shows what a sparse autoencoder finds in the model's activations (after block {layer} of {n_layers}, "
        f"counted from 0) at tokens of the transcript that you choose. positions: a list of token indices, each once. "
        f"One line a position: the {TOP_FEATURES} most active of {dictionary.autoencoder.d_sae} features, strongest "
        f"first, each as `value label #feature`. Labels were made from texts on which a feature is most active (by: "
        f"{sources}); they can be incomplete or wrong. A higher value means more active; values of different "
        "features are only roughly comparable."
    )


def render(dictionary: Dictionary, reading: Reading, positions: tuple[int, ...]) -> str:
    """One line for each of `positions`, in their order."""
    read = [position for position in positions if position not in reading.masked]
    lines = dict(zip(read, _feature_lists(dictionary, reading.residual[read]), strict=True))
    return "\n".join(
        f'[{position}] "{reading.texts[position]}": {lines.get(position) or _masked(reading, position)}'
        for position in positions
    )


def _masked(reading: Reading, position: int) -> str:
    return f"not read, because {reading.masked[position]}"


def _feature_lists(dictionary: Dictionary, residual: Tensor) -> list[str]:
    with torch.inference_mode():
        features = dictionary.autoencoder.encode(residual)
    values, indices = features.topk(min(TOP_FEATURES, features.shape[-1]), dim=-1)
    return [
        _feature_list(dictionary, row_values, row_indices)
        for row_values, row_indices in zip(values.tolist(), indices.tolist(), strict=True)
    ]


def _feature_list(dictionary: Dictionary, values: list[float], indices: list[int]) -> str:
    active = sorted((-value, index) for value, index in zip(values, indices, strict=True) if value > 0)
    shown = [f"{compact(-value)} {_label(dictionary, index)} #{index}" for value, index in active]
    return " | ".join(shown) or "no active feature"


def _label(dictionary: Dictionary, index: int) -> str:
    text = dictionary.labels.text(index)
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 3] + "..."


def compact(value: float) -> str:
    """Three significant digits, and never fewer than the integer part: 1234, 123, 12.3, 1.23, 0.0123."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
