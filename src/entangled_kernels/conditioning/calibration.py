"""Predictive distributions calibrated on residuals: deviations, relations between targets, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from ..linalg import Array, Index
from .correlation import Conditional, Correlation
from .patterns import group_patterns
from .quantiles import score_quantile, target_quantiles
from .residuals import Residuals
from .shrinkage import N_PARTS, choose_shrinkage, estimate_correlation, row_parts

__all__ = ["Calibration", "calibrate"]

# More targets than this, and their covariance is an operator.
MOST_DENSE = 2048
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far new observations lie from a model's predictions, and what some of them say of the others.

    The covariance of a new observation is deviation * R * deviation with a correlation matrix R.

    Attributes
    ----------
    residuals : Residuals
    deviation : ndarray of shape (p,)
        Standard deviation of the errors of every target.
    correlation : Correlation
        R.
    shrinkage : float
        Share of the identity in the correlation.
    """

    residuals: Residuals
    deviation: Array
    correlation: Correlation
    shrinkage: float

    def mean_covariance(self) -> Any:
        """Covariance of errors, (p, p); an operator where targets are many."""
        unit = self.deviation
        if len(unit) <= MOST_DENSE:
            return unit[:, None] * self.correlation.dense() * unit
        F, own = self.correlation.factor * unit, self.correlation.own * unit**2

        def multiply(vector: Array) -> Array:
            vector = vector.reshape(len(own), -1)
            return np.asarray(F.T @ (F @ vector) + own[:, None] * vector)

        shape = (len(unit), len(unit))
        return LinearOperator(shape, matvec=multiply, rmatvec=multiply, matmat=multiply, dtype=np.float64)

    def condition(self, mean: Array, given: Array, *, with_covariance: bool = False) -> Conditional:
        """Predictions (n, p) once some targets are measured, ``given`` with NaN for the others."""
        std = self.deviation
        unit = np.where(std > 0.0, std, 1.0)
        found = self.correlation.condition((given - mean) / unit, with_covariance=with_covariance)
        covariance = found.covariance
        if covariance is not None:
            covariance = std[:, None] * covariance * std
        measured = np.isfinite(given)
        return Conditional(
            np.where(measured, given, mean + std * found.mean), std**2 * found.variance, covariance
        )

    def half_widths(self, coverage: float, known: Mask, std: Array, *, joint: bool) -> Array:
        """Half the widths of intervals, (n, p), for rows with deviations ``std`` and known targets (n, p).

        Notes
        -----
        For every pattern of known targets, residuals are conditioned as new rows are, with a correlation
        that their own rows had no part in; what is left, over its deviation, are the scores. Their quantile
        (`entangled_kernels.conditioning.quantiles`) times the deviation is half the width. Joint intervals
        take the largest score of every row.
        """
        widths = np.zeros(std.shape)
        for rows, pattern in group_patterns(known):
            if pattern.all():
                continue
            # A target without errors says nothing of how far others lie.
            scores = np.where(self.deviation[~pattern] > 0.0, self._scores(pattern), np.nan)
            observed = np.isfinite(scores).any(axis=1)
            if not observed.any():
                continue
            scores, weight = scores[observed], self.residuals.weight[observed]
            n_rows = len(np.unique(self.residuals.row[observed]))
            if joint:
                quantile = np.full(
                    scores.shape[1], score_quantile(np.nanmax(scores, axis=1), weight, n_rows, coverage)
                )
            else:
                quantile = target_quantiles(scores, weight, n_rows, coverage)
            places = np.ix_(rows, np.flatnonzero(~pattern))
            widths[places] = quantile * std[places]
        return widths

    @cached_property
    def _standardised(self) -> Array:
        """Residuals in units of deviations that their own rows had no part in, (N, p)."""
        Z = self.residuals.standardised(self.deviation)
        return Z / self.residuals.left_out_scales(Z)

    @cached_property
    def _parts(self) -> Index:
        return row_parts(self.residuals.row, N_PARTS)

    @cached_property
    def _left_out(self) -> list[Correlation]:
        """For every part of the rows the correlation of the others."""
        Z, weight = self._standardised, self.residuals.weight
        return [
            estimate_correlation(Z[self._parts != part], weight[self._parts != part], self.shrinkage)
            for part in range(self._parts.max() + 1)
        ]

    def _scores(self, pattern: Mask) -> Array:
        """Errors over their deviations of the targets that are not known, (N, u); NaN where not measured."""
        Z = self._standardised
        if not pattern.any():
            return np.abs(Z)
        scores = np.empty((len(Z), int((~pattern).sum())))
        for part, correlation in enumerate(self._left_out):
            rows = self._parts == part
            found = correlation.condition(np.where(pattern, Z[rows], np.nan))
            error = (Z[rows] - found.mean)[:, ~pattern]
            scores[rows] = np.abs(error) / np.sqrt(found.variance[:, ~pattern])
        return scores

    def __getstate__(self) -> dict[str, object]:
        # What is found from the residuals again when it is asked for.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def calibrate(residuals: Residuals, rng: np.random.Generator) -> Calibration:
    """Deviations and correlation of residuals.

    Parameters
    ----------
    residuals : Residuals
    rng : numpy.random.Generator
        For halves of the targets on which the shrinkage of the correlation is chosen.
    """
    deviation = residuals.deviation()
    Z = residuals.standardised(deviation)
    shrinkage = choose_shrinkage(Z[:, deviation > 0.0], residuals.weight, residuals.row, rng)
    correlation = estimate_correlation(Z, residuals.weight, shrinkage)
    return Calibration(residuals, deviation, correlation, shrinkage)
