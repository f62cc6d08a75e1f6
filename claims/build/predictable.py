"""How well predictors that understand nothing do on a bank: the floor that a real predictor must clear.

Invariant: what is learned from words is learned on other clusters than it is tried on; what needs no learning gets the
better of its two directions, so that a bank is never called harder than it is.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

N_FOLDS = 10
"""Folds of the cross-validation, made of whole clusters."""
N_REPEATS = 5
"""Ways to make the folds; the figure is the mean over them."""
RIDGE = 1.0
"""Penalty of the word model, whose rows have length 1."""


@dataclass(frozen=True)
class Visible:
    """What a trivial predictor may look at, and the truth."""

    cluster_id: str
    """The claim's cluster."""
    kind: str
    """Kind of its edit."""
    baseline_rate: float
    """Share of yes before the edit."""
    text: str
    """Behaviour and intervention."""
    label: bool
    """Whether the claim is true."""


def trivial_aurocs(claims: Sequence[Visible]) -> dict[str, float]:
    """AUROC of each trivial predictor: 0.5 knows nothing, 1 everything; nan when all labels are the same."""
    labels = np.array([one.label for one in claims])
    kinds = [one.kind for one in claims]
    share_true = {kind: float(labels[[other == kind for other in kinds]].mean()) for kind in set(kinds)}
    return {
        "kind_of_edit": _rounded(auroc(np.array([share_true[kind] for kind in kinds]), labels)),
        "baseline_rate": _rounded(_either_way(np.array([one.baseline_rate for one in claims]), labels)),
        "claim_length": _rounded(_either_way(np.array([len(one.text) for one in claims]), labels)),
        "bag_of_words": _rounded(_bag_of_words(claims, labels)),
    }


def _rounded(value: float) -> float:
    return round(value, 3)


def auroc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Share of (true, false) pairs in the right order, ties half; nan without a pair."""
    above, n_pairs = _pairs(scores, labels)
    return above / n_pairs if n_pairs else float("nan")


def _pairs(scores: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
    gaps = scores[labels][:, None] - scores[~labels][None, :]
    return float((gaps > 0).sum() + 0.5 * (gaps == 0).sum()), gaps.size


def _either_way(scores: np.ndarray, labels: np.ndarray) -> float:
    found = auroc(scores, labels)
    return max(found, 1 - found)


def _bag_of_words(claims: Sequence[Visible], labels: np.ndarray) -> float:
    """Ridge regression on the words, by cross-validation; only pairs inside one fold are compared."""
    rows = _word_rows([one.text for one in claims])
    above, n_pairs = 0.0, 0
    for repeat in range(N_REPEATS):
        folds = _folds([one.cluster_id for one in claims], repeat)
        for fold in range(N_FOLDS):
            held = folds == fold
            if held.any() and not held.all():
                scores = _ridge_scores(rows[~held], labels[~held], rows[held])
                right, pairs = _pairs(scores, labels[held])
                above, n_pairs = above + right, n_pairs + pairs
    return above / n_pairs if n_pairs else float("nan")


def _word_rows(texts: Sequence[str]) -> np.ndarray:
    """Presence of every word, rare words weighing more, each row of length 1."""
    words = [set(re.findall(r"\w+", text.lower())) for text in texts]
    holders: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(words):
        for word in found:
            holders[word].append(place)
    rows = np.zeros((len(texts), len(holders)))
    for column, word in enumerate(sorted(holders)):
        rows[holders[word], column] = 1 + np.log(len(texts) / len(holders[word]))
    lengths: np.ndarray = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    rows /= lengths
    return rows


def _folds(clusters: Sequence[str], repeat: int) -> np.ndarray:
    """Fold of every claim: clusters dealt out in an order that the repeat decides."""
    order = sorted(set(clusters), key=lambda cluster: hashlib.sha256(f"{repeat}\n{cluster}".encode()).hexdigest())
    fold_of = {cluster: place % N_FOLDS for place, cluster in enumerate(order)}
    return np.array([fold_of[cluster] for cluster in clusters])


def _ridge_scores(rows: np.ndarray, labels: np.ndarray, held: np.ndarray) -> np.ndarray:
    gram = rows @ rows.T + RIDGE * np.eye(len(rows))
    weights: np.ndarray = held @ rows.T @ np.linalg.solve(gram, labels - labels.mean())
    return weights
