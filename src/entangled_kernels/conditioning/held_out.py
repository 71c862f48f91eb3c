"""Held-out rows beside what was measured: predictions of models that had not seen them, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..linalg import Array
from .calibration import Calibration

__all__ = ["HeldOut", "held_out_intervals"]


class HeldOut(NamedTuple):
    """Measured targets (n, p), NaN in blanks, their out-of-fold predictions, and ends of intervals."""

    measured: Array
    predicted: Array
    lower: Array
    upper: Array

    def mapped(self, inverse: Callable[[Array], Array]) -> HeldOut:
        """The same in other units, by a function of every target that may rise or fall."""
        ends = np.sort([inverse(self.lower), inverse(self.upper)], axis=0)
        return HeldOut(inverse(self.measured), inverse(self.predicted), *ends)


def held_out_intervals(calibration: Calibration, measured: Array, coverage: float) -> HeldOut:
    """Out-of-fold predictions of the rows that a calibration rests on.

    Parameters
    ----------
    calibration : Calibration
    measured : ndarray of shape (n, p)
        Of the distinct rows of its residuals, in their order.
    coverage : float
        Share of new observations that intervals are to hold.

    Notes
    -----
    A row that was held out several times has the mean of its predictions.
    """
    residuals = calibration.residuals
    _, place = np.unique(residuals.row, return_inverse=True)
    place = place.reshape(-1)
    predicted = np.full(measured.shape, np.nan)
    for target in range(measured.shape[1]):
        error = residuals.values[:, target]
        known = np.isfinite(error)
        total = np.bincount(place[known], residuals.weight[known], minlength=len(measured))
        sums = np.bincount(place[known], (residuals.weight * error)[known], minlength=len(measured))
        mean = np.divide(sums, total, out=np.full(len(measured), np.nan), where=total > 0.0)
        predicted[:, target] = measured[:, target] - mean
    std = np.broadcast_to(calibration.deviation, measured.shape)
    width = calibration.half_widths(coverage, np.zeros(measured.shape, dtype=bool), std, joint=False)
    return HeldOut(measured, predicted, predicted - width, predicted + width)
