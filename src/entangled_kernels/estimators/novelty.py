"""Rows that a model has no ground to stand on for: how far out they are, and a warning of the farthest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, gen_batches
from sklearn.utils.validation import _num_samples

from ..conditioning import Calibration
from ..linalg import Array
from ..streams.stream import FIRST_BLOCK
from .dask_tables import is_dask
from .streaming import StreamingMixin

__all__ = ["NoveltyMixin", "NoveltyWarning"]

# A row whose model variance is more than this many times the largest of held-out training rows is far out.
VARIANCE_BEYOND = 4.0
# `predict` warns of rows so many times as far out as the edge, where so many rows tell what a range is.
FAR, FEWEST_ROWS = 10.0, 20


class NoveltyWarning(UserWarning):
    """Rows to be predicted lie far outside of what the model was fitted on."""


class NoveltyMixin(StreamingMixin):
    """`novelty` of an estimator whose solved model is linear in its features."""

    def novelty(self, X: Any) -> Array:
        """How far rows are from what training supports; above 1 is far out.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)

        Returns
        -------
        novelty : ndarray of shape (n,)

        Notes
        -----
        The larger of two numbers. The first is about features: the root of the model's variance at the row,
        in units of four times the largest of held-out training rows. Features of Gaussian kernels, of forests
        and of maps with a ``reach`` saturate far away, so it is blind there. The second is about inputs: the
        distance of each from the middle of its range in training, in units of the range or, with heavy tails,
        somewhat more (`entangled_kernels.learning.input_range.InputRange`); a row that is half a range
        outside is at 1.

        Time that of predictions with deviations.
        """
        if is_dask(X):
            raise TypeError("novelty needs tables in memory; take the partitions of a Dask table apart")
        self._ensure_model()
        best, calibration = self._best_model(), self._held_out_errors()
        largest = np.nan
        if calibration is not None:
            largest = float(np.max(calibration.residuals.relative_variance, initial=1.0)) - 1.0
        found = []
        with np.errstate(over="ignore", invalid="ignore"):
            for _, block in self._row_blocks(X):
                Phi, own = best._features(block), np.zeros(_num_samples(block))
                if largest > 0.0:
                    excess = best._fit.relative_variance(Phi) - 1.0
                    own = np.sqrt(np.maximum(excess, 0.0) / (VARIANCE_BEYOND * largest))
                    # A feature that is not finite is as far out as can be.
                    own = np.where(np.isfinite(own), own, np.inf)
                found.append(np.maximum(own, self._input_distance(block)))
        return np.concatenate(found)

    def _ensure_model(self) -> None:
        """Solve if that is needed, and raise where there is nothing to predict with."""
        self._ensure_solved()

    def _best_model(self) -> Any:
        """The estimator itself, or the best of those that it averages or chose from."""
        return self

    def _row_blocks(self, X: Any) -> list[tuple[slice, Any]]:
        """X in blocks whose features take no more than ``working_memory``, and their rows."""
        if self.feature_map_ is None or not hasattr(X, "shape"):
            return [(slice(None), X)]
        n, m = X.shape[0], self._fit.linear.coef.shape[1]
        height = max(FIRST_BLOCK, self._feature_blocks(self.feature_map_).height(m))
        if n <= height:
            return [(slice(None), X)]
        return [(rows, _safe_indexing(X, rows)) for rows in gen_batches(n, height)]

    def _held_out_errors(self) -> Calibration | None:
        """What is known of the errors of held-out rows, None where none were kept."""
        try:
            calibration: Calibration = self._fit.calibration
        except ValueError:
            return None
        return calibration

    def _input_distance(self, X: Any) -> Array:
        inputs = getattr(self._best_model()._fit, "inputs", None)
        return np.zeros(_num_samples(X)) if inputs is None else np.asarray(inputs.distance(X))

    def _warn_of_far_rows(self, X: Any) -> None:
        """Warn where inputs lie far outside of their ranges in training."""
        inputs = getattr(self._best_model()._fit, "inputs", None)
        if inputs is not None and inputs.n_rows >= FEWEST_ROWS and inputs.may_exceed(X, FAR):
            far = int(np.count_nonzero(self._input_distance(X) > FAR))
            warnings.warn(
                f"{far} of {_num_samples(X)} rows lie far outside of the inputs that the model was fitted "
                f"on; predictions there rest on no row. Check units and order of columns; novelty(X) tells "
                f"how far each row is out",
                NoveltyWarning,
                stacklevel=3,
            )
