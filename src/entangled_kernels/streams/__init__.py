"""Rows that come in batches: readers of files, moments of what was read, checkpoints, and Dask tables."""

from ..files import KINDS, TEXT_KINDS, TextFormat, file_kind
from .batch import Batch, BatchError, Source, add_batches, as_batch
from .checkpoints import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint
from .reader import BatchReader, read_batches, table_columns
from .row_stream import Rows, RowStream, group_folds, row_folds

__all__ = [
    "KINDS",
    "TEXT_KINDS",
    "Batch",
    "BatchError",
    "BatchReader",
    "Checkpoint",
    "CheckpointError",
    "RowStream",
    "Rows",
    "Source",
    "TextFormat",
    "add_batches",
    "as_batch",
    "file_kind",
    "group_folds",
    "read_batches",
    "read_checkpoint",
    "row_folds",
    "table_columns",
    "write_checkpoint",
]
