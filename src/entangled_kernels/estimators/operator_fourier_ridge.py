"""Ridge regression with random Fourier features of an operator-valued kernel, from moments of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..doc_links import DocLinkMixin
from ..features import OperatorFourierFeatures
from ..learning import Moments
from ..linalg import Array
from ..parameters import (
    check_flag,
    check_numeric_columns,
    check_positive,
    check_weights,
    validate_rows,
)
from ..streams.batch import Batch, BatchError, as_batch
from .dask_tables import first_rows, is_dask, predict_dask, split_partitions, sum_partitions
from .targets import TargetsMixin

__all__ = ["OperatorFourierRidge"]


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
    number of batches, in any order: `partial_fit`, `fit_batches`, or `fit` on Dask tables, whose moments are
    taken where the rows are. Time n m (m + p) to take rows in, then as `OperatorFourierFeatures.solve`.

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
        X : array-like, data frame or Dask collection of shape (n_samples, n_features)
        y : array-like, data frame or Dask collection of shape (n_samples, n_outputs) or (n_samples,)
        sample_weight : array-like of shape (n_samples,) or float, optional
            Non-negative weights of the squared errors.

        Returns
        -------
        self
        """
        if is_dask(X, y, sample_weight):
            return self._fit_dask(X, y, sample_weight)
        moments = self._moments_of(X, y, sample_weight, reset=True)
        return self._solve(moments)

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Take in more rows; after any number of calls the model is that of `fit` on all of them."""
        before: Moments | None = getattr(self, "_moments", None)
        moments = self._moments_of(X, y, sample_weight, reset=before is None)
        return self._solve(moments if before is None else before + moments)

    def fit_batches(
        self,
        batches: Iterable[Any],
        *,
        targets: Sequence[str] | None = None,
        progress: Callable[[Batch], None] | None = None,
    ) -> Self:
        """Fit from an iterable of batches, for tables that do not fit in memory.

        Parameters
        ----------
        batches : iterable
            Of (X, y), (X, y, sample_weight), Bunches with data and target, data frames (with ``targets``), or
            what `entangled_kernels.streams.read_batches` gives. Batches without rows are passed over.
        targets : list of str, optional
            Names of the target columns, where batches are data frames.
        progress : callable, optional
            Called with every batch after it was taken in.

        Returns
        -------
        self
            The model of `fit` on all rows. When a batch is refused, the error names it, and the estimator is
            not fitted.
        """
        self._check_parameters()
        self._forget()
        total: Moments | None = None
        for number, item in enumerate(batches):
            batch = as_batch(item, targets)
            try:
                if _num_samples(batch.X):
                    moments = self._moments_of(batch.X, batch.y, batch.sample_weight, reset=total is None)
                    total = moments if total is None else total + moments
            except (TypeError, ValueError) as error:
                raise BatchError(f"{batch.source or f'batch {number}'}: {error}") from error
            if progress is not None:
                progress(batch)
        if total is None:
            raise ValueError("batches must hold at least one row, got none")
        return self._solve(total)

    def predict(self, X: Any) -> Any:
        """Predict the targets.

        Returns
        -------
        ndarray of shape (n, p), or (n,) when y was one-dimensional
            A lazy Dask collection where X is one.
        """
        check_is_fitted(self, "coef_")
        if is_dask(X):
            return predict_dask(self, X, return_std=False, return_cov=False)
        rows = validate_rows(self, X, reset=False, dtype=np.float64)
        return self._finish(self.features_.transform(rows) @ self.coef_.T + self.intercept_, X)

    def _check_parameters(self) -> None:
        check_positive("alpha", self.alpha)
        check_flag("fit_intercept", self.fit_intercept)

    def _moments_of(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Moments:
        """Moments of checked rows; the first ones tell names, and features are drawn for their shapes."""
        self._check_parameters()
        targets = self._take_targets(y, reset=reset)
        check_numeric_columns(X)
        rows = validate_rows(self, X, reset=reset, dtype=np.float64)
        check_consistent_length(rows, targets)
        Y, weight = targets.reshape(len(targets), -1), check_weights(sample_weight, len(targets))
        if reset:
            self.features_ = self._drawn(rows, Y)
        elif Y.shape[1] != self.features_.n_outputs_:
            raise ValueError(f"y must have {self.features_.n_outputs_} columns as before, got {Y.shape[1]}")
        return Moments.from_arrays(self.features_.transform(rows), Y, weight)

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit on the partitions of Dask tables, wherever they are; a row is brought here to know names."""
        partitions = split_partitions(X, y, sample_weight)
        self._check_parameters()
        self._forget()
        for where, rows in first_rows(partitions, 1):
            if _num_samples(rows[0]):
                try:
                    self._moments_of(rows[0], rows[1], None, reset=True)
                except (TypeError, ValueError) as error:
                    raise BatchError(f"{where}: {error}") from error
                break
        total = sum_partitions(_partition_moments, _add, self, partitions)
        if total is None:
            raise ValueError("X must hold at least one row, got none")
        return self._solve(total)

    def _forget(self) -> None:
        """Drop everything that came of rows."""
        for name in ("_moments", "features_", "coef_", "intercept_", "n_samples_seen_"):
            self.__dict__.pop(name, None)

    def _n_targets(self) -> int:
        return int(self.features_.n_outputs_)

    def _for_workers(self) -> Self:
        """A copy for other processes, without the moments, which are of no use there."""
        slim = copy(self)
        slim.__dict__.pop("_moments", None)
        return slim

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

    def _solve(self, moments: Moments) -> Self:
        """Coefficients and intercept from moments of all rows."""
        self._moments = moments
        second = moments.centred() if self.fit_intercept else moments.uncentred()
        need = "alpha must be large enough for the ridge system to be solved in double precision"
        try:
            W = self.features_.solve(second.C, second.B, float(self.alpha))  # (m, p)
        except np.linalg.LinAlgError as error:
            raise ValueError(f"{need}, got {self.alpha!r}") from error
        if not np.isfinite(W).all():
            raise ValueError(f"{need}, got {self.alpha!r}; or divide sample_weight by its mean")
        self.coef_ = W.T
        centre = moments.mean_y - moments.mean_phi @ W
        self.intercept_ = centre if self.fit_intercept else np.zeros_like(centre)
        self.n_samples_seen_ = moments.n_samples
        return self


def _partition_moments(
    estimator: OperatorFourierRidge, X: Any, y: Any, sample_weight: Any, groups: None
) -> Moments | None:
    """Moments of a partition, None where it has no rows; there are no folds, and so no groups."""
    return estimator._moments_of(X, y, sample_weight, reset=False) if _num_samples(X) else None


def _add(parts: list[Moments | None]) -> Moments | None:
    some = [part for part in parts if part is not None]
    return sum(some[1:], some[0]) if some else None
