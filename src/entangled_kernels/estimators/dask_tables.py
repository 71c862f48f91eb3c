"""Dask arrays and data frames: moments where the rows are, and only these travel."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples
from threadpoolctl import threadpool_limits

from ..batches import BatchError
from ..moments import Moments
from .streaming import FEATURE_SAMPLE, Stream

__all__ = ["fit_dask", "is_dask", "predict_dask"]

# So many partitions' moments are added in one task.
_SPLIT_EVERY = 8

Parts = list[Moments | None]


def is_dask(*tables: Any) -> bool:
    """Whether any of the tables is a Dask collection."""
    return any(hasattr(table, "__dask_graph__") for table in tables)


def fit_dask(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit an estimator that has `partial_fit` on partitions of rows, wherever they are.

    Notes
    -----
    Every partition gives its moments, (m + p)^2 numbers each, which are added in a tree of groups of eight.
    The scheduler in force is used: the threads of this process, or the distributed client that is active.
    No client is made here. Before that the first rows, up to 10,000, are brought here to know names and to
    fit a feature map that is not fitted yet.
    """
    partitions = _partitions(X, y, sample_weight)
    estimator._forget()
    try:
        _fit_partitions(estimator, partitions)
    except BaseException:
        # Of the first rows alone there is to be no model.
        estimator._forget()
        raise


def _fit_partitions(estimator: Any, partitions: list[list[Any]]) -> None:
    from dask.delayed import delayed

    _take_first_rows(estimator, partitions)
    blank = _without_rows(estimator)
    blank._stream = Stream(estimator._stream.n_outputs, [None] * len(estimator._stream.parts))
    shared = delayed(blank)
    take, add = delayed(_partition_moments), delayed(_add)
    layer = [take(shared, number, *tables) for number, tables in enumerate(partitions)]
    while len(layer) > 1:
        layer = [add(layer[start : start + _SPLIT_EVERY]) for start in range(0, len(layer), _SPLIT_EVERY)]
    n_rows, parts = _compute(layer[0], parallel=len(partitions) > 1)
    estimator._stream.parts, estimator._stream.n_rows, estimator._stream.held = parts, n_rows, []
    estimator._unsolve()


def predict_dask(model: Any, X: Any, return_std: bool, return_cov: bool) -> Any:
    """Lazy predictions, in the partitions of X; a pair of them with the standard deviation or covariance."""
    mean = _lazy(model, X, {})
    if return_std or return_cov:
        return mean, _lazy(model, X, {"return_std": return_std, "return_cov": return_cov})
    return mean


def _lazy(model: Any, X: Any, options: dict[str, bool]) -> Any:
    from dask.delayed import delayed

    slim = _without_rows(model)
    slim._sklearn_output_config = {}
    n_outputs, names = len(model.coef_), model._output_names(len(model.coef_))
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
    frame = X.map_partitions(
        _predict_frame, delayed(slim), options, names, shape, meta=_frame(np.empty((0, *shape)), names)
    )
    kind = getattr(model, "_sklearn_output_config", {}).get("predict", "default")
    return frame if kind == "pandas" else frame.to_dask_array()


def _predict_partition(X: Any, model: Any, options: dict[str, bool], shape: tuple[int, ...]) -> Any:
    if _num_samples(X) == 0:
        return np.empty((0, *shape))
    found = model.predict(X, **options)
    return found[1] if options else found


def _predict_frame(X: Any, model: Any, options: Any, names: list[str], shape: tuple[int, ...]) -> Any:
    return _frame(_predict_partition(X, model, options, shape), names, X.index)


def _frame(values: Any, names: list[str], index: Any = None) -> Any:
    import pandas as pd

    if values.ndim == 1:
        return pd.Series(values, name=names[0], index=index)
    return pd.DataFrame(values, columns=names, index=index)


def _partitions(X: Any, y: Any, sample_weight: Any) -> list[list[Any]]:
    """Delayed tables (X, y, weight) of every partition."""
    if not is_dask(X):
        raise TypeError(
            f"X must be a Dask collection where y or sample_weight is one, got {type(X).__name__}"
        )
    if y is None:
        raise ValueError("y must be given, the target y is None")
    X = _whole_rows(X)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    columns = [_pieces(X)]
    for name, table in (("y", y), ("sample_weight", sample_weight)):
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


def _take_first_rows(estimator: Any, partitions: list[list[Any]]) -> None:
    """Let the estimator see rows from the start, until it knows names and has a feature map."""
    from dask.delayed import delayed

    head = delayed(_head)
    for number, tables in enumerate(partitions):
        rows = _compute(head(FEATURE_SAMPLE, *tables), parallel=False)
        _named(estimator, number, rows)
        if "feature_map_" in estimator.__dict__:
            break
    if "_stream" not in estimator.__dict__:
        raise ValueError("X must hold at least one row, got none")
    estimator._settle_features()


def _head(n_rows: int, *tables: Any) -> list[Any]:
    return [table if np.ndim(table) == 0 else _safe_indexing(table, slice(0, n_rows)) for table in tables]


def _partition_moments(blank: Any, number: int, *tables: Any) -> tuple[int, Parts]:
    """Number of rows and moments of one partition."""
    own = copy(blank)
    own._stream = copy(blank._stream)
    own._stream.parts = list(blank._stream.parts)
    _named(own, number, list(tables))
    return own._stream.n_rows, own._stream.parts


def _named(estimator: Any, number: int, tables: list[Any]) -> None:
    try:
        estimator.partial_fit(*tables)
    except (TypeError, ValueError) as error:
        raise BatchError(f"partition {number}: {error}") from error


def _add(found: list[tuple[int, Parts]]) -> tuple[int, Parts]:
    total = Stream(0, [None] * len(found[0][1]))
    for _, parts in found:
        for number, moments in enumerate(parts):
            if moments is not None:
                total.add(number, moments)
    return sum(n_rows for n_rows, _ in found), total.parts


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


def _without_rows(estimator: Any) -> Any:
    """A copy without the moments, which are of no use elsewhere."""
    slim = copy(estimator)
    slim.__dict__.pop("_stream", None)
    slim.__dict__.pop("_posterior", None)
    return slim
