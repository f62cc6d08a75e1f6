"""The file beside a natural-language autoencoder that says how it was trained: `nla_meta.yaml`.

Invariant: nothing that the file fixes is written anywhere else, and every fact in it that can be checked is checked
against the live tokenizer and model before the first description.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from transformers import PreTrainedTokenizerFast

from claims.schema import UserError

SIDECAR = "nla_meta.yaml"


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
    layer: int
    """They are read after this block, from 0."""
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
    path = folder / SIDECAR
    try:
        stored = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(
            f"{path} cannot be read ({str(error).splitlines()[0]}). Expected the sidecar of a natural-language "
            "autoencoder. Download or train the checkpoint again."
        ) from error
    return parse_sidecar(stored, path)


def parse_sidecar(stored: object, path: Path) -> Sidecar:
    """Take the facts from a parsed file.

    Raises:
        UserError: One is absent or of the wrong kind.
    """
    fields = _Fields(stored, path)
    return Sidecar(
        d_model=fields.whole("d_model"),
        layer=fields.whole("extraction", "layer_index"),
        injection_scale=fields.positive("extraction", "injection_scale"),
        marker=fields.text("tokens", "injection_char"),
        marker_id=fields.whole("tokens", "injection_token_id"),
        neighbours=(
            fields.whole("tokens", "injection_left_neighbor_id"),
            fields.whole("tokens", "injection_right_neighbor_id"),
        ),
        template=fields.text("prompt_templates", "av"),
        decoding=_decoding(fields),
        target=fields.text("base", "target") if fields.has("base") else None,
        weights=fields.text("base", "weights") if fields.has("base") else None,
    )


def _decoding(fields: "_Fields") -> Decoding:
    if not fields.has("decoding"):
        return Decoding()
    return Decoding(
        temperature=fields.number("decoding", "temperature"),
        top_p=fields.positive("decoding", "top_p"),
        max_tokens=fields.whole("decoding", "max_tokens"),
    )


class _Fields:
    """Facts by their path in the file."""

    def __init__(self, stored: object, path: Path) -> None:
        self._stored = stored
        self._path = path

    def has(self, *keys: str) -> bool:
        """Whether there is anything at `keys`."""
        return self._get(*keys) is not None

    def _get(self, *keys: str) -> object:
        value = self._stored
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def _wrong(self, keys: tuple[str, ...], kind: str) -> UserError:
        return UserError(
            f"{self._path}: {'.'.join(keys)} is {self._get(*keys)!r:.60}. Expected {kind}. The checkpoint is not whole "
            "or of another format: download or train it again."
        )

    def text(self, *keys: str) -> str:
        """A text that is not empty."""
        value = self._get(*keys)
        if not isinstance(value, str) or not value:
            raise self._wrong(keys, "a text")
        return value

    def whole(self, *keys: str) -> int:
        """A whole number from 0."""
        value = self._get(*keys)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._wrong(keys, "a whole number from 0")
        return value

    def number(self, *keys: str) -> float:
        """A number from 0."""
        value = self._get(*keys)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise self._wrong(keys, "a number from 0")
        return float(value)

    def positive(self, *keys: str) -> float:
        """A number above 0."""
        value = self.number(*keys)
        if value == 0:
            raise self._wrong(keys, "a number above 0")
        return value


def check_model(sidecar: Sidecar, *, d_model: int, n_layers: int, name: str) -> None:
    """Compare with the live model whose activations are described.

    Raises:
        UserError: The width differs, or there is no such layer.
    """
    if sidecar.d_model != d_model:
        raise _misfit(f"describes activations of width {sidecar.d_model}", f"{d_model}, the width of {name}")
    if sidecar.layer >= n_layers:
        raise _misfit(f"describes layer {sidecar.layer}", f"0 to {n_layers - 1}, the layers of {name}")


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
