"""What an activation oracle is and how it is asked: from its own file, or, released without one, from its authors.

Invariant: a fact that the target or its row can contradict is compared with them before the oracle is used.
"""

from dataclasses import dataclass
from pathlib import Path

from claims.schema import UserError
from tools.fields import Fields, read_fields
from tools.targets import OracleSource, Target

FACTS = "ao.json"
_DEPTHS = (0.25, 0.5, 0.75)
"""Where the released oracles were trained to read, as shares of the target's blocks."""


@dataclass(frozen=True)
class OracleFacts:
    """One oracle."""

    layer: int
    """It is given the residual stream after this block, from 0."""
    block: int
    """Activations are added after this block of the oracle's own, from 0."""
    coefficient: float
    """Times the norm that is there."""
    max_segment: int
    """Most tokens of one question."""
    max_tokens: int
    """Longest answer."""
    temperature: float
    """Of the answer; 0 takes the most likely token."""
    top_p: float
    """Likewise."""
    weights: str | None
    """The target's weights that it was trained on; None where it does not say."""


def oracle_facts(folder: Path, target: Target, source: OracleSource) -> OracleFacts:
    """The facts of the oracle in `folder`, which the target's row names as `source`.

    Raises:
        UserError: Its file is broken, or describes an oracle of another target or for other layers.
    """
    if not (folder / FACTS).is_file():
        return _released(target, source)
    fields = read_fields(folder / FACTS, "the facts of an activation oracle")
    _check(fields, folder, target, source)
    return OracleFacts(
        layer=source.layer,
        block=fields.whole("block"),
        coefficient=fields.positive("coefficient"),
        max_segment=fields.whole("max_segment", least=1),
        max_tokens=fields.whole("max_tokens", least=1),
        temperature=fields.number("temperature"),
        top_p=fields.positive("top_p"),
        weights=fields.text("weights"),
    )


def _check(fields: Fields, folder: Path, target: Target, source: OracleSource) -> None:
    if fields.text("target") != target.name:
        raise _misfit(folder, f"was trained on {fields.text('target')}", target.name)
    layers = fields.wholes("layers")
    if source.layer not in layers or max(layers) >= target.n_layers:
        raise _misfit(
            folder,
            f"was trained on layers {', '.join(map(str, layers))}",
            f"layer {source.layer} among them, all of them below {target.n_layers}",
        )
    if fields.whole("block") >= target.n_layers:
        raise _misfit(
            folder, f"is given activations after block {fields.whole('block')}", f"0 to {target.n_layers - 1}"
        )


def _released(target: Target, source: OracleSource) -> OracleFacts:
    layers = [int(target.n_layers * depth) for depth in _DEPTHS]
    if source.layer not in layers:
        raise UserError(
            f"The row of {target.name} asks {source.adapter} about layer {source.layer}. Expected one of "
            f"{', '.join(map(str, layers))}, which released oracles were trained on. Mend `ao` in tools/targets.py."
        )
    return OracleFacts(
        layer=source.layer,
        block=1,
        coefficient=1.0,
        # Their training has up to 50 tokens of plain text and longer stretches of dialogues.
        max_segment=256,
        max_tokens=40,
        temperature=0.7,
        top_p=0.9,
        weights=None,
    )


def check_weights(facts: OracleFacts, folder: Path, weights: str) -> None:
    """Compare with the live target.

    Raises:
        UserError: The oracle was trained on other weights of the same name.
    """
    if facts.weights not in (None, weights):
        raise _misfit(folder, f"was trained on the weights {facts.weights}", f"{weights}, which are loaded")


def _misfit(folder: Path, found: str, expected: str) -> UserError:
    return UserError(
        f"The activation oracle {folder} {found}. Expected {expected}. Train it again with `make artifacts TOOL=ao`, "
        "or mend `ao` in the target's row in tools/targets.py."
    )
