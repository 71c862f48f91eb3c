"""Folds: a training problem and the held-out rows that judge it, of rows in memory or of moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr

from ..learning import Moments, Problem, complete_moments, fill_rows, reduce_moments, reduce_rows
from ..learning.problem import reduce_centred_rows
from ..linalg import Array, Index, is_identity

__all__ = [
    "Fold",
    "JudgedTargets",
    "Split",
    "fold_of_moments",
    "fold_of_rows",
    "leave_one_out_sums",
]

Split = tuple[Index, Index]

# Coefficients and values of many alphas are found together up to so many numbers.
_MOST_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class JudgedTargets:
    """Targets in the coordinates in which a search works, and the form by which their errors are judged.

    Attributes
    ----------
    Y : ndarray of shape (n, q)
        NaN where missing. Of more targets than rows, which lie in a space of n dimensions, their
        coordinates.
    unit : ndarray of shape (q,) or (q, q)
        An error e (q,) has the score |e unit|^2; a vector is a diagonal matrix.
    n_outputs : int
        p of the targets as they were given.
    basis, first : ndarray of shape (p, q) and (p,), or None
        The targets are ``first + Y @ basis.T``; None where they are Y.
    """

    Y: Array
    unit: Array
    n_outputs: int
    basis: Array | None = None
    first: Array | None = None

    @classmethod
    def of(cls, Y: Array, score_weights: Array, *, compress: bool) -> JudgedTargets:
        """Targets (n, p) whose squared errors have weights (p,) in the score.

        With ``compress``, targets that are far more than rows are turned into as many coordinates
        as rows. Time n^2 p, once for all feature maps and splits.
        """
        (n, p), root = Y.shape, np.sqrt(score_weights)
        if not compress or p <= n + 1:
            return cls(Y, root, p)
        first = np.asarray(Y[0], dtype=np.float64)
        basis, triangle = qr((Y - first).T, mode="economic")  # (p, n)
        weighted = root[:, None] * basis
        values, axes = eigh(weighted.T @ weighted)
        unit = axes * np.sqrt(np.maximum(values, 0.0))
        return cls(np.ascontiguousarray(triangle.T), unit, p, basis, first)

    def in_units(self, values: Array) -> Array:
        """Values (..., q) in units of the score."""
        return values * self.unit if self.unit.ndim == 1 else values @ self.unit

    def expanded(self, values: Array) -> Array:
        """Values (..., q) of the targets as they were given, (..., p)."""
        if self.basis is None or self.first is None:
            return values
        return np.asarray(self.first + values @ self.basis.T)


@dataclass(frozen=True, eq=False)
class Fold:
    """A problem of training rows, and held-out rows to judge candidates on.

    Moments are judged by as many made-up rows as they have columns, which have the same second
    moments.

    Attributes
    ----------
    problem : Problem
        Of the training rows.
    Z : ndarray of shape (t, m')
        Held-out features less their training means, in the basis of the problem.
    targets : ndarray of shape (t, q)
        Held-out targets less their training means, in units of the score; zero where missing.
    weight : ndarray of shape (t, 1) or (t, q)
        Zero where a target is missing, or has no training row, so that nothing can predict it.
    total : ndarray of shape (1,) or (q,)
        Weight of the held-out rows.
    outputs : ndarray of shape (q, k)
        Basis of the outputs of the problem, in units of the score.
    index : ndarray of shape (s,)
        Places in the table of the rows to predict.
    predicted : ndarray of shape (s, m)
        Their features.
    mean_y : ndarray of shape (q,)
        Means of the targets of the training rows; zero without an intercept. NaN for a target that
        has none.
    """

    problem: Problem
    Z: Array
    targets: Array
    weight: Array
    total: Array
    outputs: Array
    index: Index
    predicted: Array
    mean_y: Array

    def errors(self, coef: Array) -> Array:
        """Mean squared errors (a, q) for coefficients (a, m', k); NaN for a target that none can judge."""
        whole = np.empty((len(coef), self.targets.shape[1]))
        step = max(1, _MOST_NUMBERS // max(1, self.targets.size))
        for start in range(0, len(coef), step):
            some = slice(start, start + step)
            values = self.Z @ coef[some]
            if not is_identity(self.outputs):
                values = values @ self.outputs.T
            np.subtract(values, self.targets, out=values)
            np.square(values, out=values)
            if self.weight.shape[1] == 1:
                whole[some] = self.weight[:, 0] @ values
            else:
                whole[some] = np.einsum("to,ato->ao", self.weight, values)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(self.total > 0.0, whole / self.total, np.nan))

    def predict(self, coef: Array, share: Array) -> Array:
        """Values (s, q) of the rows to predict, for coefficients (m', q); ``share`` is that of the mean."""
        reduced = (self.predicted - self.problem.mean_phi) @ self.problem.features
        return np.asarray(reduced @ coef + share * self.mean_y)

    def for_predictions(self) -> Fold:
        """The fold without what only errors need."""
        none = np.zeros((0, 0))
        return replace(self, Z=none, targets=none, weight=none)


def fold_of_rows(
    targets: JudgedTargets,
    weight: Array | None,
    split: Split,
    features: tuple[Array, Array],
    *,
    centred: bool,
    iterative: bool,
    ridge_only: bool,
    shrinkage: float | None = None,
    most: int | None = None,
    n_features: int | None = None,
) -> Fold:
    """Fold of a split of rows in memory.

    Parameters
    ----------
    targets : JudgedTargets
    weight : ndarray of shape (n,), or (n, q) with zero where a target is missing, or None
    split : pair of index arrays
    features : pair of ndarray
        Of the training rows and of the held-out rows.
    centred, iterative, ridge_only : bool
        Whether models have an intercept, a solver takes steps, all candidates are kernel ridge.
    shrinkage : float, optional
        Of the correlation by which missing targets of training rows are filled in.
    most : int, optional
        Largest number of rows to predict, evenly spaced among the held-out rows.
    n_features : int, optional
        Where the features are coordinates of more.
    """
    train, test = split
    Phi, Phi_test = features
    Y, Y_test = targets.Y[train], targets.Y[test]
    row_weight = None if weight is None else weight[train]
    judged = np.ones((len(test), 1)) if weight is None else weight[test].reshape(len(test), -1)
    missing = weight is not None and weight.ndim == 2
    learned: NDArray[np.bool_] = np.ones(Y.shape[1], dtype=bool)
    if missing and weight is not None:
        learned = np.asarray(weight[train].any(axis=0))
        Y, _ = fill_rows(Phi, Y, weight[train], centred=centred, shrinkage=shrinkage)
        row_weight, judged = weight[train].max(axis=1), judged * learned
    if not judged.any() or (row_weight is not None and not row_weight.any()):
        raise ValueError("every fold needs rows of positive sample_weight in both of its parts")
    problem = None
    if centred:
        problem = reduce_centred_rows(
            Phi, Y, row_weight, for_ascent=iterative, every_output=ridge_only
        )
    if problem is None:
        problem = reduce_rows(Phi, Y, row_weight, centred=centred)[0]
    # Kernels are scaled, and shrunk, by the numbers of features and outputs before compression.
    problem = replace(
        problem, n_outputs=targets.n_outputs, n_features=n_features or problem.n_features
    )
    Z = (Phi_test - problem.mean_phi) @ problem.features
    T = Y_test - problem.mean_y
    fold = _judge(problem, targets, Z, np.where(judged > 0.0, T, 0.0), judged)
    chosen = np.arange(len(test))
    if most is not None and len(test) > most:
        chosen = np.linspace(0, len(test) - 1, most).astype(np.intp)
    return replace(
        fold,
        index=test[chosen],
        predicted=Phi_test[chosen],
        mean_y=np.where(learned, problem.mean_y, np.nan),
    )


def fold_of_moments(
    targets: JudgedTargets,
    train: Moments,
    test: Moments,
    index: Index,
    Phi: Array,
    *,
    centred: bool,
) -> Fold:
    """Fold of moments of training rows and of held-out rows; ``Phi`` are features of some of the latter."""
    whole = train if train.complete else complete_moments(train, centred=centred)
    problem = reduce_moments(whole, centred=centred)
    groups = test.groups
    learned = np.ones(whole.n_outputs, dtype=bool)
    for places, own in [] if train.complete else train.groups:
        learned[places] = own.weight > 0.0
    features, rows, weights = list[Array](), list[Array](), list[Array]()
    total = np.zeros(whole.n_outputs)
    for places, own in groups:
        if own.weight == 0.0:
            continue
        Z, T = _rows_with_moments(own, problem.mean_phi, problem.mean_y[places])
        padded, weight = np.zeros((len(Z), len(total))), np.zeros((len(Z), len(total)))
        padded[:, places], weight[:, places] = T, 1.0
        features.append(Z @ problem.features)
        rows.append(padded)
        weights.append(weight * learned)
        total[places] = own.weight * learned[places]
    if not total.any():
        raise ValueError("every fold needs rows of positive sample_weight in both of its parts")
    alike = len(rows) == 1 and bool(learned.all()) and bool((total > 0.0).all())
    weight = np.ones((len(rows[0]), 1)) if alike else np.vstack(weights)
    fold = _judge(problem, targets, np.vstack(features), np.vstack(rows), weight)
    return replace(
        fold,
        total=total[:1] if alike else total,
        index=index,
        predicted=Phi,
        mean_y=np.where(learned, problem.mean_y, np.nan),
    )


def _judge(problem: Problem, targets: JudgedTargets, Z: Array, T: Array, weight: Array) -> Fold:
    """Fold that is judged on rows with features Z and targets T, less their training means."""
    R = problem.outputs
    outputs = targets.unit[:, None] * R if targets.unit.ndim == 1 else targets.unit.T @ R
    T, total = targets.in_units(T), weight.sum(axis=0)
    if weight.shape[1] == 1:
        root = np.sqrt(weight)
        Z_root, T_root = root * Z, root * T
        if len(Z) > 2 * (Z.shape[1] + T.shape[1]):
            # As few rows as there are columns have the same second moments.
            triangle = qr(np.hstack([Z_root, T_root]), mode="r")[0][: Z.shape[1] + T.shape[1]]
            Z_root, T_root = triangle[:, : Z.shape[1]], triangle[:, Z.shape[1] :]
        Z, T, weight = Z_root, T_root, np.ones((len(Z_root), 1))
    none = np.zeros((0, len(problem.features)))
    return Fold(
        problem, Z, T, weight, total, outputs, np.zeros(0, dtype=np.intp), none, problem.mean_y
    )


def _rows_with_moments(moments: Moments, mean_phi: Array, mean_y: Array) -> tuple[Array, Array]:
    """Features (t, m) and targets (t, p), t = m + p + 1, with second moments of rows about other means."""
    m, scatter = moments.n_features, moments.scatter
    size = np.sqrt(np.diag(scatter))
    size = np.where(size > 0.0, size, 1.0)
    values, axes = eigh(scatter / np.outer(size, size))
    rows = (np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T) * size
    gap = np.sqrt(moments.weight) * (moments.mean - np.concatenate([mean_phi, mean_y]))
    rows = np.vstack([rows, gap])
    return rows[:, :m], rows[:, m:]


def leave_one_out_sums(parts: Sequence[Moments]) -> list[Moments]:
    """For every part the sum of all others, from running sums in both directions."""
    summed: Any = parts
    before = list(accumulate(summed, initial=0))[:-1]
    after = list(accumulate(reversed(summed), initial=0))[-2::-1]
    return [left + right for left, right in zip(before, after, strict=True)]
