"""Streams of rows in batches: their moments, a sample, and rows that wait for a feature map."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse, vstack
from sklearn.utils import _safe_indexing

from ..features import map_features
from ..learning import Moments, RowSample
from ..learning.moments import FORGOTTEN, NOT_SAMPLED
from ..linalg import Array, Index
from ..model import FIRST_BLOCK, InputRange, TargetScale, block_height
from ..parameters import as_table, check_range

__all__ = [
    "FEATURE_SAMPLE",
    "RowStream",
    "Rows",
    "block_ends",
    "first_missing_value",
    "group_folds",
    "row_folds",
    "sampling_keys",
    "transform_targets",
]

# A feature map that is not fitted yet is fitted on this many rows, the first ones of the stream.
FEATURE_SAMPLE = 10_000
# Number of the first rows whose features are kept.
_PROBE_ROWS = 8
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
Hashes = NDArray[np.uint64]


class Rows(NamedTuple):
    """Rows of a batch, checked.

    Inputs; targets (n, p), NaN where missing; weights of rows (n,) or of single targets (n, p); the
    part of each row, such as its fold; a name of the batch for error messages; and a key of each
    row, a hash by which it is drawn into a sample.
    """

    X: Any
    Y: Array
    weight: Array | None = None
    part: Index | None = None
    name: str | None = None
    key: Hashes | None = None

    def select(self, index: Any) -> Rows:
        """The rows at an index, or of a slice."""
        if isinstance(index, slice) and index.indices(len(self.Y)) == (0, len(self.Y), 1):
            return self
        weight, part, key = (
            None if values is None else values[index]
            for values in (self.weight, self.part, self.key)
        )
        return Rows(_safe_indexing(self.X, index), self.Y[index], weight, part, self.name, key)

    def row_weight(self) -> Array:
        """The largest weight of each row, (n,)."""
        if self.weight is None:
            return np.ones(len(self.Y))
        return self.weight if self.weight.ndim == 1 else self.weight.max(axis=1)


FitMap = Callable[[Rows], tuple[Any, TargetScale | None]]


@dataclass(eq=False)
class RowStream:
    """Moments of all rows seen, in parts such as folds, with a bounded sample of the rows.

    Attributes
    ----------
    n_parts : int
        Number of parts, such as folds.
    ready : bool
        Whether the feature map and the scale are fitted; rows wait until then.
    feature_map : transformer or None
        Fitted; None where the columns are the features.
    scale : TargetScale or None
        The scale on which targets are learned; it may be known before the stream is ready.
    n_outputs : int or None
        Number of targets; None before the first row.
    parts : dict of Moments
        Moments of each part that has a row, by its number.
    waiting : list of Rows
        Rows that wait for the feature map.
    probe : ndarray or None
        Features of the first rows, which show whether another feature map is the same.
    sample : RowSample or None
        Some of the rows, drawn by their keys.
    inputs : InputRange or None
        Range of the inputs, before the feature map; it does not fade.
    n_rows : int
        Number of rows seen, including those that wait and those of weight zero.
    grouped : bool
        Whether all rows of a group are in one part.
    ends : ndarray or None
        Ends of the blocks of rows that are the parts, where these are in the order of time.
    fading : bool
        Whether weights of earlier rows were reduced.
    lock : threading.RLock
        Held while the stream is changed or solved for.
    """

    n_parts: int = 1
    ready: bool = False
    feature_map: Any = None
    scale: TargetScale | None = None
    n_outputs: int | None = None
    parts: dict[int, Moments] = field(default_factory=dict)
    waiting: list[Rows] = field(default_factory=list)
    probe: Array | None = None
    sample: RowSample | None = None
    inputs: InputRange | None = None
    n_rows: int = 0
    grouped: bool = False
    ends: Index | None = None
    fading: bool = False
    lock: Any = field(default_factory=threading.RLock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=threading.RLock())

    def without_rows(self) -> RowStream:
        """A stream of the same parts, feature map and targets, without any rows."""
        return RowStream(
            self.n_parts,
            self.ready,
            self.feature_map,
            self.scale,
            self.n_outputs,
            grouped=self.grouped,
        )

    @staticmethod
    def merged(streams: list[RowStream]) -> RowStream:
        """One stream of the rows of several."""
        total = streams[0].without_rows()
        for stream in streams:
            total.merge(stream)
        return total

    def summary(self) -> tuple[list[Moments], RowSample | None]:
        """Moments of the parts that have rows, and the sample with parts numbered as in this list."""
        numbers, sample = sorted(self.parts), self.sample
        if sample is not None:
            sample = replace(sample, part=np.searchsorted(numbers, sample.part))
        return [self.parts[number] for number in numbers], sample

    def add(self, rows: Rows, fit_map: FitMap, forget: float = 1.0) -> None:
        """Add rows, all or none of them.

        Parameters
        ----------
        rows : Rows
        fit_map : callable
            Fits the feature map and the scale of the targets on the first rows.
        forget : float, default=1.0
            Factor on the weights of all earlier rows.
        """
        with self.lock:
            if self.ready:
                added = self.without_rows()
                added._add_moments(_sample_heavy([rows])[0] if forget < 1.0 else rows)
                if forget < 1.0:
                    self.forget(forget, added.sample)
                self.merge(added)
            else:
                if self.scale is not None:
                    # Targets that cannot be transformed are refused now, before they wait.
                    transform_targets(self.scale, rows.Y, rows.weight)
                if self.waiting and type(rows.X) is not type(self.waiting[0].X):
                    rows = rows._replace(X=_in_container_of(self.waiting[0].X, rows.X))
                if self.n_rows + len(rows.Y) >= FEATURE_SAMPLE:
                    self.finish_waiting(fit_map, rows, forget)
                else:
                    if forget < 1.0:
                        self.forget(forget)
                    self.waiting.append(deepcopy(rows))
                    self.n_rows += len(rows.Y)
            self.n_outputs = rows.Y.shape[1]

    def forget(self, factor: float, newest: RowSample | None = None) -> None:
        """Multiply the weights of all rows seen by ``factor``, before a sample of new rows is added."""
        self.fading = True
        self.parts = {number: part.scaled(factor) for number, part in self.parts.items()}
        self.waiting = _faded(self.waiting, factor)
        if self.sample is not None:
            heaviest = 0.0 if newest is None else float(newest.row_weight.max(initial=0.0))
            self.sample = self.sample.scaled(factor, heaviest)

    def merge(self, other: RowStream) -> None:
        """Add all that another stream of the same parts has seen; none of its rows may wait."""
        if other.waiting:
            raise ValueError("rows of the other stream wait for a feature map; fit it first")
        for number, moments in other.parts.items():
            before = self.parts.get(number)
            self.parts[number] = moments if before is None else before + moments
        self.probe = other.probe if self.probe is None else self.probe
        if other.inputs is not None:
            self.inputs = other.inputs if self.inputs is None else self.inputs.merge(other.inputs)
        if other.sample is not None:
            self.sample = other.sample if self.sample is None else self.sample.merge(other.sample)
        self.n_rows += other.n_rows

    def finish_waiting(
        self, fit_map: FitMap, newest: Rows | None = None, forget: float = 1.0
    ) -> None:
        """Fit the feature map on the rows that wait, and add their moments and those of ``newest`` rows.

        ``forget`` is a factor on the weights of the rows that wait.

        Notes
        -----
        After an error the stream is as it was, except for one batch: if the map can be fitted
        without one of the batches that wait, this one is left out, and named in the error.
        """
        with self.lock:
            waiting = self.waiting if forget == 1.0 else _faded(self.waiting, forget)
            waiting = waiting if newest is None else [*waiting, newest]
            if not waiting:
                return
            added, number = self.without_rows(), 0
            try:
                added.feature_map, added.scale = fit_map(_first_rows(waiting))
                added.ready = True
                fading = self.fading or forget < 1.0
                for number, rows in enumerate(_sample_heavy(waiting) if fading else waiting):  # noqa: B007
                    added._add_moments(rows)
            except (ValueError, TypeError) as error:
                refused = number if added.ready else _find_spoiled(waiting, fit_map)
                if refused is not None and refused < len(self.waiting):
                    self._leave_out(refused, error, newest)
                raise
            self.ready, self.feature_map, self.scale = True, added.feature_map, added.scale
            self.waiting, self.n_rows, self.fading = [], 0, fading
            self.merge(added)

    def blocks(self, rows: Rows) -> Iterator[tuple[Any, Rows]]:
        """Features and rows with learned targets, in blocks that fit scikit-learn's ``working_memory``."""
        start, n = 0, len(rows.Y)
        plain = (
            self.feature_map is None and isinstance(rows.X, np.ndarray) and rows.X.dtype.kind == "f"
        )
        height = n if plain else min(n, FIRST_BLOCK)
        while start < n:
            block = rows.select(slice(start, min(start + height, n)))
            Phi = block.X if plain else map_features(self.feature_map, block.X)
            name = "X" if self.feature_map is None else "the output of feature_map"
            check_range(name, Phi, smallest=0.0)
            if self.scale is not None:
                Y = transform_targets(self.scale, block.Y, block.weight)
                block = block._replace(Y=Y)
            yield Phi, block
            start += len(block.Y)
            if start < n:
                height = block_height(Phi.shape[1])

    def _add_moments(self, rows: Rows) -> None:
        """Add the moments of rows; rows of weight zero only count."""
        self.n_rows += len(rows.Y)
        if rows.weight is not None and not rows.weight.all():
            rows = rows.select(np.flatnonzero(rows.row_weight()))
        if len(rows.Y) == 0:
            return
        inputs = InputRange.of(rows.X)
        self.inputs = inputs if self.inputs is None else self.inputs.merge(inputs)
        for Phi, block in self.blocks(rows):
            if self.probe is None:
                self.probe = np.array(Phi[:_PROBE_ROWS], dtype=np.float64)
            if block.key is not None:
                sample = RowSample.of(Phi, block.Y, block.key, block.weight, block.part)
                self.sample = sample if self.sample is None else self.sample.merge(sample)
            for number in [0] if block.part is None else np.unique(block.part).tolist():
                index = slice(None) if block.part is None else np.flatnonzero(block.part == number)
                weight = None if block.weight is None else block.weight[index]
                moments = Moments.from_arrays(Phi[index], block.Y[index], weight)
                before = self.parts.get(number)
                self.parts[number] = moments if before is None else before + moments

    def _leave_out(self, number: int, error: Exception, newest: Rows | None) -> None:
        """Leave out a batch that waits, and raise an error that names it."""
        first = sum(len(rows.Y) for rows in self.waiting[:number])
        refused = self.waiting.pop(number)
        self.n_rows -= len(refused.Y)
        if not isinstance(error, ValueError):
            return
        name = refused.name or f"rows {first + 1} to {first + len(refused.Y)}"
        again = "" if newest is None else "; the newest rows were not added, give them again"
        raise ValueError(
            f"{name}: these rows, which waited for the feature map to be fitted, are refused, and left "
            f"out: {error}{first_missing_value(refused.X)}{again}"
        ) from error


