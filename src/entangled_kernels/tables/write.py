"""Data frames as files, at once or piece by piece, in place only once they are complete."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import IO, Any

import numpy as np

from ..storage import atomic_write
from .arrow import need_arrow
from .cells import text_columns
from .errors import TableError
from .file_kinds import TEXT_KINDS
from .read import table_kind
from .text_format import TextFormat

__all__ = ["append_table", "text_appender", "write_table"]

# Spreadsheets take text that begins so for a formula.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


def write_table(frame: Any, path: str | os.PathLike[str], text_format: TextFormat | None = None) -> None:
    """Write a pandas data frame, without its index, in the kind that the end of the name tells.

    CSV has commas and decimal points unless ``text_format`` says otherwise; it is always UTF-8.

    Numbers keep every digit. In CSV and TSV files, names and text that a spreadsheet would take for a formula
    get a single quote in front. What stood at ``path`` is replaced only once the new file is complete.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from entangled_kernels.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"fuel use": [0.1, 1 / 3]}), f"{folder}/cars.parquet")
    ...     float(read_table(f"{folder}/cars.parquet")["fuel use"][1]) == 1 / 3
    True
    """
    if table_kind(path) == "npz":
        with atomic_write(path, "wb") as file:
            _write_npz(frame, file)
    else:
        with append_table(path, text_format) as append:
            append(frame)


@contextmanager
def append_table(
    path: str | os.PathLike[str], text_format: TextFormat | None = None
) -> Iterator[Callable[[Any], None]]:
    """Open a table to write; gives a function that appends a pandas data frame, as `write_table` writes it.

    All kinds but NPZ can be written so.
    """
    need_arrow()
    kind = table_kind(path)
    if kind == "npz":
        raise TableError(path, "an NPZ file cannot be written piece by piece; name a .parquet or .csv file")
    if kind in TEXT_KINDS:
        with atomic_write(path, "wb") as file, _packed(path, file) as content:
            wanted = text_format or TextFormat()
            yield text_appender(content, replace(wanted, delimiter="\t") if kind == "tsv" else wanted)
    else:
        with atomic_write(path, "wb") as file, ExitStack() as stack:
            yield _append_arrow(file, kind, stack)


@contextmanager
def _packed(path: Any, file: Any) -> Iterator[IO[str]]:
    """Text to write into a file of bytes, compressed where its name says so, always to the same bytes."""
    with ExitStack() as stack:
        if os.fspath(path).lower().endswith(".gz"):
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()


def text_appender(file: IO[str], text_format: TextFormat | None = None) -> Callable[[Any], None]:
    """A function that appends a pandas data frame to an open file or pipe of text, as `write_table` does."""
    first, wanted = True, text_format or TextFormat()

    def append(frame: Any) -> None:
        nonlocal first
        frame = _without_formulas(frame)
        text = [frame[name] for name in text_columns(frame, frame.columns)]
        # The csv module does not see that a carriage return ends a line for others.
        returns = any("\r" in str(cell) for cells in (frame.columns, *text) for cell in cells)
        frame.to_csv(
            file,
            index=False,
            header=first,
            sep=wanted.delimiter or ",",
            decimal=wanted.decimal or ".",
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        )
        first = False

    return append


def _without_formulas(frame: Any) -> Any:
    """The frame with a single quote before names and text that a spreadsheet would take for a formula."""
    frame = frame.copy(deep=False)
    for name in text_columns(frame, frame.columns):
        frame[name] = frame[name].astype(object).map(_quoted)
    return frame.rename(columns=_quoted)


def _quoted(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS) else cell


def _append_arrow(file: Any, kind: str, stack: ExitStack) -> Callable[[Any], None]:
    """Append to a Parquet or Arrow file, which is opened with the columns of the first piece."""
    import pyarrow as pa
    from pyarrow import parquet

    opened: dict[str, Any] = {}

    def append(frame: Any) -> None:
        table = pa.Table.from_pandas(frame, schema=opened.get("schema"), preserve_index=False)
        if not opened:
            make = parquet.ParquetWriter if kind == "parquet" else pa.ipc.new_file
            opened["schema"], opened["writer"] = table.schema, stack.enter_context(make(file, table.schema))
        opened["writer"].write_table(table)

    return append


def _write_npz(frame: Any, file: Any) -> None:
    # By hand, because numpy.savez cannot name an array "file".
    with zipfile.ZipFile(file, "w") as archive:
        for name in frame.columns:
            values = frame[name].to_numpy()
            # Arrays of objects would have to be pickled.
            values = values.astype(str) if values.dtype == object else values
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)
