"""The rows that a supervised feature map is fitted on: checked, weighted, with missing targets as NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from ..linalg import Array
from ..parameters import check_numeric_columns, check_weights

__all__ = [
    "distinct_rows",
    "mean_and_scale",
    "some_rows",
    "standardised_targets",
    "target_mean_and_scale",
    "training_rows",
    "used_rows",
]


# Rows with more columns than this are compared as they lie in memory, not number by number.
WIDE = 200


def training_rows(
    feature_map: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Array, Array, Array | None]:
    """Rows (n, d), targets (n, p) and weights, of rows with a positive weight and a target.

    The columns and their names become those of the feature map.
    """
    check_numeric_columns(X)
    rows: dict[str, Any] = {"dtype": np.float64}
    targets = rows | {"ensure_2d": False, "ensure_all_finite": "allow-nan"}
    X, y = validate_data(feature_map, X, y, validate_separately=(rows, targets))
    check_consistent_length(X, y)
    Y, weight = y.reshape(len(y), -1), check_weights(sample_weight, len(y))  # (n, p)
    kept = used_rows(Y, weight)
    if not kept.any():
        raise ValueError(
            "y must have a target that is known in some row of positive sample_weight, got none"
        )
    return X[kept], Y[kept], None if weight is None else weight[kept]


def used_rows(y: Any, sample_weight: Any) -> NDArray[np.bool_]:
    """Which rows (n,) have a positive weight and a target."""
    Y = np.asarray(y, dtype=np.float64)
    weight = np.ones(len(Y)) if sample_weight is None else np.asarray(sample_weight)
    missing = np.isnan(Y.reshape(len(Y), -1)).all(axis=1)
    return np.asarray(~missing & (weight > 0.0))


def standardised_targets(Y: Array, weight: Array | None) -> Array:
    """Targets with mean zero and variance one over its known values; missing targets stay NaN."""
    mean, scale = target_mean_and_scale(Y, weight)
    return np.asarray((Y - mean) / scale)


def target_mean_and_scale(Y: Array, weight: Array | None) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of targets over their known values."""
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


def some_rows(n: int, limit: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Numbers of all rows where they are at most ``limit``, else of so many drawn at random, in order."""
    return np.arange(n) if n <= limit else np.sort(rng.choice(n, limit, replace=False))


def distinct_rows(X: Array) -> Array:
    """The rows of X that differ, in an order that does not depend on theirs.

    Examples
    --------
    >>> import numpy as np
    >>> distinct_rows(np.array([[2.0, 1.0], [0.0, 3.0], [2.0, 1.0]]))
    array([[0., 3.],
           [2., 1.]])
    """
    if X.shape[1] <= WIDE:
        return np.asarray(np.unique(X, axis=0))
    # Zero and minus zero are equal.
    rows = np.ascontiguousarray(X + 0.0)
    _, first = np.unique(rows.view(f"V{rows.shape[1] * rows.itemsize}")[:, 0], return_index=True)
    return np.asarray(X[first])
