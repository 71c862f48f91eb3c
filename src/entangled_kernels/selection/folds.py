"""Where folds come from: rows in memory, moments of parts, or feature maps that are fitted in every fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..features import fit_and_map, map_features
from ..learning.missing import complete_moments
from ..learning.moments import Moments, RowSample
from ..learning.problem import (
    LARGEST_ROTATED,
    CompressedRows,
    OutputSubspace,
    compress_rows,
    reduce_centred_rows,
    rotate_to_axes,
    subspace_is_small,
)
from ..linalg import Array, Index
from ..threads import SMALL_MATRIX, one_thread
from .fold import Fold
from .observed_fold import ObservedFold

__all__ = [
    "MomentFolds",
    "RefittedFolds",
    "RowFolds",
    "Split",
    "group_partitions",
    "leave_one_out_sums",
]

Split = tuple[Index, Index]

# Up to so many times more rows than features, folds of a partition are decomposed row by row.
_FEW_ROWS = 2


@dataclass(frozen=True, eq=False)
class RowFolds:
    """Folds of rows in memory.

    Where the held-out rows of the splits are a partition, as in K-fold and leave-one-out, every row is
    visited once: training moments are sums of the other parts, never the total minus a part. Repeated
    partitions are visited once each.

    Attributes
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
    weight : ndarray of shape (n,) or None
    splits : list of (training rows, held-out rows)
    centred : bool
        Whether models have an intercept.
    norms : bool
        Without them the alignments of training problems may be in the wrong unit, which does not matter to
        the closed form.
    ridge_only : bool
        Whether all candidates are kernel ridge; then folds that are made of their rows need no basis of the
        outputs that can be reached.
    """

    Phi: Any
    Y: Array
    weight: Array | None
    splits: Sequence[Split]
    centred: bool = True
    norms: bool = True
    ridge_only: bool = False

    @property
    def n_splits(self) -> int:
        """Number of folds."""
        return len(self.splits)

    @property
    def n_repeats(self) -> float:
        """How often a row is held out."""
        return max(1.0, sum(len(test) for _, test in self.splits) / len(self.Y))

    def folds(self, output_weights: Array) -> Iterator[Fold]:
        """One fold after the other."""
        for group in group_partitions(self.splits, len(self.Y)):
            if not self._from_rows(group):
                yield from self._moment_folds(group, output_weights)
                continue
            for split in group:
                fold = self._direct_fold(split, output_weights)
                yield from self._moment_folds([split], output_weights) if fold is None else [fold]

    def _from_rows(self, group: Sequence[Split]) -> bool:
        """Whether decomposing the rows of every split is no more work than moments of parts, and enough.

        Wide tables are compressed once for all splits.
        """
        n, m, p = len(self.Y), self.Phi.shape[1], self.Y.shape[1]
        few = (len(group) == 1 or n <= _FEW_ROWS * m) and m <= n and p <= n + 1
        small = max(self.Phi.size, self.Y.size) <= LARGEST_ROTATED
        return few and small and self.centred and not self.norms

    def _direct_fold(self, split: Split, output_weights: Array) -> Fold | None:
        """The fold of a split from its rows, where `reduce_centred_rows` takes them."""
        train, test = split
        weights = self._row_weight(train), self._row_weight(test)
        _check_weights(*(float(own.sum()) for own in weights))
        problem = reduce_centred_rows(
            self.Phi[train], self.Y[train], weights[0], for_ascent=False, every_output=self.ridge_only
        )
        if problem is None:
            return None
        return Fold.from_rows(problem, test, self.Phi[test], self.Y[test], weights[1], output_weights)

    def _moment_folds(self, group: Sequence[Split], output_weights: Array) -> Iterator[Fold]:
        """Folds of a group from moments of its parts."""
        n, m, p = len(self.Y), self.Phi.shape[1], self.Y.shape[1]
        parts = [test for _, test in group] + ([group[0][0]] if len(group) == 1 else [])
        if self.centred and subspace_is_small(m, p, parts, n):
            subspace = OutputSubspace(self.Phi, self.Y, self.weight, parts)
            yield from self._subspace_folds(group, subspace, output_weights)
            return
        rows = self._compressed
        R = rows.outputs
        form = output_weights if R is None else R.T @ (output_weights[:, None] * R)
        for train, test, (_, index) in self._group_moments(group, rows):
            fold = Fold.from_moments(train, test, form, centred=self.centred, rows=rows)
            yield fold.with_rows(index, rows.Phi[index], rows.first_y, self._row_weight(index))

    @cached_property
    def _compressed(self) -> CompressedRows:
        return self._rotated(compress_rows(self.Phi, self.Y, centred=self.centred))

    def _row_weight(self, index: Index) -> Array:
        return np.ones(len(index)) if self.weight is None else self.weight[index]

    def _rotated(self, rows: CompressedRows) -> CompressedRows:
        return rotate_to_axes(rows, self.weight, centred=self.centred)

    def _subspace_folds(
        self, group: Sequence[Split], subspace: OutputSubspace, output_weights: Array
    ) -> Iterator[Fold]:
        """Folds of rows projected on a subspace of the outputs, with the squares that it leaves out."""
        rows = self._rotated(subspace.rows)
        R = np.asarray(rows.outputs)
        form = R.T @ (output_weights[:, None] * R)
        for train, test, (train_index, test_index) in self._group_moments(group, rows):
            own = replace(rows, norms=subspace.norms(train_index)) if self.norms else rows
            fold = Fold.from_moments(train, test, form, centred=self.centred, rows=own)
            squares = subspace.squares(test_index, rows.first_y + train.mean_y @ R.T)
            fold = fold.with_rows(
                test_index, rows.Phi[test_index], rows.first_y, self._row_weight(test_index)
            )
            yield replace(fold, V=squares, VN=float(output_weights @ squares))

    def _group_moments(
        self, group: Sequence[Split], rows: CompressedRows
    ) -> Iterator[tuple[Moments, Moments, Split]]:
        """Training and held-out moments of every split of a group."""

        def moments(index: Index) -> Moments:
            own = None if self.weight is None else self.weight[index]
            return Moments.from_arrays(rows.Phi[index], rows.Y[index], own)

        tests = [moments(test) for _, test in group]
        trains = leave_one_out_sums(tests) if len(group) > 1 else [moments(train) for train, _ in group]
        for train, test, split in zip(trains, tests, group, strict=True):
            _check_weights(train.weight, test.weight)
            yield train, test, split


@dataclass(frozen=True, eq=False)
class MomentFolds:
    """Folds that hold out one part of the rows each, from the moments of the parts.

    Attributes
    ----------
    rounds : list of lists of Moments
        Each round is a partition of all rows.
    centred : bool
    sample : RowSample or None
        Rows of the parts of the first round, to be predicted one by one. Where targets have blanks, errors
        of that round are those of these rows.
    places : ndarray of shape (s,) or None
        Of the rows of the sample in the table; None where the sample is the table.
    ordered : bool
        Whether parts are in the order of time: each one but the first is held out from those before it.
    """

    rounds: Sequence[Sequence[Moments]]
    centred: bool = True
    sample: RowSample | None = None
    places: Index | None = None
    ordered: bool = False

    @property
    def n_splits(self) -> int:
        """Number of folds."""
        return sum(len(parts) - self.ordered for parts in self.rounds)

    @property
    def n_repeats(self) -> float:
        """How often a row is held out."""
        return float(len(self.rounds))

    def folds(self, output_weights: Array) -> Iterator[Fold]:
        """One fold after the other."""
        for number, parts in enumerate(self.rounds):
            sample = self.sample if number == 0 else None
            trains = list(accumulate(parts[:-1])) if self.ordered else leave_one_out_sums(parts)
            for part, train in enumerate(trains, start=int(self.ordered)):
                yield self._fold(train, parts[part], part, sample, output_weights)

    def _fold(
        self,
        train: Moments,
        test: Moments,
        part: int,
        sample: RowSample | None,
        output_weights: Array,
    ) -> Fold:
        """A fold of a part; where targets have blanks, it is judged on the rows of the sample."""
        whole_train, whole_test = (complete_moments(own, centred=self.centred) for own in (train, test))
        fold = Fold.from_moments(whole_train, whole_test, output_weights, centred=self.centred)
        if sample is None:
            return fold
        own = np.flatnonzero(sample.part == part)
        fold = fold.with_rows(own if self.places is None else self.places[own], sample.Phi[own])
        if train.complete and test.complete:
            return fold
        cells = sample.weight[own]
        # A target without a training row has no prediction to be judged.
        cells *= train.target_weight > 0.0
        return ObservedFold.of(fold, sample.Y[own], cells, output_weights)


@dataclass(frozen=True, eq=False)
class RefittedFolds(RowFolds):
    """Folds whose features come from a map that is fitted on their training rows alone.

    Attributes
    ----------
    feature_map : transformer
        Cloned in every fold; ``Phi`` are the inputs that it is applied to, a table of any kind.
    """

    feature_map: Any = None

    def folds(self, output_weights: Array) -> Iterator[Callable[[], Fold]]:  # type: ignore[override]
        """Functions that fit the map and make a fold; they may be called in other processes."""
        return (partial(self._fold, split, output_weights) for split in self.splits)

    def _fold(self, split: Split, output_weights: Array) -> Fold:
        train, test = split
        X_train, X_test = (_safe_indexing(self.Phi, index) for index in split)
        with one_thread(len(self.Y) <= SMALL_MATRIX):
            weight = None if self.weight is None else self.weight[train]
            fitted, Phi_train = fit_and_map(
                self.feature_map, X_train, self.Y[train], weight, ensure_min_samples=2
            )
            order = np.concatenate([train, test])
            rows = RowFolds(
                Phi=np.vstack([Phi_train, map_features(fitted, X_test)]),
                Y=self.Y[order],
                weight=None if self.weight is None else self.weight[order],
                splits=[(np.arange(len(train)), np.arange(len(train), len(order)))],
                centred=self.centred,
                norms=self.norms,
                ridge_only=self.ridge_only,
            )
            return next(rows.folds(output_weights)).at(test)


def group_partitions(splits: Sequence[Split], n: int) -> Iterator[Sequence[Split]]:
    """Consecutive splits whose held-out rows are all rows once, and other splits one by one."""
    start = 0
    while start < len(splits):
        sizes = np.cumsum([len(test) for _, test in splits[start:]])
        stop = start + int(np.searchsorted(sizes, n)) + 1
        tests = np.concatenate([test for _, test in splits[start:stop]])
        whole = len(tests) == n == len(np.unique(tests))
        stop = stop if whole and all(len(a) + len(b) == n for a, b in splits[start:stop]) else start + 1
        yield splits[start:stop]
        start = stop


def _check_weights(train: float, test: float) -> None:
    if train == 0.0 or test == 0.0:
        raise ValueError("every fold needs rows of positive sample_weight in both of its parts")


def leave_one_out_sums(parts: Sequence[Moments]) -> list[Moments]:
    """For every part the sum of all others, from running sums in both directions."""
    before = list(accumulate(parts, initial=0))[:-1]
    after = list(accumulate(reversed(parts), initial=0))[-2::-1]
    return [left + right for left, right in zip(before, after, strict=True)]  # type: ignore[operator]
