"""The range of the inputs that a model was fitted on, and how far outside of it rows lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _num_samples

from ..linalg import Array, Index
from ..parameters import as_table

__all__ = ["BatchDistance", "InputRange", "as_numbers", "merge_ranges", "number_blocks"]

# So many of the training rows, each judged without itself, may lie beyond the edge.
SHARE_BEYOND = 0.01
# The edge in units of a column's range from its middle: never less, and never more however its
# tails are.
EDGES = (1.0, 4.0)
# A batch, and a training table, with fewer rows than this cannot show that the batch as a whole is
# unusual.
_FEWEST_IN_BATCH, _FEWEST_IN_TRAINING = 10, 20
# Of more rows than about this, some are enough to show that a batch is unusual.
_MOST_IN_BATCH = 10_000
# Numbers that fit into the memory next to a processor, where two passes over them cost as much as
# one.
_BLOCK = 2**15
# Sparse rows become dense in blocks of so many numbers.
_MOST_NUMBERS = 2**22


class BatchDistance(NamedTuple):
    """Rows of a batch that are far out, the share with an input outside, and whether that is far too many."""

    n_far: int
    share_outside: float
    unusual: bool


@dataclass(frozen=True, eq=False)
class InputRange:
    """The two least and the two largest values of every column of numbers.

    Those of parts of a table merge to those of the table. With the second ones a training row can
    be judged as if it had not been there.

    Attributes
    ----------
    columns : ndarray of shape (q,)
        Places of the columns that hold numbers.
    low, high : ndarray of shape (2, q)
        The outer ones first.
    n_rows : int

    Examples
    --------
    >>> import numpy as np
    >>> inputs = InputRange.of(np.array([[0.0], [1.0], [2.0], [4.0]]))
    >>> inputs.distance(np.array([[2.0], [4.0], [9.0], [2e12]])) > 1.0
    array([False, False,  True,  True])
    """

    columns: Index
    low: Array
    high: Array
    n_rows: int

    @classmethod
    def of(cls, X: Any) -> InputRange:
        """Of the rows of a table; columns of text, and those without any number, are left out.

        Time n d.
        """
        if issparse(X):
            columns_first = X.tocsc()
            ends = [columns_first.min(axis=0), columns_first.max(axis=0)]
            low, high = (
                np.repeat(end.toarray().reshape(1, -1), 2, axis=0) for end in ends
            )  # (2, d)
            n_rows = X.shape[0]
        else:
            values = as_numbers(X)
            low, high, n_rows = _two_least(values), -_two_least(-values), len(values)
        low, high = low.astype(np.float64, copy=False), high.astype(np.float64, copy=False)
        columns = np.flatnonzero(np.isfinite(low[0]) & np.isfinite(high[0]))
        return cls(columns, low[:, columns], high[:, columns], int(n_rows))

    def merge(self, other: InputRange) -> InputRange:
        """Of the rows of both; a column without any number in the rows of one has the range of the other."""
        columns = np.union1d(self.columns, other.columns)
        low, high = np.full((4, len(columns)), np.inf), np.full((4, len(columns)), -np.inf)
        for start, part in ((0, self), (2, other)):
            own = np.searchsorted(columns, part.columns)
            low[start : start + 2, own], high[start : start + 2, own] = part.low, part.high
        low, high = np.sort(low, axis=0)[:2], np.sort(high, axis=0)[:1:-1]
        return InputRange(columns, low, high, self.n_rows + other.n_rows)

    def distance(self, X: Any) -> Array:
        """How far rows are out, (n,): above 1 is beyond the edge of what training rows support.

        Notes
        -----
        For every column the distance from the middle of its range, in units of the range, is at
        most 1/2 for a training row. The edge is at 1, half a range further, or where one in a
        hundred training rows would lie if it had not been there, as in columns with heavy tails,
        but at 4 at most. The largest of a row's columns counts. A constant column has its value, or
        1, for a range. Blanks are not out.
        """
        if len(self.columns) == 0:
            return np.zeros(_num_samples(X))
        return np.concatenate([self._row_distance(rows) for rows in self._blocks(X)])

    def _blocks(self, X: Any) -> Iterator[Array]:
        """The columns that hold numbers, in blocks of rows."""
        for values in number_blocks(X):
            whole = len(self.columns) == values.shape[1]
            yield values if whole else values[:, self.columns]

    def _row_distance(self, values: Array) -> Array:
        out = _out(values, self.low[0], self.high[0])
        return np.asarray(np.where(np.isnan(values), 0.0, out).max(axis=1) / self.edge)

    def judge(self, X: Any, far: float) -> BatchDistance:
        """How a batch of rows lies: how many rows are farther out than ``far``, and whether too many are out.

        Notes
        -----
        A new row from where the training rows came from lies outside of the range of a column with
        probability 2 / (n + 1) at most. A batch is unusual where at least one row in ten has an
        input outside, and the mean number of such inputs in a row is four times what is expected,
        by more than four standard errors. Of more than 10,000 rows, as many are drawn evenly for
        that.

        A batch within the ranges costs one pass over its rows. Missing values are not out.
        """
        n = _num_samples(X)
        if n == 0 or len(self.columns) == 0:
            return BatchDistance(0, 0.0, False)
        n_far, start, step, counted = 0, 0, -(-n // _MOST_IN_BATCH), list[Array]()
        for values in self._blocks(X):
            ends, some = np.stack(_ends(values)), values[-start % step :: step]
            start += len(values)
            if not np.any((ends[0] < self.low[0]) | (ends[1] > self.high[0])):
                counted.append(np.zeros(len(some)))
                continue
            if np.any(_out(ends, self.low[0], self.high[0]) > far * self.edge):
                n_far += int(np.count_nonzero(self._row_distance(values) > far))
            counted.append(((some < self.low[0]) | (some > self.high[0])).sum(axis=1))
        counts = np.concatenate(counted)
        share, expected = float(np.mean(counts > 0)), 2.0 * len(self.columns) / (self.n_rows + 1.0)
        if len(counts) < _FEWEST_IN_BATCH or self.n_rows < _FEWEST_IN_TRAINING:
            return BatchDistance(n_far, share, False)
        error = float(counts.std()) / np.sqrt(len(counts))
        unusual = share >= 0.1 and counts.mean() > 4.0 * expected + 4.0 * error
        return BatchDistance(n_far, share, bool(unusual))

    def packed(self) -> Array:
        """All of it as one table of numbers, (6, q), which `unpacked` takes."""
        return np.vstack(
            [self.columns, self.low, self.high, np.full(len(self.columns), self.n_rows)]
        )

    @classmethod
    def unpacked(cls, table: Array) -> InputRange:
        """What `packed` gave; raises ValueError where numbers do not fit each other."""
        if table.ndim != 2 or len(table) != 6:
            raise ValueError(f"a range of inputs must be packed in 6 rows, got shape {table.shape}")
        columns, low, high = table[0].astype(np.intp), table[1:3], table[3:5]
        if (columns != table[0]).any() or (np.diff(columns) <= 0).any() or (low[0] > high[0]).any():
            raise ValueError(
                "columns of a range of inputs must be in order, and low values below high ones"
            )
        return cls(columns, low, high, int(table[5, 0]) if len(columns) else 0)

    @cached_property
    def edge(self) -> float:
        """In units of a column's range from its middle."""
        if len(self.columns) == 0:
            return EDGES[0]
        above = _out(self.high[0], self.low[0], self.high[1])
        below = _out(self.low[0], self.low[1], self.high[0])
        out = np.sort(np.concatenate([above, below]))[::-1]
        allowed = min(int(SHARE_BEYOND * self.n_rows), len(out) - 1)
        return float(np.clip(out[allowed], *EDGES))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "edge"}


