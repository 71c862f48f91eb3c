"""A learner on features of the inputs, with every target in units of its deviation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from ..doc_links import DocLinkMixin
from ..features import fit_and_map, map_features
from ..linalg import Array
from ..parameters import check_numeric_columns
from .cells import check_cells
from .feature_maps import FeatureMapMixin, refusing_sparse_rows
from .output_kernel_ridge_cv import OutputKernelRidgeCV
from .targets import TargetsMixin

__all__ = ["StandardizedRegressor"]


class StandardizedRegressor(
    FeatureMapMixin, TargetsMixin, MultiOutputMixin, RegressorMixin, DocLinkMixin, BaseEstimator
):
    """A regressor of this package on features of the inputs and standardised targets, as one model.

    Learners that relate targets to each other weigh them by their units. Here every target is centred and
    divided by its deviation first, and predictions come out in the units of the targets.

    Parameters
    ----------
    regressor : estimator or None, default=None
        Such as `MultipleKernelRidge`; None is ``OutputKernelRidgeCV()``.
    feature_map : transformer or None, default=None
        Applied to the inputs first, and fitted with the targets; None is the columns themselves.

    Attributes
    ----------
    regressor_ : estimator
        Fitted to features and standardised targets.
    feature_map_ : transformer or None
    mean_, scale_ : ndarray of shape (p,)
        Of the measured cells of each target; the scale of a constant one is 1.
    n_features_in_, feature_names_in_, target_names_

    Notes
    -----
    Blanks in y, and NaN in X, are left to the regressor. Time is that of the regressor and the map.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.preprocessing import StandardScaler
    >>> from entangled_kernels import OutputKernelRidge, StandardizedRegressor
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = StandardizedRegressor(OutputKernelRidge(alpha=10.0), feature_map=StandardScaler()).fit(X, Y)
    >>> model.predict(X[:2]).shape
    (2, 3)
    """

    def __init__(self, regressor: Any = None, *, feature_map: Any = None) -> None:
        self.regressor = regressor
        self.feature_map = feature_map

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the map, then the regressor.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            NaN is a blank, of a regressor that takes blanks.
        sample_weight : array-like of shape (n_samples,) or float, optional
            Given to the regressor, and to a map that takes it.

        Returns
        -------
        self
        """
        targets = self._take_targets(y, blanks=True)
        check_consistent_length(X, targets)
        Y, weights = check_cells(targets, sample_weight, getattr(self, "target_names_", None))
        if self.feature_map is None:
            self.feature_map_, Phi = None, self._columns(X, reset=True)
        else:
            self._check_columns(X)
            with refusing_sparse_rows(self.feature_map, X):
                self.feature_map_, Phi = fit_and_map(
                    self.feature_map, X, targets, sample_weight, ensure_all_finite="allow-nan"
                )
        cells = np.ones(Y.shape) if weights is None else np.broadcast_to(weights.reshape(len(Y), -1), Y.shape)
        self.mean_, self.scale_ = _moments(np.where(cells > 0.0, Y, 0.0), cells)
        self.regressor_ = OutputKernelRidgeCV() if self.regressor is None else clone(self.regressor)
        settings = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.regressor_.fit(Phi, self._targets_like_y((Y - self.mean_) / self.scale_), **settings)
        return self

    def predict(self, X: Any) -> Any:
        """Predict the targets, (n, p), or (n,) when y was one-dimensional."""
        check_is_fitted(self)
        if self.feature_map_ is None:
            Phi = self._columns(X, reset=False)
        else:
            self._check_columns(X, reset=False)
            Phi = map_features(self.feature_map_, X, ensure_all_finite="allow-nan")
        values = np.asarray(self.regressor_.predict(Phi), dtype=np.float64).reshape(len(Phi), -1)
        return self._finish(values * self.scale_ + self.mean_, X)

    def _columns(self, X: Any, *, reset: bool) -> Array:
        check_numeric_columns(X)
        checked = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        return np.asarray(checked)


def _moments(Y: Array, cells: Array) -> tuple[Array, Array]:
    """Mean and deviation of every target over its cells; the deviation of a constant target is one."""
    sums = np.maximum(cells.sum(axis=0), np.finfo(float).tiny)
    mean = np.sum(cells * Y, axis=0) / sums
    spread = np.sqrt(np.sum(cells * (Y - mean) ** 2, axis=0) / sums)
    return mean, np.where(spread > 10 * np.finfo(float).eps * np.abs(mean), spread, 1.0)
