"""From a table to what is learned from: features, moments, and the learning problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples

from ..features import map_features
from ..learning import Moments, Problem, reduce_moments, reduce_rows
from ..parameters import check_range, check_weights
from ..streams.stream import FIRST_BLOCK, FeatureBlocks, Rows, Stream
from .feature_maps import FeatureMapMixin

__all__ = ["PRODUCT_DTYPES", "TrainingMixin"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PRODUCT_DTYPES = ("float64", "float32")


class TrainingMixin(FeatureMapMixin):
    """Training rows of an estimator whose features may take more than ``max_memory``."""

    fit_intercept: bool
    max_memory: float
    product_dtype: str

    def _training_rows(
        self, feature_map: Any, X: Any, targets: Array, sample_weight: Any
    ) -> tuple[Any, Array, Array | None]:
        """Features (n, m), targets (n, p) and weights, checked."""
        Phi = self._training_features(feature_map, X)
        check_consistent_length(X, targets)
        Y, weight = targets.reshape(len(targets), -1), check_weights(sample_weight, len(targets))
        check_range("X" if feature_map is None else "the output of feature_map", Phi)
        check_range("y", Y)
        return Phi, Y, weight

    def _learning_problem(
        self, feature_map: Any, X: Any, targets: Array, sample_weight: Any
    ) -> tuple[Problem, Stream | None]:
        """The problem of all rows, and a stream to which more can be added where there are moments."""
        if self._exceeds_memory(feature_map, X, targets):
            everything = [np.arange(len(targets))]
            (moments,) = self._moments_of_parts(feature_map, X, targets, sample_weight, everything)
            return self._problem_of_moments(moments)
        return self._problem_of_rows(*self._training_rows(feature_map, X, targets, sample_weight))

    def _problem_of_rows(self, Phi: Any, Y: Array, weight: Array | None) -> tuple[Problem, Stream | None]:
        """The problem of features and targets in memory, and a stream where there are moments to keep."""
        if weight is not None and not weight.all():
            keep = weight > 0.0
            Phi, Y, weight = Phi[keep], Y[keep], weight[keep]
        if len(Y) < 2:
            raise ValueError("at least 2 rows of positive sample_weight are needed, got 1")
        problem, kept = reduce_rows(
            Phi, Y, weight, centred=self.fit_intercept, product_dtype=self.product_dtype
        )
        return problem, None if kept is None else Stream.of_moments(kept)

    def _problem_of_moments(self, moments: Moments) -> tuple[Problem, Stream]:
        """The problem of rows of which the moments are known, and a stream to go on from."""
        return reduce_moments(moments, centred=bool(self.fit_intercept)), Stream.of_moments(moments)

    def _exceeds_memory(self, feature_map: Any, X: Any, targets: Array) -> bool:
        """Whether to map rows block by block: there are more than one table of features may have.

        Where there are more columns than rows, moments would take more than the features.
        """
        n = _num_samples(X)
        if feature_map is None or n <= FIRST_BLOCK:
            return False
        m = map_features(feature_map, _safe_indexing(X, slice(0, 1))).shape[1]
        return bool(n * m * 8 > self.max_memory and m + targets[:1].size <= n)

    def _feature_blocks(self, feature_map: Any) -> FeatureBlocks:
        """How rows become features with a fitted map."""

        def transform(X: Any) -> Any:
            return map_features(feature_map, X)

        # Columns that have been checked already are taken as they are.
        plain = feature_map is None and self._given_map() is None
        return FeatureBlocks(None if plain else transform, self.max_memory, self.product_dtype)

    def _moments_of_parts(
        self, feature_map: Any, X: Any, targets: Array, sample_weight: Any, parts: list[Index]
    ) -> list[Moments]:
        """Moments of parts of the rows, which are mapped in blocks that fit ``max_memory``."""
        rows = self._check_rows(X, targets, sample_weight)
        part = np.empty(len(rows.Y), dtype=np.intp)
        for number, index in enumerate(parts):
            part[index] = number
        stream = Stream(rows.Y.shape[1], [None] * len(parts))
        stream.take(rows._replace(part=part), self._feature_blocks(feature_map))
        found = stream.moments()
        if len(found) < len(parts):
            raise ValueError("every fold needs rows of positive sample_weight in both of its parts")
        return found

    def _check_rows(self, X: Any, targets: Array, sample_weight: Any) -> Rows:
        """Rows whose targets, weights and, where they can be told, inputs are in range."""
        check_consistent_length(X, targets)
        Y = targets.reshape(len(targets), -1)
        weight = check_weights(sample_weight, len(Y), all_zero=True)
        check_range("y", Y, smallest=0.0)
        if getattr(getattr(X, "dtype", None), "kind", "") == "f" and isinstance(X, np.ndarray) and X.size:
            check_range("X", np.nan_to_num(X, nan=0.0), smallest=0.0)
        return Rows(X, Y, weight)
