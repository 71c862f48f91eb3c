"""Dask arrays and data frames: moments where the rows are, and only these travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples
from threadpoolctl import threadpool_limits

from ..streams.batch import BatchError
from .frames import to_container

__all__ = [
    "first_rows",
    "is_dask",
    "predict_dask",
    "split_partitions",
    "sum_partitions",
]

# So many partitions' moments are added in one task.
_SPLIT_EVERY = 8


def is_dask(*tables: Any) -> bool:
    """Whether any of the tables is a Dask collection."""
    return any(hasattr(table, "__dask_graph__") for table in tables)


def sum_partitions(
    take: Callable[..., Any], add: Callable[[list[Any]], Any], estimator: Any, partitions: list[list[Any]]
) -> Any:
    """What is kept of the rows of all partitions: ``take(estimator, *tables)`` of each, added.

    Notes
    -----
    Every partition gives its moments, (m + p)^2 numbers each, which are added in a tree of groups of eight.
    The scheduler in force is used: the threads of this process, or the distributed client that is active.
    No client is made here. An error names the partition.
    """
    from dask.delayed import delayed

    shared, named, join = delayed(estimator._for_workers()), delayed(_take_named), delayed(add)
    layer = [named(take, shared, number, *tables) for number, tables in enumerate(partitions)]
    while len(layer) > 1:
        layer = [join(layer[start : start + _SPLIT_EVERY]) for start in range(0, len(layer), _SPLIT_EVERY)]
    return _compute(layer[0], parallel=len(partitions) > 1)


def predict_dask(model: Any, X: Any, return_std: bool, return_cov: bool) -> Any:
    """Lazy predictions, in the partitions of X; a pair of them with the standard deviation or covariance."""
    mean = _lazy(model, X, {})
    if return_std or return_cov:
        return mean, _lazy(model, X, {"return_std": return_std, "return_cov": return_cov})
    return mean


def _lazy(model: Any, X: Any, options: dict[str, bool]) -> Any:
    from dask.delayed import delayed

    slim = model._for_workers()
    slim._sklearn_output_config = {}
    n_outputs = model._n_targets()
    names = model._output_names(n_outputs)
    shape = () if model._one_dimensional else (n_outputs,) * (2 if options.get("return_cov") else 1)
    if hasattr(X, "map_blocks"):
        X = _whole_rows(X)
        return X.map_blocks(
            _predict_partition,
            delayed(slim),
            options,
            shape,
            drop_axis=1,
            new_axis=list(range(1, 1 + len(shape))) or None,
            chunks=(X.chunks[0], *((size,) for size in shape)),
            dtype=np.float64,
            meta=np.empty((0, *shape)),
        )
    if len(shape) == 2:
        raise TypeError("return_cov needs X as a Dask array, got a Dask data frame: use X.to_dask_array()")
    meta = to_container("pandas", np.empty((0, *shape)), names, None)
    frame = X.map_partitions(_predict_frame, delayed(slim), options, names, shape, meta=meta)
    return frame if model._container() == "pandas" else frame.to_dask_array()


def _predict_partition(X: Any, model: Any, options: dict[str, bool], shape: tuple[int, ...]) -> Any:
    if _num_samples(X) == 0:
        return np.empty((0, *shape))
    found = model.predict(X, **options)
    return found[1] if options else found


def _predict_frame(X: Any, model: Any, options: Any, names: list[str], shape: tuple[int, ...]) -> Any:
    return to_container("pandas", _predict_partition(X, model, options, shape), names, X)


def split_partitions(X: Any, y: Any, sample_weight: Any, groups: Any = None) -> list[list[Any]]:
    """Delayed tables (X, y, weight, groups) of every partition."""
    if not is_dask(X):
        raise TypeError(
            f"X must be a Dask collection where y, sample_weight or groups is one, got {type(X).__name__}"
        )
    if y is None:
        raise ValueError("y must be given, the target y is None")
    X = _whole_rows(X)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    columns = [_pieces(X)]
    for name, table in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
        pieces: list[Any] = [table] * len(columns[0])
        if is_dask(table):
            if hasattr(table, "chunks"):
                table = _whole_rows(table)
                if table.chunks[0] != sizes and not np.isnan([*table.chunks[0], *sizes]).any():
                    table = table.rechunk({0: sizes})
            pieces = _pieces(table)
        elif table is not None and np.ndim(table) > 0:
            if np.isnan(sizes).any():
                raise ValueError(
                    f"{name} must be a Dask collection where X is a data frame or has chunks of unknown size"
                )
            pieces = np.split(np.asarray(table), np.cumsum(sizes)[:-1])
        if len(pieces) != len(columns[0]):
            raise ValueError(
                f"X and {name} must have the same partitions, got {len(columns[0])} and {len(pieces)}"
            )
        columns.append(pieces)
    return [list(tables) for tables in zip(*columns, strict=True)]


def _whole_rows(table: Any) -> Any:
    """A Dask array in which no row is cut; data frames are so always."""
    if getattr(table, "ndim", 1) == 2 and hasattr(table, "numblocks") and table.numblocks[1] > 1:
        return table.rechunk({1: -1})
    return table


def _pieces(table: Any) -> list[Any]:
    return list(np.ravel(table.to_delayed()))


def first_rows(partitions: list[list[Any]], n_rows: int) -> Iterator[tuple[str, list[Any]]]:
    """The first rows of one partition after the other, each with a name for errors."""
    from dask.delayed import delayed

    for number, tables in enumerate(partitions):
        yield f"partition {number}", _compute(delayed(_head)(n_rows, *tables), parallel=False)


def _head(n_rows: int, *tables: Any) -> list[Any]:
    return [table if np.ndim(table) == 0 else _safe_indexing(table, slice(0, n_rows)) for table in tables]


def _take_named(take: Callable[..., Any], estimator: Any, number: int, *tables: Any) -> Any:
    """What is kept of one partition; an error names it."""
    try:
        return take(estimator, *tables)
    except (TypeError, ValueError) as error:
        raise BatchError(f"partition {number}: {error}") from error


def _compute(task: Any, *, parallel: bool) -> Any:
    # Tasks that run side by side in this process take one thread each.
    with threadpool_limits(limits=1 if parallel else None, user_api="blas"):
        try:
            return task.compute()
        except Exception as error:
            # Known by name, since distributed may not be installed.
            if type(error).__name__ == "KilledWorker":
                raise RuntimeError(
                    f"Dask workers died again and again in the same task, most often for want of memory; "
                    f"make partitions smaller, or give workers more memory: {error}"
                ) from error
            raise