def transform_targets(
    scale: TargetScale, Y: Array, weight: Array | None, index: Index | None = None
) -> Array:
    """Targets on the learned scale; ``index`` are row numbers for error messages."""
    # Targets of weight zero may hold any number.
    if weight is not None and weight.ndim == 2:
        Y = np.where(weight > 0.0, Y, np.nan)
    elif weight is not None and not weight.all():
        counted = np.flatnonzero(weight)
        Y = np.where(weight[:, None] > 0.0, Y, Y[counted[0]] if len(counted) else np.nan)
    return scale.transform(Y, rows=index)


def _faded(batches: list[Rows], factor: float) -> list[Rows]:
    """Batches with their weights multiplied by a factor."""
    return [
        rows._replace(
            weight=factor * (np.ones(len(rows.Y)) if rows.weight is None else rows.weight)
        )
        for rows in batches
    ]


def _sample_heavy(batches: list[Rows]) -> list[Rows]:
    """Batches whose rows are not sampled where their weight is below `FORGOTTEN` of the heaviest."""
    weights = [rows.row_weight() for rows in batches]
    least = FORGOTTEN * max(weight.max(initial=0.0) for weight in weights)
    return [
        rows
        if rows.key is None
        else rows._replace(key=np.where(weight < least, NOT_SAMPLED, rows.key))
        for rows, weight in zip(batches, weights, strict=True)
    ]


