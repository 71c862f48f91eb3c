"""Tables in files: CSV, TSV, Parquet, Arrow and NPZ, with errors that name the wrong cell.

Needs pandas and pyarrow: ``pip install "entangled-kernels[data]"``.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ..files import (
    KINDS,
    TEXT_KINDS,
    TextFormat,
    atomic_write,
    file_kind,
    first_bytes,
    need_arrow,
    text_options,
)

__all__ = [
    "Hints",
    "TableError",
    "append_table",
    "counted",
    "first_texts",
    "looks_like_a_date",
    "looks_like_a_decimal_comma",
    "looks_like_a_limit",
    "quoted",
    "read_table",
    "require_columns",
    "require_numbers",
    "require_text",
    "table_kind",
    "text_appender",
    "text_columns",
    "text_numbers",
    "write_table",
]


class TableError(ValueError):
    """A table that cannot be used; the message names the file, and the row and column if known.

    Rows are counted from 1, the header not included.

    Attributes
    ----------
    path : str
    row : int or None
    column : str or None
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: str,
        *,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        self.path, self.row, self.column = os.fspath(path), row, column
        where = [] if row is None else [f"row {row}"]
        where += [] if column is None else [f"column '{column}'"]
        super().__init__(": ".join([self.path, *([", ".join(where)] if where else []), problem]))


def counted(number: int, thing: str) -> str:
    """A number with a noun, in the plural unless the number is 1.

    Examples
    --------
    >>> counted(1, "target"), counted(1200, "row")
    ('1 target', '1,200 rows')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def quoted(names: Sequence[str], conjunction: str = "and", *, most: int = 5) -> str:
    """The first names in quotes, and the number of the others.

    Examples
    --------
    >>> quoted(["net load"]), quoted(["a", "b", "c"], "or"), quoted(list("abcd"), most=2)
    ("'net load'", "'a', 'b' or 'c'", "'a', 'b' and 2 more")
    """
    shown = [f"'{name}'" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"


# A text file up to this size is one block, so that types are inferred from all cells of a column.
LARGEST_BLOCK = 2**31 - 2
NAME_IT = (
    "; name its encoding (--encoding), such as cp1252 or latin-1, or save it again as CSV in UTF-8"
)
# How pyarrow complains of a row; it counts the header.
WRONG_LENGTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
SPREADSHEETS = (".xlsx", ".xls", ".ods")


def read_table(path: str | os.PathLike[str], text_format: TextFormat | None = None) -> Any:
    r"""Read a table.

    Parameters
    ----------
    path : path
        The suffix gives the kind: ``.csv`` (also with semicolons or tabs), ``.tsv``, ``.parquet``,
        ``.arrow``, ``.feather``, ``.npz``; text may be compressed (``.csv.gz``). In an NPZ file an
        array of one dimension is a column, and one of two dimensions is the columns ``NAME_0``,
        ``NAME_1`` and so on.
    text_format : TextFormat, optional
        Delimiter, decimal sign and encoding of CSV and TSV files; by default found from the file.

    Returns
    -------
    frame : pandas.DataFrame
        Columns may share a name; `require_columns` raises if one of these is needed.

    Raises
    ------
    TableError
        If the file is not a table of its kind, or has no rows.
    OSError
        If there is no such file, or it cannot be read.

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
    table = (
        _read_text(path, text_format or TextFormat()) if kind in TEXT_KINDS else READERS[kind](path)
    )
    if not table.column_names:
        raise TableError(path, "the table has no columns")
    if table.num_rows == 0:
        raise TableError(path, "the table has a header but no rows")
    names = table.column_names
    if len(set(names)) < len(names):
        # A data frame can be made only of columns whose names differ.
        table = table.replace_schema_metadata(None).rename_columns(
            [str(i) for i in range(len(names))]
        )
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
        raise TableError(
            path, f"the name must end in one of {', '.join(KINDS)}, got '{suffix}'{hint}"
        )
    return kind


