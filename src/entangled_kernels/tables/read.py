"""Tables from files, as pandas data frames."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..streams import KINDS, file_kind
from ..streams.arrow import need_arrow, text_options
from .errors import TableError
from .phrases import counted

__all__ = ["read_table", "table_kind"]

# A file of text up to this size is one block, so that the type of a column is found from all its cells.
LARGEST_BLOCK = 2**31 - 2
SPREADSHEETS = (".xlsx", ".xls", ".ods")


def read_table(path: str | os.PathLike[str]) -> Any:
    r"""Read a table.

    Parameters
    ----------
    path : path
        The end of its name tells the kind: ``.csv`` (also with semicolons or tabs), ``.tsv``, ``.parquet``,
        ``.arrow``, ``.feather``, ``.npz``; text may be compressed (``.csv.gz``). In an NPZ file every array
        of one dimension is a column, and one of two dimensions is the columns ``NAME_0``, ``NAME_1`` and so
        on.

    Returns
    -------
    frame : pandas.DataFrame

    Raises
    ------
    TableError
        When the file is not such a table, has no rows, or names a column twice.
    OSError
        When there is no such file, or it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cars.csv")
    ...     _ = path.write_text("weight,fuel use\n1.2,6.5\n0.9,5.1\n")
    ...     read_table(path)
       weight  fuel use
    0     1.2       6.5
    1     0.9       5.1
    """
    need_arrow()
    kind = table_kind(path, compressed=True)
    if Path(path).stat().st_size == 0:
        raise TableError(path, "the file is empty")
    table = READERS[kind](path)
    _check_names(path, table.column_names)
    if table.num_rows == 0:
        raise TableError(path, "the table has a header but no rows")
    return table.to_pandas(date_as_object=False).reset_index(drop=True)


def table_kind(path: str | os.PathLike[str], *, compressed: bool = False) -> str:
    """One of "csv", "tsv", "parquet", "arrow" and "npz", by the end of the name.

    Parameters
    ----------
    path : path
    compressed : bool, default=False
        Whether ``.csv.gz`` and ``.tsv.gz`` will do too, as they do for reading.

    Examples
    --------
    >>> table_kind("speed.parquet")
    'parquet'
    """
    kind = file_kind(path, compressed=compressed)
    if kind is None:
        suffix = Path(path).suffix
        hint = "; save the sheet as CSV" if compressed and suffix.lower() in SPREADSHEETS else ""
        raise TableError(path, f"the name must end in one of {', '.join(KINDS)}, got '{suffix}'{hint}")
    return kind


def _read_text(path: Any) -> Any:
    """Text as an Arrow table; the types of columns are found from all their cells."""
    import pyarrow as pa
    from pyarrow import csv

    bad_rows: list[Any] = []

    def note_and_skip(row: Any) -> str:
        bad_rows.append(row)
        return "skip"

    name = os.fspath(path)
    content = pa.input_stream(name, compression="detect")
    if name.lower().endswith(".gz"):
        content = pa.BufferReader(content.read())
    try:
        table = csv.read_csv(
            content,
            csv.ReadOptions(use_threads=False, block_size=min(content.size() + 1, LARGEST_BLOCK)),
            **text_options(name, invalid_row_handler=note_and_skip),
        )
        names = [name.strip() for name in table.column_names]
    except UnicodeDecodeError as error:
        raise TableError(path, "the file is not text in UTF-8; save it again as CSV in UTF-8") from error
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            raise TableError(path, "the file holds no line that could be a header with rows below") from error
        raise TableError(path, _one_line(error)) from error
    if bad_rows:
        row = bad_rows[0]
        problem = f"{counted(row.actual_columns, 'cell')} where the header has {row.expected_columns}"
        raise TableError(path, problem, row=None if row.number is None else row.number - 1)
    for column in table.schema:
        if pa.types.is_binary(column.type):
            problem = "text that is not UTF-8; save the file again as CSV in UTF-8"
            raise TableError(path, problem, column=column.name)
    # Commas at the ends of lines make columns of neither a name nor a cell.
    empty = [not name and 0 < table.num_rows == table.column(i).null_count for i, name in enumerate(names)]
    return table.rename_columns(names).select([i for i in range(len(names)) if not empty[i]])


@contextmanager
def _whole_file(path: Any, kind: str) -> Iterator[None]:
    """Say of a file that cannot be read that it is not of this kind, or not whole."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, OSError, ValueError, EOFError, BadZipFile, AttributeError, KeyError) as error:
        raise TableError(path, f"the file is not a whole {kind} ({_one_line(error)})") from error


def _read_parquet(path: Any) -> Any:
    from pyarrow import parquet

    with _whole_file(path, "Parquet file"):
        return parquet.ParquetFile(path).read()


def _read_arrow(path: Any) -> Any:
    """An Arrow file (Feather is one), or a stream of Arrow messages."""
    import pyarrow as pa

    with _whole_file(path, "Arrow file"), pa.memory_map(os.fspath(path)) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
        return pa.ipc.open_stream(source).read_all()


def _read_npz(path: Any) -> Any:
    import pyarrow as pa

    columns: dict[str, Any] = {}
    with _whole_file(path, "NPZ file of numbers and text"), open(path, "rb") as file:
        arrays = dict(np.load(file, allow_pickle=False))
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        elif array.ndim == 2:
            columns |= {f"{name}_{i}": array[:, i] for i in range(array.shape[1])}
        else:
            raise TableError(path, f"arrays must have one or two dimensions, '{name}' has {array.ndim}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        (first, n), (other, t) = next(
            (a, b) for a in lengths.items() for b in lengths.items() if a[1] != b[1]
        )
        raise TableError(
            path, f"arrays must have as many rows as each other, '{first}' has {n} and '{other}' {t}"
        )
    return pa.table({name: pa.array(_plain(column)) for name, column in columns.items()})


def _plain(column: Any) -> Any:
    """Numbers as they are in native byte order, text as a list."""
    if column.dtype.kind in "US":
        return [str(cell) for cell in column]
    return np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("="))


def _check_names(path: Any, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        places = [str(place + 1) for place, name in enumerate(names) if name == twice[0]]
        raise TableError(path, f"two columns have the name '{twice[0]}' (columns {' and '.join(places)})")
    if not names:
        raise TableError(path, "the table has no columns")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")


READERS = {
    "csv": _read_text,
    "tsv": _read_text,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "npz": _read_npz,
}
