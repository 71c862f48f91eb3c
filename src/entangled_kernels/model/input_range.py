"""The range of the inputs that a model was fitted on, and how far outside of it rows lie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.special import betaln, gammaln
from sklearn.utils.validation import _num_samples

from ..linalg import Array, Index
from ..parameters import as_table

__all__ = ["BatchDistance", "InputRange", "as_numbers", "chance_outside", "number_blocks"]

# The share of training rows that may lie beyond the edge, each by the range without itself.
SHARE_BEYOND = 0.01
# The least and the largest edge, as a distance from the middle of a column in units of its range.
EDGES = (1.0, 4.0)
# A batch, and a training table, with fewer rows than this is too small to call the batch unusual.
_FEWEST_IN_BATCH, _FEWEST_IN_TRAINING = 10, 20
# How seldom a batch like the training rows may be called unusual because of a single column.
_FALSE_ALARMS = 0.001
# Larger batches are judged by about this many rows.
_MOST_IN_BATCH = 10_000
# Numbers that fit into the cache of a processor, where a second pass costs little.
_BLOCK = 2**15
# Sparse rows become dense in blocks of this many numbers.
_MOST_NUMBERS = 2**22


class BatchDistance(NamedTuple):
    """Number of rows that are far out, share of rows with an input outside, and whether this is unusual."""

    n_far: int
    share_outside: float
    unusual: bool


@dataclass(frozen=True, eq=False)
class InputRange:
    """The two least and the two largest values of every column of numbers.

    Ranges of parts of a table merge to that of the table. The second values give the range without
    the row of the first ones.

    Attributes
    ----------
    columns : ndarray of shape (q,)
        Numbers of the columns that hold numbers.
    low, high : ndarray of shape (2, q)
        The least and the largest values first.
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
        """The range of the rows of a table; columns of text, and those without a number, are left out.

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
        """The range of the rows of both."""
        columns = np.union1d(self.columns, other.columns)
        low, high = np.full((4, len(columns)), np.inf), np.full((4, len(columns)), -np.inf)
        for start, part in ((0, self), (2, other)):
            index = np.searchsorted(columns, part.columns)
            low[start : start + 2, index], high[start : start + 2, index] = part.low, part.high
        low, high = np.sort(low, axis=0)[:2], np.sort(high, axis=0)[:1:-1]
        return InputRange(columns, low, high, self.n_rows + other.n_rows)

    def distance(self, X: Any) -> Array:
        """How far rows are out, (n,): above 1 is beyond the edge of the training range.

        Notes
        -----
        The distance of an input from the middle of its range, in units of the range, is at most 1/2
        for a training row. The edge is at 1, half a range farther, or where one in a hundred
        training rows would lie by the range without itself, as in columns with heavy tails, but at
        most at 4. The distance of a row is the largest of its inputs, divided by the edge. The
        range of a constant column is its value, or 1. Missing values are not out.
        """
        if len(self.columns) == 0:
            return np.zeros(_num_samples(X))
        blocks = number_blocks(X, self.columns)
        return np.concatenate([self._row_distance(values) for values in blocks])

    def _row_distance(self, values: Array) -> Array:
        distance = _distance(values, self.low[0], self.high[0])
        return np.asarray(np.where(np.isnan(values), 0.0, distance).max(axis=1) / self.edge)

    def judge(self, X: Any, far: float) -> BatchDistance:
        """How many rows of a batch are farther out than ``far``, and whether the batch is unusual.

        Notes
        -----
        A new row from the distribution of the training rows lies outside of the range of a column
        with probability 2 / (n + 1) at most. A batch is unusual if at least one row in ten has an
        input outside, and one of two things holds. The mean number of such inputs in a row exceeds
        four times the expected one by more than four standard errors. Or a single column has so many
        rows outside that this would happen in fewer than one of a thousand batches of rows like the
        training rows. A batch of more than 10,000 rows is judged by about 10,000 of them.

        A batch within the ranges costs one pass over its rows. Missing values are not out.
        """
        n = _num_samples(X)
        if n == 0 or len(self.columns) == 0:
            return BatchDistance(0, 0.0, False)
        n_far, start, step, counted = 0, 0, -(-n // _MOST_IN_BATCH), list[Array]()
        by_column = np.zeros(len(self.columns), dtype=np.intp)
        for values in number_blocks(X, self.columns):
            ends, some = np.stack(_column_ends(values)), values[-start % step :: step]
            start += len(values)
            if not np.any((ends[0] < self.low[0]) | (ends[1] > self.high[0])):
                counted.append(np.zeros(len(some)))
                continue
            if np.any(_distance(ends, self.low[0], self.high[0]) > far * self.edge):
                n_far += int(np.count_nonzero(self._row_distance(values) > far))
            outside = (some < self.low[0]) | (some > self.high[0])
            counted.append(outside.sum(axis=1))
            by_column += outside.sum(axis=0)
        counts = np.concatenate(counted)
        share, expected = float(np.mean(counts > 0)), 2.0 * len(self.columns) / (self.n_rows + 1.0)
        if len(counts) < _FEWEST_IN_BATCH or self.n_rows < _FEWEST_IN_TRAINING:
            return BatchDistance(n_far, share, False)
        error = float(counts.std()) / np.sqrt(len(counts))
        in_all = counts.mean() > 4.0 * expected + 4.0 * error
        chance = chance_outside(int(by_column.max()), len(counts), self.n_rows)
        in_a_column = chance < _FALSE_ALARMS / len(self.columns)
        return BatchDistance(n_far, share, bool(share >= 0.1 and (in_all or in_a_column)))

    def packed(self) -> Array:
        """The range as a table of numbers, (6, q), for `unpacked`."""
        return np.vstack(
            [self.columns, self.low, self.high, np.full(len(self.columns), self.n_rows)]
        )

    @classmethod
    def unpacked(cls, table: Array) -> InputRange:
        """A range from the table of `packed`; a ValueError if its numbers do not fit each other."""
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
        """Distance of the edge from the middle of a column, in units of its range."""
        if len(self.columns) == 0:
            return EDGES[0]
        above = _distance(self.high[0], self.low[0], self.high[1])
        below = _distance(self.low[0], self.low[1], self.high[0])
        distances = np.sort(np.concatenate([above, below]))[::-1]
        allowed = min(int(SHARE_BEYOND * self.n_rows), len(distances) - 1)
        return float(np.clip(distances[allowed], *EDGES))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "edge"}


def chance_outside(count: int, n_new: int, n_rows: int) -> float:
    """Probability that ``count`` or more of some new rows lie outside of the range of a column.

    The new rows and the ``n_rows`` of the range come from one continuous distribution. The share of
    the distribution outside of the range then has a Beta(2, n_rows - 1) distribution, and the
    number of new rows outside a beta-binomial one.
    """
    x = np.arange(count, n_new + 1)
    ways = gammaln(n_new + 1) - gammaln(x + 1) - gammaln(n_new - x + 1)
    logs = ways + betaln(x + 2, n_new - x + n_rows - 1) - betaln(2, n_rows - 1)
    return float(np.exp(logs).sum())


def _distance(values: Array, low: Array, high: Array) -> Array:
    """Distance of values from the middles of ranges, in units of the ranges."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle, unit = low + (high - low) / 2.0, high - low
        unit = np.where(unit > 0.0, unit, np.maximum(np.abs(middle), 1.0))
        return np.asarray(np.abs(values - middle) / unit)


