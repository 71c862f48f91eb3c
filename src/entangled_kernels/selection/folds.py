"""Splits of rows, and folds: a problem of training rows with the held-out rows that score it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr
from sklearn.model_selection import (
    GroupKFold,
    PredefinedSplit,
    RepeatedKFold,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.utils import check_random_state

from ..learning import Moments, complete_moments, fill_rows, reduce_moments, reduce_rows
from ..learning.problem import Problem, reduce_centred_rows
from ..linalg import Array, Index, is_identity
from ..parameters import check_integer

__all__ = [
    "Fold",
    "ScoredTargets",
    "Split",
    "check_splits",
    "fold_of_moments",
    "fold_of_rows",
    "group_splits",
    "leave_one_out_sums",
    "split_rows",
    "time_splits",
]

Split = tuple[Index, Index]

# With at most this many rows, folds are repeated until there are at least this many splits.
FEW_ROWS, SPLITS_OF_FEW_ROWS = 60, 10
# Predictions with many alphas are computed in blocks of at most this many numbers.
_MOST_NUMBERS = 2**24
_NO_WEIGHT = "every fold needs rows of positive sample_weight in both of its parts"


def split_rows(
    cv: Any,
    X: Any,
    y: Array,
    groups: NDArray[Any] | None,
    index: Index | None,
    *,
    n_table: int | None = None,
    random_state: Any = None,
) -> list[Split]:
    """Splits of a table in memory that a parameter ``cv`` asks for.

    Parameters
    ----------
    cv : int, splitter or iterable of splits
        An int asks for shuffled folds of rows, or of whole groups; with few rows they are repeated.
    X : table of n rows
    y : ndarray of shape (n,) or (n, p)
    groups : ndarray of shape (n,) or None
    index : ndarray of shape (n,) or None
        Row numbers in the table to which listed splits refer, if some of its rows are left out.
    n_table : int, optional
        Number of rows of this table.
    random_state : int, RandomState or None
    """
    n = len(y)
    if not isinstance(cv, Integral):
        if cv is not None and not hasattr(cv, "split"):
            cv = check_splits(cv, n_table or n)
        splits = list(check_cv(cv).split(X, y, groups))
        if index is not None and (not hasattr(cv, "split") or isinstance(cv, PredefinedSplit)):
            # Listed splits are row numbers of the whole table.
            number = np.full(n_table or n, -1)
            number[index] = np.arange(n)
            kept = [tuple(number[part][number[part] >= 0] for part in split) for split in splits]
            splits = [(train, test) for train, test in kept if len(test) > 0]
        fewest = min((len(train) for train, _ in splits), default=0)
        if fewest < 2 <= n:
            raise ValueError(
                f"cv must leave at least 2 rows to learn from in every split, got {fewest}; "
                f"use fewer folds"
            )
        return splits
    check_integer("cv", cv, low=2)
    n_folds = int(cv)
    if n_folds > n:
        raise ValueError(f"cv must be at most the number of rows, {n}, got {n_folds}")
    n_units = n if groups is None else len(np.unique(groups))
    n_repeats = ceil(SPLITS_OF_FEW_ROWS / n_folds) if n_folds < n_units and n <= FEW_ROWS else 1
    if groups is not None:
        return group_splits(groups, n_folds, n_repeats=n_repeats, random_state=random_state)
    folds = RepeatedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=random_state)
    return list(folds.split(X))


def check_splits(cv: Any, n: int) -> list[tuple[Index, Index]]:
    """Listed splits of n rows as pairs of indices, or an error that names cv."""
    need = (
        "cv must be a number of folds, a splitter, or a list of splits (train, test) of row numbers"
    )
    try:
        splits = [(np.asarray(train), np.asarray(test)) for train, test in cv]
    except (TypeError, ValueError):
        raise ValueError(f"{need}, got {cv!r:.80}") from None
    for split in splits:
        for part in split:
            whole = part.ndim == 1 and (part.dtype.kind in "iu" or not part.size)
            mask = part.dtype == bool and part.shape == (n,)
            if not (mask or (whole and (not part.size or -n <= part.min() <= part.max() < n))):
                raise ValueError(f"{need} from 0 to {n - 1}, got {part!r:.80} among them")
    return [
        tuple(
            np.flatnonzero(part) if part.dtype == bool else part.astype(np.intp) % n
            for part in split
        )  # type: ignore[misc]
        for split in splits
    ]


def group_splits(
    groups: NDArray[Any], n_folds: int, *, n_repeats: int = 1, random_state: Any = None
) -> list[Split]:
    """Folds of whole groups, shuffled, in one round or several.

    Parameters
    ----------
    groups : ndarray of shape (n,)
    n_folds : int
    n_repeats : int, default=1
    random_state : int, RandomState or None

    Notes
    -----
    Each round is a `GroupKFold` with ``shuffle=True``: the numbers of groups in two folds differ by
    at most one, whatever the sizes of the groups.

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.array(["a", "a", "b", "c", "c"])
    >>> [groups[test].tolist() for _, test in group_splits(groups, 3, random_state=0)]
    [['c', 'c'], ['b'], ['a', 'a']]
    """
    n_groups = len(np.unique(groups))
    if n_folds > n_groups:
        raise ValueError(
            f"cv must be at most the number of groups, {n_groups}, got {n_folds}; use fewer folds"
            if n_groups > 1
            else "groups must hold at least 2 groups, got 1: none is left to predict it from"
        )
    rng = check_random_state(random_state)
    folds = GroupKFold(n_folds, shuffle=True, random_state=rng)
    return [split for _ in range(n_repeats) for split in folds.split(groups, groups=groups)]


def time_splits(n_rows: int, n_folds: int, times: NDArray[Any] | None = None) -> list[Split]:
    """Blocks of rows in the order of time, each to be predicted from the rows before it.

    Parameters
    ----------
    n_rows : int
    n_folds : int
        Number of blocks that are held out. The rows before the first block are never held out.
    times : ndarray of shape (n_rows,), optional
        In increasing order. A block is not predicted from rows of the time at which it begins,
        since they would reveal what is common to all rows of that time.

    Notes
    -----
    Without ``times``, or where all differ, these are the splits of `TimeSeriesSplit`.

    Examples
    --------
    >>> import numpy as np
    >>> [(len(train), test.tolist()) for train, test in time_splits(6, 2)]
    [(2, [2, 3]), (4, [4, 5])]
    >>> splits = time_splits(6, 2, np.array([1, 2, 3, 4, 4, 5]))
    >>> [(len(train), test.tolist()) for train, test in splits]
    [(2, [2, 3]), (3, [4, 5])]
    """
    if n_rows < 2 * (n_folds + 1):
        raise ValueError(
            f"cv: {n_folds} folds in the order of time need at least {2 * (n_folds + 1)} rows, "
            f"got {n_rows}; use fewer folds"
        )
    splits = list(TimeSeriesSplit(n_folds).split(np.empty((n_rows, 1))))
    if times is None:
        return splits
    splits = [(train[times[train] < times[test[0]]], test) for train, test in splits]
    if min(len(train) for train, _ in splits) < 2:
        raise ValueError(
            f"the times must differ enough for {n_folds} folds, got {len(np.unique(times))} "
            f"different ones in {n_rows} rows, too few before a fold; use fewer folds"
        )
    return splits


@dataclass(frozen=True, eq=False)
class ScoredTargets:
    """The targets of a table, and how their errors are scored.

    Attributes
    ----------
    Y : ndarray of shape (n, p)
        NaN where missing.
    weight : ndarray of shape (n,), or (n, p) with zero where a target is missing, or None
    score_weights : ndarray of shape (p,)
        Weights of the squared errors of the targets in the score.
    coordinates : ndarray of shape (n, q)
        Y, or coordinates of the space of n dimensions that far more targets than rows lie in.
    unit : ndarray of shape (q,) or (q, q)
        An error e (q,) of coordinates has the score |e unit|^2; a vector is a diagonal matrix.
    basis, first : ndarray of shape (p, q) and (p,), or None
        Y is ``first + coordinates @ basis.T``; None where it equals the coordinates.
    by_target : bool
        Whether targets have separate weights of candidates.
    n_repeats : float
        How often a row is held out.
    """

    Y: Array
    weight: Array | None
    score_weights: Array
    coordinates: Array
    unit: Array
    basis: Array | None = None
    first: Array | None = None
    by_target: bool = False
    n_repeats: float = 1.0

    @classmethod
    def of(
        cls,
        Y: Array,
        weight: Array | None,
        score_weights: Array,
        *,
        compress: bool = False,
        **options: Any,
    ) -> ScoredTargets:
        """Targets (n, p), with ``compress`` as n coordinates where they are far more than rows.

        Time n^2 p, once for all feature maps and splits.
        """
        root = np.sqrt(score_weights)
        if not compress or Y.shape[1] <= len(Y) + 1:
            return cls(Y, weight, score_weights, Y, root, **options)
        first = np.asarray(Y[0], dtype=np.float64)
        basis, triangle = qr((Y - first).T, mode="economic")  # (p, n)
        weighted = root[:, None] * basis
        values, axes = eigh(weighted.T @ weighted)
        unit = axes * np.sqrt(np.maximum(values, 0.0))
        coordinates = np.ascontiguousarray(triangle.T)
        return cls(Y, weight, score_weights, coordinates, unit, basis, first, **options)

    def in_units(self, errors: Array) -> Array:
        """Errors (..., q) of coordinates in units of the score."""
        return errors * self.unit if self.unit.ndim == 1 else errors @ self.unit


@dataclass(frozen=True, eq=False)
class Fold:
    """A problem of training rows, and held-out rows that score its candidates.

    If only moments are known, they are replaced by as many made-up rows as there are columns, with
    the same second moments.

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
        Numbers of the rows to predict in the table.
    predicted : ndarray of shape (s, m)
        Features of these rows.
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
        """Mean squared errors (a, q) for coefficients (a, m', k); NaN without a held-out target."""
        sums = np.empty((len(coef), self.targets.shape[1]))
        step = max(1, _MOST_NUMBERS // max(1, self.targets.size))
        for start in range(0, len(coef), step):
            block = slice(start, start + step)
            values = self.Z @ coef[block]
            if not is_identity(self.outputs):
                values = values @ self.outputs.T
            np.subtract(values, self.targets, out=values)
            np.square(values, out=values)
            if self.weight.shape[1] == 1:
                sums[block] = self.weight[:, 0] @ values
            else:
                sums[block] = np.einsum("to,ato->ao", self.weight, values)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(self.total > 0.0, sums / self.total, np.nan))

    def predict(self, coef: Array, share: Array) -> Array:
        """Values (s, q) of the rows to predict, by coefficients (m', q) and shares of the means."""
        reduced = (self.predicted - self.problem.mean_phi) @ self.problem.features
        return np.asarray(reduced @ coef + share * self.mean_y)


