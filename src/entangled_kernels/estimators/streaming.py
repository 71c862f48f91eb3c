"""Fits from a stream of batches: rows leave their moments behind, and the model is solved when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from ..moments import Moments
from .parameters import check_range, check_weights

__all__ = ["FEATURE_SAMPLE", "PRODUCT_DTYPES", "Solved", "StreamingMixin", "missing_cell"]

Array = NDArray[np.float64]

PRODUCT_DTYPES = ("float64", "float32")
# What the first rows tell of all.
TOLD_BY_ROWS = ("n_features_in_", "feature_names_in_", "target_names_", "_one_dimensional")
# A feature map that comes unfitted is fitted on this many rows, the first ones of the stream.
FEATURE_SAMPLE = 10_000
# So many of the first rows are kept as features in a checkpoint, to know the feature map again.
_PROBE_ROWS = 8
# Rows that tell how many features there are, and what a feature takes: one float64, and one while it is made.
_FIRST_BLOCK, _BYTES_PER_FEATURE = 4096, 16


class Solved:
    """An attribute that is found when it is first asked for after rows were added.

    Not a data descriptor: once the attribute is set on the instance, this is out of the way. It is found
    again after every change of the rows, unless ``kept``.
    """

    def __init__(self, *, kept: bool = False) -> None:
        self.kept = kept

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if instance.__dict__.get("_unsolved", False):
            instance._solve_stream()
            if self.name in instance.__dict__:
                return instance.__dict__[self.name]
        raise AttributeError(f"{type(instance).__name__!r} object has no attribute {self.name!r}")


class _Rows(NamedTuple):
    """Rows of a batch, checked: inputs, targets (n, p), weights, the part of each row, and a name for all."""

    X: Any
    Y: Array
    weight: Array | None
    part: NDArray[np.intp] | None
    where: str | None = None


@dataclass(eq=False)
class Stream:
    """What is kept of the rows seen: moments, and rows that wait for a feature map to be fitted."""

    n_outputs: int
    parts: list[Moments | None]
    held: list[_Rows] = field(default_factory=list)
    probe: Array | None = None
    n_rows: int = 0

    @property
    def n_held(self) -> int:
        return sum(len(rows.Y) for rows in self.held)

    def add(self, part: int, moments: Moments) -> None:
        before = self.parts[part]
        self.parts[part] = moments if before is None else before + moments


class StreamingMixin:
    """`partial_fit` and `merge` of an estimator that needs only moments of its rows.

    A subclass names what comes of the moments as `Solved` attributes, and says in ``_solve_parts`` how. It
    may spread rows over several parts, folds for example.
    """

    max_memory: float
    product_dtype: str
    feature_map_ = Solved(kept=True)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in some more rows; the model is solved when it is next used.

        Any split of the rows into batches gives the model of all rows at once, up to rounding.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            One row or none will do. Names of columns must be those of the first batch.
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
        sample_weight : array-like of shape (n_samples,) or float, optional

        Returns
        -------
        self

        Notes
        -----
        A feature map that is fitted already is used as it is. Otherwise it is fitted on the first 10,000
        rows, which are held in memory until then, or on those that there are when the model is first used;
        it does not change afterwards.

        Takes up where `fit` left off, unless that saw a table with more columns than rows.

        When a batch is refused, the estimator is as it was before. Missing values that the feature map lets
        through are found when it is fitted; the error then names the rows, which are left out.

        Time n (m + p)^2, memory (m + p)^2, for m features and p targets, whatever the number of rows.
        """
        self._check_parameters()
        stream = self._stream_so_far()
        if _num_samples(X) == 0:
            check_consistent_length(X, y)
            if stream is not None and hasattr(X, "shape"):
                validate_data(self, X, reset=False, skip_check_array=True)
            return self
        before = {name: self.__dict__.get(name) for name in TOLD_BY_ROWS}
        try:
            rows = self._take_batch(X, y, sample_weight, stream)
        except BaseException:
            for name, value in before.items():
                self.__dict__.pop(name, None)
                if value is not None:
                    setattr(self, name, value)
            raise
        if stream is None:
            self._start(rows)
        try:
            if "feature_map_" in self.__dict__:
                self._add_rows(rows)
                self._stream.n_rows += len(rows.Y)
            else:
                self._hold(rows)
        except BaseException:
            if stream is None:
                self._forget()
            raise
        self._unsolve()
        return self

    def _start(self, rows: _Rows) -> None:
        """Begin a stream with the first rows."""
        self._forget()
        self._stream = Stream(rows.Y.shape[1], [None] * self._n_parts())
        given = self._given_map()  # type: ignore[attr-defined]
        if given is None or _is_fitted(given):
            self.feature_map_ = given

    def merge(self, other: Self) -> Self:
        """Take in all rows that another estimator has seen.

        Parameters
        ----------
        other : estimator of the same kind
            With the same columns and targets and, where there is one, the same fitted feature map. It is not
            changed. Its parameters do not matter but for that.

        Returns
        -------
        self
        """
        if type(other) is not type(self):
            raise TypeError(f"other must be of type {type(self).__name__}, got {type(other).__name__}")
        for name, one in (("this estimator", self), ("other", other)):
            if "_stream" in one.__dict__:
                continue
            if "coef_" in one.__dict__:
                raise ValueError(
                    f"{name} was fitted in memory and kept no moments to merge; take in its rows with "
                    f"partial_fit or fit_batches"
                )
            raise NotFittedError(f"{name} has seen no rows yet; call partial_fit or fit_batches first")
        mine, theirs = self._stream, other._stream
        self._settle_features()
        if theirs.held:
            other = deepcopy(other)
            other._settle_features()
            theirs = other._stream
        self._check_mergeable(other, len(mine.parts), len(theirs.parts))
        for number, moments in enumerate(theirs.parts):
            if moments is not None:
                mine.add(number, moments)
        mine.n_rows += theirs.n_rows
        self._unsolve()
        return self

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows taken in, those of no weight too."""
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'n_samples_seen_'")
        return stream.n_rows

    # What a subclass says of itself.

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _solve_parts(self, parts: list[Moments]) -> None:
        """Set all `Solved` attributes."""
        raise NotImplementedError

    def _n_parts(self) -> int:
        return 1

    def _parts_of(self, X: Any, Y: Array) -> NDArray[np.intp] | None:
        """Part of every row, None when there is one only."""
        return None

    # Taking rows in.

    _stream: Stream

    def _stream_so_far(self) -> Stream | None:
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is None and "coef_" in self.__dict__:
            self._miss_moments()
        if stream is not None and len(stream.parts) != self._n_parts():
            raise ValueError(
                f"cv must stay at the {len(stream.parts)} folds that rows were taken in with, got "
                f"{self._n_parts()}"
            )
        return stream

    def _miss_moments(self) -> None:
        """Say that rows were fitted whose moments were not kept."""
        raise ValueError(
            f"this {type(self).__name__} was fitted on a table with more columns than rows, of which fit "
            f"keeps no moments; take in all rows with partial_fit or fit_batches"
        )

    def _forget(self) -> None:
        """Drop everything that came of rows."""
        for name in ("_stream", "feature_map_"):
            self.__dict__.pop(name, None)
        self._unsolve(False)

    def _unsolve(self, unsolved: bool = True) -> None:
        """Drop what came of the moments."""
        for owner in type(self).__mro__:
            for name, value in vars(owner).items():
                if isinstance(value, Solved) and not value.kept:
                    self.__dict__.pop(name, None)
        self.__dict__.pop("_posterior", None)
        self._unsolved = unsolved

    def _take_batch(self, X: Any, y: Any, sample_weight: Any, stream: Stream | None) -> _Rows:
        """A batch checked; nothing of the stream is changed."""
        reset = stream is None
        targets = self._take_targets(y, reset=reset)  # type: ignore[attr-defined]
        X = self._check_batch(X, reset=reset)  # type: ignore[attr-defined]
        if stream is not None and targets[:1].size != stream.n_outputs:
            raise ValueError(
                f"y must have the {stream.n_outputs} columns it had before, got {targets[:1].size}"
            )
        return self._check_rows(X, targets, sample_weight)

    def _check_rows(self, X: Any, targets: Array, sample_weight: Any) -> _Rows:
        check_consistent_length(X, targets)
        Y = targets.reshape(len(targets), -1)
        weight = check_weights(sample_weight, len(Y), all_zero=True)
        check_range("y", Y, smallest=0.0)
        if getattr(getattr(X, "dtype", None), "kind", "") == "f" and not issparse(X) and X.size:
            check_range("X", np.nan_to_num(X, nan=0.0), smallest=0.0)
        return _Rows(X, Y, weight, self._parts_of(X, Y))

    def _add_rows(self, rows: _Rows) -> None:
        """Add the moments of some rows, all or none; rows of no weight are left out."""
        if rows.weight is not None and not rows.weight.all():
            keep = np.flatnonzero(rows.weight)
            part = None if rows.part is None else rows.part[keep]
            rows = _Rows(_safe_indexing(rows.X, keep), rows.Y[keep], rows.weight[keep], part)
        found = Stream(self._stream.n_outputs, [None] * len(self._stream.parts))
        for start, stop, Phi in self._feature_blocks(rows.X, len(rows.Y)):
            if found.probe is None:
                found.probe = np.array(Phi[:_PROBE_ROWS], dtype=np.float64)
            block = slice(start, stop)
            weight = None if rows.weight is None else rows.weight[block]
            if rows.part is None:
                found.add(0, self._moments(Phi, rows.Y[block], weight))
                continue
            for part in np.unique(rows.part[block]):
                own = rows.part[block] == part
                part_weight = None if weight is None else weight[own]
                found.add(int(part), self._moments(Phi[own], rows.Y[block][own], part_weight))
        self._stream.probe = found.probe if self._stream.probe is None else self._stream.probe
        for number, moments in enumerate(found.parts):
            if moments is not None:
                self._stream.add(number, moments)

    def _moments(self, Phi: Any, Y: Array, weight: Array | None) -> Moments:
        return Moments.from_arrays(Phi, Y, weight, product_dtype=self.product_dtype)

    def _moments_of_parts(
        self, X: Any, targets: Array, sample_weight: Any, parts: list[NDArray[np.intp]]
    ) -> list[Moments]:
        """Moments of parts of the rows, which are mapped in blocks that fit ``max_memory``."""
        rows = self._check_rows(X, targets, sample_weight)
        part = np.empty(len(rows.Y), dtype=np.intp)
        for number, index in enumerate(parts):
            part[index] = number
        self._stream = Stream(rows.Y.shape[1], [None] * len(parts))
        self._add_rows(rows._replace(part=part))
        found = [moments for moments in self._stream.parts if moments is not None]
        if len(found) < len(parts):
            raise ValueError("every fold needs rows of positive sample_weight in both of its parts")
        return found

    def _feature_blocks(self, X: Any, n: int) -> Iterator[tuple[int, int, Any]]:
        """First row, end and features of blocks of rows that take no more than ``max_memory``."""
        start, height = 0, n if self.feature_map_ is None else min(n, _FIRST_BLOCK)
        while start < n:
            stop = min(start + height, n)
            block = X if stop - start == n else _safe_indexing(X, slice(start, stop))
            Phi = self._batch_features(block)  # type: ignore[attr-defined]
            name = "X" if self.feature_map_ is None else "the output of feature_map"
            check_range(name, Phi, smallest=0.0)
            yield start, stop, Phi
            start, height = stop, max(1, int(self.max_memory / (_BYTES_PER_FEATURE * Phi.shape[1])))

    def _exceeds_memory(self, X: Any, targets: Array) -> bool:
        """Whether to map rows block by block: there are more than one table of features may have.

        Where there are more columns than rows, moments would take more than the features.
        """
        n = _num_samples(X)
        if self.feature_map_ is None or n <= _FIRST_BLOCK:
            return False
        m = self._batch_features(_safe_indexing(X, slice(0, 1))).shape[1]  # type: ignore[attr-defined]
        return bool(n * m * 8 > self.max_memory and m + targets[:1].size <= n)

    def _row_blocks(self, X: Any) -> list[Any]:
        """X in blocks whose features take no more than ``max_memory``."""
        if self.feature_map_ is None or not hasattr(X, "shape"):
            return [X]
        n, m = X.shape[0], self.coef_.shape[1]  # type: ignore[attr-defined]
        height = max(_FIRST_BLOCK, int(self.max_memory / (_BYTES_PER_FEATURE * m)))
        if n <= height:
            return [X]
        return [_safe_indexing(X, slice(start, start + height)) for start in range(0, n, height)]

    def _hold(self, rows: _Rows) -> None:
        """Keep rows until there are enough to fit the feature map; it is fitted then."""
        stream = self._stream
        weight = None if rows.weight is None else rows.weight.copy()
        X = _like(stream.held[0].X, rows.X) if stream.held else rows.X
        # The caller may use the memory of a batch for the next one.
        stream.held.append(rows._replace(X=deepcopy(X), Y=rows.Y.copy(), weight=weight))
        stream.n_rows += len(rows.Y)
        if stream.n_held >= FEATURE_SAMPLE:
            self._settle_features(taking=True)

    def _settle_features(self, *, taking: bool = False) -> None:
        """Fit the feature map on the first of the rows that wait for it, and take them all in.

        A batch that stands in the way is left out, and named, when all goes well without it. Where no batch
        alone is to blame, the newest one is left out if it is just being taken in.
        """
        stream = self._stream
        if not stream.held:
            return
        done = 0
        try:
            self._fit_map_on(stream.held)
            for done, rows in enumerate(stream.held):  # noqa: B007 (the error needs to know)
                self._add_rows(rows)
        except BaseException as error:
            fitted = self.__dict__.pop("feature_map_", None) is not None
            stream.parts, stream.probe = [None] * len(stream.parts), None
            place = done if fitted else self._culprit() if isinstance(error, ValueError) else None
            if place is None:
                if taking:
                    stream.n_rows -= len(stream.held.pop().Y)
                raise
            first = sum(len(rows.Y) for rows in stream.held[:place])
            refused = stream.held.pop(place)
            newest = taking and place == len(stream.held)
            stream.n_rows -= len(refused.Y)
            if newest or not isinstance(error, ValueError):
                raise
            last = first + len(refused.Y) - 1
            where = f"rows {first} to {last}" if refused.where is None else refused.where
            raise ValueError(
                f"{where}: these rows, which waited for the feature map to be fitted, are refused, and left "
                f"out: {error}{missing_cell(refused.X)}"
            ) from error
        stream.held = []

    def _fit_map_on(self, held: list[_Rows]) -> None:
        """Fit the feature map on the first of some rows."""
        X, Y = _stack([rows.X for rows in held]), np.concatenate([rows.Y for rows in held])
        weighted = any(rows.weight is not None for rows in held)
        sample = np.arange(min(len(Y), FEATURE_SAMPLE))
        weight = np.concatenate([_weights(rows) for rows in held])[sample] if weighted else None
        y = Y[:, 0] if self._one_dimensional else Y  # type: ignore[attr-defined]
        self._fit_map(_safe_indexing(X, sample), y[sample], weight)  # type: ignore[attr-defined]

    def _culprit(self) -> int | None:
        """Place of a batch without which the feature map can be fitted, the newest first, if there is one."""
        held = self._stream.held
        for place in reversed(range(len(held) if len(held) > 1 else 0)):
            try:
                self._fit_map_on(held[:place] + held[place + 1 :])
            except ValueError:
                continue
            finally:
                self.__dict__.pop("feature_map_", None)
            return place
        return None

    def _check_solved(self) -> None:
        """Solve if rows were added, or say what is missing."""
        if self.__dict__.get("_unsolved", False) and "coef_" not in self.__dict__:
            self._solve_stream()
        check_is_fitted(self, "coef_")

    def _solve_stream(self) -> None:
        """Solve for all rows seen so far."""
        if self._stream.n_rows < 2:
            raise NotFittedError(f"at least 2 rows are needed, got {self._stream.n_rows}")
        self._settle_features()
        parts = [part for part in self._stream.parts if part is not None]
        n_rows = sum(part.n_samples for part in parts)
        if n_rows < 2:
            raise NotFittedError(f"at least 2 rows of positive sample_weight are needed, got {n_rows}")
        self._unsolved = False
        try:
            self._solve_parts(parts)
        except BaseException:
            self._unsolve()
            raise

    def _check_mergeable(self, other: Any, n_parts: int, n_other_parts: int) -> None:
        for name in TOLD_BY_ROWS:
            mine, theirs = getattr(self, name, None), getattr(other, name, None)
            if _listed(mine) != _listed(theirs):
                raise ValueError(f"estimators to merge must have the same {name}, got {mine} and {theirs}")
        if self._stream.n_outputs != other._stream.n_outputs or n_parts != n_other_parts:
            raise ValueError("estimators to merge must have the same number of targets and of folds")
        if joblib.hash(self.feature_map_) != joblib.hash(other.feature_map_):
            raise ValueError(
                "estimators to merge must have the same fitted feature_map; fit the map first and give it to "
                "both"
            )


def _is_fitted(feature_map: Any) -> bool:
    try:
        check_is_fitted(feature_map)
    except (NotFittedError, TypeError):
        return False
    return True


def _weights(rows: _Rows) -> Array:
    return np.ones(len(rows.Y)) if rows.weight is None else rows.weight


def _listed(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in np.atleast_1d(names)]


def missing_cell(*tables: Any) -> str:
    """Words for the first missing value of data frames, to be put after an error; none without one."""
    for table in tables:
        if hasattr(table, "isna") and hasattr(table, "columns"):
            found = np.argwhere(table.isna().to_numpy())
            if len(found):
                row, column = found[0]
                return f"; the first missing value is in row {row} of them, column {table.columns[column]!r}"
    return ""


def _like(first: Any, table: Any) -> Any:
    """A table as the container that the first one is."""
    if type(table) is type(first):
        return table
    if issparse(first):
        return csr_matrix(table)
    values = table.toarray() if issparse(table) else np.asarray(table)
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
    return np.concatenate([np.asarray(table) for table in tables])
