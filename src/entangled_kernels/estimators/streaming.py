"""Fits from a stream of batches: rows leave their moments behind, and the model is solved when it is used."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Self

import joblib
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples, validate_data

from ..features import is_fitted
from ..learning import Moments, RowSample
from ..learning.cell_moments import CellMoments
from ..linalg import Array, Index
from ..parameters import check_real
from ..streams.stream import FeatureBlocks, Rows, Stream
from ..streams.waiting import settle, wait_for_map
from .cells import check_every_target_measured
from .target_transforms import is_ready
from .training import TrainingMixin

__all__ = ["StreamingMixin"]

# What an estimator knows of the columns of its tables.
COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "target_names_", "_one_dimensional")


class StreamingMixin(TrainingMixin):
    """`partial_fit`, `merge` and `solve` of an estimator that needs only moments of its rows.

    Its state is two values. ``_stream`` holds what was kept of the rows, None where nothing was; ``_fit`` is
    what came of them, None until it is solved for. A subclass says in ``_solve_moments`` how to find it, and
    may spread rows over several parts, folds for example.
    """

    _stream: Stream | None = None
    _fit: Any = None

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, *, forget: float = 1.0) -> Self:
        """Take in some more rows; the model is solved when it is next used, or by `solve`.

        Any split of the rows into batches gives the model of all rows at once, up to rounding.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            One row or none will do. Names of columns must be those of the first batch.
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            NaN where a target was not measured.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_outputs), or float, optional
            Of rows, or of cells.
        forget : float, default=1.0
            Factor, above 0 and at most 1, on the weights of all earlier rows for every row that comes: the
            row before the last k rows of the stream weighs ``forget ** k``. With 0.999 the last 1,000 rows
            hold 63% of the weight.

        Returns
        -------
        self

        Notes
        -----
        With ``forget`` the model is that of all rows at once with weights ``forget ** (n - 1 - i)``, however
        they are cut into batches: moments are sums, and a sum is forgotten by a factor. Rows whose weight has
        fallen below a thousandth no longer calibrate deviations and intervals. Weights of the past fade, the
        feature map does not change; a drift to inputs that it has not met needs a new fit.

        A feature map that is fitted already is used as it is. Otherwise it is fitted on the first 10,000
        rows, which are held in memory until then, or on those that there are when the model is first used;
        it does not change afterwards.

        Takes up where `fit` left off. Where `fit` keeps no moments, after a search or of a table with more
        columns than rows, it starts anew, with a warning.

        When a batch is refused, the estimator is as it was before. Missing values that the feature map lets
        through are found when it is fitted; the error then names the rows, which are left out.

        Time n (m + p)^2, memory (m + p)^2, for m features and p targets, whatever the number of rows.
        """
        return self._take_more(X, y, sample_weight, None, forget)

    def _take_more(self, X: Any, y: Any, sample_weight: Any, groups: Any, forget: float) -> Self:
        self._check_parameters()
        check_real("forget", forget, "a number above 0 and at most 1", lambda share: 0.0 < share <= 1.0)
        self._take_batch(X, y, sample_weight, groups, forget=float(forget))
        return self

    def _take_batch(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any = None,
        *,
        part: Index | None = None,
        where: str | None = None,
        forget: float = 1.0,
    ) -> None:
        """Take in a batch, whole or not at all.

        ``part`` is that of every row, where it does not follow from the row or its group; ``where`` is what
        errors that come later call the batch.
        """
        with _unchanged_on_error(self):
            stream = self._stream_so_far()
            if _num_samples(X) == 0:
                check_consistent_length(X, y)
                if stream is not None and hasattr(X, "shape"):
                    validate_data(self, X, reset=False, skip_check_array=True)
                return
            n = _num_samples(X)
            if forget < 1.0:
                sample_weight = _faded(sample_weight, forget ** np.arange(n - 1, -1, -1.0))
            rows = self._check_batch_rows(X, y, sample_weight, stream)._replace(where=where)
            rows = rows._replace(part=self._parts_of(rows, groups) if part is None else part)
            if stream is None:
                stream = self._start(rows, grouped=groups is not None)
            elif stream.grouped != (groups is not None):
                raise ValueError("groups must be given with every batch, or with none")
            with stream.lock:
                if hasattr(self, "feature_map_"):
                    stream.take(rows, self._batch_blocks(self.feature_map_), forget**n)
                else:
                    # What cannot be transformed is refused now, not when the feature map is fitted.
                    self._transformed(rows.Y, rows.weight)
                    self._wait(stream, rows, forget**n)
            self._fit = None

    def _wait(self, stream: Stream, rows: Rows, forget: float) -> None:
        """Keep rows for the feature map that will be fitted on them, and fit it once they are enough."""
        before = list(stream.waiting)
        if forget < 1.0:
            stream.forget(forget)
        faded = list(stream.waiting)
        try:
            if wait_for_map(stream, rows):
                self._settle(newest_on_trial=True)
        except BaseException:
            # Those of the rows before that are still there get back the weights they had.
            own = {id(after): rows for after, rows in zip(faded, before, strict=True)}
            stream.waiting = [own.get(id(rows), rows) for rows in stream.waiting]
            raise

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
        mine = self._stream_to_merge("this estimator")
        theirs = other._stream_to_merge("other")
        self._settle()
        if theirs.waiting:
            other = deepcopy(other)
            other._settle()
            theirs = other._stream_to_merge("other")
        self._check_mergeable(other)
        with mine.lock:
            mine.merge(theirs)
            self._fit = None
        return self

    def solve(self) -> Self:
        """Solve for all rows taken in so far, so that every attribute of the model is there.

        `predict` and everything else that uses the model does this by itself when it is needed. Several
        threads may; one of them does the work.

        Returns
        -------
        self
        """
        self._ensure_solved()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._fit is not None or self._stream is not None

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows taken in, those of no weight too."""
        if self._stream is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'n_samples_seen_'")
        return self._stream.n_rows

    # What a subclass says of itself.

    def _solve_moments(self, parts: list[Moments | CellMoments], sample: RowSample | None) -> Any:
        """The value of ``_fit`` that comes of the moments of all parts."""
        raise NotImplementedError

    def _n_parts(self) -> int:
        return 1

    def _parts_of(self, rows: Rows, groups: Any) -> Index | None:
        """Part of every row, None when there is one only."""
        if groups is not None:
            raise ValueError(
                f"groups are for folds, of which {type(self).__name__} has none; leave them out, or use "
                f"EntangledKernelRidgeCV"
            )
        return None

    def _fit_first_map(self, rows: Rows) -> Any:
        """The feature map fitted on the first rows of a stream, with their targets transformed."""
        rows, given = self._transform_first(rows), self._given_map()
        if is_fitted(given):
            return given
        return self._fit_map(given, rows.X, self._targets_like_y(rows.Y), rows.weight)[0]

    def _transform_first(self, rows: Rows) -> Rows:
        """The first rows of a stream with their targets transformed, after that is fitted on them."""
        if not is_ready(self.target_transform):
            self._start_target_transform(rows)
        return rows._replace(Y=self._transformed(rows.Y, rows.weight))

    # Solving.

    def _ensure_solved(self) -> None:
        """Solve if rows were taken in since the model was last solved, in one thread at a time."""
        stream = self._stream
        if self._fit is None and stream is not None:
            with stream.lock:
                if self._fit is None:
                    self._fit = self._solve_stream(stream)
        if self._fit is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate "
                f"arguments before using this estimator."
            )

    def _solve_stream(self, stream: Stream) -> Any:
        if stream.n_rows < 2:
            raise NotFittedError(f"at least 2 rows are needed, got {stream.n_rows}")
        self._settle()
        parts = stream.moments()
        n_rows = sum(part.n_samples for part in parts)
        if n_rows < 2:
            raise NotFittedError(f"at least 2 rows of positive sample_weight are needed, got {n_rows}")
        self._check_measured(sum(parts[1:], parts[0]))
        return self._solve_moments(parts, stream.numbered_sample())

    def _check_measured(self, total: Moments | CellMoments) -> None:
        """Raise, with its name, where a target has no measured cell yet."""
        if isinstance(total, CellMoments):
            counts = np.zeros((1, total.n_outputs))
            for places, own in total.groups:
                counts[:, places] = own.weight
            check_every_target_measured(counts, counts, getattr(self, "target_names_", None))

    def _settle(self, *, newest_on_trial: bool = False) -> None:
        """Fit the feature map on the rows that wait for it, and take them in."""
        stream = self._stream
        if stream is not None and stream.waiting:
            with stream.lock:
                self.feature_map_ = settle(
                    stream, self._fit_first_map, self._batch_blocks, newest_on_trial=newest_on_trial
                )

    def _batch_blocks(self, feature_map: Any) -> FeatureBlocks:
        """How the rows of a batch become features and transformed targets."""
        targets = None if self.target_transform_ is None else self._transformed
        return replace(self._feature_blocks(feature_map), targets=targets)

    # Taking rows in.

    def _reset(self) -> None:
        """Drop everything that came of rows."""
        self._stream = self._fit = None
        for name in ("feature_map_", "target_transform_"):
            vars(self).pop(name, None)

    def _start(self, rows: Rows, *, grouped: bool) -> Stream:
        """Begin a stream of rows like these."""
        if self._fit is not None:
            # scikit-learn's contract wants partial_fit to work after any fit.
            warnings.warn(
                f"partial_fit starts anew: fit kept no moments of the rows that this {type(self).__name__} "
                f"was fitted on; take in all rows with partial_fit or fit_batches",
                UserWarning,
                stacklevel=5,
            )
        self._reset()
        self._stream = Stream(rows.Y.shape[1], [None] * self._n_parts(), grouped=grouped)
        given, ready = self._given_map(), is_ready(self.target_transform)
        if ready:
            self._start_target_transform(rows)
        if ready and is_fitted(given):
            self.feature_map_ = given
        return self._stream

    def _start_target_transform(self, rows: Rows) -> None:
        """Find the transform of the targets of a stream from its first rows; it must not mix targets."""
        self._fit_target_transform(rows.Y, rows.weight, refit=False)
        if self.target_transform_ is not None and not self.target_transform_.elementwise:
            raise ValueError(
                f"target_transform={type(self.target_transform).__name__} mixes the targets, and needs all "
                f"rows in memory: use fit, or transform the targets of every batch beforehand"
            )

    def _stream_so_far(self) -> Stream | None:
        """What was kept of the rows seen, checked to be cut into parts as the next ones will be."""
        stream = self._stream
        if stream is not None and len(stream.parts) != self._n_parts():
            raise ValueError(
                f"cv must stay at the {len(stream.parts)} folds that rows were taken in with, got "
                f"{self._n_parts()}"
            )
        return stream

    def _check_batch_rows(self, X: Any, y: Any, sample_weight: Any, stream: Stream | None) -> Rows:
        """A batch checked; nothing of the stream is changed."""
        reset = stream is None
        targets = self._take_targets(y, reset=reset, blanks=True)
        X = self._check_batch(X, reset=reset)
        if stream is not None and targets[:1].size != stream.n_outputs:
            raise ValueError(
                f"y must have the {stream.n_outputs} columns it had before, got {targets[:1].size}"
            )
        return self._check_rows(X, targets, sample_weight)

    def _stream_of(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Stream:
        """A stream of these rows alone, like the estimator's own, which is not changed."""
        if self._stream is None:
            raise NotFittedError("names and feature map of the rows are not known yet")
        own = copy(self)
        own._stream = self._stream.blank()
        own._take_batch(X, y, sample_weight, groups)
        return own._stream

    def _for_workers(self) -> Self:
        """A copy for other processes, without the moments, which are of no use there."""
        slim = copy(self)
        slim._stream = None if self._stream is None else self._stream.blank()
        return slim

    # Merging.

    def _stream_to_merge(self, name: str) -> Stream:
        if self._stream is not None:
            return self._stream
        if self._fit is not None:
            raise ValueError(
                f"{name} was fitted in memory and kept no moments to merge; take in its rows with "
                f"partial_fit or fit_batches"
            )
        raise NotFittedError(f"{name} has seen no rows yet; call partial_fit or fit_batches first")

    def _check_mergeable(self, other: Self) -> None:
        for name in COLUMN_ATTRIBUTES:
            mine, theirs = getattr(self, name, None), getattr(other, name, None)
            if _listed(mine) != _listed(theirs):
                raise ValueError(f"estimators to merge must have the same {name}, got {mine} and {theirs}")
        own, others = self._stream_to_merge("this estimator"), other._stream_to_merge("other")
        if own.n_outputs != others.n_outputs or len(own.parts) != len(others.parts):
            raise ValueError("estimators to merge must have the same number of targets and of folds")
        if own.grouped != others.grouped:
            raise ValueError("estimators to merge must both have taken in groups of rows, or neither")
        for name in ("feature_map", "target_transform"):
            if joblib.hash(getattr(self, f"{name}_")) != joblib.hash(getattr(other, f"{name}_")):
                raise ValueError(
                    f"estimators to merge must have the same fitted {name}; fit it first and give it to both"
                )


def _faded(sample_weight: Any, factors: Array) -> Any:
    """Weights of rows, or of cells, times a factor for each row; the checks refuse what are no weights."""
    if sample_weight is None:
        return factors
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
        return weight * (factors[:, None] if weight.ndim == 2 else factors)
    except (TypeError, ValueError):
        return sample_weight


@contextmanager
def _unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Give an estimator back all its attributes when something goes wrong."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _listed(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in np.atleast_1d(names)]