def _read_text(path: Any, text_format: TextFormat) -> Any:
    """Text as an Arrow table; the type of a column is inferred from all its cells."""
    import pyarrow as pa
    from pyarrow import csv

    name = os.fspath(path)
    text_format = text_format.of(name)
    encoding = str(text_format.encoding).upper()
    content = pa.input_stream(name, compression="detect")
    if name.lower().endswith(".gz"):
        content = pa.BufferReader(content.read())
    # A byte of another encoding takes up to three in UTF-8.
    size = (1 if encoding == "UTF-8" else 3) * content.size() + 1
    try:
        options = text_options(name, text_format, block_size=min(size, LARGEST_BLOCK))
        table = csv.read_csv(content, **options)
        names = [name.strip() for name in table.column_names]
    except UnicodeDecodeError as error:
        raise TableError(path, f"the file is not text in {encoding}{NAME_IT}") from error
    except pa.ArrowInvalid as error:
        if not encoding.startswith("UTF-16") and b"\0" in first_bytes(name):
            raise TableError(path, "the file is not text") from error
        if "Empty CSV file" in str(error):
            raise TableError(
                path, "the file holds no line that could be a header with rows below"
            ) from error
        if match := WRONG_LENGTH.search(str(error)):
            row, expected, got = map(int, match.groups())
            problem = f"{counted(got, 'cell')} where the header has {expected}"
            raise TableError(path, problem, row=row - 1) from error
        raise TableError(path, _one_line(error)) from error
    for column in table.schema:
        if pa.types.is_binary(column.type):
            raise TableError(path, f"text that is not in {encoding}{NAME_IT}", column=column.name)
    # Commas at the ends of lines make a column without name and values.
    kept = [
        i
        for i, name in enumerate(names)
        if name or not 0 < table.num_rows == table.column(i).null_count
    ]
    return table.rename_columns(names).select(kept)