def fold_of_rows(
    targets: ScoredTargets,
    split: Split,
    features: tuple[Array, Array],
    *,
    centred: bool,
    iterative: bool,
    ridge_only: bool,
    fill_shares: Array | None = None,
    most: int | None = None,
    n_features: int | None = None,
) -> Fold:
    """Fold of a split of rows in memory.

    Parameters
    ----------
    targets : ScoredTargets
    split : pair of index arrays
    features : pair of ndarray
        Of the training rows and of the held-out rows.
    centred, iterative, ridge_only : bool
        Whether models have an intercept, a solver takes steps, all candidates are kernel ridge.
    fill_shares : ndarray of shape (2,), optional
        Shares of the estimates in the correlation that fills in missing targets of training rows.
    most : int, optional
        Largest number of rows to predict, evenly spaced among the held-out rows.
    n_features : int, optional
        Number of features that these features are coordinates of.
    """
    train, test = split
    Phi, Phi_test = features
    Y, Y_test, weight = targets.coordinates[train], targets.coordinates[test], targets.weight
    row_weight: Array | None = None
    learned: NDArray[np.bool_] = np.ones(Y.shape[1], dtype=bool)
    held_out_weight = np.ones((len(test), 1))
    if weight is not None:
        row_weight, held_out_weight = weight[train], weight[test].reshape(len(test), -1)
        if weight.ndim == 2:
            learned = np.asarray(row_weight.any(axis=0))
            held_out_weight = held_out_weight * learned
    if not held_out_weight.any() or (row_weight is not None and not row_weight.any()):
        raise ValueError(_NO_WEIGHT)
    if row_weight is not None and row_weight.ndim == 2:
        Y, _ = fill_rows(Phi, Y, row_weight, centred=centred, shares=fill_shares)
        row_weight = row_weight.max(axis=1)
    problem = None
    if centred:
        problem = reduce_centred_rows(
            Phi, Y, row_weight, for_ascent=iterative, every_output=ridge_only
        )
    if problem is None:
        problem = reduce_rows(Phi, Y, row_weight, centred=centred)[0]
    # Kernels are scaled, and shrunk, by the numbers of features and outputs before compression.
    problem = replace(
        problem, n_outputs=targets.Y.shape[1], n_features=n_features or problem.n_features
    )
    Z = (Phi_test - problem.mean_phi) @ problem.features
    T = np.where(held_out_weight > 0.0, Y_test - problem.mean_y, 0.0)
    rows = np.arange(len(test))
    if most is not None and len(test) > most:
        rows = np.linspace(0, len(test) - 1, most).astype(np.intp)
    total = held_out_weight.sum(axis=0)
    to_predict = test[rows], Phi_test[rows], learned
    return _make_fold(problem, targets, Z, T, held_out_weight, total, *to_predict)