def _column_ends(values: Array) -> tuple[Array, Array]:
    """Least and largest number of every column, (d,) each, NaN if there is none, in one pass.

    Several short rows are read as one long row, which is much faster.
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
    """The two least numbers of every column, (2, d); a single number twice, NaN without any."""
    kept = np.where(np.isfinite(values), values, np.nan)
    if len(kept) < 2:
        return np.repeat(kept if len(kept) else np.full((1, kept.shape[1]), np.nan), 2, axis=0)
    least = np.partition(kept, 1, axis=0)[:2]
    return np.where(np.isnan(least), least[:1], least)


def number_blocks(X: Any, columns: Index | None = None) -> Iterator[Array]:
    """`as_numbers` of some columns of a table, in one block, or in several if the table is sparse."""
    n, height = _num_samples(X), _num_samples(X)
    if issparse(X):
        X, height = X.tocsr(), max(1, _MOST_NUMBERS // max(1, X.shape[1]))
    for start in range(0, max(1, n), max(1, height)):
        values = as_numbers(X[start : start + height] if issparse(X) else X)
        all_columns = columns is None or len(columns) == values.shape[1]
        yield values if all_columns else values[:, columns]


def as_numbers(X: Any) -> Array:
    """A table as floats, NaN in columns that hold anything but numbers."""
    values = X.toarray() if issparse(X) else as_table(X)
    values = values if values.ndim == 2 else values.reshape(len(values), -1)  # (n, d)
    if values.dtype.kind in "iufb":
        return values.astype(np.float64, copy=False)
    numbers = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        with suppress(TypeError, ValueError):
            numbers[:, column] = values[:, column].astype(np.float64)
    return numbers
