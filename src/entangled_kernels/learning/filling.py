"""Blanks of rows in memory filled in: by the target's own rows, and by what the measured targets say."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk

from ..conditioning.shrinkage import SHRINKAGES, choose_shrinkage, estimate_correlation
from ..linalg import Array, Index
from .cell_moments import weight_groups

__all__ = ["fill_rows"]

# Ridge penalties that are tried, in units of the mean squared length of the features.
RELATIVE_ALPHAS = np.logspace(-4, 2, 13)
# With more rows than this the shrinkage of the correlation matters little, and is the share p / n.
MANY_ROWS = 500


def fill_rows(
    Phi: Array, Y: Array, weight: Array, *, centred: bool, shrinkage: float | None = None
) -> tuple[Array, float]:
    """Targets with their blanks filled in, and the shrinkage of the correlation that was used.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
        NaN where a target was not measured.
    weight : ndarray of shape (n, p)
        Weights of the cells, zero where blank.
    centred : bool
        Whether models have an intercept.
    shrinkage : float, optional
        Of the correlation of residuals; chosen on the rows when it is not given.

    Returns
    -------
    filled : ndarray of shape (n, p)
        To be used with the largest weight of every row.
    shrinkage : float

    Notes
    -----
    One step of the EM algorithm for the model y = c(x) + e, e normal with a covariance that targets share:
    each c is a ridge fit to the target's own rows, with the penalty that predicts these best when each is
    left out; residuals left out give the covariance; a blank is filled with its expectation given the
    measured targets of its row. A cell whose weight w is below the largest one v of its row counts as
    c + (w / v) (y - c), which gives w (y - c) the same pull.

    Time n m min(n, m) for each group of targets measured on the same rows.
    """
    n, p = Y.shape
    values, errors = np.empty((n, p)), np.full((n, p), np.nan)
    for places, own in weight_groups(weight):
        rows = np.flatnonzero(own > 0.0)
        found = _own_fit(Phi, Y[np.ix_(rows, places)], rows, own[rows], centred)
        values[:, places], errors[np.ix_(rows, places)] = found
    measured = weight > 0.0
    counts = np.maximum(measured.sum(axis=0), 1)
    unit = np.sqrt(np.nansum(errors**2, axis=0) / counts)
    unit = np.where(unit > 0.0, unit, 1.0)
    Z, row_weight = errors / unit, weight.max(axis=1)
    if shrinkage is None and n > MANY_ROWS:
        shrinkage = float(np.clip(p / n, SHRINKAGES[0], 1.0))
    elif shrinkage is None:
        shrinkage = choose_shrinkage(Z, row_weight, np.arange(n), np.random.default_rng(0))
    expected = estimate_correlation(Z, row_weight, shrinkage).condition(Z).mean
    share = weight / np.maximum(row_weight, np.finfo(float).tiny)[:, None]
    # Measured cells of full weight stay what they are, to the last bit.
    pulled = np.where(share < 1.0, values + share * (Y - values), Y)
    return np.where(measured, pulled, values + unit * expected), shrinkage


def _own_fit(Phi: Array, Y: Array, rows: Index, weight: Array, centred: bool) -> tuple[Array, Array]:
    """Values at all rows (n, targets) of the ridge fit to some rows, and residuals of these left out."""
    if len(rows) == 0:
        return np.zeros((len(Phi), Y.shape[1])), np.zeros((0, Y.shape[1]))
    mean_phi, mean_y = np.zeros(Phi.shape[1]), np.zeros(Y.shape[1])
    if centred:
        mean_phi, mean_y = (np.average(own, axis=0, weights=weight) for own in (Phi[rows], Y))
    root = np.sqrt(weight)[:, None]
    A, B = root * (Phi[rows] - mean_phi), root * (Y - mean_y)  # (k, m), (k, targets)
    scale = float(np.sum(A**2)) / len(rows)
    if scale == 0.0:
        return np.tile(mean_y, (len(Phi), 1)), Y - mean_y
    levels, basis = _axes(A)
    towards = basis.T @ (A.T @ B)  # (a, targets)
    # Of many rows each has about the mean leverage, and products with all of them are saved.
    scores = A @ basis if len(A) < 2 * len(levels) or len(A) <= MANY_ROWS else None
    intercept = weight / weight.sum() if centred else np.zeros(len(weight))
    total = np.sum(B**2, axis=0)

    def left_out(alpha: float) -> tuple[Array, Array]:
        """Squares of residuals left out, of each target, and one less the leverages."""
        shares = 1.0 / (levels + alpha)
        if scores is None:
            mean_free = max(1.0 - (float(levels @ shares) + centred) / len(A), 1e-9)
            fitted = np.sum(towards**2 * (2.0 * shares - levels * shares**2)[:, None], axis=0)
            return np.maximum(total - fitted, 0.0) / mean_free**2, np.array([mean_free])
        free = np.maximum(1.0 - scores**2 @ shares - intercept, 1e-9)
        residuals = B - scores @ (shares[:, None] * towards)
        return np.sum((residuals / free[:, None]) ** 2, axis=0), free

    unit = np.maximum(total, np.finfo(float).tiny)
    alpha = min(scale * RELATIVE_ALPHAS, key=lambda alpha: float(np.sum(left_out(alpha)[0] / unit)))
    coef = basis @ (towards / (levels + alpha)[:, None])
    return mean_y + (Phi - mean_phi) @ coef, (B - A @ coef) / left_out(alpha)[1][:, None] / root


def _axes(A: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors (m, a) of A^T A that are not zero, by the smaller of two Gram matrices."""
    k, m = A.shape
    levels, axes = eigh(dsyrk(1.0, A.T, trans=1) if m > k else dsyrk(1.0, A.T), lower=False)
    keep = levels > np.finfo(float).eps * max(levels[-1], np.finfo(float).tiny)
    levels, axes = levels[keep], axes[:, keep]
    return levels, A.T @ (axes / np.sqrt(levels)) if m > k else axes