def first_missing_value(*tables: Any) -> str:
    """The end of an error message, about the first missing value of some data frames; or nothing."""
    for table in tables:
        if hasattr(table, "isna") and hasattr(table, "columns"):
            missing = np.argwhere(table.isna().to_numpy())
            if len(missing):
                row, column = missing[0]
                name = table.columns[column]
                return f"; the first missing value is in row {row + 1} of them, column {name!r}"
    return ""


def _first_rows(waiting: list[Rows]) -> Rows:
    """The first rows that wait, on which the feature map is fitted, as one table."""
    Y = np.concatenate([rows.Y for rows in waiting])
    weights = [np.ones(len(rows.Y)) if rows.weight is None else rows.weight for rows in waiting]
    if any(weight.ndim == 2 for weight in weights):
        # The weight of a row is that of all its targets.
        weights = [
            np.broadcast_to(weight.reshape(len(weight), -1), (len(weight), Y.shape[1]))
            for weight in weights
        ]
    weight = np.concatenate(weights) if any(rows.weight is not None for rows in waiting) else None
    parts = [rows.part for rows in waiting if rows.part is not None]
    rows = Rows(
        _stack([rows.X for rows in waiting]), Y, weight, np.concatenate(parts) if parts else None
    )
    if weight is not None:
        # Rows of weight zero, and rows without any target, are left out.
        counted = np.flatnonzero(rows.row_weight())
        rows = rows.select(counted) if 0 < len(counted) < len(Y) else rows
    return rows.select(slice(0, FEATURE_SAMPLE))


