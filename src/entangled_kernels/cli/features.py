"""Feature maps by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..features import EvidenceFeatures

__all__ = ["FEATURES", "feature_maps"]

FEATURES = {
    "auto": "standardised inputs, or a Gaussian plus linear kernel tuned by evidence, whichever is better",
    "linear": "standardised inputs",
    "rbf": "Nystroem features of the Gaussian kernel of median width",
    "fourier": "random Fourier features of the Gaussian kernel of median width",
}
LANDMARKS, FREQUENCIES = 200, 300
# Distances are taken between this many rows.
SAMPLE = 1000


def feature_maps(name: str, X: Any, *, folds: int, seed: int) -> Any:
    """The map or the list of maps that a name stands for, for `EntangledKernelRidgeCV`.

    Parameters
    ----------
    name : str
        A key of FEATURES.
    X : data frame
        Inputs, for the width of the kernel.
    folds : int
        No more landmarks are used than a fold's training rows.
    seed : int
    """
    if name == "auto":
        return [StandardScaler(), EvidenceFeatures(random_state=seed)]
    if name == "linear":
        return StandardScaler()
    gamma = median_gamma(X, seed)
    landmarks = min(LANDMARKS, len(X) - -(-len(X) // folds))
    rbf = make_pipeline(StandardScaler(), Nystroem(gamma=gamma, n_components=landmarks, random_state=seed))
    if name == "rbf":
        return rbf
    fourier = RBFSampler(gamma=gamma, n_components=FREQUENCIES, random_state=seed)
    return make_pipeline(StandardScaler(), fourier)


def median_gamma(X: Any, seed: int) -> float:
    """1 / s^2 for the median distance s between standardised rows."""
    rows = StandardScaler().fit_transform(X)
    if len(rows) > SAMPLE:
        rows = rows[np.random.default_rng(seed).choice(len(rows), SAMPLE, replace=False)]
    squares = pairwise_distances(rows, metric="sqeuclidean")[np.triu_indices(len(rows), 1)]
    median = float(np.median(squares))
    return 1.0 / median if median > 0.0 else 1.0
