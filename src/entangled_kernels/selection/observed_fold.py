"""A fold whose held-out rows have blanks: errors are counted cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ..features import fit_feature_map, map_features
from ..learning.filling import fill_rows
from ..learning.ridge import Spectral
from ..threads import SMALL_MATRIX, one_thread
from .fold import UNIT_GAIN, Fold
from .folds import RowFolds, Split

__all__ = ["BlankFolds", "ObservedFold"]

Array = NDArray[np.float64]

_CHUNK_NUMBERS = 2**22


@dataclass(frozen=True, eq=False)
class ObservedFold(Fold):
    """A training problem, in which blanks are filled in, and the measured cells of the rows held out.

    Attributes
    ----------
    targets : ndarray of shape (t, p)
        Held-out targets less their training means; anything where the weight is zero.
    cell_weight : ndarray of shape (t, p)
    output_weights : ndarray of shape (p,)
    """

    targets: Array = field(default_factory=lambda: np.zeros((0, 0)))
    cell_weight: Array = field(default_factory=lambda: np.zeros((0, 0)))
    output_weights: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, fold: Fold, Y: Array, cell_weight: Array, output_weights: Array) -> ObservedFold:
        """A fold with the targets of its held-out rows, NaN where blank."""
        if fold.rows is None:
            raise ValueError("the fold was made of moments alone, without its held-out rows")
        targets = np.where(cell_weight > 0.0, Y - fold.rows.mean_y, 0.0)
        own = {one.name: getattr(fold, one.name) for one in fields(fold)}
        return cls(**own, targets=targets, cell_weight=cell_weight, output_weights=output_weights)

    def for_predictions(self) -> Fold:
        """The fold without what only errors need."""
        slim = super().for_predictions()
        return replace(slim, targets=np.zeros((0, 0)), cell_weight=np.zeros((0, 0)))

    def error(self, coef: Array, gains: Array = UNIT_GAIN) -> Array:
        """Weighted mean of the errors of the targets that were measured, times the weight of the rows."""
        return self._weighted(self.target_errors(coef, gains))

    def spectral_error(self, form: Spectral, gains: Array = UNIT_GAIN) -> Array:
        """What `error` gives, for the coefficients of a `Spectral`."""
        return self._weighted(self.spectral_target_errors(form, gains))

    def target_errors(self, coef: Array, gains: Array = UNIT_GAIN) -> Array:
        """Squared errors (g, a, p) of each target for coefficients (a, m', k).

        They are means over its measured cells, times the weight of all held-out rows, and NaN for a target
        that has none.
        """
        Phi, basis = self._reduced, self.basis.T
        return self._errors((Phi @ own @ basis for own in coef), len(coef), gains)

    def spectral_target_errors(self, form: Spectral, gains: Array = UNIT_GAIN) -> Array:
        """What `target_errors` gives, for the coefficients of a `Spectral`."""
        G, s, t, b, x = form
        Z, basis = self._reduced @ G, self.basis.T
        b, x = b @ basis, x @ basis
        values = (
            (Z * own) @ b + ((Z * other) @ x if other.any() else 0.0) for own, other in zip(s, t, strict=True)
        )
        return self._errors(values, len(s), gains)

    @property
    def _reduced(self) -> Array:
        """Held-out features in the coordinates of the problem, (t, m')."""
        if self.rows is None:
            raise ValueError("the fold was made of moments alone, without its held-out rows")
        return np.asarray((self.rows.Phi - self.problem.mean_phi) @ self.problem.features)

    def _errors(self, values: Iterator[Array], n_alphas: int, gains: Array) -> Array:
        W, Y = self.cell_weight, self.targets
        total, mass = np.sum(W * Y**2, axis=0), W.sum(axis=0)
        linear, quadratic = np.empty((n_alphas, len(mass))), np.empty((n_alphas, len(mass)))
        WY = W * Y
        for place, own in enumerate(values):
            linear[place] = np.einsum("to,to->o", WY, own)
            quadratic[place] = np.einsum("to,to,to->o", W, own, own)
        g = gains[:, None, None]
        squares = np.maximum(total - 2.0 * g * linear + g**2 * quadratic, 0.0)
        share = np.where(mass > 0.0, self.weight / np.where(mass > 0.0, mass, 1.0), np.nan)
        return np.asarray(squares * share)

    def _weighted(self, errors: Array) -> Array:
        counted = np.where(self.cell_weight.any(axis=0), self.output_weights, 0.0)
        whole = float(self.output_weights.sum()) / max(float(counted.sum()), np.finfo(float).tiny)
        return np.asarray(np.where(counted > 0.0, errors, 0.0) @ counted * whole)


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
                fitted = fit_feature_map(self.feature_map, X_train, self.Y[train], weight[train])
                X_train = map_features(fitted, X_train, ensure_min_samples=2)
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
            )
            fold = next(inner.folds(output_weights))
        # A target without a training cell has no prediction to be judged.
        counted = weight[test] * weight[train].any(axis=0)
        fold = ObservedFold.of(fold, self.Y[test], counted, output_weights)
        return replace(fold, rows=replace(fold.rows, index=test))