def _find_spoiled(waiting: list[Rows], fit_map: FitMap) -> int | None:
    """Number of the newest batch without which the feature map can be fitted, None where there is none."""
    for number in reversed(range(len(waiting) if len(waiting) > 1 else 0)):
        with suppress(ValueError):
            fit_map(_first_rows(waiting[:number] + waiting[number + 1 :]))
            return number
    return None


def _in_container_of(first: Any, table: Any) -> Any:
    """A table in a container of the type of the first one."""
    if issparse(first):
        return csr_matrix(table)
    values = table.toarray() if issparse(table) else as_table(table)
    if hasattr(first, "iloc"):
        return type(first)(values, columns=first.columns)
    if hasattr(first, "vstack"):
        return type(first)(values, schema=first.columns)
    return values


def _stack(tables: list[Any]) -> Any:
    """Tables of one type on top of each other."""
    if len(tables) == 1:
        return tables[0]
    if issparse(tables[0]):
        return vstack(tables, format="csr")
    if hasattr(tables[0], "iloc"):
        import pandas as pd

        return pd.concat(tables, ignore_index=True)
    if hasattr(tables[0], "vstack"):
        import polars as pl

        return pl.concat(tables, how="vertical_relaxed")
    return np.concatenate(list(map(as_table, tables)))


def row_folds(X: Any, Y: NDArray[Any], n_folds: int) -> NDArray[np.intp]:
    """Fold of every row, 0 to n_folds - 1, by a hash of its values.

    Depends on the values alone: not on other rows, the row's number, the machine, or whether it is
    stored as float32 or float64. Rows that are equal share a fold, so no row is predicted by its
    own copy.

    Parameters
    ----------
    X : array, sparse array or data frame of shape (n, d)
        Numbers or text.
    Y : ndarray of shape (n, p)
    n_folds : int

    Notes
    -----
    The values' bits are mixed with the number of their column (the finaliser of splitmix64) and
    added, wrapping around; zeros add nothing, so that sparse rows have the folds of dense ones.

    Time n (d + p).

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.streams import row_folds
    >>> X, Y = np.arange(12.0).reshape(6, 2), np.ones((6, 1))
    >>> bool((row_folds(X[::-1], Y, 3) == row_folds(X, Y, 3)[::-1]).all())
    True
    """
    return _folds(_hash_table(Y, 0) + _hash_table(X, Y.shape[1]), n_folds)


def group_folds(groups: NDArray[Any], n_folds: int) -> NDArray[np.intp]:
    """Fold of every row, 0 to n_folds - 1, by a hash of its group, a number or a text.

    All rows of a group share a fold, in every batch and table, and whether a number is stored as an
    integer, a float or text.

    Notes
    -----
    Groups are spread over the folds at random: with few groups some folds are empty, and the others
    are of different sizes.

    Time n.

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.array(["a", "b", "a", "c"])
    >>> folds = group_folds(groups, 5)
    >>> bool(folds[0] == folds[2] == group_folds(groups[2:], 5)[0])
    True
    """
    hashes = _hash_column(groups, 0)
    if groups.dtype.kind not in "biuf":
        numbers = np.array([_finite_number(group) for group in groups])
        hashes = np.where(np.isnan(numbers), hashes, _hash_numbers(numbers, 0))
    return _folds(hashes + _GOLDEN, n_folds)


