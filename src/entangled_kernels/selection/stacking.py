"""Weights of candidates and of models in an average, by their errors on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.optimize import nnls
from scipy.stats import norm

from ..linalg import Array

__all__ = ["HeldOutErrors", "candidate_weights", "choose", "draw_in", "simplex_shares"]

# Errors that differ by no more than this share of the least are alike.
TIE = 1e-4
# Candidates of less weight than this share of the largest get none.
NEGLIGIBLE = 1e-3
# Errors below this share of the largest are rounding.
ROUNDING = 1e-13
# How strongly shares are drawn towards equal ones: this over the total weight of the rows.
PULL = 9.0
# How much the error of all targets counts beside a target's own, in weights of candidates and in
# shares.
SHARED_BY_CANDIDATES, SHARED = 2.0, 1.0
# Errors beyond so many deviations of the typical ones count as if they were at that distance.
FAR = 5.0
# Of the least error of the models, added to the form so that models that are alike do not make it
# singular.
_JITTER = 1e-10


def choose(errors: Array, *, one_se: bool = False) -> int:
    """The first candidate whose mean error agrees with the least to four digits, or within a standard error.

    Parameters
    ----------
    errors : ndarray of shape (splits, candidates)
        The candidates that are preferred among equals come first.
    one_se : bool, default=False
    """
    mean = errors.mean(axis=0)
    least, allowance = mean.min(), TIE * mean.min()
    if one_se:
        best = errors[:, mean.argmin()]
        allowance = float(best.std(ddof=1) / np.sqrt(len(best))) if len(best) > 1 else 0.0
    return int(np.argmax(mean <= least + allowance))


def candidate_weights(errors: Array, n_rows: float, *, by_target: bool) -> Array:
    """Weights of candidates in an average, (..., 1), or (..., q) by target; each column adds up to one.

    Parameters
    ----------
    errors : ndarray of shape (splits, ..., q)
        In units in which the sum over targets is the score.
    n_rows : float
        Number of rows that the errors are of.
    by_target : bool
        A target judges by its own error and twice the mean of all; else all targets judge together.

    Notes
    -----
    A candidate with mean squared error E has the weight E^(-n / 2), which is its likelihood where
    errors are normal with a variance that fits them best. Where errors hardly differ many
    candidates share the weight; where one is clearly the best it has all.
    """
    mean = errors.mean(axis=0)
    score = mean.sum(axis=-1, keepdims=True)
    if by_target:
        counted = max(1, int(np.count_nonzero(mean.any(axis=tuple(range(mean.ndim - 1))))))
        score = counted * mean + SHARED_BY_CANDIDATES * score
    flat = score.reshape(-1, score.shape[-1])
    flat = np.where(np.isfinite(flat), flat, np.inf)
    finite = np.where(np.isfinite(flat), flat, 0.0)
    flat = np.maximum(flat, np.maximum(ROUNDING * finite.max(axis=0), np.finfo(float).tiny))
    weights = np.exp(-0.5 * n_rows * np.log(flat / flat.min(axis=0)))
    weights[weights < NEGLIGIBLE] = 0.0
    return np.asarray(weights / weights.sum(axis=0)).reshape(score.shape)


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Errors of several models on the same held-out rows.

    Attributes
    ----------
    values : ndarray of shape (K, N, q)
        In units in which the sum of the squares is the score; NaN where a target is missing.
    weight : ndarray of shape (N,)
        Those of the copies of a row add up to the weight of the row.
    row : ndarray of shape (N,)
        Which row an error is of; repeated folds give several of one row.
    by_target : bool
        Whether targets have shares of their own.
    """

    values: Array
    weight: Array
    row: NDArray[np.intp]
    by_target: bool

    def shares(self, without: NDArray[np.intp] | None = None) -> Array:
        """Shares of the models, (K, q), or (K, 1) where targets share them; each column adds up to one.

        Parameters
        ----------
        without : ndarray of int, optional
            Rows that are to have no say. Without any others all shares are equal.
        """
        used = (
            np.ones(len(self.row), dtype=bool) if without is None else ~np.isin(self.row, without)
        )
        if not used.any():
            return np.full((len(self.values), 1), 1.0 / len(self.values))
        weight = self.weight[used]
        pull = PULL / max(1.0, float(weight.sum()))
        values = self.values[:, used].transpose(2, 0, 1)  # (q, K, N)
        known = np.asarray(~np.isnan(values).any(axis=1))  # (q, N)
        values = np.where(known[:, None], values, 0.0)
        if self.by_target:
            factor = draw_in(np.median(np.abs(values), axis=1), np.where(known, weight, 0.0))
        else:
            sizes = np.sqrt((values**2).sum(axis=0) / np.maximum(known.sum(axis=0), 1))  # (K, N)
            factor = draw_in(
                np.median(sizes, axis=0)[None], np.where(known.any(axis=0), weight, 0.0)[None]
            )
        values = values * factor[:, None]
        mass = np.where(known, weight, 0.0)
        total = np.maximum(mass.sum(axis=1), np.finfo(float).tiny)
        G = (values * mass[:, None]) @ values.transpose(0, 2, 1) / total[:, None, None]  # (q, K, K)
        together = G.sum(axis=0)
        if not self.by_target:
            return simplex_shares(together, pull)[:, None]
        counted = max(1, int(np.count_nonzero(G.any(axis=(1, 2)))))
        return np.stack(
            [simplex_shares(counted * form + SHARED * together, pull) for form in G], axis=1
        )


