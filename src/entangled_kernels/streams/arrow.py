"""Files of tables opened with pyarrow, to be read in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..files import TEXT_KINDS, TextFormat, file_kind, need_arrow, text_options
from .batch import BatchError

__all__ = [
    "SEVERAL",
    "bytes_per_row",
    "column_kinds",
    "cut_tables",
    "need_arrow",
    "open_table",
    "text_options",
    "unreadable",
]

# The kind of a name that several columns have.
SEVERAL = "several columns"


def open_table(
    path: str, text: Sequence[str] = (), text_format: TextFormat | None = None
) -> _ParquetFile | _ArrowFile | _TextFile:
    """A file ready to be read; ``text`` names the columns of a text file that are not numbers."""
    kind = file_kind(path)
    try:
        if kind in TEXT_KINDS:
            return _TextFile(path, text, text_format or TextFormat())
        return _ParquetFile(path) if kind == "parquet" else _ArrowFile(path)
    except (need_arrow().ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, 0, error) from error


def unreadable(path: str, row: int, error: Exception) -> BatchError:
    """The error for a file that cannot be read after the first ``row`` rows."""
    # Arrow counts the header as row 1.
    message = re.sub(r"\bRow #(\d+)", lambda match: f"row {int(match[1]) - 1}", str(error))
    return BatchError(f"{path}, from row {row + 1} on: cannot be read: {message}")


class _ParquetFile:
    """A Parquet file: its schema, its number of rows, and its rows in tables."""

    def __init__(self, path: str) -> None:
        from pyarrow import parquet

        # Without pre-buffering, a row group of any size is read in pieces of this many bytes.
        self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
        self.schema, self.n_rows = self.file.schema_arrow, self.file.metadata.num_rows

    def tables(self, columns: list[str], row: int, batch_rows: int) -> Iterator[Any]:
        """Tables of some rows each, from the given row on; whole row groups before it are not read."""
        meta = self.file.metadata
        groups: list[int] = []
        for group in range(meta.num_row_groups):
            n_rows = meta.row_group(group).num_rows
            if not groups and row >= n_rows:
                row -= n_rows
            else:
                groups.append(group)
        if groups:
            yield from _skip(
                self.file.iter_batches(batch_rows, row_groups=groups, columns=columns), row
            )


class _ArrowFile:
    """An Arrow file (Feather is one), mapped into memory."""

    def __init__(self, path: str) -> None:
        import pyarrow as pa

        self.file = pa.ipc.open_file(pa.memory_map(path))
        self.schema = self.file.schema
        self.n_rows = sum(
            self.file.get_batch(i).num_rows for i in range(self.file.num_record_batches)
        )

    def tables(self, columns: list[str], row: int, batch_rows: int) -> Iterator[Any]:
        batches = (
            self.file.get_batch(i).select(columns) for i in range(self.file.num_record_batches)
        )
        yield from _skip(batches, row)


class _TextFile:
    """A CSV or TSV file, whose number of rows is not known before it is read."""

    n_rows = None

    def __init__(self, path: str, text: Sequence[str], text_format: TextFormat) -> None:
        self.path, self.text, self.text_format = path, text, text_format
        with self._reader() as reader:
            self.in_file = reader.schema
        self.schema = need_arrow().schema(
            [field.with_name(field.name.strip()) for field in self.in_file]
        )

    def tables(self, columns: list[str], row: int, batch_rows: int) -> Iterator[Any]:
        """Tables of some rows each, from the given row on; the rows before it are read and dropped."""
        pa = need_arrow()
        types = {}
        for name in columns:
            field = self.in_file.field(self.schema.get_field_index(name))
            # Columns of numbers are floats from the start, since fractions may follow whole numbers.
            number = pa.bool_() if pa.types.is_boolean(field.type) else pa.float64()
            types[field.name] = pa.string() if name in self.text else number
        with self._reader(column_types=types, include_columns=list(types)) as reader:
            for table in _skip(reader, row):
                yield table.rename_columns(columns)

    def _reader(self, **options: Any) -> Any:
        from pyarrow import csv

        return csv.open_csv(self.path, **text_options(self.path, self.text_format, **options))


def bytes_per_row(path: str) -> float:
    """Mean length of the first lines of a CSV file; 0 if it is compressed."""
    if path.endswith(".gz"):
        return 0.0
    with open(path, "rb") as file:
        start = file.read(2**16)
    return len(start) / max(1, start.count(b"\n"))


def _skip(batches: Iterable[Any], row: int) -> Iterator[Any]:
    """Record batches as tables, without the first rows."""
    pa = need_arrow()
    for batch in batches:
        if row >= batch.num_rows:
            row -= batch.num_rows
        else:
            yield pa.Table.from_batches([batch.slice(row)])
            row = 0


def cut_tables(tables: Iterable[Any], height: int) -> Iterator[Any]:
    """The same rows in tables of the given height, the last one shorter."""
    pa = need_arrow()
    held: list[Any] = []
    n_held = 0
    for table in tables:
        while n_held + table.num_rows >= height:
            yield pa.concat_tables([*held, table.slice(0, height - n_held)])
            table, held, n_held = table.slice(height - n_held), [], 0
        if table.num_rows:
            held.append(table)
            n_held += table.num_rows
    if held:
        yield pa.concat_tables(held)


def column_kinds(schema: Any) -> dict[str, str]:
    """The kind of each column: number, text, the name of another type, or `SEVERAL`."""
    types = need_arrow().types
    # A CSV column without any value has no type; it is read as missing numbers.
    numbers = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_decimal,
        types.is_null,
    )
    kinds = {}
    for field in schema:
        t = field.type.value_type if types.is_dictionary(field.type) else field.type
        text = types.is_string(t) or types.is_large_string(t)
        kinds[field.name] = (
            "number" if any(holds(t) for holds in numbers) else "text" if text else str(t)
        )
        if schema.names.count(field.name) > 1:
            kinds[field.name] = SEVERAL
    return kinds
