"""Base class of feature maps that need targets, and the rows that they are fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array
from ..parameters import check_integer, check_numeric_columns, check_positive, check_weights

__all__ = ["SupervisedFeatures", "distinct_rows", "some_rows", "standardise"]

# Rows with more columns than this are compared as bytes, which is faster.
WIDE = 200


class SupervisedFeatures(TransformerMixin, DocLinkMixin, BaseEstimator):
    """Base of feature maps that are fitted with targets, of which some may be missing (NaN)."""

    takes_missing_targets = True
    # Inputs are clipped at this many ranges of a column beyond the training rows.
    reach: float | None = None

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        """Rows (n, d), targets (n, p) and weights (n,) of the rows with a positive weight and a target.

        The last array says which of the given rows they are. Parameters that several maps have are
        checked, and the columns and their names become those of the map.
        """
        for name, low in (
            ("n_components", 1),
            ("max_rows", 2),
            ("max_targets", 2),
            ("max_inputs", 1),
        ):
            value = getattr(self, name, None)
            if value is not None or name in ("n_components", "max_rows"):
                check_integer(name, value, low=low)
        for name in ("reach", "spread"):
            if getattr(self, name, None) is not None:
                check_positive(name, getattr(self, name), zero_allowed=True)
        check_numeric_columns(X)
        rows: dict[str, Any] = {"dtype": np.float64}
        targets = rows | {"ensure_2d": False, "ensure_all_finite": "allow-nan"}
        X, y = validate_data(self, X, y, validate_separately=(rows, targets))
        check_consistent_length(X, y)
        Y, weight = y.reshape(len(y), -1), check_weights(sample_weight, len(y))  # (n, p)
        weight = np.ones(len(Y)) if weight is None else weight
        used = ~np.isnan(Y).all(axis=1) & (weight > 0.0)
        if not used.any():
            raise ValueError(
                "y must have a target that is known in some row of positive sample_weight, got none"
            )
        return X[used], Y[used], weight[used], used

    def _fit_limits(self, X: Array) -> None:
        """Set the limits of the columns: their range, widened by the ``reach``."""
        low, high = X.min(axis=0), X.max(axis=0)
        beyond = np.inf if self.reach is None else float(self.reach) * (high - low)
        self.lower_, self.upper_ = low - beyond, high + beyond

    def _check_start(self, shape: tuple[int, ...]) -> Array | None:
        """The parameters that a search starts from, or None.

        A start of another shape is not used: folds of a table with rare categories have fewer
        columns of 0 and 1 than all rows.
        """
        start = getattr(self, "start", None)
        if start is None:
            return None
        theta = np.asarray(start, dtype=np.float64)
        if theta.ndim != len(shape) or not np.isfinite(theta).all():
            raise ValueError(
                f"start must be theta_ of fitted features, finite numbers of shape {shape}, got "
                f"{start!r}"
            )
        return theta if theta.shape == shape else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def standardise(values: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Columns (n, q) with weighted mean zero and variance one, their means, and their deviations.

    Missing values (NaN) do not count, and stay NaN. The deviation of a constant column is set to
    one.
    """
    missing = np.isnan(values)
    if missing.any():
        mass = np.where(missing, 0.0, weight[:, None])
        filled = np.where(missing, 0.0, values)
        total = np.maximum(mass.sum(axis=0), np.finfo(float).tiny)
        mean = (mass * filled).sum(axis=0) / total
        scale = np.sqrt((mass * (filled - mean) ** 2).sum(axis=0) / total)
    else:
        mean = np.average(values, axis=0, weights=weight)
        scale = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))
    scale = np.where(scale > 10.0 * np.finfo(float).eps * np.abs(mean), scale, 1.0)
    return (values - mean) / scale, mean, scale


def some_rows(n: int, limit: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """All row numbers below n, in order; if n is above the limit, that many drawn at random."""
    return np.arange(n) if n <= limit else np.sort(rng.choice(n, limit, replace=False))


def distinct_rows(X: Array) -> Array:
    """The distinct rows of X, in an order that does not depend on theirs.

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
