"""Residuals of rows from models without them, in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..conditioning import Residuals, without_rounding
from ..linalg import Array
from .cell_ridge import CellPosterior
from .posterior import UnitPosterior
from .row_sample import RowSample

if TYPE_CHECKING:
    from .fit import Fit

__all__ = ["leave_one_out"]

# A row that a model without it says nothing about has leverage one; its residual cannot be told.
_LARGEST_LEVERAGE = 1.0 - 1e-9


def leave_one_out(fit: Fit, sample: RowSample) -> Residuals:
    """Residual of every row of the sample from the model of all other rows, with the same kernel.

    Notes
    -----
    For a row whose cells have weights w, with C the posterior covariance (p, p) of the function at the row
    for noise of variance alpha and W the total weight of each target, the row's block of the hat matrix is
    H = (C / alpha + diag(1 / W)) diag(w), and the residual without the row is (I - H)^-1 times the residual
    with it. Rows and columns of H that belong to missing targets are left out.

    The kernel, and the feature map, have seen the row, so the residuals are somewhat too small;
    `EntangledKernelRidgeCV` learns both again in every fold.

    Time m' r p + min(p, r)^3 for every row.
    """
    values, posterior = fit.linear.predict(sample.Phi), fit.posterior
    left = _without_row(posterior.unit, sample, sample.Y - values)
    # Leverage and variance are means over targets, so the weight of a row is that of its measured cells.
    weight = sample.weight.sum(axis=1) / np.count_nonzero(sample.weight, axis=1)
    leverage = np.minimum((posterior.relative_variance(sample.Phi) - 1.0) * weight, _LARGEST_LEVERAGE)
    # The relative variance as it is without the row.
    relative = 1.0 + leverage / (1.0 - leverage) / weight
    left = without_rounding(left, sample.Y)
    return Residuals(left, sample.row_weight, np.arange(len(left)), relative)


def _without_row(unit: UnitPosterior | CellPosterior, sample: RowSample, errors: Array) -> Array:
    """(I - H)^-1 errors, row by row; NaN where an error is."""
    left = np.full_like(errors, np.nan)
    for rows, shared, spread in unit.chunks(sample.Phi):
        weight, known = sample.weight[rows], np.isfinite(errors[rows])
        own = np.maximum(1.0 - weight * (shared / unit.alpha + unit.mean_share), 1.0 - _LARGEST_LEVERAGE)
        scaled = np.where(known, errors[rows], 0.0) / own
        if spread.shape[2] > 0:
            # I - H = diag(own) - spread S^T with S (t, p, r), zero for blanks.
            S = (spread * (weight / unit.alpha)[:, :, None]).transpose(0, 2, 1)  # (t, r, p)
            over = spread / own[:, :, None]
            along = np.linalg.solve(np.eye(S.shape[1]) - S @ over, S @ scaled[:, :, None])
            scaled = scaled + (over @ along)[:, :, 0]
        left[rows] = np.where(known, scaled, np.nan)
    return left
