"""A fold whose held-out rows have blanks: errors are counted cell by cell."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..learning.ridge import Spectral
from ..linalg import Array
from .fold import Fold, scaled_parts, spectral_parts

__all__ = ["ObservedFold"]


@dataclass(frozen=True, eq=False)
class ObservedFold(Fold):
    """A training problem, in which blanks are filled in, and the measured cells of the rows held out.

    Attributes
    ----------
    targets : ndarray of shape (t, p)
        Held-out targets less their training means; anything where the weight is zero.
    cell_weight : ndarray of shape (t, p)
        Zero for a target without a training cell, which nothing can predict.
    judged : ndarray of shape (p,)
        Whether a target has any weight.
    output_weights : ndarray of shape (p,)
    """

    targets: Array = field(default_factory=lambda: np.zeros((0, 0)))
    cell_weight: Array = field(default_factory=lambda: np.zeros((0, 0)))
    judged: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    output_weights: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, fold: Fold, Y: Array, cell_weight: Array, output_weights: Array) -> ObservedFold:
        """A fold with the targets of its held-out rows, NaN where blank."""
        if fold.rows is None:
            raise ValueError("the fold was made of moments alone, without its held-out rows")
        targets = np.where(cell_weight > 0.0, Y - fold.rows.mean_y, 0.0)
        own = {one.name: getattr(fold, one.name) for one in fields(fold)}
        judged = np.asarray(cell_weight.any(axis=0))
        return cls(
            **own, targets=targets, cell_weight=cell_weight, judged=judged, output_weights=output_weights
        )

    def for_predictions(self) -> Fold:
        """The fold without what only errors need."""
        none = np.zeros((0, 0))
        return replace(self, C=none, BN=none, N=none, B=none, V=none, targets=none, cell_weight=none)

    def predictions(self, coef: Array, share: Array, basis: Array | None = None) -> Array:
        """What `Fold.predictions` gives, NaN for targets that are not judged."""
        return np.where(self.judged, super().predictions(coef, share, basis), np.nan)

    def error(self, coef: Array) -> Array:
        """Weighted mean of the errors of the targets that were measured, times the weight of the rows."""
        return self._weighted(self.target_errors(coef))

    def spectral_error(self, form: Spectral) -> Array:
        """What `error` gives, for the coefficients of a `Spectral`."""
        return self._weighted(self.spectral_target_errors(form))

    def target_errors(self, coef: Array) -> Array:
        """Squared errors (a, p) of each target for coefficients (a, m', k).

        They are means over its measured cells, times the weight of all held-out rows, and NaN for a target
        that has none.
        """
        a, m, k = coef.shape
        # One product for all alphas, which is faster than one for each.
        wide = self._reduced @ coef.transpose(1, 0, 2).reshape(m, a * k)
        return self._errors(wide.reshape(-1, a, k) @ self.basis.T)

    def spectral_target_errors(self, form: Spectral) -> Array:
        """What `target_errors` gives, for the coefficients of a `Spectral`."""
        scaled = scaled_parts(spectral_parts(form, self.basis))
        values = (self._reduced * form.back if form.back.ndim == 1 else self._reduced @ form.back) @ scaled
        n_alphas = form.gains.shape[-2]
        return self._errors(values.reshape(*values.shape[:-1], n_alphas, len(self.basis)))

    @cached_property
    def _reduced(self) -> Array:
        """Held-out features in the coordinates of the problem, (t, m')."""
        if self.rows is None:
            raise ValueError("the fold was made of moments alone, without its held-out rows")
        return np.asarray((self.rows.Phi - self.problem.mean_phi) @ self.problem.features)

    def _errors(self, values: Array) -> Array:
        """Errors (..., a, p) of values (..., t, a, p)."""
        W, Y = self.cell_weight, self.targets
        total, mass = np.sum(W * Y**2, axis=0), W.sum(axis=0)
        linear = np.einsum("to,...tao->...ao", W * Y, values)
        quadratic = np.einsum("to,...tao,...tao->...ao", W, values, values)
        squares = np.maximum(total - 2.0 * linear + quadratic, 0.0)
        share = np.where(mass > 0.0, self.weight / np.where(mass > 0.0, mass, 1.0), np.nan)
        return np.asarray(squares * share)

    def _weighted(self, errors: Array) -> Array:
        counted = np.where(self.judged, self.output_weights, 0.0)
        whole = float(self.output_weights.sum()) / max(float(counted.sum()), np.finfo(float).tiny)
        return np.asarray(np.where(counted > 0.0, errors, 0.0) @ counted * whole)
