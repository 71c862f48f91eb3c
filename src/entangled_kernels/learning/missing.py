"""Filling in missing targets, in moments or in rows, so that a kernel can be learned from all rows."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.blas import dsyrk

from ..linalg import Array, Index
from ..uncertainty import SHRINKAGES, choose_shares, estimate_correlation
from .moments import Moments, group_equal_weights

__all__ = ["FILL_ALPHA", "complete_moments", "fill_rows"]

# Ridge penalty of the fit that fills in moments, in units of the mean eigenvalue of C.
FILL_ALPHA = 0.1
# Ridge penalties that are tried for rows, in units of the mean squared length of the features.
RELATIVE_ALPHAS = np.logspace(-4, 2, 13)
# With more rows than this the shrinkage of the correlation matters little, and is the share p / n.
MANY_ROWS = 500


def complete_moments(moments: Moments, *, centred: bool) -> Moments:
    """Moments of the rows with every missing target replaced by a ridge prediction.

    The ridge model of a target is fitted to the rows that have the target. Complete moments are
    returned as they are.

    Notes
    -----
    With c(x) = W^T phi(x) + b the ridge fit of a target to its rows, targets of weight w in rows of
    weight v count as y~ = c + (w / v) (y - c) with weight v: the value of c where the target is
    missing, y itself in full rows. With C the second moments of all rows, and C_o, B_o those of the
    rows that have the target,

        B~_o = B_o + (C - C_o) W_o

    and the scatter of the targets follows likewise, except for products of residuals of targets
    that are present in different rows, which moments do not contain; they are taken as zero. Only
    the norm of that scatter matters, as the unit of the alignment.
    """
    if moments.complete:
        return moments
    rows, m, p = moments.rows, moments.n_features, moments.n_outputs
    C = rows.second_moments(centred=centred).C
    W, residual, V = np.zeros((m, p)), np.zeros((m, p)), np.zeros((p, p))
    mean_y = np.zeros(p)
    for columns, group in moments.groups:
        second = group.second_moments(centred=centred)
        alpha = FILL_ALPHA * float(np.trace(second.C)) / m
        coef = np.zeros_like(second.B)
        if alpha > 0.0:
            coef = np.asarray(cho_solve(cho_factor(second.C + alpha * np.eye(m)), second.B))
        W[:, columns], residual[:, columns] = coef, second.B - second.C @ coef
        along = coef.T @ second.B
        V[np.ix_(columns, columns)] = second.V - along - along.T + coef.T @ second.C @ coef
        if centred:
            mean_y[columns] = group.mean_y + (rows.mean_phi - group.mean_phi) @ coef
        elif rows.weight > 0.0:
            remaining = group.mean_y - group.mean_phi @ coef
            mean_y[columns] = rows.mean_phi @ coef + remaining * group.weight / rows.weight
    B = C @ W + residual
    cross = W.T @ residual
    V += W.T @ C @ W + cross + cross.T
    mean = np.concatenate([rows.mean_phi, mean_y])
    scatter = np.block([[C, B], [B.T, V]])
    if not centred:
        scatter -= rows.weight * np.outer(mean, mean)
    # The diagonal is a sum of squares; rounding may have made it negative.
    np.fill_diagonal(scatter, np.maximum(np.diag(scatter), 0.0))
    return Moments(rows.n_samples, rows.weight, m, mean, np.ascontiguousarray(scatter))


def fill_rows(
    Phi: Array, Y: Array, weight: Array, *, centred: bool, shares: Array | None = None
) -> tuple[Array, Array]:
    """Targets with missing ones filled in, and the shares of the estimates of the correlation.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
        NaN where a target is missing.
    weight : ndarray of shape (n, p)
        Weights of the targets, zero where missing.
    centred : bool
        Whether models have an intercept.
    shares : ndarray of shape (2,), optional
        Shares of the estimates in the correlation of residuals; by default chosen on the rows.

    Returns
    -------
    filled : ndarray of shape (n, p)
        To be used with the largest weight of every row.
    shares : ndarray of shape (2,)

    Notes
    -----
    One step of the EM algorithm for the model y = c(x) + e, e normal with a covariance that targets
    share: each c is a ridge fit to the rows that have the target, with the penalty of the least
    leave-one-out error; leave-one-out residuals give the covariance; a missing target is filled in
    with its expectation given the other targets of its row. A target whose weight w is below the
    largest one v of its row counts as c + (w / v) (y - c), which gives w (y - c) the same pull.

    Time n m min(n, m) for each group of targets that are present in the same rows.
    """
    n, p = Y.shape
    values, errors = np.empty((n, p)), np.full((n, p), np.nan)
    for columns, group_weight in group_equal_weights(weight):
        rows = np.flatnonzero(group_weight > 0.0)
        fitted = _fit_group(Phi, Y[np.ix_(rows, columns)], rows, group_weight[rows], centred)
        values[:, columns], errors[np.ix_(rows, columns)] = fitted
    present = weight > 0.0
    counts = np.maximum(present.sum(axis=0), 1)
    unit = np.sqrt(np.nansum(errors**2, axis=0) / counts)
    unit = np.where(unit > 0.0, unit, 1.0)
    Z, row_weight = errors / unit, weight.max(axis=1)
    if shares is None and n > MANY_ROWS:
        shares = np.array([1.0 - np.clip(p / n, SHRINKAGES[0], 1.0), 0.0])
    elif shares is None:
        shares = choose_shares(Z, row_weight, np.random.default_rng(0))
    expected = estimate_correlation(Z, row_weight, shares).condition(Z).mean
    share = weight / np.maximum(row_weight, np.finfo(float).tiny)[:, None]
    # Targets of full weight do not change, to the last bit.
    pulled = np.where(share < 1.0, values + share * (Y - values), Y)
    return np.where(present, pulled, values + unit * expected), shares


def _fit_group(
    Phi: Array, Y: Array, rows: Index, weight: Array, centred: bool
) -> tuple[Array, Array]:
    """Predictions (n, targets) of the ridge fit to some rows, and its leave-one-out residuals."""
    if len(rows) == 0:
        return np.zeros((len(Phi), Y.shape[1])), np.zeros((0, Y.shape[1]))
    mean_phi, mean_y = np.zeros(Phi.shape[1]), np.zeros(Y.shape[1])
    if centred:
        mean_phi = np.average(Phi[rows], axis=0, weights=weight)
        mean_y = np.average(Y, axis=0, weights=weight)
    root = np.sqrt(weight)[:, None]
    A, B = root * (Phi[rows] - mean_phi), root * (Y - mean_y)  # (k, m), (k, targets)
    scale = float(np.sum(A**2)) / len(rows)
    if scale == 0.0:
        return np.tile(mean_y, (len(Phi), 1)), Y - mean_y
    # Eigenvalues and eigenvectors of A^T A that are not zero, by the smaller of two Gram matrices.
    wide = A.shape[1] > A.shape[0]
    levels, axes = eigh(dsyrk(1.0, A.T, trans=int(wide)), lower=False)
    keep = levels > np.finfo(float).eps * max(levels[-1], np.finfo(float).tiny)
    levels, axes = levels[keep], axes[:, keep]
    basis = A.T @ (axes / np.sqrt(levels)) if wide else axes  # (m, a)
    towards = basis.T @ (A.T @ B)  # (a, targets)
    # With many rows the mean leverage stands for that of each row, without products of all rows.
    scores = A @ basis if len(A) < 2 * len(levels) or len(A) <= MANY_ROWS else None
    intercept = weight / weight.sum() if centred else np.zeros(len(weight))
    total = np.sum(B**2, axis=0)

    def left_out(alpha: float) -> tuple[Array, Array]:
        """Sum of squares of leave-one-out residuals of each target, and one less the leverages."""
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