@contextmanager
def _whole_file(path: Any, kind: str) -> Iterator[None]:
    """Turn errors into a `TableError` that says that the file is damaged or of another kind."""
    try:
        yield
    # Errors of pyarrow are of these types too.
    except (OSError, ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as error:
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
            raise TableError(
                path, f"arrays must have one or two dimensions, '{name}' has {array.ndim}"
            )
    lengths = {name: len(column) for name, column in columns.items()}
    first = next(iter(lengths), "")
    for name, length in lengths.items():
        if length != lengths[first]:
            raise TableError(
                path,
                f"arrays must have as many rows as each other, '{first}' has {lengths[first]} and "
                f"'{name}' {length}",
            )
    return pa.table({name: pa.array(_plain(column)) for name, column in columns.items()})


def _plain(column: Any) -> Any:
    """Numbers in native byte order, text as a list."""
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


# Spreadsheets take text that begins with one of these for a formula.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


def write_table(
    frame: Any, path: str | os.PathLike[str], text_format: TextFormat | None = None
) -> None:
    """Write a pandas data frame, without its index, in the kind that the suffix gives.

    CSV has commas and decimal points unless ``text_format`` says otherwise; it is always UTF-8.
    Numbers keep every digit. In CSV and TSV files, names and text that a spreadsheet would take for
    a formula get a single quote in front. An old file is replaced once the new one is complete.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from entangled_kernels.io import read_table
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
    """Open a table to write in pieces; gives a function that appends a pandas data frame.

    All kinds but NPZ can be written so; otherwise as `write_table`.
    """
    need_arrow()
    kind = table_kind(path)
    if kind == "npz":
        raise TableError(
            path, "an NPZ file cannot be written piece by piece; name a .parquet or .csv file"
        )
    if kind in TEXT_KINDS:
        with atomic_write(path, "wb") as file, _packed(path, file) as content:
            wanted = text_format or TextFormat()
            yield text_appender(
                content, replace(wanted, delimiter="\t") if kind == "tsv" else wanted
            )
    else:
        with atomic_write(path, "wb") as file, ExitStack() as stack:
            yield _append_arrow(file, kind, stack)


@contextmanager
def _packed(path: Any, file: Any) -> Iterator[IO[str]]:
    """Text to write into a binary file, compressed without a time stamp if its name has .gz."""
    with ExitStack() as stack:
        if os.fspath(path).lower().endswith(".gz"):
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()


def text_appender(file: IO[str], text_format: TextFormat | None = None) -> Callable[[Any], None]:
    """A function that appends a pandas data frame to an open text file, as `write_table` does."""
    first, wanted = True, text_format or TextFormat()

    def append(frame: Any) -> None:
        nonlocal first
        frame = _without_formulas(frame)
        text = [frame[name] for name in text_columns(frame, frame.columns)]
        # The csv module does not quote a carriage return, which ends a line for other readers.
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
    """The frame with a single quote before names and text that look like a formula."""
    frame = frame.copy(deep=False)
    for name in text_columns(frame, frame.columns):
        frame[name] = frame[name].astype(object).map(_quoted)
    return frame.rename(columns=_quoted)


def _quoted(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS) else cell


def _append_arrow(file: Any, kind: str, stack: ExitStack) -> Callable[[Any], None]:
    """A function that appends to a Parquet or Arrow file, with the columns of the first piece."""
    import pyarrow as pa
    from pyarrow import parquet

    opened: dict[str, Any] = {}

    def append(frame: Any) -> None:
        table = pa.Table.from_pandas(frame, schema=opened.get("schema"), preserve_index=False)
        if not opened:
            make = parquet.ParquetWriter if kind == "parquet" else pa.ipc.new_file
            opened["schema"], opened["writer"] = (
                table.schema,
                stack.enter_context(make(file, table.schema)),
            )
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


DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
DATE = re.compile(r"\s*\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[T ].*)?\s*|\s*\d{1,2}:\d{2}(?::\d{2})?.*")
# A number below or above a limit of detection, and what to do about it.
LIMITED = re.compile(r"\s*[<>≤≥]=?\s*[+-]?\d+(?:[.,]\d+)?\s*")
LIMIT = (
    "; it is a value beyond a limit of detection: leave the cell empty, or write a number, such as "
    "half of the limit"
)
EMPTY = "the cell is empty"


class Hints(NamedTuple):
    """Advice about a wrong cell, added to the error, by the kind of the cell."""

    text: str = ""
    date: str = ""
    comma: str = "; if its comma is a decimal sign, read the file with decimal ','"
    empty: str = ""


def require_columns(frame: Any, names: Sequence[str], path: Any) -> None:
    """Raise unless the table has each of these columns exactly once; the error suggests similar names."""
    have = [str(name) for name in frame.columns]
    twice = [name for name in names if have.count(name) > 1]
    if twice:
        positions = [str(index + 1) for index, name in enumerate(have) if name == twice[0]]
        raise TableError(
            path,
            f"{len(positions)} columns have the name '{twice[0]}' (columns "
            f"{' and '.join(positions)}); rename or exclude them",
        )
    missing = [name for name in names if name not in have]
    if not missing:
        return
    near = {name: get_close_matches(name, have, n=2, cutoff=0.6) for name in missing[:5]}
    hints = [
        f"'{name}'" + (f" (is it {quoted(near[name], 'or')}?)" if near[name] else "")
        for name in near
    ]
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    there = "there is no column" if len(missing) == 1 else "there are no columns"
    problem = f"{there} {', '.join(hints)}{more}"
    if not any(near.values()):
        problem += f"; the table has {quoted(have, most=8)}"
    raise TableError(path, problem)


def text_columns(frame: Any, names: Sequence[str]) -> list[str]:
    """The columns that hold text, which dates and times are not."""
    return [name for name in names if _kind(frame[name]) == "text"]


def require_numbers(
    frame: Any,
    names: Sequence[str],
    path: Any,
    *,
    hints: Hints = Hints(),  # noqa: B008
    rows_before: int = 0,
    blanks: bool = False,
    decimal: str = ".",
) -> Any:
    """The columns as float64; raises at the first value that is missing, infinite or too large.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : sequence of str
    path : path
        Of the file, for the error.
    hints : Hints, optional
        Advice about a wrong value, added to the error.
    rows_before : int, default=0
        Rows of the file before those of the frame.
    blanks : bool, default=False
        Whether values may be missing; they become NaN.
    decimal : {".", ","}, default="."
        Decimal sign of the file, by which the first text that is no number is found.

    Returns
    -------
    frame : pandas.DataFrame
    """
    require_columns(frame, names, path)
    _require_number_types(frame, names, path, hints, rows_before, decimal)
    numbers = frame[list(names)].astype(np.float64)
    values = numbers.to_numpy()
    # Not at the top: messages of the command line do not wait for scikit-learn.
    from ..parameters import LARGEST

    bad = np.abs(values) > LARGEST if blanks else ~(np.abs(values) <= LARGEST)
    if bad.any():
        _raise_first_bad_cell(values, bad, list(names), path, hints, rows_before)
    return numbers


def require_text(
    frame: Any,
    names: Sequence[str],
    path: Any,
    *,
    hints: Hints = Hints(),  # noqa: B008
    rows_before: int = 0,
    blanks: bool = False,
) -> Any:
    """The columns as text; raises at the first missing value, which ``blanks`` makes an empty text.

    Parameters are those of `require_numbers`.
    """
    require_columns(frame, names, path)
    for name in names:
        missing = np.flatnonzero(frame[name].isna().to_numpy())
        if missing.size and not blanks:
            raise TableError(
                path, EMPTY + hints.empty, row=rows_before + int(missing[0]) + 1, column=name
            )
    texts = frame[list(names)]
    return texts.astype(str).where(texts.notna(), "") if blanks else texts.astype(str)


def text_numbers(column: Any, decimal: str = ".") -> Any:
    """The numbers in a column of text, with this decimal sign; NaN for any other text."""
    import pandas as pd

    texts = column.astype(object)
    if decimal == ",":
        # A point becomes a sign that no number holds.
        signs = str.maketrans({",": ".", ".": ";"})
        texts = texts.map(lambda text: text.translate(signs) if isinstance(text, str) else text)
    return pd.to_numeric(texts, errors="coerce")


def first_texts(frame: Any, names: Sequence[str], decimal: str = ".") -> dict[str, tuple[int, str]]:
    """For each column with text that is no number, the first: its row, counted from 1, and text."""
    texts = {}
    for name in names:
        column = frame[name]
        kind = _kind(column)
        if kind in ("text", "time"):
            wrong = column.notna().to_numpy()
            if kind == "text":
                wrong = wrong & text_numbers(column, decimal).isna().to_numpy()
            if wrong.any():
                row = int(wrong.argmax())
                texts[name] = row + 1, str(column.iloc[row])
    return texts


def looks_like_a_date(text: str) -> bool:
    """Whether a text looks like a date or a time of day."""
    return DATE.fullmatch(text) is not None


def looks_like_a_decimal_comma(text: str) -> bool:
    """Whether a text would be a number with a point in place of its comma."""
    return DECIMAL_COMMA.fullmatch(text) is not None


def looks_like_a_limit(text: str) -> bool:
    """Whether a text is a number below or above a limit, such as "<85"."""
    return LIMITED.fullmatch(text) is not None


def _require_number_types(
    frame: Any,
    names: Sequence[str],
    path: Any,
    hints: Hints,
    rows_before: int,
    decimal: str,
) -> None:
    """Raise unless all columns hold numbers; the error names every column that does not."""
    wrong: dict[str, tuple[int | None, str, str]] = {}
    for name in names:
        kind = _kind(frame[name])
        texts = {} if kind in ("number", "time") else first_texts(frame, [name], decimal)
        if kind == "time":
            wrong[name] = None, "dates and times are no numbers", hints.date
        elif name in texts:
            number, cell = texts[name]
            hint = hints.text
            if looks_like_a_decimal_comma(cell):
                hint = hints.comma
            elif looks_like_a_date(cell):
                hint = f", it looks like a date or a time{hints.date}"
            elif looks_like_a_limit(cell):
                hint = LIMIT
            wrong[name] = rows_before + number, f"'{cell}' is no number", hint
        elif kind != "number":
            problem = f"the column holds no plain numbers ({frame[name].dtype})"
            wrong[name] = None, problem, hints.text
    if not wrong:
        return
    (name, (row, problem, hint)), *others = wrong.items()
    if others:
        shown = [f"'{other}'" + (f" (row {at})" if at else "") for other, (at, *_) in others]
        problem += f", and neither are cells of {', '.join(shown)}"
    raise TableError(path, problem + hint, row=row, column=name)


def _raise_first_bad_cell(
    values: Any, wrong: Any, names: list[str], path: Any, hints: Hints, rows_before: int
) -> None:
    bad = np.argwhere(wrong)
    row, column = (int(index) for index in bad[0])
    value = values[row, column]
    if np.isnan(value):
        problem = EMPTY + hints.empty
    elif np.isinf(value):
        problem = f"{value} is not finite"
    else:
        problem = f"{value:g} is too large; change the unit or mend the cell"
    if len(bad) > 1:
        problem += (
            f" (one of {len(bad)} such cells, in {counted(len(set(bad[:, 0].tolist())), 'row')})"
        )
    raise TableError(path, problem, row=rows_before + row + 1, column=names[column])


def _kind(column: Any) -> str:
    """One of "number", "time", "text" and "other"."""
    from pandas.api import types

    if types.is_numeric_dtype(column.dtype):
        return "number"
    if types.is_datetime64_any_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype):
        return "time"
    if not types.is_object_dtype(column.dtype):
        return "text"
    kind = types.infer_dtype(column, skipna=True)
    # A column without any value is read as objects, all of them None; decimals are objects too.
    if kind in ("empty", "decimal", "integer", "floating", "boolean", "mixed-integer-float"):
        return "number"
    has_text = kind == "string" or any(isinstance(value, str) for value in column)
    return "text" if has_text else "other"
