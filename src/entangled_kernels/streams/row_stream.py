"""What is kept of rows that come in batches: moments, a sample, and rows that wait for a feature map."""

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
    "RowMap",
    "RowStream",
    "Rows",
    "block_ends",
    "group_folds",
    "missing_value",
    "row_folds",
    "sampling_keys",
]

# A feature map that is not fitted yet is fitted on this many rows, the first ones of the stream.
FEATURE_SAMPLE = 10_000
# Number of the first rows whose features are kept, to recognise the feature map.
_PROBE_ROWS = 8
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
Hashes = NDArray[np.uint64]


class Rows(NamedTuple):
    """Rows of a batch, checked.

    Inputs; targets (n, p), NaN where missing; weights of rows (n,) or of single targets (n, p); the
    part of each row, such as its fold; a name of the batch for errors; and a key of each row, a
    hash by which it is drawn into a sample.
    """

    X: Any
    Y: Array
    weight: Array | None = None
    part: Index | None = None
    where: str | None = None
    key: NDArray[np.uint64] | None = None

    def measured(self) -> Array:
        """Targets, NaN where they have no weight."""
        if self.weight is None:
            return self.Y
        return np.where(self.weight.reshape(len(self.Y), -1) > 0.0, self.Y, np.nan)

    def some(self, index: Any) -> Rows:
        """The rows at an index, or of a slice."""
        if isinstance(index, slice) and index.indices(len(self.Y)) == (0, len(self.Y), 1):
            return self
        weight, part, key = (
            None if values is None else values[index]
            for values in (self.weight, self.part, self.key)
        )
        return Rows(_safe_indexing(self.X, index), self.Y[index], weight, part, self.where, key)


@dataclass(frozen=True, eq=False)
class RowMap:
    """How rows become features and targets on the learned scale.

    Attributes
    ----------
    feature_map : transformer or None
        Fitted; None where the columns are the features.
    scale : TargetScale or None
    """

    feature_map: Any = None
    scale: TargetScale | None = None

    def blocks(self, rows: Rows) -> Iterator[tuple[Any, Rows]]:
        """Features and rows with learned targets, in blocks that fit scikit-learn's ``working_memory``."""
        start, n = 0, len(rows.Y)
        plain = (
            self.feature_map is None and isinstance(rows.X, np.ndarray) and rows.X.dtype.kind == "f"
        )
        height = n if plain else min(n, FIRST_BLOCK)
        while start < n:
            block = rows.some(slice(start, min(start + height, n)))
            Phi = block.X if plain else map_features(self.feature_map, block.X)
            name = "X" if self.feature_map is None else "the output of feature_map"
            check_range(name, Phi, smallest=0.0)
            yield Phi, block._replace(Y=self.targets(block.Y, block.weight))
            start, height = start + len(block.Y), block_height(Phi.shape[1])

    def targets(self, Y: Array, weight: Array | None, rows: Index | None = None) -> Array:
        """Targets on the learned scale; those of weight zero may hold any number.

        ``rows`` are row numbers for error messages.
        """
        if self.scale is None:
            return Y
        if weight is not None and weight.ndim == 2:
            Y = np.where(weight > 0.0, Y, np.nan)
        elif weight is not None and not weight.all():
            counted = np.flatnonzero(weight)
            Y = np.where(weight[:, None] > 0.0, Y, Y[counted[0]] if len(counted) else np.nan)
        return self.scale.transform(Y, rows=rows)


FitRowMap = Callable[[Rows], RowMap]


