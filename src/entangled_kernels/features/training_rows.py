"""The rows that a supervised feature map is fitted on: checked, weighed, with blank targets told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from ..linalg import Array
from ..parameters import check_numeric_columns, check_weights

__all__ = ["mean_and_scale", "standardised_targets", "target_mean_and_scale", "training_rows"]


def training_rows(feature_map: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
    """Rows (n, d), targets (n, p) and weights, of rows with a positive weight and a target that is known.

    A target of NaN is a blank. The columns and their names become those of the feature map.
    """
    check_numeric_columns(X)
    rows: dict[str, Any] = {"dtype": np.float64}
    targets = rows | {"ensure_2d": False, "ensure_all_finite": "allow-nan"}
    X, y = validate_data(feature_map, X, y, validate_separately=(rows, targets))
    check_consistent_length(X, y)
    Y, weight = y.reshape(len(y), -1), check_weights(sample_weight, len(y))  # (n, p)
    kept = ~np.isnan(Y).all(axis=1)
    if weight is not None:
        kept &= weight > 0.0
    if not kept.any():
        raise ValueError("y must have a target that is known in some row of positive sample_weight, got none")
    return X[kept], Y[kept], None if weight is None else weight[kept]


def standardised_targets(Y: Array, weight: Array | None) -> Array:
    """Targets with mean zero and variance one over the cells that are known; blanks stay NaN."""
    mean, scale = target_mean_and_scale(Y, weight)
    return np.asarray((Y - mean) / scale)


def target_mean_and_scale(Y: Array, weight: Array | None) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of targets over the cells that are known."""
    known = ~np.isnan(Y)
    if known.all():
        return mean_and_scale(Y, weight)
    mass = known * (1.0 if weight is None else weight[:, None])
    total = np.maximum(mass.sum(axis=0), np.finfo(float).tiny)
    filled = np.where(known, Y, 0.0)
    mean = (mass * filled).sum(axis=0) / total
    scale = np.sqrt((mass * (filled - mean) ** 2).sum(axis=0) / total)
    return mean, _where_varying(mean, scale)


def mean_and_scale(X: Array, weight: Array | None) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of columns, one where a column is constant."""
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    return mean, _where_varying(mean, scale)


def _where_varying(mean: Array, scale: Array) -> Array:
    rounding = 10.0 * np.finfo(float).eps * np.abs(mean)
    return np.where(scale > rounding, scale, 1.0)
