"""Rows that come in batches: files larger than memory, moments of what was read, and checkpoints of both."""

from .batch import Batch, BatchError, Source, as_batch
from .checkpoints import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint
from .file_kinds import KINDS, TEXT_KINDS, file_kind
from .reader import BatchReader, read_batches, table_columns
from .row_folds import group_folds, row_folds
from .stream import FeatureBlocks, Rows, Stream
from .text_format import TextFormat

__all__ = [
    "KINDS",
    "TEXT_KINDS",
    "Batch",
    "BatchError",
    "BatchReader",
    "Checkpoint",
    "CheckpointError",
    "FeatureBlocks",
    "Rows",
    "Source",
    "Stream",
    "TextFormat",
    "as_batch",
    "file_kind",
    "group_folds",
    "read_batches",
    "read_checkpoint",
    "row_folds",
    "table_columns",
    "write_checkpoint",
]
