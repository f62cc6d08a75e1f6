"""The file beside a natural-language autoencoder that says how it was trained: `nla_meta.yaml`.

Invariant: nothing that the file fixes is written anywhere else, and every fact in it that can be checked is checked
against the live tokenizer and model before the first description.
"""

from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from claims.schema import UserError
from tools.fields import Fields, read_fields

SIDECAR = "nla_meta.yaml"
_LAYER_PATHS = ("extraction.layer_index", "extraction_layer_index", "critic.extraction_layer_index")


@dataclass(frozen=True)
class Decoding:
    """How descriptions are drawn. The released files leave it out: then as their authors run them."""

    temperature: float = 1.0
    """0 takes the most likely token."""
    top_p: float = 1.0
    """In (0, 1]."""
    max_tokens: int = 200
    """Longest description."""


@dataclass(frozen=True)
class Sidecar:
    """The facts of one autoencoder."""

    d_model: int
    """Width of the activations."""
    layer: int | None
    """They are read after this block, from 0; None where the file leaves it out."""
    injection_scale: float
    """Norm that an activation is brought to before it replaces the marker's embedding."""
    marker: str
    """The character whose embedding is replaced."""
    marker_id: int
    """Its token id."""
    neighbours: tuple[int, int]
    """The token ids before and after it in the prompt."""
    template: str
    """The prompt, with `{injection_char}` where the marker goes."""
    decoding: Decoding
    """How descriptions are drawn."""
    target: str | None
    """The base model of an adapter, by its name here; None for a full checkpoint."""
    weights: str | None
    """That model's weights, as `tools.weights.weights_id` has them."""


def read_sidecar(folder: Path) -> Sidecar:
    """Read `nla_meta.yaml` of a checkpoint.

    Raises:
        UserError: It is absent, no YAML, or lacks a fact.
    """
    return parse_sidecar(read_fields(folder / SIDECAR, "the sidecar of a natural-language autoencoder"))


def parse_sidecar(fields: Fields) -> Sidecar:
    """Take the facts out of a parsed file, under the names that their authors have used over time.

    Raises:
        UserError: One is absent or of the wrong kind, or the checkpoint does not turn activations into text.
    """
    _check_kind(fields)
    return Sidecar(
        d_model=fields.whole("d_model", "extraction.d_model"),
        layer=_layer(fields),
        injection_scale=fields.positive("extraction.injection_scale"),
        marker=fields.text("tokens.injection_char"),
        marker_id=fields.whole("tokens.injection_token_id"),
        neighbours=(
            fields.whole("tokens.injection_left_neighbor_id"),
            fields.whole("tokens.injection_right_neighbor_id"),
        ),
        template=fields.text("prompt_templates.av", "prompt_templates.actor"),
        decoding=_decoding(fields),
        target=fields.text("base.target") if fields.has("base") else None,
        weights=fields.text("base.weights") if fields.has("base") else None,
    )


def _check_kind(fields: Fields) -> None:
    role = fields.get("role")
    if role not in (None, "av", "actor"):
        raise _misfit(f"has the role {role!r}", "the half that turns activations into text, `av`")
    norm = fields.get("extraction.norm")
    if norm not in (None, "none", "raw"):
        raise _misfit(f"was trained on activations changed by {norm!r:.60}", "activations as they are")


def _layer(fields: Fields) -> int | None:
    found = {fields.whole(path) for path in _LAYER_PATHS if fields.has(path)}
    if len(found) > 1:
        raise _misfit(f"names the layers {sorted(found)}", "one")
    return found.pop() if found else None


def _decoding(fields: Fields) -> Decoding:
    if not fields.has("decoding"):
        return Decoding()
    return Decoding(
        temperature=fields.number("decoding.temperature"),
        top_p=fields.positive("decoding.top_p"),
        max_tokens=fields.whole("decoding.max_tokens", least=1),
    )


def layer_of(sidecar: Sidecar, stated: int | None) -> int:
    """The layer whose activations are described.

    Args:
        sidecar: The facts.
        stated: What the target's row says.

    Raises:
        UserError: The two differ, or neither says.
    """
    known = {layer for layer in (sidecar.layer, stated) if layer is not None}
    if len(known) != 1:
        raise _misfit(f"describes layer {sidecar.layer}", f"layer {stated}, as in the target's row")
    return known.pop()


def check_model(sidecar: Sidecar, *, d_model: int, name: str) -> None:
    """Compare with the live model whose activations are described.

    Raises:
        UserError: The width differs.
    """
    if sidecar.d_model != d_model:
        raise _misfit(f"describes activations of width {sidecar.d_model}", f"{d_model}, the width of {name}")


def check_marker(sidecar: Sidecar, tokenizer: PreTrainedTokenizerFast) -> None:
    """Compare with the live tokenizer.

    Raises:
        UserError: The marker is no single token of it, or another one.
    """
    token_ids = tokenizer.encode(sidecar.marker, add_special_tokens=False)
    if token_ids != [sidecar.marker_id]:
        raise _misfit(
            f"names the marker {sidecar.marker!r} as token {sidecar.marker_id}, which the tokenizer encodes as "
            f"{token_ids}",
            "one token with that id",
        )


def place_of_marker(sidecar: Sidecar, token_ids: tuple[int, ...]) -> int:
    """Where the marker is in an encoded prompt.

    Raises:
        UserError: It is there never or twice, or between other neighbours than in training.
    """
    places = [i for i, token_id in enumerate(token_ids) if token_id == sidecar.marker_id]
    if len(places) != 1:
        raise _misfit(f"has a prompt with {len(places)} markers {sidecar.marker!r}", "exactly one")
    place = places[0]
    found = token_ids[max(place - 1, 0) : place] + token_ids[place + 1 : place + 2]
    if found != sidecar.neighbours:
        raise _misfit(
            f"has its marker between the tokens {list(found)} of the rendered prompt",
            f"{list(sidecar.neighbours)}, as in training",
        )
    return place


def _misfit(found: str, expected: str) -> UserError:
    return UserError(
        f"The natural-language autoencoder {found}. Expected {expected}. It was made for another model or tokenizer: "
        "mend `nla` in the target's row in tools/targets.py, or put the right checkpoint there."
    )
