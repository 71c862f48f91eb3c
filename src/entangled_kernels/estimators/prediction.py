"""Predicting with a linear model of features: row blocks, containers, and what is there once it is solved."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing

from ..streams.stream import FIRST_BLOCK
from .dask_tables import is_dask, predict_dask
from .streaming import StreamingMixin

__all__ = ["LinearPredictionMixin", "solved_attribute"]

Array = NDArray[np.float64]


def solved_attribute(name: str, path: str, doc: str) -> Any:
    """A read-only attribute ``name`` that shows a part of the solved model, by its path in ``_fit``.

    It is not there, and reading it solves nothing, while rows that were taken in wait to be solved for.
    """
    read = attrgetter(path)

    def show(self: Any) -> Any:
        value = read(self._solved_fit(name))
        if value is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value

    return property(show, doc=doc)


class LinearPredictionMixin(StreamingMixin):
    """`predict` of an estimator whose solved model is linear in its features."""

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the targets, with their uncertainty on request.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        return_std : bool, default=False
            Also return the standard deviation of a new observation of every target.
        return_cov : bool, default=False
            Also return the covariance of a new observation of all targets, row by row.

        Returns
        -------
        mean : ndarray of shape (n, p), or (n,) when y was one-dimensional
        std : like mean, with ``return_std``
        cov : ndarray of shape (n, p, p), or (n,) when y was one-dimensional, with ``return_cov``

        Notes
        -----
        In the Gaussian-process view the covariance of the model at x is the posterior one; `noise_variance_`
        is added to it, and with an intercept its variance, noise over n. Subtract `noise_variance_` for the
        model alone. Rows taken in by `partial_fit` are solved for first.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be true; the covariance holds both")
        self._ensure_solved()
        if is_dask(X):
            return predict_dask(self, X, return_std, return_cov)
        blocks = [self._predict_block(block, return_std, return_cov) for block in self._row_blocks(X)]
        mean, spread = (
            part[0] if len(part) == 1 else np.concatenate(part) for part in zip(*blocks, strict=True)
        )
        if return_cov:
            return self._finish(mean, X), spread[:, 0, 0] if self._one_dimensional else spread
        if return_std:
            return self._finish(mean, X), self._finish(spread, X)
        return self._finish(mean, X)

    def _solved_fit(self, name: str) -> Any:
        """The solved model, for the attribute of this name; a `NotFittedError` where there is none."""
        if self._fit is None:
            hint = "" if self._stream is None else "; call solve() once all rows are taken in"
            # An AttributeError too, so that hasattr is False.
            raise NotFittedError(f"{type(self).__name__!r} object has no attribute {name!r} yet{hint}")
        return self._fit

    def _predict_block(self, X: Any, return_std: bool, return_cov: bool) -> tuple[Array, Array]:
        """Mean, and standard deviation or covariance, or nothing, of some rows."""
        raise NotImplementedError

    def _row_blocks(self, X: Any) -> list[Any]:
        """X in blocks whose features take no more than ``max_memory``."""
        if self.feature_map_ is None or not hasattr(X, "shape"):
            return [X]
        n, m = X.shape[0], self._fit.linear.coef.shape[1]
        height = max(FIRST_BLOCK, self._feature_blocks(self.feature_map_).height(m))
        if n <= height:
            return [X]
        return [_safe_indexing(X, slice(start, start + height)) for start in range(0, n, height)]
