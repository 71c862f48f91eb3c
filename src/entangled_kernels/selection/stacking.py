"""Weights of candidates and of models in an average, by their errors on held-out rows."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky
from scipy.optimize import nnls
from scipy.stats import norm

from ..linalg import Array

__all__ = [
    "candidate_weights",
    "choose_candidate",
    "model_shares",
    "outlier_factors",
    "simplex_shares",
]

# Errors that differ by no more than this share of the least error are equal.
TIE = 1e-4
# A weight below this share of the largest becomes zero.
NEGLIGIBLE = 1e-3
# Errors below this share of the largest error are rounding.
ROUNDING = 1e-13
# Penalty on unequal shares, times the total weight of the rows.
PENALTY = 9.0
# Weight of the mean error of all targets, added to the error of the target itself, in weights of
# candidates and in shares of models.
SHARED_BY_CANDIDATES, SHARED = 2.0, 1.0
# Errors of more than this many deviations are scaled down to this many.
FAR = 5.0
# Share of the least error that is added to the diagonal, so that equal models do not make the form
# singular.
_JITTER = 1e-10


def choose_candidate(errors: Array, *, one_se: bool = False) -> int:
    """The first candidate whose mean error is the least, up to four digits or a standard error.

    Parameters
    ----------
    errors : ndarray of shape (splits, candidates)
        Of candidates that are equally good, the first is chosen.
    one_se : bool, default=False
    """
    mean = errors.mean(axis=0)
    least, allowance = mean.min(), TIE * mean.min()
    if one_se:
        best = errors[:, mean.argmin()]
        allowance = float(best.std(ddof=1) / np.sqrt(len(best))) if len(best) > 1 else 0.0
    return int(np.argmax(mean <= least + allowance))


def candidate_weights(errors: Array, n_rows: float, *, by_target: bool) -> Array:
    """Weights of candidates in an average, (..., 1), or (..., q) by target; each adds up to one.

    Parameters
    ----------
    errors : ndarray of shape (splits, ..., q)
        In units in which the sum over targets is the score.
    n_rows : float
        Number of rows that the errors are means of.
    by_target : bool
        Whether every target has its own weights, by its own error plus twice the mean error of all
        targets. Otherwise all targets have the same weights, by the score.

    Notes
    -----
    A candidate with mean squared error E has the weight E^(-n / 2). That is its likelihood if the
    errors are normal with the variance that fits them best. If errors hardly differ, many
    candidates share the weight; a candidate that is clearly the best has all of it.
    """
    mean = errors.mean(axis=0)
    score = mean.sum(axis=-1, keepdims=True)
    if by_target:
        varying = np.count_nonzero(mean.any(axis=tuple(range(mean.ndim - 1))))
        score = max(1, varying) * mean + SHARED_BY_CANDIDATES * score
    flat = score.reshape(-1, score.shape[-1])
    flat = np.where(np.isfinite(flat), flat, np.inf)
    finite = np.where(np.isfinite(flat), flat, 0.0)
    flat = np.maximum(flat, np.maximum(ROUNDING * finite.max(axis=0), np.finfo(float).tiny))
    weights = np.exp(-0.5 * n_rows * np.log(flat / flat.min(axis=0)))
    weights[weights < NEGLIGIBLE] = 0.0
    return np.asarray(weights / weights.sum(axis=0)).reshape(score.shape)


def model_shares(errors: Array, weight: Array, *, by_target: bool) -> Array:
    """Shares of models in an average, (K, q), or (K, 1) for all targets; each adds up to one.

    Parameters
    ----------
    errors : ndarray of shape (K, N, q)
        Errors of the models on the same held-out rows, in units in which the sum of the squares is
        the score; NaN where a target is missing.
    weight : ndarray of shape (N,)
        The weights of the copies of a row, in repeated folds, add up to the weight of the row.
    by_target : bool
        Whether every target has its own shares.
    """
    if errors.shape[1] == 0:
        # No rows say anything of the models.
        return np.full((len(errors), 1), 1.0 / len(errors))
    penalty = PENALTY / max(1.0, float(weight.sum()))
    values = errors.transpose(2, 0, 1)  # (q, K, N)
    missing = np.asarray(np.isnan(values).any(axis=1))  # (q, N)
    values = np.where(missing[:, None], 0.0, values)
    mass = np.where(missing, 0.0, weight)
    if by_target:
        factor = outlier_factors(np.median(np.abs(values), axis=1), mass)
    else:
        sizes = np.sqrt((values**2).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1))  # (K, N)
        factor = outlier_factors(np.median(sizes, axis=0)[None], mass.max(axis=0)[None])
    values = values * factor[:, None]
    total = np.maximum(mass.sum(axis=1), np.finfo(float).tiny)
    G = (values * mass[:, None]) @ values.transpose(0, 2, 1) / total[:, None, None]  # (q, K, K)
    mean = G.sum(axis=0)
    if not by_target:
        return simplex_shares(mean, penalty)[:, None]
    shares, varying = np.empty((len(errors), len(G))), np.count_nonzero(G.any(axis=(1, 2)))
    for target, form in enumerate(G):
        shares[:, target] = simplex_shares(max(1, varying) * form + SHARED * mean, penalty)
    return shares


def outlier_factors(typical: Array, weight: Array) -> Array:
    """Factors (q, N) of at most one for the errors of rows, so that outliers do not decide.

    Parameters
    ----------
    typical : ndarray of shape (q, N)
        Median over models of the size of the error of a row.
    weight : ndarray of shape (q, N)

    Notes
    -----
    An outlier, a row with a large error in all models, has most of the squared error but hardly
    shows which model is best for other rows. The errors of all models on it are scaled by one
    factor, so that their size is at most `FAR` deviations. The deviation is estimated by the median
    size over rows (Huber, 1964).
    """
    order = np.argsort(typical, axis=1, kind="stable")
    mass = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    # Sums of equal weights reach a half exactly, or a rounding below it.
    middle = np.argmax(mass >= (0.5 - 1e-9) * mass[:, -1:], axis=1)[:, None]
    median = np.take_along_axis(np.take_along_axis(typical, order, axis=1), middle, axis=1)
    limit = FAR * median / norm.ppf(0.75)
    # With a median of zero there is no scale to judge outliers by.
    far = (typical > limit) & (limit > 0.0)
    return np.asarray(np.divide(limit, typical, out=np.ones_like(typical), where=far))


def simplex_shares(form: Array, penalty: float) -> Array:
    """Shares w >= 0 that add up to one and minimise w^T G w + penalty * g |w - 1 / K|^2.

    G has the mean products of the errors of every two models. Its least diagonal entry g is the
    error of the best model, so the penalty is small beside the errors of far worse models.

    Parameters
    ----------
    form : ndarray of shape (K, K)
        G, psd.
    penalty : float

    Notes
    -----
    On the simplex w - 1 / K = (I - 1 1^T / K) w, so the penalty is a quadratic form too, and the
    objective is homogeneous. The direction of the least w^T H w + s (1^T w - 1)^2 over w >= 0 then
    is that of the least w^T H w on the simplex for every s > 0: along a direction u that adds up to
    one the least value is s u^T H u / (u^T H u + s), which grows with u^T H u. That is a problem of
    non-negative least squares.
    """
    K = len(form)
    least = float(np.diag(form).min())
    if not least > 0.0:
        return np.asarray(np.diag(form) == least) / np.count_nonzero(np.diag(form) == least)
    H = form / least + penalty * (np.eye(K) - 1.0 / K) + _JITTER * np.eye(K)
    stacked = np.vstack([cholesky(H), np.ones((1, K))])
    shares, _ = nnls(stacked, np.append(np.zeros(K), 1.0))
    return np.asarray(shares / shares.sum())
