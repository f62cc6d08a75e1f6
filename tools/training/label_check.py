"""How well labels say where their features are active, on documents that they were not made from.

Invariant: only features that are active there are counted, and single-token features apart from the others: for
those a label is nearly a definition.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tools.training.firings import Firings
from tools.training.labelling import FeatureLabel, Labeller

MIN_FIRINGS = 5
"""A feature that is active on fewer held-out tokens is left out."""


@dataclass(frozen=True)
class LabelCheck:
    """How well a group of labels predicts."""

    n_features: int
    """Features that are active on enough held-out tokens."""
    auroc: float
    """Mean area under the curve of "the label names this token" against "the feature is active here"; 0.5 is chance,
    nan without features."""
    auroc_shuffled: float
    """The same with every feature given another's label: what chance gives here."""
    recall: float
    """Mean share of a feature's active tokens that its label names."""
    precision: float
    """Mean share of the tokens that a label names on which the feature is active."""


def check_labels(labels: Sequence[FeatureLabel], labeller: Labeller, fired: Firings) -> dict[str, LabelCheck]:
    """Check labels on the held-out rows that `labeller` and `fired` describe: single-token ones and the others."""
    usable = [label for label in labels if len(fired.of(label.index)[0]) >= MIN_FIRINGS]
    groups = {"single-token": [label for label in usable if label.kind == "token"]}
    groups["others"] = [label for label in usable if label.kind != "token"]
    return {name: _check(group, labeller, fired) for name, group in groups.items()}


def _check(labels: Sequence[FeatureLabel], labeller: Labeller, fired: Firings) -> LabelCheck:
    named = [_named(label, labeller) for label in labels]
    active = [_active(label, labeller, fired) for label in labels]
    pairs = list(zip(named, active, strict=True))
    turned = list(zip(named[1:] + named[:1], active, strict=True))
    return LabelCheck(
        n_features=len(labels),
        auroc=_mean(pairs, auroc),
        auroc_shuffled=_mean(turned, auroc),
        recall=_mean(pairs, lambda name, act: float(name[act].mean())),
        precision=_mean(pairs, lambda name, act: float(act[name].mean()) if name.any() else 0.0),
    )


Flags = NDArray[np.bool_]


def _mean(pairs: Sequence[tuple[Flags, Flags]], figure: Callable[[Flags, Flags], float]) -> float:
    return sum(figure(*pair) for pair in pairs) / len(pairs) if pairs else math.nan


def _named(label: FeatureLabel, labeller: Labeller) -> Flags:
    column = labeller.before if label.kind == "after" else labeller.at
    return np.isin(column, [labeller.number[text] for text in label.forms if text in labeller.number])


def _active(label: FeatureLabel, labeller: Labeller, fired: Firings) -> Flags:
    active = np.zeros(len(labeller.at), dtype=bool)
    active[fired.of(label.index)[0]] = True
    return active


def auroc(named: Flags, active: Flags) -> float:
    """Area under the curve of a yes-or-no prediction: the mean of both classes' hit rates."""
    return (float(named[active].mean()) + float((~named[~active]).mean())) / 2
