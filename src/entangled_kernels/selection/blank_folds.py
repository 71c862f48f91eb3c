"""Folds of rows whose targets have blanks: filled in from the training rows, judged on measured cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..features import fit_and_map, map_features
from ..learning.missing import fill_rows
from ..linalg import Array
from ..threads import SMALL_MATRIX, one_thread
from .fold import Fold
from .folds import RowFolds, Split
from .observed_fold import ObservedFold

__all__ = ["BlankFolds"]


@dataclass(frozen=True, eq=False)
class BlankFolds(RowFolds):
    """Folds of rows in memory whose targets have blanks, or cells of different weights.

    In every fold the blanks of the training rows are filled in from these rows alone.

    Attributes
    ----------
    Phi : table
        Features, or inputs where there is a feature map to fit in every fold.
    Y : ndarray of shape (n, p)
        NaN where blank.
    weight : ndarray of shape (n, p)
        Weights of the cells.
    feature_map : transformer or None
    shrinkage : float
        Of the correlation that fills in blanks.
    """

    feature_map: Any = None
    shrinkage: float = 1.0

    def folds(self, output_weights: Array) -> Iterator[Callable[[], Fold]]:  # type: ignore[override]
        """Functions that make a fold; they may be called in other processes."""
        return (partial(self._fold, split, output_weights) for split in self.splits)

    def _fold(self, split: Split, output_weights: Array) -> Fold:
        weight = np.asarray(self.weight)
        train, test = (index[weight[index].any(axis=1)] for index in split)
        if len(train) == 0 or len(test) == 0:
            raise ValueError("every fold needs measured targets in both of its parts")
        X_train, X_test = (_safe_indexing(self.Phi, index) for index in (train, test))
        with one_thread(len(self.Y) <= SMALL_MATRIX):
            if self.feature_map is not None:
                fitted, X_train = fit_and_map(
                    self.feature_map, X_train, self.Y[train], weight[train], ensure_min_samples=2
                )
                X_test = map_features(fitted, X_test)
            filled, _ = fill_rows(
                X_train, self.Y[train], weight[train], centred=self.centred, shrinkage=self.shrinkage
            )
            n_train, n_test = len(train), len(test)
            inner = RowFolds(
                Phi=np.vstack([X_train, X_test]),
                Y=np.vstack([filled, np.zeros((n_test, filled.shape[1]))]),
                weight=np.concatenate([weight[train].max(axis=1), weight[test].max(axis=1)]),
                splits=[(np.arange(n_train), np.arange(n_train, n_train + n_test))],
                centred=self.centred,
                norms=self.norms,
                ridge_only=self.ridge_only,
            )
            fold = next(inner.folds(output_weights))
        # A target without a training cell has no prediction to be judged.
        counted = weight[test] * weight[train].any(axis=0)
        return ObservedFold.of(fold.at(test), self.Y[test], counted, output_weights)
