"""Rows that wait for a feature map: fitting the map on them, and finding a batch that spoils it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from .stream import FeatureBlocks, Rows, Stream

__all__ = ["FEATURE_SAMPLE", "missing_cell", "settle", "wait_for_map"]

# A feature map that comes unfitted is fitted on this many rows, the first ones of the stream.
FEATURE_SAMPLE = 10_000

# From the first rows to a fitted feature map.
FitMap = Callable[[Rows], Any]
# From a fitted feature map to what makes features with it.
MakeBlocks = Callable[[Any], FeatureBlocks]


def wait_for_map(stream: Stream, rows: Rows) -> bool:
    """Keep rows until the map is fitted; whether there are enough of them now."""
    X = _as_container(stream.waiting[0].X, rows.X) if stream.waiting else rows.X
    stream.wait(rows._replace(X=X))
    return stream.n_waiting >= FEATURE_SAMPLE


def settle(stream: Stream, fit_map: FitMap, make_blocks: MakeBlocks, *, newest_on_trial: bool = False) -> Any:
    """Fit the feature map on the first of the rows that wait for it, and take them all in.

    Either all is done, or the stream stays as it was but for one batch: one without which the map can be
    fitted is left out, and named. Where there is none such, the newest one is left out if it is just being
    taken in (``newest_on_trial``).

    Returns
    -------
    feature_map : transformer
        Fitted.
    """
    settled, fitted, number = stream.blank(), False, 0
    try:
        feature_map = _fit_on(stream.waiting, fit_map)
        fitted = True
        blocks = make_blocks(feature_map)
        for number, rows in enumerate(stream.waiting):  # noqa: B007 (the error needs to know)
            settled.take(rows, blocks)
    except BaseException as error:
        place: int | None = number
        if not fitted:
            place = _spoiling_batch(stream.waiting, fit_map) if isinstance(error, ValueError) else None
        _refuse(stream, place, error, newest_on_trial=newest_on_trial)
        raise
    stream.parts, stream.probe, stream.sample = settled.parts, settled.probe, settled.sample
    stream.inputs = settled.inputs
    stream.waiting = []
    return feature_map


def _refuse(stream: Stream, place: int | None, error: BaseException, *, newest_on_trial: bool) -> None:
    """Leave out the batch at a place, and say which one it was unless it is the newest."""
    if place is None:
        if newest_on_trial:
            stream.n_rows -= len(stream.waiting.pop().Y)
        return
    first = sum(len(rows.Y) for rows in stream.waiting[:place])
    refused = stream.waiting.pop(place)
    stream.n_rows -= len(refused.Y)
    if (newest_on_trial and place == len(stream.waiting)) or not isinstance(error, ValueError):
        return
    where = f"rows {first + 1} to {first + len(refused.Y)}" if refused.where is None else refused.where
    raise ValueError(
        f"{where}: these rows, which waited for the feature map to be fitted, are refused, and left "
        f"out: {error}{missing_cell(refused.X)}"
    ) from error


def _fit_on(waiting: list[Rows], fit_map: FitMap) -> Any:
    """The map fitted on the first of some rows."""
    Y = np.concatenate([rows.Y for rows in waiting])
    weight = None
    if any(rows.weight is not None for rows in waiting):
        weights = [np.ones(len(rows.Y)) if rows.weight is None else rows.weight for rows in waiting]
        if any(own.ndim == 2 for own in weights):
            # Weights of rows are those of all their cells.
            weights = [np.broadcast_to(own.reshape(len(own), -1), (len(own), Y.shape[1])) for own in weights]
        weight = np.concatenate(weights)
    parts = [rows.part for rows in waiting if rows.part is not None]
    rows = Rows(_stack([rows.X for rows in waiting]), Y, weight, np.concatenate(parts) if parts else None)
    return fit_map(rows.some(slice(0, FEATURE_SAMPLE)))


def _spoiling_batch(waiting: list[Rows], fit_map: FitMap) -> int | None:
    """Place of a batch without which the feature map can be fitted, the newest of them; None without one."""
    for place in reversed(range(len(waiting) if len(waiting) > 1 else 0)):
        with suppress(ValueError):
            _fit_on(waiting[:place] + waiting[place + 1 :], fit_map)
            return place
    return None


def missing_cell(*tables: Any) -> str:
    """Words for the first missing value of data frames, to be put after an error; none without one."""
    for table in tables:
        if hasattr(table, "isna") and hasattr(table, "columns"):
            found = np.argwhere(table.isna().to_numpy())
            if len(found):
                row, column = found[0]
                return (
                    f"; the first missing value is in row {row + 1} of them, column {table.columns[column]!r}"
                )
    return ""


def _as_container(first: Any, table: Any) -> Any:
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
