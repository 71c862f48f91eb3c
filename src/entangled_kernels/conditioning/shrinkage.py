"""How correlated the errors of targets are: estimated from residuals, and shrunk as far as these ask for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ..linalg import Array, Index
from .correlation import Correlation
from .patterns import random_halves

__all__ = ["SHRINKAGES", "choose_shrinkage", "estimate_correlation", "row_parts"]

# Shares of the identity that are tried; with 1 the error of a target tells nothing of the others.
SHRINKAGES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
# The largest share within this many standard errors of the best one is taken.
ALLOWANCE = 0.5
# Parts of the rows, and halves of the targets, on which shares are compared.
N_PARTS, N_HALVES = 5, 8
# Of more targets, or rows, than this some are drawn for the comparison.
MOST_TARGETS, MOST_ROWS = 64, 300
# A pair of targets with so many rows is trusted half as much as one with all.
_HALF_TRUSTED = 2.0


def estimate_correlation(Z: Array, weight: Array, shrinkage: float) -> Correlation:
    """Correlation of residuals about zero, shrunk towards that of unrelated targets.

    Parameters
    ----------
    Z : ndarray of shape (N, p)
        Residuals in units of their deviations, NaN where a target was not measured.
    weight : ndarray of shape (N,)
    shrinkage : float
        Share of the identity, between 0 and 1.

    Notes
    -----
    With blanks each pair of targets counts the rows that have both, less where these are few, and the
    matrix is made psd by leaving out negative eigenvalues. Complete residuals of many targets stay what
    they are, a factor with as many rows as there are residuals. Time N p min(N, p).
    """
    N, p = Z.shape
    if shrinkage >= 1.0 or N == 0:
        return Correlation.identity(p)
    known = np.isfinite(Z)
    if known.all():
        F = np.sqrt(weight / weight.sum())[:, None] * Z
        factor = F if p > N else _root(F.T @ F)
    else:
        factor = _root(_pairwise(np.where(known, Z, 0.0), known, weight))
    length = np.linalg.norm(factor, axis=0)
    factor = np.sqrt(1.0 - shrinkage) * factor / np.where(length > 0.0, length, 1.0)
    return Correlation(factor, np.where(length > 0.0, shrinkage, 1.0))


def choose_shrinkage(Z: Array, weight: Array, row: Index, rng: np.random.Generator) -> float:
    """The share of the identity with which measured targets predict the others best, on rows left out.

    Parameters
    ----------
    Z, weight : as in `estimate_correlation`
    row : ndarray of shape (N,)
        Which row of the table a residual is of: residuals of one row stay together.
    rng : numpy.random.Generator
        Draws halves of the targets that are taken as measured.

    Notes
    -----
    Of several shares that do as well, to half a standard error of the difference over rows, the largest is
    taken: a relation must show before it is used. Time 5 x 16 x 10 systems of half the targets.
    """
    n_rows = len(np.unique(row))
    if Z.shape[1] <= 1 or n_rows < 4:
        return 1.0
    if Z.shape[1] > MOST_TARGETS:
        Z = Z[:, np.sort(rng.choice(Z.shape[1], MOST_TARGETS, replace=False))]
    if n_rows > MOST_ROWS:
        some = np.isin(row, rng.choice(np.unique(row), MOST_ROWS, replace=False))
        Z, weight, row, n_rows = Z[some], weight[some], row[some], MOST_ROWS
    halves = random_halves(Z.shape[1], N_HALVES, rng)
    losses = np.zeros((len(SHRINKAGES), n_rows))
    part, place = row_parts(row, N_PARTS), np.unique(row, return_inverse=True)[1].reshape(-1)
    for number in range(part.max() + 1):
        train, test = part != number, part == number
        for which, shrinkage in enumerate(SHRINKAGES):
            correlation = estimate_correlation(Z[train], weight[train], shrinkage)
            loss = _conditional_loss(correlation, Z[test], halves)
            losses[which] += np.bincount(place[test], weight[test] * loss, minlength=n_rows)
    excess = losses - losses[losses.mean(axis=1).argmin()]
    allowed = ALLOWANCE * excess.std(axis=1, ddof=1) / np.sqrt(n_rows)
    return SHRINKAGES[int(np.flatnonzero(excess.mean(axis=1) <= allowed).max())]


def row_parts(row: Index, n_parts: int) -> Index:
    """Parts of the rows, numbered from 0, with residuals of one row in one part."""
    place = np.unique(row, return_inverse=True)[1].reshape(-1)
    return np.asarray(place % min(n_parts, max(1, place.max(initial=0) + 1)))


def _conditional_loss(correlation: Correlation, Z: Array, halves: list[NDArray[np.bool_]]) -> Array:
    """Mean squared error of one half of the targets given the other, over the halves, (N,)."""
    total = np.zeros(len(Z))
    for half in halves:
        error = Z - correlation.condition(np.where(half, Z, np.nan)).mean
        observed = np.isfinite(error[:, ~half])
        squares = np.where(observed, error[:, ~half], 0.0) ** 2
        total += squares.sum(axis=1) / np.maximum(1, observed.sum(axis=1))
    return total


def _pairwise(Z: Array, known: NDArray[np.bool_], weight: Array) -> Array:
    """Covariances of pairs over the rows that have both; blanks of Z are zero."""
    share = weight / weight.max()
    both = (known * share[:, None]).T @ known.astype(float)
    matrix = (Z * share[:, None]).T @ Z / np.maximum(both, np.finfo(float).tiny)
    trust = both / (both + _HALF_TRUSTED)
    np.fill_diagonal(trust, 1.0)
    return np.asarray(matrix * trust)


def _root(matrix: Array) -> Array:
    """F with F^T F the psd part of a symmetric matrix."""
    values, vectors = eigh(matrix)
    keep = values > 0.0
    return np.asarray(np.sqrt(values[keep])[:, None] * vectors[:, keep].T)
