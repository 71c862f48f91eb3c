"""Predictions of any regressor as features, cross-fitted on the rows that it was fitted on."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, check_cv
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import Tags, _safe_indexing, check_array, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter, validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array
from ..parameters import check_integer, check_weights
from .training_rows import mean_and_scale

__all__ = ["RegressorFeatures"]


class RegressorFeatures(MetaEstimatorMixin, TransformerMixin, DocLinkMixin, BaseEstimator):
    """Predictions of a regressor as features, so that it is a candidate among feature maps.

    Kernel ridge on them, with little ridge, is the regressor with its predictions recalibrated. The linear
    kernel of features f(x) is sum over outputs of f(x) f(z); the entangled kernel of Kraus rank one,
    f(x) f(z)^T, is among those learned from them.

    Parameters
    ----------
    estimator : regressor, default=None
        Any of scikit-learn's kind; one that takes a single target is fitted for each of several. None is
        `RidgeCV`. Targets must not be blank.
    cv : int or splitter, default=5
        Folds for the features of training rows; a number is of shuffled folds.
    random_state : int, RandomState or None, default=None
        Of the shuffled folds.

    Attributes
    ----------
    estimator_ : regressor
        Fitted on all rows.
    mean_, scale_ : ndarray of shape (p,)
        Of the targets; predictions are features in these units.
    n_features_in_, feature_names_in_

    Notes
    -----
    A regressor predicts the rows that it has seen better than new ones, and a kernel learned from such
    predictions trusts them too much. So `fit_transform` gives predictions for every training row by
    regressors fitted on other folds, whereas `transform` gives those of the regressor fitted on all rows, as
    scikit-learn's `TargetEncoder` does; `fit_and_map` gets the first for the rows that it fits on.

    Cost: `fit` fits the regressor once, `fit_transform` once more for every fold.

    Examples
    --------
    >>> from sklearn.cross_decomposition import PLSRegression
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import RegressorFeatures
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> RegressorFeatures(PLSRegression(1), random_state=0).fit_transform(X, Y).shape
    (20, 3)
    """

    #: Features of the rows that it is fitted on come from `fit_transform`.
    cross_fitted = True

    def __init__(self, estimator: Any = None, *, cv: Any = 5, random_state: Any = None) -> None:
        self.estimator = estimator
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regressor on all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Of any kind that the regressor takes.
        y : array-like of shape (n,) or (n, p)
        sample_weight : array-like of shape (n,), optional
            Passed on to a regressor that takes weights.
        """
        X = _table(X)
        validate_data(self, X, y, skip_check_array=True)
        weight = check_weights(sample_weight, _num_samples(X))
        self.estimator_ = self._fitted(X, y, weight)
        targets = np.asarray(y, dtype=np.float64).reshape(_num_samples(X), -1)  # (n, p)
        self.mean_, self.scale_ = mean_and_scale(targets, weight)
        return self

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Fit, and features of the training rows from regressors that did not see them, (n, p)."""
        self.fit(X, y, sample_weight)
        X, y = _table(X), np.asarray(y)
        weight = check_weights(sample_weight, _num_samples(X))
        sums, times = np.zeros((_num_samples(X), len(self.mean_))), np.zeros(_num_samples(X))
        for train, test in self._splits(X, y):
            own = None if weight is None else weight[train]
            fitted = self._fitted(_safe_indexing(X, train), y[train], own)
            sums[test] += self._features(fitted, _safe_indexing(X, test))
            times[test] += 1.0
        if not times.all():
            raise ValueError(
                f"cv must hold out every row, got a splitter that leaves out {np.count_nonzero(times == 0)}; "
                f"use a number of folds"
            )
        return sums / times[:, None]

    def transform(self, X: Any) -> Array:
        """Predictions of the regressor fitted on all rows, (n, p), in standard units of the targets."""
        check_is_fitted(self)
        X = _table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._features(self.estimator_, X)

    def _splits(self, X: Any, y: Any) -> list[Any]:
        cv = self.cv
        if isinstance(cv, Integral):
            check_integer("cv", cv, low=2)
            cv = KFold(int(cv), shuffle=True, random_state=self.random_state)
        return list(check_cv(cv).split(X, y))

    def _fitted(self, X: Any, y: Any, weight: Any) -> Any:
        regressor = RidgeCV() if self.estimator is None else clone(self.estimator)
        y = np.asarray(y)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim == 2 and not get_tags(regressor).target_tags.multi_output:
            regressor = MultiOutputRegressor(regressor)
        weighted = weight is not None and has_fit_parameter(regressor, "sample_weight")
        return regressor.fit(X, y, **({"sample_weight": weight} if weighted else {}))

    def _features(self, fitted: Any, X: Any) -> Array:
        predictions = np.asarray(fitted.predict(X), dtype=np.float64)
        return np.asarray((predictions.reshape(len(predictions), -1) - self.mean_) / self.scale_)  # (n, p)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        if self.estimator is not None:
            inner = get_tags(self.estimator).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


def _table(X: Any) -> Any:
    """Rows that can be indexed; what is in them is the affair of the regressor."""
    if hasattr(X, "columns") or issparse(X):
        return X
    return check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
