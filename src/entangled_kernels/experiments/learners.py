"""Learners with a duality gap as methods that are compared, each with its alpha chosen on the folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from ..estimators import MultipleKernelRidge, MultiViewKernelRidge, OperatorFourierRidge, OutputKernelRidgeCV
from ..features import OperatorFourierFeatures
from ..linalg import Array
from ..selection import Split

__all__ = ["LEARNERS", "build_learner"]

LEARNERS = {
    "OKL-schatten": "output kernel learning in the Schatten ball of exponent 4/3",
    "OKL-trace": "output kernel learning in the trace ball, which favours low rank",
    "OKL-elastic": "output kernel learning in the ball of the elastic penalty",
    "OKL-cluster": "output kernel learning with clusters of outputs",
    "OKL-entrywise": "output kernel learning in the entrywise ball of exponent 4/3",
    "MKL": "multiple kernel learning: weights of kernels of groups of inputs, each input by default",
    "MKL-diagonal": "multiple kernel learning with weights by output; with linear kernels, banded ridge",
    "MKL-shared": "multiple kernel learning with an output kernel that all kernels share",
    "MKL-own": "multiple kernel learning with an output kernel for every kernel",
    "MVML": "multi-view metric learning, groups of inputs being views",
    "MVML-sparse": "multi-view metric learning that chooses views",
    "ORFF": "ridge regression with operator-valued random Fourier features, width selected",
}
ALPHAS = tuple(10.0 ** np.arange(-3.0, 3.5, 1.0))
# Of a Gaussian kernel, in units of one over the number of inputs.
WIDTHS = np.array([0.1, 0.3, 1.0, 3.0])


def build_learner(
    method: str,
    X: Array,
    kernel: str,
    groups: Mapping[str, Sequence[int]] | None,
    folds: Sequence[Split],
    seed: int,
    *,
    fit_intercept: bool,
) -> Any:
    """The search for the settings of a learner, not fitted.

    Parameters
    ----------
    method : str
        A key of `LEARNERS`.
    X : ndarray of shape (n, d)
        What it will be fitted to: features for output kernel learning, inputs for all others.
    kernel : {"linear", "rbf"}
        Of every group.
    groups : dict of list of int or None
        Columns by group of inputs; None makes every column one.
    folds : sequence of splits
    seed : int
        Of random features.
    fit_intercept : bool
    """
    family, _, kind = method.partition("-")
    plain: dict[str, Any] = {"fit_intercept": fit_intercept}
    if family == "OKL":
        return OutputKernelRidgeCV("linear", penalty=kind, constraint=True, cv=folds, **plain)
    columns = {str(j): [j] for j in range(X.shape[1])} if groups is None else groups
    kernels = [(name, kernel, list(some)) for name, some in columns.items()]
    grid: dict[str, Any] = {"alpha": ALPHAS}
    if family == "ORFF":
        model: Any = OperatorFourierRidge(OperatorFourierFeatures(random_state=seed), **plain)
        grid["features__gamma"] = WIDTHS / X.shape[1]
    elif family == "MKL":
        model = MultipleKernelRidge(kernels, output_kernel=kind or "identity", **plain)
    else:
        model = MultiViewKernelRidge(kernels, sparse=kind == "sparse", **plain)
    return GridSearchCV(model, grid, cv=folds)
