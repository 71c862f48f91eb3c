"""Partitions and folds of a table by what its rows are: any rows, rows of groups, or rows in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg import Index
from ..parameters import check_groups
from ..selection import Split, group_splits, time_splits
from .protocol import N_FOLDS, Partition, partitions

__all__ = ["RowScheme", "row_scheme"]

# Training rows in time, from which the later ones are predicted in two folds.
FEWEST = 6


class RowScheme(NamedTuple):
    """Which rows are held out together.

    Attributes
    ----------
    by : {"rows", "groups", "time"}
    values : ndarray of shape (n_rows,) or None
        Groups or times.
    """

    by: str = "rows"
    values: NDArray[Any] | None = None

    def partitions(self, n_rows: int, n: int, n_splits: int, seed: int) -> Iterator[Partition]:
        """Partitions with n training rows, or as many of them as whole groups make."""
        if self.values is None:
            yield from partitions(n_rows, n, n_splits, seed)
        elif self.by == "groups":
            yield from self._of_groups(self.values, n, n_splits, seed)
        else:
            yield from self._in_time(self.values, n, n_splits, seed)

    def _of_groups(self, values: NDArray[Any], n: int, n_splits: int, seed: int) -> Iterator[Partition]:
        """Groups in random order, of which each one is taken that still fits."""
        _, member, sizes = np.unique(values, return_inverse=True, return_counts=True)
        # Each group is a row here; the order is all that is needed.
        for own in partitions(len(sizes), len(sizes), n_splits, seed):
            taken, left = np.zeros(len(sizes), dtype=bool), n
            for group in own.train:
                taken[group] = sizes[group] <= left
                left -= int(sizes[group]) if taken[group] else 0
            if taken.sum() < 2:
                raise ValueError(
                    f"train_sizes must have room for at least 2 groups, got {n} rows, and groups of "
                    f"{sizes.min()} to {sizes.max()} rows"
                )
            known = taken[member.reshape(-1)]
            yield own._replace(train=np.flatnonzero(known), test=np.flatnonzero(~known))

    def _in_time(self, values: NDArray[Any], n: int, n_splits: int, seed: int) -> Iterator[Partition]:
        """Stretches of rows in the order of time, each after its training rows."""
        order = np.argsort(values, kind="stable")
        size = (len(order) - n) // n_splits
        if size < 2:
            raise ValueError(
                f"repeats must leave at least 2 test rows for each of {n_splits} stretches of the "
                f"{len(order) - n} rows after the first {n}; use fewer repeats or training rows"
            )
        for own in partitions(len(order), n, n_splits, seed):
            start = len(order) - (n_splits - own.number) * size
            train, test = order[start - n : start], order[start : start + size]
            before = train[values[train] < values[test[0]]]
            if len(before) < FEWEST:
                raise ValueError(
                    f"train_sizes must leave at least {FEWEST} rows of times before the test rows, got "
                    f"{len(before)} of {n}; use larger ones"
                )
            yield own._replace(train=before, test=test)

    def folds(self, train: Index, seed: int) -> list[Split] | None:
        """Folds of training rows, as places among them; None for shuffled ones."""
        if self.values is None:
            return None
        own = self.values[train]
        if self.by == "groups":
            return group_splits(own, min(N_FOLDS, len(np.unique(own))), random_state=seed)
        return time_splits(len(own), min(N_FOLDS, len(own) // 2 - 1), own)


def row_scheme(n_rows: int, groups: Any = None, times: Any = None) -> RowScheme:
    """The scheme of the groups or the times of rows, checked."""
    if groups is not None and times is not None:
        raise ValueError("groups and times hold out different rows; give one of them")
    if groups is not None:
        return RowScheme("groups", check_groups(groups, n_rows))
    if times is None:
        return RowScheme()
    values = np.asarray(times)
    if values.shape != (n_rows,) or not np.isfinite(values.astype(np.float64)).all():
        raise ValueError(f"times must hold one number for each of {n_rows} rows, got shape {values.shape}")
    return RowScheme("time", values)
