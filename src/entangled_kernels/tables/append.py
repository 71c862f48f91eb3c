"""Tables written piece by piece, in place only once they are complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..storage import atomic_write
from .errors import TableError
from .kinds import table_kind
from .needs import need

__all__ = ["append_table"]


@contextmanager
def append_table(path: str | os.PathLike[str]) -> Iterator[Callable[[Any], None]]:
    """Open a table to write; gives a function that appends a pandas data frame, without its index.

    The kind is what the end of the name tells: CSV, TSV, Parquet or Arrow. What stood at ``path`` is replaced
    only once all is written.
    """
    need("pandas", "pyarrow")
    kind = table_kind(path)
    if kind == "npz":
        raise TableError(path, "an NPZ file cannot be written piece by piece; name a .parquet or .csv file")
    text = kind in ("csv", "tsv")
    with atomic_write(path, "w" if text else "wb") as file:
        if text:
            yield _append_text(file, "\t" if kind == "tsv" else ",")
        else:
            with _Writer(file, kind) as append:
                yield append


def _append_text(file: Any, separator: str) -> Callable[[Any], None]:
    def append(frame: Any) -> None:
        frame.to_csv(file, index=False, header=file.tell() == 0, sep=separator, lineterminator="\n")

    return append


class _Writer:
    """A Parquet or Arrow file, opened with the columns of the first piece."""

    def __init__(self, file: Any, kind: str) -> None:
        self.file, self.kind = file, kind
        self.writer: Any = None
        self.schema: Any = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.writer is not None:
            self.writer.close()

    def __call__(self, frame: Any) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.Table.from_pandas(frame, schema=self.schema, preserve_index=False)
        if self.writer is None:
            make = parquet.ParquetWriter if self.kind == "parquet" else pa.ipc.new_file
            self.writer = make(self.file, table.schema)
            self.schema = table.schema
        self.writer.write_table(table)
