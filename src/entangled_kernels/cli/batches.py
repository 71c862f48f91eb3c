"""Tables that are read in batches: which ones are, and how far reading is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..streams import Batch, BatchReader

__all__ = ["batch_bytes", "in_batches", "watch_batches"]

# A table takes about so many times the size of its file when it is read and worked on.
GROWTH = 4


def in_batches(table: Path, max_memory: float) -> bool:
    """Whether a table is several files, or too large to be read at once into so many MB."""
    if table.is_dir() or (not table.exists() and any(sign in str(table) for sign in "*?[")):
        return True
    return table.exists() and table.stat().st_size * GROWTH > max_memory * 2**20


def batch_bytes(max_memory: float) -> float:
    """Bytes for one batch, where all may take so many MB."""
    return max_memory * 2**20 / 8


def watch_batches(reader: BatchReader, report: Callable[[int, int, str], None]) -> Callable[[Batch], None]:
    """A function to be called with every batch, which reports the bytes read, with the rows named."""
    total, rows = reader.n_bytes, 0

    def watch(batch: Batch) -> None:
        nonlocal rows
        rows += len(batch.X)
        done = total if batch.source is None else reader.bytes_until(batch.source)
        report(done, total, f"{rows:,} rows, bytes")

    return watch