@dataclass(eq=False)
class RowStream:
    """Moments of all rows seen, in parts such as folds, with a bounded sample of the rows.

    Attributes
    ----------
    n_parts : int
        Number of parts, such as folds.
    row_map : RowMap or None
        None until the feature map is fitted; rows wait until then.
    scale : TargetScale or None
        The scale of the targets, where it is known before the feature map.
    n_outputs : int or None
        Number of targets; None before the first row.
    parts : dict of Moments
        Moments of each part that has a row, by its number.
    waiting : list of Rows
        Rows that wait for the feature map.
    probe : ndarray or None
        Features of the first rows.
    sample : RowSample or None
        Some of the rows, drawn by their keys.
    inputs : InputRange or None
        Range of the inputs, before the feature map; it does not fade.
    n_rows : int
        Number of rows seen, those that wait and those of weight zero included.
    grouped : bool
        Whether rows of a group share a part.
    fading : bool
        Whether weights of earlier rows were forgotten.
    lock : threading.RLock
        Held while the stream is changed or solved for.
    """

    n_parts: int = 1
    row_map: RowMap | None = None
    scale: TargetScale | None = None
    n_outputs: int | None = None
    parts: dict[int, Moments] = field(default_factory=dict)
    waiting: list[Rows] = field(default_factory=list)
    probe: Array | None = None
    sample: RowSample | None = None
    inputs: InputRange | None = None
    n_rows: int = 0
    grouped: bool = False
    fading: bool = False
    lock: Any = field(default_factory=threading.RLock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=threading.RLock())

    def blank(self) -> RowStream:
        """A stream of the same parts, feature map and targets, without any rows."""
        return RowStream(
            self.n_parts, self.row_map, self.scale, self.n_outputs, grouped=self.grouped
        )

    @staticmethod
    def merged(streams: list[RowStream]) -> RowStream:
        """One stream of the rows of several."""
        total = streams[0].blank()
        for stream in streams:
            total.merge(stream)
        return total

    def summary(self) -> tuple[list[Moments], RowSample | None]:
        """Moments of the parts that have rows, and the sample with parts numbered as in this list."""
        numbers, sample = sorted(self.parts), self.sample
        if sample is not None:
            sample = replace(sample, part=np.searchsorted(numbers, sample.part))
        return [self.parts[number] for number in numbers], sample

    def take(self, rows: Rows, fit_map: FitRowMap, forget: float = 1.0) -> None:
        """Take rows in, all or none of them.

        Parameters
        ----------
        rows : Rows
        fit_map : callable
            Fits feature map and target scale on the first rows.
        forget : float, default=1.0
            Factor on the weights of all rows before.
        """
        with self.lock:
            if self.row_map is None:
                self._wait(rows, fit_map, forget)
            else:
                taken = self.blank()
                rows = _leave_out_faded([rows])[0] if forget < 1.0 else rows
                taken._add_rows(rows, self.row_map)
                self.forget(forget, taken.sample)
                self.merge(taken)
            self.n_outputs = rows.Y.shape[1]

    def forget(self, factor: float, newest: RowSample | None = None) -> None:
        """Multiply the weights of all rows seen by ``factor``, before a sample of new rows is added."""
        if factor == 1.0:
            return
        self.fading = True
        self.parts = {number: part.scaled(factor) for number, part in self.parts.items()}
        self.waiting = [
            rows._replace(
                weight=factor * (np.ones(len(rows.Y)) if rows.weight is None else rows.weight)
            )
            for rows in self.waiting
        ]
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

    def finish_waiting(self, fit_map: FitRowMap, *, newest_on_trial: bool = False) -> None:
        """Fit the feature map on the rows that wait for it, and take these in.

        Notes
        -----
        Either all is done, or the stream stays as it was but for one batch: one without which the
        map can be fitted is left out, and named in the error. The newest one is left out too if it
        is just being taken in (``newest_on_trial``), since the call that brought it fails.
        """
        with self.lock:
            if not self.waiting:
                return
            taken, number, row_map = self.blank(), 0, None
            waiting = _leave_out_faded(self.waiting) if self.fading else self.waiting
            try:
                row_map = _fit_on(self.waiting, fit_map)
                for number, rows in enumerate(waiting):  # noqa: B007 (the error needs the number)
                    taken._add_rows(rows, row_map)
            except BaseException as error:
                refused: int | None = None
                # An interrupt, or too little memory, is no fault of a batch.
                if isinstance(error, ValueError | TypeError):
                    refused = (
                        number if row_map is not None else _spoiling_batch(self.waiting, fit_map)
                    )
                self._refuse(refused, error, newest_on_trial=newest_on_trial)
                raise
            self.row_map, self.parts, self.waiting = row_map, taken.parts, []
            self.probe, self.sample, self.inputs = taken.probe, taken.sample, taken.inputs

    def _wait(self, rows: Rows, fit_map: FitRowMap, forget: float) -> None:
        """Keep a copy of rows until there is a feature map, and fit the map once there are enough rows."""
        # Targets that cannot be transformed are refused now, not when the feature map is fitted.
        RowMap(None, self.scale).targets(rows.Y, rows.weight)
        before = list(self.waiting)
        self.forget(forget)
        faded = list(self.waiting)
        X = _as_container(self.waiting[0].X, rows.X) if self.waiting else rows.X
        weight = None if rows.weight is None else rows.weight.copy()
        self.waiting.append(rows._replace(X=deepcopy(X), Y=rows.Y.copy(), weight=weight))
        self.n_rows += len(rows.Y)
        try:
            if self.n_rows >= FEATURE_SAMPLE:
                self.finish_waiting(fit_map, newest_on_trial=True)
        except BaseException:
            # The batches that still wait get back the weights that they had.
            unfaded = {id(after): batch for after, batch in zip(faded, before, strict=True)}
            self.waiting = [unfaded.get(id(batch), batch) for batch in self.waiting]
            raise

    def _add_rows(self, rows: Rows, row_map: RowMap) -> None:
        """Add the moments of rows; rows of weight zero only count."""
        self.n_rows += len(rows.Y)
        if rows.weight is not None and not rows.weight.all():
            rows = rows.some(
                np.flatnonzero(rows.weight if rows.weight.ndim == 1 else rows.weight.any(axis=1))
            )
        if len(rows.Y) == 0:
            return
        inputs = InputRange.of(rows.X)
        self.inputs = inputs if self.inputs is None else self.inputs.merge(inputs)
        for Phi, block in row_map.blocks(rows):
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

    def _refuse(self, number: int | None, error: BaseException, *, newest_on_trial: bool) -> None:
        """Leave out a batch that waits, and name it in an error unless it is the newest."""
        newest = len(self.waiting) - 1 if newest_on_trial else None
        before = list(self.waiting)
        self.waiting = [rows for place, rows in enumerate(before) if place not in (number, newest)]
        self.n_rows -= sum(len(rows.Y) for rows in before)
        self.n_rows += sum(len(rows.Y) for rows in self.waiting)
        if number is None or number == newest or not isinstance(error, ValueError):
            return
        first = sum(len(rows.Y) for rows in before[:number])
        refused = before[number]
        where = (
            f"rows {first + 1} to {first + len(refused.Y)}"
            if refused.where is None
            else refused.where
        )
        raise ValueError(
            f"{where}: these rows, which waited for the feature map to be fitted, are refused, and left "
            f"out: {error}{missing_value(refused.X)}"
            + ("; the newest rows were not taken in, give them again" if newest_on_trial else "")
        ) from error


