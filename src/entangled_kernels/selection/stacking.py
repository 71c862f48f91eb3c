"""Shares of several models in an average, by their errors on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.optimize import nnls
from scipy.stats import norm

from ..learning.solvers import SolverOptions
from ..linalg import Array
from .decision import Decision, decide
from .out_of_fold import HeldOutPredictions, measured_rows, predict_held_out
from .search import Search

__all__ = ["HeldOutErrors", "draw_in", "settle", "simplex_shares"]

# How strongly shares are drawn towards the prior ones: this over the total weight of the rows.
PULL = 9.0
# How much the error of all targets counts in the shares of a target, beside its own.
SHARED = 1.0
# Errors beyond so many deviations of the typical ones count as if they were at that distance.
FAR = 5.0
# Of the least error of the models, added to the form so that models that are alike do not make it singular.
_ROUNDING = 1e-10


def settle(
    searches: Sequence[Search], rule: str, Y: Array, weight: Array | None, options: SolverOptions
) -> tuple[Decision, HeldOutPredictions | None]:
    """Decide what is kept of searches, one for each feature map, and predict held-out rows with it.

    An average is one of averages: of the candidates of every search, by their held-out errors, and of the
    Gaussian process of every map that was tuned by evidence. Their shares follow from their errors on
    held-out rows.

    Parameters
    ----------
    searches : list of Search
    rule : {"average", "best", "one_se"}
    Y : ndarray of shape (n, p)
        Targets of the table, NaN where blank.
    weight : ndarray of shape (n,) or (n, p), or None
    options : SolverOptions

    Notes
    -----
    Held-out rows are predicted with shares that are found without them, in whatever split.
    """
    decision = decide(searches, rule)
    apart = predict_held_out(searches, decision, rule, options)
    if apart is None:
        return decision, None
    if len(apart.values) == 1:
        return decision, apart.combined(lambda _: np.ones((1, 1)))
    first = searches[0]
    shared = SHARED if first.by_target else np.inf
    targets, row_weight = measured_rows(apart.index, Y, weight)
    errors = HeldOutErrors(
        values=targets - apart.values,
        weight=row_weight,
        row=apart.index,
        output_weights=first.output_weights,
        shared=shared,
        prior=decision.prior,
    )
    return replace(decision, shares=errors.shares()), apart.combined(errors.shares)


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Errors of several models on the same held-out rows.

    Attributes
    ----------
    values : ndarray of shape (K, N, p)
        Targets less their predictions, NaN where a target was not measured.
    weight : ndarray of shape (N,)
        Those of the copies of a row add up to the weight of the row.
    row : ndarray of shape (N,)
        Which row an error is of; repeated folds give several of one row.
    output_weights : ndarray of shape (p,)
        Of the squared errors of the targets in the score.
    shared : float
        How much the error of all targets counts beside a target's own; infinite where targets do not weigh
        models apart.
    prior : ndarray of shape (K,)
        Shares before the errors have a say; they add up to one.
    """

    values: Array
    weight: Array
    row: NDArray[np.intp]
    output_weights: Array
    shared: float
    prior: Array

    def shares(self, without: NDArray[np.intp] | None = None) -> Array:
        """Shares of the models, (K, p), or (K, 1) where targets share them; each column adds up to one.

        Parameters
        ----------
        without : ndarray of int, optional
            Rows that are to have no say.
        """
        used = np.ones(len(self.row), dtype=bool) if without is None else ~np.isin(self.row, without)
        G = self._products(used)  # (p, K, K)
        pull = PULL / max(1.0, float(self.weight[used].sum()))
        mean = np.tensordot(self.output_weights, G, axes=1)
        if np.isinf(self.shared):
            return simplex_shares(mean, pull, self.prior)[:, None]
        scale = self.output_weights * np.count_nonzero(self.output_weights)
        forms = scale[:, None, None] * G + self.shared * mean
        return np.stack([simplex_shares(form, pull, self.prior) for form in forms], axis=1)

    def _products(self, used: NDArray[np.bool_]) -> Array:
        """Mean products of the errors of every two models, (p, K, K), those of far rows drawn in."""
        values = self.values[:, used].transpose(2, 0, 1)  # (p, K, N)
        known = ~np.isnan(values[:, 0])
        weight = np.where(known, self.weight[used], 0.0)  # (p, N)
        filled = np.where(known[:, None], values, 0.0)
        filled = filled * draw_in(np.median(np.abs(filled), axis=1), weight)[:, None]
        total = np.maximum(weight.sum(axis=1), np.finfo(float).tiny)
        products = (filled * weight[:, None]) @ filled.transpose(0, 2, 1)
        return np.asarray(products / total[:, None, None])


def draw_in(typical: Array, weight: Array) -> Array:
    """Factors (p, N), at most one, that keep a few rows from deciding for all.

    Parameters
    ----------
    typical : ndarray of shape (p, N)
        Size of the error of a row, that of the middle one of the models.
    weight : ndarray of shape (p, N)

    Notes
    -----
    A row that all models miss by far has most of the squared error, and says little of which of them is the
    best for others. Its errors are scaled, those of all models alike, so that their size is no more than
    `FAR` deviations, estimated by the median size over rows (Huber, 1964).
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


def simplex_shares(form: Array, pull: float, prior: Array) -> Array:
    """Shares w >= 0 that add up to one with the least w^T G w + pull * g |w - prior|^2.

    G has the mean products of the errors of every two models, and g, the least of its diagonal, is the error
    of the best model: beside models that are far worse it is left alone.

    Parameters
    ----------
    form : ndarray of shape (K, K)
        G, psd.
    pull : float
    prior : ndarray of shape (K,)
        Adds up to one.

    Notes
    -----
    The error of the average is at most 1 + pull |e - prior|^2 times that of the best model, whose share alone
    is one in e.

    On the simplex w - prior = (I - prior 1^T) w, so the pull is a quadratic form too, and what is minimised
    is homogeneous. The direction of the least w^T H w + s (1^T w - 1)^2 over w >= 0 then is that of the least
    w^T H w on the simplex for every s > 0: along a direction u that adds up to one the least value is
    s u^T H u / (u^T H u + s), which grows with u^T H u. That is a problem of non-negative least squares.
    """
    K = len(form)
    least = float(np.diag(form).min())
    if not least > 0.0:
        return np.asarray(np.diag(form) == least) / np.count_nonzero(np.diag(form) == least)
    away = np.eye(K) - prior[:, None]
    H = form / least + pull * away.T @ away + _ROUNDING * np.eye(K)
    stacked = np.vstack([cholesky(H), np.ones((1, K))])
    shares, _ = nnls(stacked, np.append(np.zeros(K), 1.0))
    return np.asarray(shares / shares.sum())
