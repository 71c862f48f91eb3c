"""Splits of rows in memory: shuffled, of whole groups, or of later rows from earlier ones."""

from __future__ import annotations

from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    PredefinedSplit,
    RepeatedKFold,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.utils import check_random_state

from ..linalg import Array, Index
from ..parameters import check_integer
from .folds import Split

__all__ = ["check_splits", "group_splits", "split_rows", "time_splits"]

# With at most this many rows, folds are repeated until there are at least this many splits.
FEW_ROWS, SPLITS_OF_FEW_ROWS = 60, 10


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
        An int asks for shuffled folds of rows, or of whole groups; of few rows they are repeated.
    X : table of n rows
    y : ndarray of shape (n,) or (n, p)
    groups : ndarray of shape (n,) or None
    index : ndarray of shape (n,) or None
        Numbers of the rows in the table that splits were given for, where some of its rows are left
        out.
    n_table : int, optional
        Number of rows of that table.
    random_state : int, RandomState or None
    """
    n = len(y)
    if not isinstance(cv, Integral):
        if cv is not None and not hasattr(cv, "split"):
            cv = check_splits(cv, n_table or n)
        splits = list(check_cv(cv).split(X, y, groups))
        if index is not None and (not hasattr(cv, "split") or isinstance(cv, PredefinedSplit)):
            # Splits that were given as row numbers are of the whole table.
            place = np.full(n_table or n, -1)
            place[index] = np.arange(n)
            kept = [tuple(place[part][place[part] >= 0] for part in split) for split in splits]
            splits = [(train, test) for train, test in kept if len(test) > 0]
        fewest = min((len(train) for train, _ in splits), default=0)
        if fewest < 2 <= n:
            raise ValueError(
                f"cv must leave at least 2 rows to learn from in every split, got {fewest}; use fewer folds"
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
    Each round is a `GroupKFold` with ``shuffle=True``: folds have as many groups as each other,
    give or take one, whatever the sizes of the groups.

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
        Blocks that are held out; the rows before the first of them are never.
    times : ndarray of shape (n_rows,), optional
        In increasing order. Rows of the time at which a block begins do not predict it, since what
        happens to all rows of that time would be known from them.

    Notes
    -----
    Without ``times``, or where all differ, these are the splits of `TimeSeriesSplit`.

    Examples
    --------
    >>> import numpy as np
    >>> [(len(train), test.tolist()) for train, test in time_splits(6, 2)]
    [(2, [2, 3]), (4, [4, 5])]
    >>> [(len(train), test.tolist()) for train, test in time_splits(6, 2, np.array([1, 2, 3, 4, 4, 5]))]
    [(2, [2, 3]), (3, [4, 5])]
    """
    if n_rows < 2 * (n_folds + 1):
        raise ValueError(
            f"cv: {n_folds} folds in the order of time need at least {2 * (n_folds + 1)} rows, got {n_rows}; "
            f"use fewer folds"
        )
    splits = list(TimeSeriesSplit(n_folds).split(np.empty((n_rows, 1))))
    if times is None:
        return splits
    splits = [(train[times[train] < times[test[0]]], test) for train, test in splits]
    if min(len(train) for train, _ in splits) < 2:
        raise ValueError(
            f"the times must differ enough for {n_folds} folds, got {len(np.unique(times))} different ones "
            f"in {n_rows} rows, too few before a fold; use fewer folds"
        )
    return splits