def _leave_out_faded(batches: list[Rows]) -> list[Rows]:
    """Batches whose rows are not sampled where their weight is below `FORGOTTEN` of the heaviest."""
    weights = [
        np.ones(len(rows.Y)) if rows.weight is None else rows.weight.reshape(len(rows.Y), -1).max(1)
        for rows in batches
    ]
    least = FORGOTTEN * max(weight.max(initial=0.0) for weight in weights)
    return [
        rows
        if rows.key is None
        else rows._replace(key=np.where(weight < least, NOT_SAMPLED, rows.key))
        for rows, weight in zip(batches, weights, strict=True)
    ]


def missing_value(*tables: Any) -> str:
    """Words for the first missing value of some data frames, to end an error with; empty without one."""
    for table in tables:
        if hasattr(table, "isna") and hasattr(table, "columns"):
            missing = np.argwhere(table.isna().to_numpy())
            if len(missing):
                row, column = missing[0]
                name = table.columns[column]
                return f"; the first missing value is in row {row + 1} of them, column {name!r}"
    return ""


def _fit_on(waiting: list[Rows], fit_map: FitRowMap) -> RowMap:
    """The row map fitted on the first of the rows that wait."""
    Y = np.concatenate([rows.Y for rows in waiting])
    weight = None
    if any(rows.weight is not None for rows in waiting):
        weights = [np.ones(len(rows.Y)) if rows.weight is None else rows.weight for rows in waiting]
        if any(values.ndim == 2 for values in weights):
            # Weights of rows are those of all their targets.
            weights = [
                np.broadcast_to(values.reshape(len(values), -1), (len(values), Y.shape[1]))
                for values in weights
            ]
        weight = np.concatenate(weights)
    parts = [rows.part for rows in waiting if rows.part is not None]
    rows = Rows(
        _stack([rows.X for rows in waiting]), Y, weight, np.concatenate(parts) if parts else None
    )
    if weight is not None:
        # Rows of weight zero, and rows without any target, have no part in the map.
        counted = weight > 0.0 if weight.ndim == 1 else weight.any(axis=1)
        rows = rows.some(np.flatnonzero(counted)) if counted.any() else rows
    return fit_map(rows.some(slice(0, FEATURE_SAMPLE)))