def merge_ranges(one: InputRange | None, other: InputRange | None) -> InputRange | None:
    """Of the rows of both, where None knows of no rows."""
    return other if one is None else one if other is None else one.merge(other)


def _out(values: Array, low: Array, high: Array) -> Array:
    """Distance of values from the middles of ranges, in units of these."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle, unit = low + (high - low) / 2.0, high - low
        unit = np.where(unit > 0.0, unit, np.maximum(np.abs(middle), 1.0))
        return np.asarray(np.abs(values - middle) / unit)


def _ends(values: Array) -> tuple[Array, Array]:
    """Least and largest number of every column, (d,) each, NaN where there is none; one pass over the rows.

    Rows are taken side by side, since many short rows take far longer than a few long ones.
    """
    n, d = values.shape
    side = max(1, min(n, 256 // d)) if values.flags.c_contiguous else 1
    whole = n - n % side
    wide, low, high = (
        values[:whole].reshape(whole // side, side * d),
        [values[whole:]],
        [values[whole:]],
    )
    for start in range(0, len(wide), height := max(1, _BLOCK // (side * d))):
        block = wide[start : start + height]
        low.append(np.fmin.reduce(block, axis=0).reshape(side, d))
        high.append(np.fmax.reduce(block, axis=0).reshape(side, d))
    return np.fmin.reduce(np.concatenate(low), axis=0), np.fmax.reduce(np.concatenate(high), axis=0)


def _two_least(values: Array) -> Array:
    """The two least numbers of every column, (2, d); one twice where there is but one, NaN without any."""
    kept = np.where(np.isfinite(values), values, np.nan)
    if len(kept) < 2:
        return np.repeat(kept if len(kept) else np.full((1, kept.shape[1]), np.nan), 2, axis=0)
    least = np.partition(kept, 1, axis=0)[:2]
    return np.where(np.isnan(least), least[:1], least)


def number_blocks(X: Any) -> Iterator[Array]:
    """`as_numbers` of a table at once, of sparse rows in blocks."""
    if not issparse(X):
        yield as_numbers(X)
        return
    X = X.tocsr()
    height = max(1, _MOST_NUMBERS // max(1, X.shape[1]))
    for start in range(0, max(1, X.shape[0]), height):
        yield as_numbers(X[start : start + height])


def as_numbers(X: Any) -> Array:
    """A table as floats, NaN in columns that hold anything but numbers."""
    values = X.toarray() if issparse(X) else as_table(X)
    values = values if values.ndim == 2 else values.reshape(len(values), -1)  # (n, d)
    if values.dtype.kind in "iufb":
        return values.astype(np.float64, copy=False)
    found = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        try:
            found[:, column] = values[:, column].astype(np.float64)
        except (TypeError, ValueError):
            continue
    return found