def fold_of_moments(
    targets: ScoredTargets,
    train: Moments,
    test: Moments,
    index: Index,
    Phi: Array,
    *,
    centred: bool,
) -> Fold:
    """Fold of moments of training and of held-out rows; ``Phi`` are features of rows to predict."""
    complete = train if train.complete else complete_moments(train, centred=centred)
    problem = reduce_moments(complete, centred=centred)
    learned = np.ones(complete.n_outputs, dtype=bool)
    if not train.complete:
        for outputs, group in train.groups:
            learned[outputs] = group.weight > 0.0
    features, rows, weights = list[Array](), list[Array](), list[Array]()
    total = np.zeros(complete.n_outputs)
    for outputs, group in test.groups:
        if group.weight == 0.0:
            continue
        Z, T = _rows_with_moments(group, problem.mean_phi, problem.mean_y[outputs])
        padded, weight = np.zeros((len(Z), len(total))), np.zeros((len(Z), len(total)))
        padded[:, outputs], weight[:, outputs] = T, 1.0
        features.append(Z @ problem.features)
        rows.append(padded)
        weights.append(weight * learned)
        total[outputs] = group.weight * learned[outputs]
    if not total.any():
        raise ValueError(_NO_WEIGHT)
    Z, T, weight = np.vstack(features), np.vstack(rows), np.vstack(weights)
    if len(rows) == 1 and learned.all() and (total > 0.0).all():
        weight, total = np.ones((len(Z), 1)), total[:1]
    return _make_fold(problem, targets, Z, T, weight, total, index, Phi, learned)