def _spoiling_batch(waiting: list[Rows], fit_map: FitRowMap) -> int | None:
    """Number of the newest batch without which the feature map can be fitted, None where there is none."""
    for number in reversed(range(len(waiting) if len(waiting) > 1 else 0)):
        with suppress(ValueError):
            _fit_on(waiting[:number] + waiting[number + 1 :], fit_map)
            return number
    return None


def _as_container(first: Any, table: Any) -> Any:
    """A table as the container that the first one is."""
    if type(table) is type(first):
        return table
    if issparse(first):
        return csr_matrix(table)
    values = table.toarray() if issparse(table) else as_table(table)
    if hasattr(first, "iloc"):
        return type(first)(values, columns=first.columns)
    if hasattr(first, "vstack"):
        return type(first)(values, schema=first.columns)
    return values


def _stack(tables: list[Any]) -> Any:
    """Tables of one kind on top of each other."""
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
    return np.concatenate([as_table(table) for table in tables])


def row_folds(X: Any, Y: NDArray[Any], n_folds: int) -> NDArray[np.intp]:
    """Fold of every row, 0 to n_folds - 1, by a hash of its values.

    Depends on nothing but the row: not on its neighbours, its place, the machine, or whether it is
    stored as float32 or float64. Rows that are equal share a fold, so none is held out from its own
    copy.

    Parameters
    ----------
    X : array, sparse array or data frame of shape (n, d)
        Numbers or text.
    Y : ndarray of shape (n, p)
    n_folds : int

    Notes
    -----
    The values' bits are mixed with the number of their column (the finaliser of splitmix64) and
    added, wrapping around; zeros count as nothing, so that sparse rows have the folds of dense
    ones.

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

    All rows of a group share a fold, wherever and whenever they come, and whether a number comes as
    an integer, a float or text.

    Notes
    -----
    Groups fall into folds as if by throws of a die: of few groups some folds get none, and the
    others are uneven.

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
    """Ends of blocks of rows in their order, as in `TimeSeriesSplit`: the first has what is left over.

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
    """Keys of rows, by which they are drawn into a sample, independent of their folds.

    Arrays of numbers take one product of their bits with odd numbers for each row, mixed once,
    which is a tenth of the time of `row_folds`; other tables take the hashes that it rests on.
    """
    plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    total = _GOLDEN if plain else _hash_table(X, Y.shape[1]) + _GOLDEN
    columns = np.arange(1, 1 + Y.shape[1] + (X.shape[1] if plain else 0), dtype=np.uint64)
    odd = _mix(columns * _GOLDEN) | np.uint64(1)
    tables = [(np.where(np.isnan(Y), np.nan, Y), odd[: Y.shape[1]])]
    for table, factors in [*tables, (X, odd[Y.shape[1] :])] if plain else tables:
        # Adding zero makes one zero of its two signs.
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
    for place, column in enumerate(columns, start=first):
        total += _hash_column(column, place)
    return total


def _hash_column(column: NDArray[Any], place: int) -> Hashes:
    return (
        _hash_numbers(column, place) if column.dtype.kind in "biuf" else _hash_text(column, place)
    )


def _hash_numbers(values: Any, place: Any) -> Hashes:
    # Zero has two signs, and what is no number many forms; a zero counts as nothing.
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    # An array, not a number: that wraps around without a warning.
    shift = (np.atleast_1d(place).astype(np.uint64) + np.uint64(1)) * _GOLDEN
    return np.where(numbers == 0.0, np.uint64(0), _mix(bits + shift))


def _hash_text(values: Any, place: int) -> Hashes:
    distinct = dict[str, int]()
    where = [distinct.setdefault(str(value), len(distinct)) for value in values]
    hashes = [
        int.from_bytes(
            hashlib.blake2b(f"{place} {text}".encode(), digest_size=8).digest(), "little"
        )
        for text in distinct
    ]
    return np.array(hashes, dtype=np.uint64)[where]


def _finite_number(value: Any) -> float:
    """The number that a text stands for, NaN where it stands for none."""
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
