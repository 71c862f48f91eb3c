"""Blanks of rows in memory filled in: by the target's own rows, and by what the measured targets say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ..conditioning.shrinkage import choose_shrinkage, estimate_correlation

__all__ = ["fill_rows"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Ridge penalties that are tried, in units of the mean squared length of the features.
RELATIVE_ALPHAS = np.logspace(-4, 2, 13)


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
    for places, own in _groups(weight):
        rows = np.flatnonzero(own > 0.0)
        found = _own_fit(Phi, Y[np.ix_(rows, places)], rows, own[rows], centred)
        values[:, places], errors[np.ix_(rows, places)] = found
    measured = weight > 0.0
    counts = np.maximum(measured.sum(axis=0), 1)
    unit = np.sqrt(np.nansum(errors**2, axis=0) / counts)
    unit = np.where(unit > 0.0, unit, 1.0)
    Z, row_weight = errors / unit, weight.max(axis=1)
    if shrinkage is None:
        shrinkage = choose_shrinkage(Z, row_weight, np.arange(n), np.random.default_rng(0))
    expected = estimate_correlation(Z, row_weight, shrinkage).condition(Z).mean
    share = weight / np.maximum(row_weight, np.finfo(float).tiny)[:, None]
    # Measured cells of full weight stay what they are, to the last bit.
    pulled = np.where(share < 1.0, values + share * (Y - values), Y)
    return np.where(measured, pulled, values + unit * expected), shrinkage


def _groups(weight: Array) -> Iterator[tuple[Index, Array]]:
    """Places of targets with the same weights, and these weights."""
    distinct, group = np.unique(weight, axis=1, return_inverse=True)
    for number, own in enumerate(distinct.T):
        yield np.flatnonzero(group.reshape(-1) == number), own


def _own_fit(Phi: Array, Y: Array, rows: Index, weight: Array, centred: bool) -> tuple[Array, Array]:
    """Values at all rows (n, targets) of the ridge fit to some rows, and residuals of these left out."""
    if len(rows) == 0:
        return np.zeros((len(Phi), Y.shape[1])), np.zeros((0, Y.shape[1]))
    mean_phi, mean_y = np.zeros(Phi.shape[1]), np.zeros(Y.shape[1])
    if centred:
        mean_phi, mean_y = (np.average(own, axis=0, weights=weight) for own in (Phi[rows], Y))
    root = np.sqrt(weight)[:, None]
    A, B = root * (Phi[rows] - mean_phi), root * (Y - mean_y)  # (k, m), (k, targets)
    wide = A.shape[1] > len(A)
    levels, axes = eigh(A @ A.T if wide else A.T @ A)
    levels = np.maximum(levels, 0.0)
    scale = float(levels.sum()) / len(rows)
    if scale == 0.0:
        return np.tile(mean_y, (len(Phi), 1)), Y - mean_y
    if wide:
        # Along the axes of the rows: coefficients are A^T times dual ones.
        scores = axes * np.sqrt(levels)
        keep = levels > np.finfo(float).eps * levels[-1]
        basis = A.T @ (axes[:, keep] / np.sqrt(levels[keep]))
        scores, levels = scores[:, keep], levels[keep]
    else:
        basis, scores = axes, A @ axes
    towards = scores.T @ B  # (a, targets)
    intercept = weight / weight.sum() if centred else 0.0
    best, chosen, left = np.inf, 0.0, B
    for alpha in scale * RELATIVE_ALPHAS:
        shares = 1.0 / (levels + alpha)
        leverage = np.minimum(scores**2 @ shares + intercept, 1.0 - 1e-9)
        residuals = (B - scores @ (shares[:, None] * towards)) / (1.0 - leverage)[:, None]
        loss = float(np.sum(np.sum(residuals**2, axis=0) / np.maximum(np.sum(B**2, axis=0), 1e-300)))
        if loss < best:
            best, chosen, left = loss, alpha, residuals
    coef = basis @ (towards / (levels + chosen)[:, None])
    return mean_y + (Phi - mean_phi) @ coef, left / root