def _make_fold(
    problem: Problem,
    targets: ScoredTargets,
    Z: Array,
    T: Array,
    weight: Array,
    total: Array,
    index: Index,
    predicted: Array,
    learned: NDArray[np.bool_],
) -> Fold:
    """Fold of held-out rows with features Z and targets T, less their training means."""
    R, unit = problem.outputs, targets.unit
    outputs = unit[:, None] * R if unit.ndim == 1 else unit.T @ R
    T = targets.in_units(T)
    if weight.shape[1] == 1:
        root = np.sqrt(weight)
        Z, T = root * Z, root * T
        if len(Z) > 2 * (Z.shape[1] + T.shape[1]):
            # As few rows as there are columns have the same second moments.
            triangle = qr(np.hstack([Z, T]), mode="r")[0][: Z.shape[1] + T.shape[1]]
            Z, T = triangle[:, : Z.shape[1]], triangle[:, Z.shape[1] :]
        weight = np.ones((len(Z), 1))
    mean_y = np.where(learned, problem.mean_y, np.nan)
    return Fold(problem, Z, T, weight, total, outputs, index, predicted, mean_y)


def _rows_with_moments(moments: Moments, mean_phi: Array, mean_y: Array) -> tuple[Array, Array]:
    """Features and targets of m + p + 1 rows with the same second moments about other means."""
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
