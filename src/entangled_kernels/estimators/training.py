"""From a table to what is learned from: features, moments, and the learning problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length

from ..features import map_features
from ..learning import Fit, Moments, Problem, RowSample, reduce_moments, reduce_rows
from ..learning.cell_moments import CellMoments
from ..learning.completion import reduce_cell_rows, reduce_cells
from ..learning.row_sample import least_keys
from ..linalg import Array, Index
from ..parameters import check_choice, check_flag, check_integer, check_positive, check_range, check_weights
from ..streams.row_folds import sampling_keys
from ..streams.stream import FIRST_BLOCK, FeatureBlocks, Rows, Stream, working_bytes
from .cells import check_cells, check_every_target_measured, simplest_weights
from .feature_maps import FeatureMapMixin
from .target_transforms import LogTargets, TransformerTargets, check_target_transform, fit_target_transform
from .targets import TargetsMixin

__all__ = ["SolverParams", "Table", "Training", "TrainingMixin", "check_solver_params"]


class SolverParams(NamedTuple):
    """What ``solver_params`` may hold, with the defaults; `EntangledKernelRidge` explains each."""

    init: str = "identity"
    max_iter: int = 200
    tol: float = 1e-6
    verbose: bool = False


def check_solver_params(params: Any) -> SolverParams:
    """Settings of the iterative solvers from the parameter ``solver_params``, a mapping or None."""
    if params is not None and not isinstance(params, Mapping):
        raise TypeError(f"solver_params must be a dict or None, got {type(params).__name__}")
    unknown = sorted(map(str, set(params or {}) - set(SolverParams._fields)))
    if unknown:
        known = ", ".join(SolverParams._fields)
        raise ValueError(f"solver_params has unknown keys {unknown}; it may hold {known}")
    found = SolverParams(**(params or {}))
    check_choice("solver_params['init']", found.init, ("identity", "random"))
    check_integer("solver_params['max_iter']", found.max_iter, low=1)
    check_positive("solver_params['tol']", found.tol, zero_allowed=True)
    check_flag("solver_params['verbose']", found.verbose)
    return found._replace(max_iter=int(found.max_iter), tol=float(found.tol))


@dataclass(frozen=True, eq=False)
class Table:
    """A table to fit: inputs, targets (n, p) with NaN in blanks, weights of rows or cells, and groups.

    ``rows`` are places in the table that it is a part of, None where it is the whole; ``mapped`` says that X
    are features already. ``original`` are the targets where Y are transformed ones.
    """

    X: Any
    Y: Array
    weight: Array | None = None
    groups: Any = None
    rows: Index | None = None
    mapped: bool = False
    original: Array | None = None

    def some(self, index: Index) -> Table:
        """Rows at some places."""
        # What is left may weigh the same everywhere.
        weight = simplest_weights(None if self.weight is None else self.weight[index])
        groups = None if self.groups is None else _safe_indexing(self.groups, index)
        rows = index if self.rows is None else self.rows[index]
        original = None if self.original is None else self.original[index]
        return Table(_safe_indexing(self.X, index), self.Y[index], weight, groups, rows, original=original)

    def places_of(self, index: Index) -> Index:
        """Places here of rows of the whole table; those that are not here are left out."""
        if self.rows is None:
            return index
        place = np.minimum(np.searchsorted(self.rows, index), len(self.rows) - 1)
        return np.asarray(place[self.rows[place] == index])

    def sampled(self) -> tuple[Array, NDArray[np.uint64], Array | None]:
        """Targets, keys and weights, for a `RowSample`."""
        return self.Y, sampling_keys(self.X, self.Y), self.weight

    def sampled_places(self, size: int) -> Index:
        """Places of the rows of a `RowSample` of this size, in its order."""
        return least_keys(sampling_keys(self.X, self.Y), self.weight, size)


@dataclass(frozen=True, eq=False)
class Training:
    """What there is to learn from.

    Attributes
    ----------
    problem : Problem
        Of all rows; blanks are filled in.
    cells : CellMoments or None
        Of the measured cells, in the coordinates of the problem; None where all cells of a row are alike.
    stream : Stream or None
        To which more rows can be added; None where there are more columns than rows.
    sample : RowSample or None
        Rows to find residuals of.
    """

    problem: Problem
    cells: CellMoments | None = None
    stream: Stream | None = None
    sample: RowSample | None = None

    def sampled(self, fit: Fit) -> Fit:
        """A fit that finds its residuals on the rows of the sample."""
        return replace(fit, sample=self.sample)


class TrainingMixin(FeatureMapMixin, TargetsMixin):
    """Training rows of an estimator, whose features may take more than ``working_memory``."""

    fit_intercept: bool
    target_transform: Any
    random_state: Any

    target_transform_: LogTargets | TransformerTargets | None = None

    def _check_parameters(self) -> None:
        check_flag("fit_intercept", self.fit_intercept)
        check_target_transform(self.target_transform)

    def _check_table(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Table:
        """A table to fit, its targets transformed, without rows that have no target measured."""
        targets = self._take_targets(y, blanks=True)
        check_consistent_length(X, targets)
        Y, weight = self._cells(targets, sample_weight)
        check_every_target_measured(Y, weight, getattr(self, "target_names_", None))
        table = Table(X, Y, weight, groups)
        blank = np.isnan(Y).all(axis=1) if weight is None or weight.ndim == 1 else ~weight.any(axis=1)
        table = table.some(np.flatnonzero(~blank)) if blank.any() else table
        self._fit_target_transform(table.Y, table.weight)
        if self.target_transform_ is None:
            return table
        Y = self._transformed(table.Y, table.weight, table.rows)
        return replace(table, Y=Y, original=table.Y)

    def _fit_target_transform(self, Y: Array, weight: Array | None, *, refit: bool = True) -> None:
        """Find the transform of the targets, None where there is none."""
        names = self._output_names(Y.shape[1])
        self.target_transform_ = fit_target_transform(self.target_transform, Y, weight, names, refit=refit)

    @property
    def _mixing_transform(self) -> TransformerTargets | None:
        """The transform of the targets where it mixes them."""
        transform = self.target_transform_
        return transform if isinstance(transform, TransformerTargets) and not transform.elementwise else None

    def _transformed(self, Y: Array, weight: Array | None = None, rows: Index | None = None) -> Array:
        """Targets on the scale that they are learned on; ``rows`` are their places, for errors."""
        transform = self.target_transform_
        if transform is None:
            return Y
        # Cells without weight may hold any number, such as one that has no logarithm.
        if weight is not None and weight.ndim == 2:
            Y = np.where(weight > 0.0, Y, np.nan)
        elif weight is not None and not weight.all():
            counted = np.flatnonzero(weight)
            Y = np.where(weight[:, None] > 0.0, Y, Y[counted[0]] if len(counted) else np.nan)
        return transform.transform(Y, rows=rows)

    def _cells(
        self, targets: Array, sample_weight: Any, *, all_zero: bool = False
    ) -> tuple[Array, Array | None]:
        """Targets (n, p) with NaN in blanks, and weights of rows (n,) or of cells (n, p), checked."""
        Y = targets.reshape(len(targets), -1)
        measured = Y[np.isfinite(Y)]
        if measured.size:
            check_range("y", measured, **({"smallest": 0.0} if all_zero else {}))
        if np.isnan(Y).any() or (sample_weight is not None and np.asarray(sample_weight).ndim == 2):
            return check_cells(Y, sample_weight, getattr(self, "target_names_", None))
        return Y, check_weights(sample_weight, len(Y), all_zero=all_zero)

    def _map_targets(self, table: Table) -> tuple[Any, Array, Array | None]:
        """Inputs, targets in as many dimensions as y had, and weights, for a feature map to be fitted."""
        return table.X, self._targets_like_y(table.Y), table.weight

    def _training(self, feature_map: Any, table: Table, Phi: Any = None) -> Training:
        """What all rows of a table give to learn from; ``Phi`` are their features where these are known."""
        if Phi is None and self._exceeds_memory(feature_map, table):
            (moments,), sample = self._moments_of_parts(feature_map, table, [np.arange(len(table.Y))])
            return self._training_of_moments(moments, sample)
        return self._training_of_rows(self._training_features(feature_map, table.X, Phi), table)

    def _training_of_rows(self, Phi: Any, table: Table, filled: Array | None = None) -> Training:
        """What features in memory give to learn from; ``filled`` are targets with their blanks filled in."""
        weight, Y = table.weight, table.Y if filled is None else filled
        if weight is not None:
            weight = weight if filled is None or weight.ndim == 1 else weight.max(axis=1)
            keep = np.flatnonzero(weight if weight.ndim == 1 else weight.any(axis=1))
            if len(keep) < len(Y):
                Phi, Y, weight, table = Phi[keep], Y[keep], weight[keep], table.some(keep)
        if len(Y) < 2:
            raise ValueError("at least 2 rows of positive sample_weight are needed, got 1")
        options: dict[str, Any] = {"centred": bool(self.fit_intercept)}
        cells: CellMoments | None = None
        kept: Moments | CellMoments | None
        if weight is not None and weight.ndim == 2:
            problem, cells, kept = reduce_cell_rows(Phi, np.where(weight > 0.0, Y, 0.0), weight, **options)
        else:
            problem, kept = reduce_rows(Phi, Y, weight, **options)
        sample = RowSample.of(Phi, *table.sampled())
        stream = None if kept is None else Stream.of_moments(kept, sample)
        return Training(problem, cells, stream, sample)

    def _training_of_moments(self, moments: Moments | CellMoments, sample: RowSample | None) -> Training:
        """What rows of which the moments are known give to learn from."""
        stream = Stream.of_moments(moments, sample)
        moments = moments.simplest() if isinstance(moments, CellMoments) else moments
        if isinstance(moments, CellMoments):
            problem, cells = reduce_cells(moments, centred=bool(self.fit_intercept))
            return Training(problem, cells, stream, sample)
        return Training(reduce_moments(moments, centred=bool(self.fit_intercept)), None, stream, sample)

    def _exceeds_memory(self, feature_map: Any, table: Table) -> bool:
        """Whether to map rows block by block: there are more than one table of features may have.

        Where there are more columns than rows, moments would take more than the features.
        """
        n, p = table.Y.shape
        if feature_map is None or n <= FIRST_BLOCK:
            return False
        m = map_features(feature_map, _safe_indexing(table.X, slice(0, 1))).shape[1]
        return bool(n * m * 8 > working_bytes() and m + p <= n)

    def _feature_blocks(self, feature_map: Any) -> FeatureBlocks:
        """How rows become features with a fitted map."""
        # Columns that have been checked already are taken as they are.
        plain = feature_map is None and self._given_map() is None
        transform = None if plain else partial(map_features, feature_map)
        return FeatureBlocks(transform)

    def _moments_of_parts(
        self, feature_map: Any, table: Table, parts: list[Index]
    ) -> tuple[list[Moments | CellMoments], RowSample | None]:
        """Moments of parts of the rows, which are mapped in blocks, and a sample of the rows."""
        rows = self._check_rows(table.X, table.Y, table.weight)
        part = np.empty(len(rows.Y), dtype=np.intp)
        for number, index in enumerate(parts):
            part[index] = number
        stream = Stream(rows.Y.shape[1], [None] * len(parts))
        stream.take(rows._replace(part=part), self._feature_blocks(feature_map))
        found = stream.moments()
        if len(found) < len(parts):
            raise ValueError("every fold needs rows of positive sample_weight in both of its parts")
        return found, stream.sample

    def _check_rows(self, X: Any, targets: Array, sample_weight: Any) -> Rows:
        """Rows whose targets, weights and, where they can be told, inputs are in range."""
        check_consistent_length(X, targets)
        Y, weight = self._cells(targets, sample_weight, all_zero=True)
        if getattr(getattr(X, "dtype", None), "kind", "") == "f" and isinstance(X, np.ndarray) and X.size:
            check_range("X", np.nan_to_num(X, nan=0.0), smallest=0.0)
        return Rows(X, Y, weight, key=sampling_keys(X, Y))
