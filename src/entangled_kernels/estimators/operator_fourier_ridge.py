"""Ridge regression with random Fourier features of an operator-valued kernel, from moments of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..features import OperatorFourierFeatures
from ..parameters import (
    check_flag,
    check_numeric_columns,
    check_penalty,
    check_weights,
    is_dask,
    validate_rows,
)
from ..streams.batch import Batch, add_batches, naming_batch
from ..streams.dask_tables import first_rows, map_partitions, split_partitions, sum_partitions
from ..streams.row_stream import Rows, RowStream
from .base import MultiTargetRegressor, unchanged_on_error

__all__ = ["OperatorFourierRidge"]


class OperatorFourierRidge(MultiTargetRegressor):
    """Ridge regression in the space of random Fourier features of an operator-valued kernel.

    Minimises sum_i ||y_i - Phi(x_i) w||^2 + alpha |w|^2 over weights w. With curl-free or
    divergence-free features the fitted field has no curl, or no divergence, at any point.

    Parameters
    ----------
    features : OperatorFourierFeatures or None, default=None
        None is ``OperatorFourierFeatures()``, a Gaussian kernel for every target.
    alpha : float, default=1.0
        Ridge penalty, positive.
    fit_intercept : bool, default=True
        Whether each target has a constant that is not penalised; a constant field has neither curl
        nor divergence.

    Attributes
    ----------
    features_ : OperatorFourierFeatures
        The features, fitted.
    coef_ : ndarray of shape (p, m)
        With scalar features phi(x) of ``features_.transform``, the prediction is phi(x) coef_^T +
        intercept_.
    intercept_ : ndarray of shape (p,)
    n_samples_seen_ : int
    n_features_in_, feature_names_in_, target_names_
        As in `OutputKernelRidge`.

    Notes
    -----
    Only moments of m scalar features and the targets are kept, so that rows may come in any number
    of batches, in any order: by `partial_fit`, `fit_batches`, or `fit` on Dask tables, whose
    moments are computed where the rows are. Time n m (m + p) for the moments, then that of
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

    _stream: RowStream | None = None

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
        self._check_parameters()
        self._reset()
        if is_dask(X, y, sample_weight):
            return self._fit_dask(X, y, sample_weight)
        return self.partial_fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows; after any number of calls the model is that of `fit` on all of them."""
        self._check_parameters()
        with unchanged_on_error(self):
            # A copy, so that the stream is unchanged if solving fails.
            stream = RowStream() if self._stream is None else copy(self._stream)
            stream.parts = dict(stream.parts)
            self._add_rows(stream, Batch(X, y, sample_weight))
            self._stream = stream
            return self._solve()

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
            Of (X, y), (X, y, sample_weight), Bunches with data and target, data frames (with
            ``targets``), or what `entangled_kernels.streams.read_batches` gives. Batches without
            rows are passed over.
        targets : list of str, optional
            Names of the target columns, where batches are data frames.
        progress : callable, optional
            Called with every batch after its rows were added.

        Returns
        -------
        self
            The model of `fit` on all rows. When a batch is refused, the error names it, and the
            estimator is not fitted.
        """
        self._check_parameters()
        self._reset()
        stream = RowStream()

        def add(batch: Batch, name: str) -> None:
            if _num_samples(batch.X):
                self._add_rows(stream, batch)

        draw = self._draw_features
        add_batches(batches, stream, add, draw, targets=targets, progress=progress)
        if stream.n_outputs is None:
            raise ValueError("batches must hold at least one row, got none")
        self._stream = stream
        return self._solve()

    def predict(self, X: Any) -> Any:
        """Predict the targets.

        Returns
        -------
        ndarray of shape (n, p), or (n,) when y was one-dimensional
            A lazy Dask collection where X is one.
        """
        check_is_fitted(self, "coef_")
        if is_dask(X):
            slim = copy(self)
            slim._stream, slim._sklearn_output_config = None, {}
            p = len(self.coef_)
            shape = () if self._one_dimensional else (p,)
            names, as_frame = self._output_names(p), self._container() == "pandas"
            return map_partitions(_predict_rows, slim, X, shape, names, as_frame=as_frame)
        rows = validate_rows(self, X, reset=False, dtype=np.float64)
        return self._finish(self.features_.transform(rows) @ self.coef_.T + self.intercept_, X)

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows that were added."""
        if self._stream is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'n_samples_seen_'"
            )
        return self._stream.n_rows

    def _check_parameters(self) -> None:
        check_penalty("alpha", self.alpha)
        check_flag("fit_intercept", self.fit_intercept)
        if self.features is not None and not isinstance(self.features, OperatorFourierFeatures):
            raise TypeError(
                f"features must be None or OperatorFourierFeatures, got {self.features!r}"
            )

    def _reset(self) -> None:
        """Drop everything that was fitted."""
        self._stream = None
        for name in ("features_", "coef_", "intercept_"):
            if hasattr(self, name):
                delattr(self, name)

    def _add_rows(self, stream: RowStream, batch: Batch) -> None:
        """Check rows and add them to a stream; the first rows give names and shapes."""
        first = stream.n_outputs is None
        targets = self._take_targets(batch.y, reset=first)
        check_numeric_columns(batch.X)
        X = validate_rows(self, batch.X, reset=first, dtype=np.float64)
        check_consistent_length(X, targets)
        Y, weight = (
            targets.reshape(len(targets), -1),
            check_weights(batch.sample_weight, len(targets)),
        )
        if not first and Y.shape[1] != stream.n_outputs:
            raise ValueError(f"y must have {stream.n_outputs} columns as before, got {Y.shape[1]}")
        rows = Rows(X, Y, weight)
        if not stream.ready:
            stream.feature_map, stream.ready = self._draw_features(rows)[0], True
        stream.add(rows, self._draw_features)

    def _draw_features(self, rows: Rows) -> tuple[OperatorFourierFeatures, None]:
        """Features drawn for the numbers of inputs and targets of some rows."""
        p = rows.Y.shape[1]
        given = (
            OperatorFourierFeatures(random_state=0)
            if self.features is None
            else clone(self.features)
        )
        drawn = given.fit(rows.X, rows.Y)
        if drawn.n_outputs_ != p:
            raise ValueError(
                f"y must have {drawn.n_outputs_} columns for features of kernel={drawn.kernel!r} on "
                f"{rows.X.shape[1]} columns, got {p}"
            )
        return drawn, None

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit on the partitions of Dask tables, where they are; one row gives names and shapes."""
        partitions = split_partitions(X, y, sample_weight)
        stream = RowStream()
        for name, batch in first_rows(partitions, 1):
            if _num_samples(batch.X):
                with naming_batch(name):
                    self._add_rows(stream, Batch(batch.X, batch.y))
                break
        if stream.n_outputs is None:
            raise ValueError("X must hold at least one row, got none")
        shared = copy(self)
        shared._stream = stream.without_rows()
        self._stream = sum_partitions(_partition_stream, RowStream.merged, shared, partitions)
        return self._solve()

    def _solve(self) -> Self:
        """Coefficients and intercept from moments of all rows."""
        stream = self._stream
        if stream is None or not stream.parts:
            raise ValueError(
                "sample_weight must be positive for at least one row, got zero weights only"
            )
        self.features_, moments = stream.feature_map, stream.parts[0]
        second = moments.second_moments(centred=self.fit_intercept)
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
        return self


def _predict_rows(model: OperatorFourierRidge, X: Any) -> Any:
    return model.predict(X)


def _partition_stream(
    estimator: OperatorFourierRidge, X: Any, y: Any, sample_weight: Any, groups: None
) -> RowStream:
    """A stream of the rows of a partition alone; there are no folds, and so no groups."""
    stream = RowStream() if estimator._stream is None else estimator._stream.without_rows()
    if _num_samples(X):
        estimator._add_rows(stream, Batch(X, y, sample_weight))
    return stream
