"""Batches of rows that know where they come from."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

__all__ = ["Batch", "BatchError", "Source", "as_batch", "batch_checksum"]


class BatchError(ValueError):
    """Something wrong with a part of a stream; the message names the part."""


@dataclass(frozen=True)
class Source:
    """Where the rows of a batch come from: ``start`` rows of the file stand before them, ``stop`` with them.

    As text, rows are counted from 1, the header not included.
    """

    file: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.file}, rows {self.start + 1} to {self.stop}"


class Batch(NamedTuple):
    """Some rows: inputs, targets, weights or None, and where they come from, if that is known."""

    X: Any
    y: Any
    sample_weight: Any = None
    source: Source | None = None


def as_batch(item: Any, targets: Sequence[str] | None = None) -> Batch:
    """One item of a stream as a batch.

    Parameters
    ----------
    item : Batch, pair (X, y), triple (X, y, sample_weight), Bunch with data and target, or data frame
    targets : list of str, optional
        Which columns are targets, where items are data frames.
    """
    if isinstance(item, Batch):
        return item
    if hasattr(item, "columns"):
        if targets is None:
            raise TypeError("targets must name the columns to predict, where batches are data frames")
        inputs = [name for name in item.columns if name not in targets]
        return Batch(item[inputs], item[list(targets)])
    if hasattr(item, "data") and hasattr(item, "target"):
        return Batch(item.data, item.target, getattr(item, "sample_weight", None))
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return Batch(*item)
    raise TypeError(
        f"a batch must be a pair (X, y) or a triple (X, y, sample_weight), got {type(item).__name__}"
        + (f" of {len(item)} items" if isinstance(item, tuple | list) else "")
    )


def batch_checksum(batch: Batch, before: int = 0) -> int:
    """CRC-32 of the values of a batch, and of those before it, to notice when they have changed."""
    for table in (batch.X, batch.y, batch.sample_weight):
        for column in _columns(table):
            before = zlib.crc32(column, before)
    return before


def _columns(table: Any) -> Iterator[bytes | memoryview]:
    """The values of a table in a fixed order, as bytes."""
    if table is None:
        return
    if issparse(table):
        rows = csr_array(table)
        yield from (np.ascontiguousarray(part).data for part in (rows.data, rows.indices, rows.indptr))
        return
    named = hasattr(table, "columns")
    for values in [np.asarray(table[name]) for name in table.columns] if named else [np.asarray(table)]:
        if values.dtype.kind in "biufc":
            yield np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        else:
            yield "\0".join(map(str, values.ravel())).encode()
