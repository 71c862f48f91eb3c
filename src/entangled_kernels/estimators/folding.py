"""Folds of an estimator that chooses by cross-validation: shuffled, of groups, or in the order of time."""

from __future__ import annotations

from math import ceil
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.utils.validation import _num_samples

from ..linalg import Index
from ..parameters import check_groups, check_integer
from ..selection import Split, group_splits
from ..streams.batch import as_batch
from ..streams.row_folds import block_ends, group_folds, row_folds
from ..streams.stream import Rows
from .out_of_core import OutOfCoreMixin
from .training import Table

__all__ = ["SMALL", "FoldingMixin"]

# With at most this many rows, feature maps that need no targets are fitted again in every fold.
SMALL = 500
# With at most this many rows and at most 10 folds, the folds are repeated until there are 10 splits.
FEW_ROWS, SPLITS_OF_FEW_ROWS = 60, 10


class FoldingMixin(OutOfCoreMixin):
    """Folds by the parameter ``cv``, of rows in memory and of rows that come in batches."""

    cv: Any

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, forget: float = 1.0
    ) -> Self:
        """Take in some more rows, as `EntangledKernelRidge.partial_fit` does, each into one of the folds.

        Parameters
        ----------
        X, y, sample_weight, forget : as in `EntangledKernelRidge.partial_fit`
        groups : array-like of shape (n_samples,), optional
            Numbers or texts, with every batch or with none. All rows of a group share a fold, which is found
            by a hash of the group; without groups it is found by a hash of the row.

        Returns
        -------
        self
        """
        return self._take_more(X, y, sample_weight, groups, forget)

    def _splits(self, table: Table) -> list[Split]:
        """Splits of a table in memory."""
        cv, n = self.cv, len(table.Y)
        if isinstance(cv, Integral):
            return self._shuffled_splits(int(cv), table)
        splits = list(check_cv(cv).split(table.X, self._targets_like_y(table.Y), table.groups))
        if table.rows is not None and (not hasattr(cv, "split") or isinstance(cv, PredefinedSplit)):
            # Splits that were given as places are of the whole table, of which some rows are left out.
            places = [(table.places_of(train), table.places_of(test)) for train, test in splits]
            splits = [(train, test) for train, test in places if len(test) > 0]
        fewest = min((len(train) for train, _ in splits), default=0)
        if fewest < 2 <= n:
            raise ValueError(
                f"cv must leave at least 2 rows to learn from in every split, got {fewest}; use fewer folds"
            )
        return splits

    def _shuffled_splits(self, n_folds: int, table: Table) -> list[Split]:
        """Shuffled folds of rows, or of groups where these are given, repeated where rows are few."""
        check_integer("cv", self.cv, low=2)
        n = len(table.Y)
        if n_folds > n:
            raise ValueError(f"cv must be at most the number of rows, {n}, got {n_folds}")
        n_units = n if table.groups is None else len(np.unique(table.groups))
        repeated = n_folds < n_units and n <= FEW_ROWS
        n_repeats = ceil(SPLITS_OF_FEW_ROWS / n_folds) if repeated else 1
        if table.groups is not None:
            return group_splits(table.groups, n_folds, n_repeats=n_repeats, random_state=self.random_state)
        folds = RepeatedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=self.random_state)
        return list(folds.split(table.X))

    @property
    def _ordered(self) -> bool:
        """Whether folds are blocks in the order of time."""
        return isinstance(self.cv, TimeSeriesSplit)

    def _n_parts(self) -> int:
        cv = self.cv
        if isinstance(cv, TimeSeriesSplit):
            plain = cv.gap == 0 and cv.max_train_size is None and cv.test_size is None
            if not plain:
                raise ValueError(
                    f"cv must be a TimeSeriesSplit of n_splits alone where rows come in batches, got {cv!r}"
                )
            # The rows before the first fold.
            return int(cv.n_splits) + 1
        if isinstance(cv, KFold | GroupKFold):
            return int(cv.n_splits)
        if not isinstance(cv, Integral):
            raise ValueError(
                f"cv must be a number of folds, KFold, GroupKFold or TimeSeriesSplit where rows come in "
                f"batches, since a row's fold is found by a hash of its values or group, or by its place; "
                f"got {cv!r}"
            )
        check_integer("cv", cv, low=2)
        return int(cv)

    def _parts_of(self, rows: Rows, groups: Any) -> Index:
        if self._ordered:
            raise ValueError(
                "cv: folds in the order of time need rows one after the other, and their number before the "
                "first; use fit_batches, or fit on a table in memory"
            )
        if groups is not None:
            return group_folds(check_groups(groups, len(rows.Y)), self._n_parts())
        if isinstance(self.cv, GroupKFold):
            raise ValueError("groups must be given where cv is GroupKFold, got None")
        return row_folds(rows.X, rows.Y, self._n_parts())

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        if self._ordered or other._ordered:
            raise ValueError(
                "estimators to merge must not have folds in the order of time, since rows of two streams "
                "have no order; use fit_batches with all batches"
            )

    def _block_ends(self, batches: Any, targets: Any, n_rows: int | None) -> Index | None:
        if not self._ordered:
            return None
        if n_rows is None:
            n_rows = getattr(batches, "n_rows", None)
        if n_rows is None:
            if iter(batches) is batches:
                raise ValueError(
                    "n_rows must be given where batches can be read only once, since folds in the order of "
                    "time need the number of rows before the first"
                )
            n_rows = sum(_num_samples(as_batch(item, targets).X) for item in batches)
        check_integer("n_rows", n_rows, low=1)
        return block_ends(int(n_rows), self._n_parts())

    def _first_splits(self, rows: Rows) -> Any:
        """What ``cv`` is for the first rows of a stream, on which a feature map is chosen."""
        if self._ordered:
            return self.cv
        if rows.part is None or len(np.unique(rows.part)) < 2:
            raise ValueError(
                f"the first {len(rows.Y)} rows must lie in at least 2 folds for a feature map to be chosen "
                f"on them, got 1; mix the groups among the rows, or give one feature map"
            )
        return PredefinedSplit(rows.part)
