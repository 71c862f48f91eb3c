"""Tables from files, as pandas data frames."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from .arrow import need_arrow, text_options
from .errors import TableError
from .file_kinds import KINDS, TEXT_KINDS, file_kind
from .phrases import counted
from .text_format import TextFormat

__all__ = ["read_table", "table_kind"]

# A file of text up to this size is one block, so that the type of a column is found from all its cells.
LARGEST_BLOCK = 2**31 - 2
NAME_IT = "; name its encoding (--encoding), such as cp1252 or latin-1, or save it again as CSV in UTF-8"
# How pyarrow complains of a row; it counts the header.
WRONG_LENGTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
SPREADSHEETS = (".xlsx", ".xls", ".ods")


def read_table(path: str | os.PathLike[str], text_format: TextFormat | None = None) -> Any:
    r"""Read a table.

    Parameters
    ----------
    path : path
        The end of its name tells the kind: ``.csv`` (also with semicolons or tabs), ``.tsv``, ``.parquet``,
        ``.arrow``, ``.feather``, ``.npz``; text may be compressed (``.csv.gz``). In an NPZ file every array
        of one dimension is a column, and one of two dimensions is the columns ``NAME_0``, ``NAME_1`` and so
        on.
    text_format : TextFormat, optional
        How CSV and TSV files are written, where they do not show it themselves.

    Returns
    -------
    frame : pandas.DataFrame
        Several columns may have one name; `require_columns` raises where one of them is needed.

    Raises
    ------
    TableError
        When the file is not such a table, or has no rows.
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
    kind = table_kind(path)
    if Path(path).stat().st_size == 0:
        raise TableError(path, "the file is empty")
    table = _read_text(path, text_format or TextFormat()) if kind in TEXT_KINDS else READERS[kind](path)
    if not table.column_names:
        raise TableError(path, "the table has no columns")
    if table.num_rows == 0:
        raise TableError(path, "the table has a header but no rows")
    names = table.column_names
    if len(set(names)) < len(names):
        # A data frame can be made only of columns whose names differ.
        table = table.replace_schema_metadata(None).rename_columns([str(i) for i in range(len(names))])
        return table.to_pandas(date_as_object=False).set_axis(names, axis=1)
    return table.to_pandas(date_as_object=False).reset_index(drop=True)


def table_kind(path: str | os.PathLike[str]) -> str:
    """One of "csv", "tsv", "parquet", "arrow" and "npz", by the end of the name.

    Examples
    --------
    >>> table_kind("speed.parquet"), table_kind("speed.csv.gz")
    ('parquet', 'csv')
    """
    kind = file_kind(path)
    if kind is None:
        suffix = Path(path).suffix
        hint = "; use CSV in the place of a sheet" if suffix.lower() in SPREADSHEETS else ""
        raise TableError(path, f"the name must end in one of {', '.join(KINDS)}, got '{suffix}'{hint}")
    return kind


def _read_text(path: Any, text_format: TextFormat) -> Any:
    """Text as an Arrow table; the types of columns are found from all their cells."""
    import pyarrow as pa
    from pyarrow import csv

    name = os.fspath(path)
    text_format = text_format.of(name)
    encoding = str(text_format.encoding).upper()
    content = pa.input_stream(name, compression="detect")
    if name.lower().endswith(".gz"):
        content = pa.BufferReader(content.read())
    try:
        table = csv.read_csv(
            content,
            **text_options(
                name,
                text_format,
                # A byte of another encoding takes up to three in UTF-8.
                block_size=min((1 if encoding == "UTF-8" else 3) * content.size() + 1, LARGEST_BLOCK),
            ),
        )
        names = [name.strip() for name in table.column_names]
    except UnicodeDecodeError as error:
        raise TableError(path, f"the file is not text in {encoding}{NAME_IT}") from error
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            raise TableError(path, "the file holds no line that could be a header with rows below") from error
        if found := WRONG_LENGTH.search(str(error)):
            row, expected, got = map(int, found.groups())
            problem = f"{counted(got, 'cell')} where the header has {expected}"
            raise TableError(path, problem, row=row - 1) from error
        raise TableError(path, _one_line(error)) from error
    for column in table.schema:
        if pa.types.is_binary(column.type):
            raise TableError(path, f"text that is not in {encoding}{NAME_IT}", column=column.name)
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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")


READERS = {
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "npz": _read_npz,
}
