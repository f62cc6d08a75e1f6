"""Logistic regression with a small ridge, and predictions for clusters that the fit has not seen.

Invariant: a claim is predicted only by models fitted without its cluster; features are put on one scale by the
clusters fitted on, so nothing of the others enters.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from harness.seeding import keyed_rng
from harness.stats import Flags, Floats, Indices

RIDGE = 1.0
"""Weight of the penalty on standardised coefficients; the intercept is not penalised."""
FOLDS = 5
"""Parts that the clusters are put in; each is predicted from the others."""
REPEATS = 10
"""Times that they are put in parts anew; predictions are averaged."""
_MAX_STEPS = 100
_TOLERANCE = 1e-9


def fit(features: Floats, labels: Flags, *, ridge: float = RIDGE) -> Floats:
    """Intercept and coefficients, shape (1 + n_features,), at the least penalised loss.

    Args:
        features: Shape (n_claims, n_features).
        labels: Shape (n_claims,); both classes must occur.
        ridge: Above 0, on the coefficients.

    Raises:
        ValueError: One class only: the intercept would be infinite.
    """
    if labels.all() or not labels.any():
        raise ValueError("one class only: a logistic regression needs true and false claims")
    design = np.column_stack([np.ones(len(labels)), features])
    penalty = np.r_[0.0, np.full(features.shape[1], ridge)]
    truth = labels.astype(np.float64)
    weights = np.zeros(design.shape[1])
    for _ in range(_MAX_STEPS):
        p_true = expit(design @ weights)
        gradient = design.T @ (p_true - truth) + penalty * weights
        if np.abs(gradient).max() < _TOLERANCE * len(labels):
            break
        hessian = (design * (p_true * (1 - p_true))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(hessian + 1e-12 * np.eye(len(hessian)), gradient)
        weights = _downhill(design, truth, penalty, weights, step)
    return weights


def _downhill(design: Floats, truth: Floats, penalty: Floats, weights: Floats, step: Floats) -> Floats:
    """The full step, halved until it does not raise the loss."""
    before = _loss(design, truth, penalty, weights)
    scale = 1.0
    while scale > 1e-6 and _loss(design, truth, penalty, weights - scale * step) > before:
        scale /= 2
    return weights - scale * step


def _loss(design: Floats, truth: Floats, penalty: Floats, weights: Floats) -> float:
    scores = design @ weights
    return float(np.logaddexp(0, scores).sum() - truth @ scores + penalty @ weights**2 / 2)


@dataclass(frozen=True)
class CrossValidated:
    """What models say of clusters that they were not fitted on."""

    p_true: Floats
    """Probabilities, shape (n_claims,): for losses."""
    ranking: Floats
    """The features' part of the scores alone, shape (n_claims,): for AUROC.

    The intercept is left out, for it follows the share of true claims among the clusters fitted on: where a part has
    many true claims, the others have few, so that intercepts alone would rank claims the wrong way round.
    """


def cross_validated(
    features: Floats, labels: Flags, clusters: Indices, *, key: tuple[str | int, ...]
) -> CrossValidated:
    """Each claim judged by models that have not seen its cluster.

    Args:
        features: Shape (n_claims, n_features).
        labels: Shape (n_claims,).
        clusters: Shape (n_claims,), cluster numbers from 0; at least two.
        key: What the parts are drawn by.
    """
    n_clusters = int(clusters.max(initial=-1)) + 1
    if n_clusters < 2:
        raise ValueError("one cluster only: nothing is left to fit on")
    total = np.zeros((2, len(labels)))
    for repeat in range(REPEATS):
        order = keyed_rng("folds", *key, repeat).permutation(n_clusters)
        fold_of = np.empty(n_clusters, dtype=np.int64)
        fold_of[order] = np.arange(n_clusters) % min(FOLDS, n_clusters)
        folds = fold_of[clusters]
        for fold in np.unique(folds):
            held_out = folds == fold
            total[:, held_out] += _predicted(features, labels, held_out)
    return CrossValidated(*(total / REPEATS))


def _predicted(features: Floats, labels: Flags, held_out: Flags) -> Floats:
    """Probabilities and rankings of what was held out, shape (2, n_held_out)."""
    seen, known = features[~held_out], labels[~held_out]
    if known.all() or not known.any():
        # Laplace's rule: a share that is neither 0 nor 1.
        n_held_out = int(held_out.sum())
        return np.stack([np.full(n_held_out, (known.sum() + 1) / (len(known) + 2)), np.zeros(n_held_out)])
    spread = seen.std(axis=0)
    centre, scale = seen.mean(axis=0), np.where(spread > 0, spread, 1.0)
    weights = fit((seen - centre) / scale, known)
    slopes = weights[1:] / scale
    ranking = features[held_out] @ slopes
    return np.stack([expit(weights[0] + ranking - centre @ slopes), ranking])
