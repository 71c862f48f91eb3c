"""Dask arrays and data frames: workers compute moments of their rows, and only moments are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples
from threadpoolctl import threadpool_limits

from ..parameters import is_dask
from .batch import Batch, BatchError

__all__ = [
    "first_rows",
    "map_partitions",
    "split_partitions",
    "sum_partitions",
]

# Number of partitions whose moments are added in one task.
_SPLIT_EVERY = 8


def sum_partitions(
    make: Callable[..., Any],
    add: Callable[[list[Any]], Any],
    shared: Any,
    partitions: list[list[Any]],
) -> Any:
    """The sum, by ``add``, of ``make(shared, *tables)`` of all partitions.

    Notes
    -----
    The moments of partitions, (m + p)^2 numbers each, are added in a tree of groups of eight. The
    active scheduler is used: the threads of this process, or a distributed client. No client is
    made here. An error names the partition.
    """
    from dask.delayed import delayed

    shared, named, join = delayed(shared), delayed(_make_named), delayed(add)
    layer = [named(make, shared, number, *tables) for number, tables in enumerate(partitions)]
    while len(layer) > 1:
        layer = [
            join(layer[start : start + _SPLIT_EVERY])
            for start in range(0, len(layer), _SPLIT_EVERY)
        ]
    return _compute(layer[0], parallel=len(partitions) > 1)


def map_partitions(
    predict: Callable[[Any, Any], Any],
    shared: Any,
    X: Any,
    shape: tuple[int, ...],
    names: list[str],
    *,
    as_frame: bool = False,
) -> Any:
    """Lazy results of ``predict(shared, rows)`` in the partitions of X; ``shape`` is that of a row's result.

    A Dask array, or with ``as_frame`` a Dask data frame with these names if X is a data frame.
    """
    from dask.delayed import delayed

    if hasattr(X, "map_blocks"):
        X = _whole_rows(X)
        return X.map_blocks(
            _predict_array,
            predict,
            delayed(shared),
            shape,
            drop_axis=1,
            new_axis=list(range(1, 1 + len(shape))) or None,
            chunks=(X.chunks[0], *((size,) for size in shape)),
            dtype=np.float64,
            meta=np.empty((0, *shape)),
        )
    if len(shape) == 2:
        raise TypeError(
            "return_cov needs X as a Dask array, got a Dask data frame: use X.to_dask_array()"
        )
    import pandas as pd

    empty = np.empty((0, *shape))
    meta = pd.DataFrame(empty, columns=names) if shape else pd.Series(empty, name=names[0])
    results = X.map_partitions(_predict_frame, predict, delayed(shared), shape, meta, meta=meta)
    return results if as_frame else results.to_dask_array()


def _predict_array(
    X: Any, predict: Callable[[Any, Any], Any], shared: Any, shape: tuple[int, ...]
) -> Any:
    return predict(shared, X) if _num_samples(X) else np.empty((0, *shape))


def _predict_frame(
    X: Any, predict: Callable[[Any, Any], Any], shared: Any, shape: tuple[int, ...], meta: Any
) -> Any:
    values = _predict_array(X, predict, shared, shape)
    if len(shape) == 0:
        return type(meta)(values, index=X.index, name=meta.name)
    return type(meta)(values, index=X.index, columns=meta.columns)


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
            ends = np.cumsum(sizes)
            if len(table) != ends[-1]:
                raise ValueError(
                    f"X and {name} must have as many rows, got {ends[-1]} and {len(table)}"
                )
            pieces = [
                _safe_indexing(table, slice(int(end - size), int(end)))
                for size, end in zip(sizes, ends, strict=True)
            ]
        if len(pieces) != len(columns[0]):
            raise ValueError(
                f"X and {name} must have the same partitions, got {len(columns[0])} and {len(pieces)}"
            )
        columns.append(pieces)
    return [list(tables) for tables in zip(*columns, strict=True)]


def _whole_rows(table: Any) -> Any:
    """A Dask array in which no row is cut; rows of data frames never are."""
    if getattr(table, "ndim", 1) == 2 and hasattr(table, "numblocks") and table.numblocks[1] > 1:
        return table.rechunk({1: -1})
    return table


def _pieces(table: Any) -> list[Any]:
    return list(np.ravel(table.to_delayed()))


def first_rows(partitions: list[list[Any]], n_rows: int) -> Iterator[tuple[str, Batch]]:
    """The first rows of each partition, with a name of the partition for error messages."""
    from dask.delayed import delayed

    for number, tables in enumerate(partitions):
        X, y, weight, groups = _compute(delayed(_head)(n_rows, *tables), parallel=False)
        yield f"partition {number}", Batch(X, y, weight, groups=groups)


def _head(n_rows: int, *tables: Any) -> list[Any]:
    return [
        table if np.ndim(table) == 0 else _safe_indexing(table, slice(0, n_rows))
        for table in tables
    ]


def _make_named(make: Callable[..., Any], estimator: Any, number: int, *tables: Any) -> Any:
    """``make`` of one partition; an error names it."""
    try:
        return make(estimator, *tables)
    except (TypeError, ValueError) as error:
        raise BatchError(f"partition {number}: {error}") from error


def _compute(task: Any, *, parallel: bool) -> Any:
    # Tasks that run at the same time in this process use one thread each.
    with threadpool_limits(limits=1 if parallel else None, user_api="blas"):
        try:
            return task.compute()
        except Exception as error:
            # Compared by name, since distributed may not be installed.
            if type(error).__name__ == "KilledWorker":
                raise RuntimeError(
                    f"Dask workers died repeatedly in the same task, most often because memory ran out; "
                    f"make partitions smaller, or give workers more memory: {error}"
                ) from error
            raise
