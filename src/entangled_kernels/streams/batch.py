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
    """Some rows: inputs, targets, weights or None, where they come from if that is known, and groups."""

    X: Any
    y: Any
    sample_weight: Any = None
    source: Source | None = None
    groups: Any = None


def as_batch(item: Any, targets: Sequence[str] | None = None, groups: str | None = None) -> Batch:
    """One item of a stream as a batch.

    Parameters
    ----------
    item : Batch, tuple, Bunch with data and target, or data frame
        A tuple is (X, y), (X, y, sample_weight) or (X, y, sample_weight, groups).
    targets : list of str, optional
        Which columns are targets, where items are data frames.
    groups : str, optional
        Which column has the groups of rows, where items are data frames; it is no input.
    """
    if isinstance(item, Batch):
        return item
    if hasattr(item, "columns"):
        if targets is None:
            raise TypeError(
                "targets must name the columns to predict, where batches are data frames"
            )
        if groups is not None and groups not in item.columns:
            raise ValueError(f"groups must name a column of every batch, got {groups!r}")
        inputs = [name for name in item.columns if name not in targets and name != groups]
        return Batch(
            item[inputs], item[list(targets)], groups=None if groups is None else item[groups]
        )
    if hasattr(item, "data") and hasattr(item, "target"):
        return Batch(
            item.data,
            item.target,
            getattr(item, "sample_weight", None),
            groups=getattr(item, "groups", None),
        )
    if isinstance(item, tuple | list) and len(item) in (2, 3, 4):
        return Batch(*item) if len(item) < 4 else Batch(item[0], item[1], item[2], groups=item[3])
    raise TypeError(
        f"a batch must be a pair (X, y), a triple (X, y, sample_weight) or these with groups, got "
        f"{type(item).__name__}"
        + (f" of {len(item)} items" if isinstance(item, tuple | list) else "")
    )


def batch_checksum(batch: Batch, before: int = 0) -> int:
    """CRC-32 of the values of a batch, and of those before it, to notice when they have changed."""
    for table in (batch.X, batch.y, batch.sample_weight, batch.groups):
        for column in _columns(table):
            before = zlib.crc32(column, before)
    return before


def _columns(table: Any) -> Iterator[bytes | memoryview]:
    """The values of a table in a fixed order, as bytes."""
    if table is None:
        return
    if issparse(table):
        rows = csr_array(table)
        yield from (
            np.ascontiguousarray(part).data for part in (rows.data, rows.indices, rows.indptr)
        )
        return
    named = hasattr(table, "columns")
    for values in (
        [np.asarray(table[name]) for name in table.columns] if named else [np.asarray(table)]
    ):
        if values.dtype.kind in "biufc":
            yield np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        else:
            yield "\0".join(map(str, values.ravel())).encode()
