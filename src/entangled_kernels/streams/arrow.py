"""Files of tables opened with pyarrow, to be read in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .batch import BatchError
from .file_kinds import TEXT_KINDS, file_kind, text_delimiter

__all__ = ["bytes_per_row", "column_kinds", "cut_tables", "need_arrow", "open_table"]


def need_arrow() -> Any:
    """The pyarrow module, or an error that says what to install."""
    try:
        import pandas  # noqa: F401
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            'reading tables in batches needs pyarrow and pandas: pip install "entangled-kernels[data]"'
        ) from error
    return pa


def open_table(path: str, text: Sequence[str] = ()) -> _ParquetFile | _ArrowFile | _TextFile:
    """A file ready to be read; ``text`` names the columns of a text file that are not numbers."""
    kind = file_kind(path)
    try:
        if kind in TEXT_KINDS:
            return _TextFile(path, text)
        return _ParquetFile(path) if kind == "parquet" else _ArrowFile(path)
    except (need_arrow().ArrowException, OSError) as error:
        raise BatchError(f"{path}, from row 1 on: cannot be read: {error}") from error


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
            batches = self.file.iter_batches(batch_rows, row_groups=groups, columns=columns)
            yield from _skip(batches, row)


class _ArrowFile:
    """An Arrow file (Feather is one), mapped into memory."""

    def __init__(self, path: str) -> None:
        import pyarrow as pa

        self.file = pa.ipc.open_file(pa.memory_map(path))
        self.schema = self.file.schema
        self.n_rows = sum(self.file.get_batch(i).num_rows for i in range(self.file.num_record_batches))

    def tables(self, columns: list[str], row: int, batch_rows: int) -> Iterator[Any]:
        batches = (self.file.get_batch(i).select(columns) for i in range(self.file.num_record_batches))
        yield from _skip(batches, row)


class _TextFile:
    """A CSV or TSV file, in which only reading would tell the number of rows."""

    n_rows = None

    def __init__(self, path: str, text: Sequence[str]) -> None:
        self.path, self.text, self.delimiter = path, text, text_delimiter(path)
        with self._reader(None, 0) as reader:
            self.schema = reader.schema

    def tables(self, columns: list[str], row: int, batch_rows: int) -> Iterator[Any]:
        with self._reader(columns, row) as reader:
            yield from reader

    def _reader(self, columns: list[str] | None, row: int) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        # Columns of numbers are floats from the start, since whole numbers may be followed by others.
        types = {name: pa.string() if name in self.text else pa.float64() for name in columns or []}
        for name in types:
            if pa.types.is_boolean(self.schema.field(name).type):
                types[name] = pa.bool_()
        return csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(skip_rows_after_names=row),
            parse_options=csv.ParseOptions(delimiter=self.delimiter),
            convert_options=csv.ConvertOptions(column_types=types, include_columns=columns or []),
        )


def bytes_per_row(path: str) -> float:
    """Mean length of the first lines of a CSV file; 0 where it is compressed, and cannot be told."""
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
        table = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
        while n_held + table.num_rows >= height:
            head = table.slice(0, height - n_held)
            yield pa.concat_tables([*held, head])
            table, held, n_held = table.slice(height - n_held), [], 0
        if table.num_rows:
            held.append(table)
            n_held += table.num_rows
    if held:
        yield pa.concat_tables(held)


def column_kinds(schema: Any, file: str) -> dict[str, str]:
    """What each column holds, number or text or the name of another type."""
    pa = need_arrow()
    kinds = {}
    for field in schema:
        t = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        number = pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_boolean(t)
        text = pa.types.is_string(t) or pa.types.is_large_string(t)
        if number or pa.types.is_decimal(t):
            kinds[field.name] = "number"
        else:
            # A CSV column without any value has no type yet; it is read as numbers, all missing.
            kinds[field.name] = "number" if pa.types.is_null(t) else "text" if text else str(t)
    if len(kinds) < len(schema):
        raise BatchError(f"{file}: names of columns must differ, got {schema.names}")
    return kinds
