"""Ridge regression with random Fourier features of an operator-valued kernel, from moments of the rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from ..doc_links import DocLinkMixin
from ..features import OperatorFourierFeatures
from ..learning import Moments
from ..parameters import (
    check_flag,
    check_numeric_columns,
    check_positive,
    check_weights,
    validate_rows,
)
from .targets import TargetsMixin

__all__ = ["OperatorFourierRidge"]

Array = NDArray[np.float64]


class OperatorFourierRidge(TargetsMixin, MultiOutputMixin, RegressorMixin, DocLinkMixin, BaseEstimator):
    """Ridge regression in the space of random Fourier features of an operator-valued kernel.

    Minimises sum_i ||y_i - Phi(x_i) w||^2 + alpha |w|^2 over weights w. Fields learned with curl-free or
    divergence-free features are so exactly, wherever they are looked at.

    Parameters
    ----------
    features : OperatorFourierFeatures or None, default=None
        None is ``OperatorFourierFeatures()``, a Gaussian kernel for every target.
    alpha : float, default=1.0
        Ridge penalty, positive.
    fit_intercept : bool, default=True
        Whether each target has a constant that is not penalised; a constant field has neither curl nor
        divergence.

    Attributes
    ----------
    features_ : OperatorFourierFeatures
        The features, fitted.
    coef_ : ndarray of shape (p, m)
        With scalar features phi(x) of ``features_.transform``, the prediction is phi(x) coef_^T + intercept_.
    intercept_ : ndarray of shape (p,)
    n_samples_seen_ : int
    n_features_in_, feature_names_in_, target_names_
        As in `OutputKernelRidge`.

    Notes
    -----
    All that is kept of rows is the moments of m scalar features and the targets, so that rows may come in any
    number of batches, in any order: `partial_fit`. Time n m (m + p) to take rows in, then as
    `OperatorFourierFeatures.solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import OperatorFourierFeatures, OperatorFourierRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 2))
    >>> rotation = np.column_stack([-X[:, 1], X[:, 0]])
    >>> features = OperatorFourierFeatures("divergence_free", gamma=0.5, random_state=0)
    >>> model = OperatorFourierRidge(features, alpha=1e-3).fit(X, rotation + 0.1 * rng.normal(size=(200, 2)))
    >>> bool(np.abs(model.predict(X) - rotation).mean() < 0.05)
    True
    """

    def __init__(
        self,
        features: OperatorFourierFeatures | None = None,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
    ) -> None:
        self.features = features
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to all rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
        sample_weight : array-like of shape (n_samples,) or float, optional
            Non-negative weights of the squared errors.

        Returns
        -------
        self
        """
        return self._take(X, y, sample_weight, reset=True)

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Take in more rows; after any number of calls the model is that of `fit` on all of them."""
        return self._take(X, y, sample_weight, reset=not hasattr(self, "features_"))

    def predict(self, X: Any) -> Any:
        """Predict the targets.

        Returns
        -------
        ndarray of shape (n, p), or (n,) when y was one-dimensional
        """
        check_is_fitted(self)
        rows = validate_rows(self, X, reset=False, dtype=np.float64)
        return self._finish(self.features_.transform(rows) @ self.coef_.T + self.intercept_, X)

    def _take(self, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool) -> Self:
        check_positive("alpha", self.alpha)
        check_flag("fit_intercept", self.fit_intercept)
        targets = self._take_targets(y, reset=reset)
        check_numeric_columns(X)
        rows = validate_rows(self, X, reset=reset, dtype=np.float64)
        check_consistent_length(rows, targets)
        Y, weight = targets.reshape(len(targets), -1), check_weights(sample_weight, len(targets))
        if reset:
            self.features_ = self._drawn(rows, Y)
            self._moments: Moments | None = None
        elif Y.shape[1] != self.features_.n_outputs_:
            raise ValueError(f"y must have {self.features_.n_outputs_} columns as before, got {Y.shape[1]}")
        moments = Moments.from_arrays(self.features_.transform(rows), Y, weight)
        self._moments = moments if self._moments is None else self._moments + moments
        self._solve(self._moments)
        return self

    def _drawn(self, rows: Array, Y: Array) -> OperatorFourierFeatures:
        if self.features is not None and not isinstance(self.features, OperatorFourierFeatures):
            raise TypeError(f"features must be None or OperatorFourierFeatures, got {self.features!r}")
        given = OperatorFourierFeatures(random_state=0) if self.features is None else clone(self.features)
        drawn = given.fit(rows, Y)
        if drawn.n_outputs_ != Y.shape[1]:
            raise ValueError(
                f"y must have {drawn.n_outputs_} columns for features of kernel={drawn.kernel!r} on "
                f"{rows.shape[1]} columns, got {Y.shape[1]}"
            )
        return drawn

    def _solve(self, moments: Moments) -> None:
        """Coefficients and intercept from moments of all rows."""
        second = moments.centred() if self.fit_intercept else moments.uncentred()
        W = self.features_.solve(second.C, second.B, float(self.alpha))  # (m, p)
        self.coef_ = W.T
        centre = moments.mean_y - moments.mean_phi @ W
        self.intercept_ = centre if self.fit_intercept else np.zeros_like(centre)
        self.n_samples_seen_ = moments.n_samples