def draw_in(typical: Array, weight: Array) -> Array:
    """Factors (q, N), at most one, that keep a few rows from deciding for all.

    Parameters
    ----------
    typical : ndarray of shape (q, N)
        Size of the error of a row, that of the middle one of the models.
    weight : ndarray of shape (q, N)

    Notes
    -----
    A row that all models miss by far has most of the squared error, and says little of which of
    them is the best for others. Its errors are scaled, those of all models alike, so that their
    size is no more than `FAR` deviations, estimated by the median size over rows (Huber, 1964).
    """
    order = np.argsort(typical, axis=1, kind="stable")
    mass = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    # Sums of equal weights reach a half exactly, or a rounding below it.
    middle = np.argmax(mass >= (0.5 - 1e-9) * mass[:, -1:], axis=1)[:, None]
    median = np.take_along_axis(np.take_along_axis(typical, order, axis=1), middle, axis=1)
    limit = FAR * median / norm.ppf(0.75)
    # Where most errors are zero, nothing tells what is far.
    far = (typical > limit) & (limit > 0.0)
    return np.asarray(np.divide(limit, typical, out=np.ones_like(typical), where=far))


def simplex_shares(form: Array, pull: float) -> Array:
    """Shares w >= 0 that add up to one with the least w^T G w + pull * g |w - 1 / K|^2.

    G has the mean products of the errors of every two models, and g, the least of its diagonal, is
    the error of the best model: beside models that are far worse it is left alone.

    Parameters
    ----------
    form : ndarray of shape (K, K)
        G, psd.
    pull : float

    Notes
    -----
    On the simplex w - 1 / K = (I - 1 1^T / K) w, so the pull is a quadratic form too, and what is
    minimised is homogeneous. The direction of the least w^T H w + s (1^T w - 1)^2 over w >= 0 then
    is that of the least w^T H w on the simplex for every s > 0: along a direction u that adds up to
    one the least value is s u^T H u / (u^T H u + s), which grows with u^T H u. That is a problem of
    non-negative least squares.
    """
    K = len(form)
    least = float(np.diag(form).min())
    if not least > 0.0:
        return np.asarray(np.diag(form) == least) / np.count_nonzero(np.diag(form) == least)
    H = form / least + pull * (np.eye(K) - 1.0 / K) + _JITTER * np.eye(K)
    stacked = np.vstack([cholesky(H), np.ones((1, K))])
    shares, _ = nnls(stacked, np.append(np.zeros(K), 1.0))
    return np.asarray(shares / shares.sum())