def block_ends(n_rows: int, n_blocks: int) -> NDArray[np.intp]:
    """Ends of blocks of rows in their order, as in `TimeSeriesSplit`: the first block is the longest.

    Examples
    --------
    >>> block_ends(11, 3).tolist()
    [5, 8, 11]
    """
    if n_rows < 2 * n_blocks:
        raise ValueError(
            f"{n_blocks} blocks of rows need at least {2 * n_blocks} rows, got {n_rows}"
        )
    return np.asarray(n_rows - (n_rows // n_blocks) * np.arange(n_blocks - 1, -1, -1))


def sampling_keys(X: Any, Y: NDArray[Any]) -> Hashes:
    """Keys of rows, by which they are drawn into a sample; they are independent of the folds.

    The bits of an array of numbers are multiplied by odd numbers and added up by row, which takes a
    tenth of the time of `row_folds`; other tables are hashed as there.
    """
    plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    total = _GOLDEN if plain else _hash_table(X, Y.shape[1]) + _GOLDEN
    columns = np.arange(1, 1 + Y.shape[1] + (X.shape[1] if plain else 0), dtype=np.uint64)
    odd = _mix(columns * _GOLDEN) | np.uint64(1)
    tables = [(np.where(np.isnan(Y), np.nan, Y), odd[: Y.shape[1]])]
    for table, factors in [*tables, (X, odd[Y.shape[1] :])] if plain else tables:
        # Adding zero removes the sign of zero.
        bits: Hashes = (np.ascontiguousarray(table, dtype=np.float64) + 0.0).view(np.uint64)
        bits ^= bits >> np.uint64(29)
        total = total + np.einsum("nd,d->n", bits, factors)
    return _mix(np.asarray(total))


def _hash_table(table: Any, first: int) -> Hashes:
    """Sum over columns of the hashes of the values; columns are numbered from ``first``."""
    if issparse(table):
        rows = csr_array(table)
        hashes = _hash_numbers(rows.data, rows.indices + first)
        ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        return np.asarray(ends[rows.indptr[1:]] - ends[rows.indptr[:-1]])
    if hasattr(table, "columns"):
        columns = [np.asarray(table[name]) for name in table.columns]
    else:
        # A list of texts is one column.
        columns = list(np.atleast_2d(as_table(table).T))
    total = np.zeros(len(columns[0]) if columns else 0, dtype=np.uint64)
    for number, column in enumerate(columns, start=first):
        total += _hash_column(column, number)
    return total


def _hash_column(column: NDArray[Any], number: int) -> Hashes:
    return (
        _hash_numbers(column, number) if column.dtype.kind in "biuf" else _hash_text(column, number)
    )


def _hash_numbers(values: Any, column: Any) -> Hashes:
    # Both signs of zero have one hash, all NaN have another, and zeros add nothing.
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    # Unlike a number, an array wraps around without a warning.
    shift = (np.atleast_1d(column).astype(np.uint64) + np.uint64(1)) * _GOLDEN
    return np.where(numbers == 0.0, np.uint64(0), _mix(bits + shift))


def _hash_text(values: Any, column: int) -> Hashes:
    distinct = dict[str, int]()
    where = [distinct.setdefault(str(value), len(distinct)) for value in values]
    hashes = [
        int.from_bytes(
            hashlib.blake2b(f"{column} {text}".encode(), digest_size=8).digest(), "little"
        )
        for text in distinct
    ]
    return np.array(hashes, dtype=np.uint64)[where]


def _finite_number(value: Any) -> float:
    """The number that a text holds, NaN where it holds none."""
    try:
        number = float(str(value))
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _folds(hashes: Hashes, n_folds: int) -> NDArray[np.intp]:
    return (_mix(hashes) % np.uint64(n_folds)).astype(np.intp)


def _mix(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(hashes ^ (hashes >> np.uint64(31)))
