"""Tables larger than memory, read in batches of rows that know where they come from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "Batch",
    "BatchError",
    "BatchReader",
    "Source",
    "as_batch",
    "csv_delimiter",
    "read_batches",
    "table_columns",
]

DELIMITERS = ",;\t"

# A number takes 8 bytes in the file's columns, 8 in the table made of them, and as many while it is made.
_BYTES_PER_NUMBER = 32
_FEWEST_ROWS, _MOST_ROWS = 256, 65_536
_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
}


class BatchError(ValueError):
    """Something wrong with a part of a stream; the message names the part."""


@dataclass(frozen=True)
class Source:
    """Where the rows of a batch come from: rows start to stop - 1 of a file, counted from 0."""

    file: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.file}, rows {self.start} to {self.stop - 1}"


class Batch(NamedTuple):
    """Some rows: inputs, targets, weights or None, and where they come from, if that is known."""

    X: Any
    y: Any
    sample_weight: Any = None
    source: Source | None = None


def as_batch(item: Any, targets: Sequence[str] | None = None) -> Batch:
    """One item of a stream as a batch.

    Parameters
    ----------
    item : Batch, pair (X, y), triple (X, y, sample_weight), Bunch with data and target, or data frame
    targets : list of str, optional
        Which columns are targets, where items are data frames.
    """
    if isinstance(item, Batch):
        return item
    if hasattr(item, "columns"):
        if targets is None:
            raise TypeError("targets must name the columns to predict, where batches are data frames")
        inputs = [name for name in item.columns if name not in targets]
        return Batch(item[inputs], item[list(targets)])
    if hasattr(item, "data") and hasattr(item, "target"):
        return Batch(item.data, item.target, getattr(item, "sample_weight", None))
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return Batch(*item)
    raise TypeError(
        f"a batch must be a pair (X, y) or a triple (X, y, sample_weight), got {type(item).__name__}"
        + (f" of {len(item)} items" if isinstance(item, tuple | list) else "")
    )


def read_batches(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    inputs: Sequence[str] | None = None,
    targets: Sequence[str] = (),
    weight: str | None = None,
    batch_rows: int | None = None,
    max_memory: float = 2**28,
) -> BatchReader:
    r"""Read Parquet, Arrow, CSV or TSV files in batches of rows.

    Parameters
    ----------
    path : path, folder, glob pattern, or list of these
        Files are read in the order of their names, folders with everything below them.
    inputs : list of str, optional
        Columns of X. All that are neither targets nor weight when not given.
    targets : list of str
        Columns of y; none where only X is wanted.
    weight : str, optional
        Column of sample weights.
    batch_rows : int, optional
        Rows in a batch. A batch never spans two files, so the last one of a file may be shorter.
    max_memory : float, default=2**28
        Bytes that one batch may take while it is made; ``batch_rows`` follows from it when it is not given.

    Returns
    -------
    BatchReader
        An iterable of `Batch`, which may be iterated again. X and y are pandas data frames, so that names of
        columns are known and checked.

    Notes
    -----
    Only the named columns are read. Memory is one batch, and what the format needs: for Parquet the
    compressed pages of a row group are read in small pieces. CSV columns are numbers where the first rows
    of the first file are.

    Every file is held to the columns and kinds of the first: an error names the file and its rows. Batches
    before it have been given out by then.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from entangled_kernels.batches import read_batches
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in "ab":
    ...     _ = (folder / f"{name}.csv").write_text("speed,weight,force\n1,2,3\n4,5,6\n7,8,9\n")
    >>> reader = read_batches(folder, targets=["force"], batch_rows=2)
    >>> [(batch.X.shape, Path(batch.source.file).name, batch.source.start) for batch in reader]
    [((2, 2), 'a.csv', 0), ((1, 2), 'a.csv', 2), ((2, 2), 'b.csv', 0), ((1, 2), 'b.csv', 2)]
    """
    _pyarrow()
    files = _find_files(path)
    kinds = _kinds(_open(files[0]).schema, files[0])
    targets = [targets] if isinstance(targets, str) else list(targets)
    taken = {*targets, *([] if weight is None else [weight])}
    inputs = [name for name in kinds if name not in taken] if inputs is None else list(inputs)
    wanted = [*inputs, *targets, *([] if weight is None else [weight])]
    _check_columns(wanted, kinds, files[0])
    for name in [*targets, *([] if weight is None else [weight])]:
        if kinds[name] != "number":
            raise BatchError(f"{files[0]}: column {name!r} must hold numbers, it holds {kinds[name]}")
    if batch_rows is None:
        rows = int(max_memory / (_BYTES_PER_NUMBER * max(1, len(wanted))))
        batch_rows = min(max(rows, _FEWEST_ROWS), _MOST_ROWS)
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be a whole number of at least 1, got {batch_rows!r}")
    return BatchReader(
        tuple(files),
        tuple(inputs),
        tuple(targets),
        weight,
        int(batch_rows),
        {name: kinds[name] for name in wanted},
    )


def table_columns(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> dict[str, str]:
    """Columns of the first file by name, and what they hold: ``"number"``, ``"text"`` or another type."""
    _pyarrow()
    file = _find_files(path)[0]
    return _kinds(_open(file).schema, file)


@dataclass(frozen=True)
class BatchReader:
    """Batches of rows of some files; made by `read_batches`.

    Attributes
    ----------
    files : tuple of str
    inputs, targets : tuple of str
    weight : str or None
    batch_rows : int
    kinds : dict of str
        ``"number"`` or ``"text"`` for each column that is read.
    """

    files: tuple[str, ...]
    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    batch_rows: int
    kinds: dict[str, str]

    def __iter__(self) -> Iterator[Batch]:
        return self.after(None)

    def after(self, source: Source | None) -> Iterator[Batch]:
        """Batches after the one that came from ``source``, as an uninterrupted pass would give them."""
        start = 0
        files = list(self.files)
        if source is not None:
            if source.file not in files:
                raise BatchError(f"{source.file}, where reading was interrupted, is not among the files")
            files, start = files[files.index(source.file) :], source.stop
        for file in files:
            yield from self._batches_of(file, start)
            start = 0

    def signature(self) -> dict[str, Any]:
        """What must be the same for a pass to go on where another was interrupted."""
        return {**asdict(self), "bytes": [os.path.getsize(file) for file in self.files]}

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(os.path.getsize(file) for file in self.files)

    def bytes_until(self, source: Source) -> int:
        """About how many bytes of the files have been read with the batch that came from ``source``."""
        place = self.files.index(source.file)
        size, n_rows = os.path.getsize(source.file), _open(source.file).n_rows
        share = 1.0 if not n_rows else source.stop / n_rows
        if n_rows is None:
            share = min(1.0, source.stop * _bytes_per_row(source.file) / max(1, size))
        return sum(os.path.getsize(file) for file in self.files[:place]) + int(share * size)

    @property
    def n_rows(self) -> int | None:
        """Number of rows of all files, or None where only reading would tell (CSV)."""
        counts = [_open(file).n_rows for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)

    def _batches_of(self, file: str, row: int) -> Iterator[Batch]:
        try:
            opened = _open(file, text=[name for name, kind in self.kinds.items() if kind == "text"])
            where = f"{file}, from row {row} on"
            kinds = _kinds(opened.schema, where)
            _check_columns(list(self.kinds), kinds, where)
            for name, kind in self.kinds.items():
                if kinds[name] != kind:
                    raise BatchError(f"{where}: column {name!r} holds {kinds[name]}, before it held {kind}")
            tables = _cut(opened.tables(list(self.kinds), row, self.batch_rows), self.batch_rows)
            for table in tables:
                yield self._batch(table, Source(file, row, row + table.num_rows))
                row += table.num_rows
        except _pyarrow().ArrowException as error:
            raise BatchError(f"{file}, from row {row} on: cannot be read: {error}") from error
        except OSError as error:
            raise BatchError(f"{file}, from row {row} on: cannot be read: {error}") from error

    def _batch(self, table: Any, source: Source) -> Batch:
        X = self._frame(table, self.inputs)
        y = self._frame(table, self.targets) if self.targets else None
        weight = None if self.weight is None else self._numbers(table, (self.weight,))[:, 0]
        return Batch(X, y, weight, source)

    def _frame(self, table: Any, names: Sequence[str]) -> Any:
        import pandas as pd

        if all(self.kinds[name] == "number" for name in names):
            return pd.DataFrame(self._numbers(table, names), columns=list(names), copy=False)
        return table.select(list(names)).to_pandas()

    def _numbers(self, table: Any, names: Sequence[str]) -> Any:
        """Columns as one array, column-major so that a data frame of it needs no copy; nulls are NaN."""
        pa = _pyarrow()
        columns = [table.column(name) for name in names]
        single = all(column.type in (pa.float32(), pa.float16()) for column in columns)
        numbers = np.empty((table.num_rows, len(columns)), dtype=np.float32 if single else float, order="F")
        for place, column in enumerate(columns):
            if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
                column = column.cast(pa.float64() if pa.types.is_decimal(column.type) else pa.int8())
            numbers[:, place] = column.to_numpy()
        return numbers


class _Parquet:
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


class _Arrow:
    def __init__(self, path: str) -> None:
        import pyarrow as pa

        self.file = pa.ipc.open_file(pa.memory_map(path))
        self.schema = self.file.schema
        self.n_rows = sum(self.file.get_batch(i).num_rows for i in range(self.file.num_record_batches))

    def tables(self, columns: list[str], row: int, batch_rows: int) -> Iterator[Any]:
        batches = (self.file.get_batch(i).select(columns) for i in range(self.file.num_record_batches))
        yield from _skip(batches, row)


class _Csv:
    n_rows = None

    def __init__(self, path: str, text: Sequence[str]) -> None:
        self.path, self.text = path, text
        self.delimiter = "\t" if path.removesuffix(".gz").endswith(".tsv") else csv_delimiter(path)
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


def csv_delimiter(path: str | os.PathLike[str]) -> str:
    """Comma, semicolon or tab: whichever the first line has most of."""
    with _pyarrow().input_stream(os.fspath(path), compression="detect") as stream:
        line = stream.read(2**20).lstrip(b"\r\n").partition(b"\n")[0].decode(errors="replace")
    return max(DELIMITERS, key=line.count)


def _open(path: str, text: Sequence[str] = ()) -> _Parquet | _Arrow | _Csv:
    """A file ready to be read; pyarrow's errors name it."""
    kind = _file_kind(path)
    try:
        if kind == "csv":
            return _Csv(path, text)
        return _Parquet(path) if kind == "parquet" else _Arrow(path)
    except (_pyarrow().ArrowException, OSError) as error:
        raise BatchError(f"{path}, from row 0 on: cannot be read: {error}") from error


def _bytes_per_row(path: str) -> float:
    """Mean length of the first lines of a CSV file; 0 where it is compressed, and cannot be told."""
    if path.endswith(".gz"):
        return 0.0
    with open(path, "rb") as file:
        start = file.read(2**16)
    return len(start) / max(1, start.count(b"\n"))


def _skip(batches: Iterable[Any], row: int) -> Iterator[Any]:
    """Record batches as tables, without the first rows."""
    pa = _pyarrow()
    for batch in batches:
        if row >= batch.num_rows:
            row -= batch.num_rows
        else:
            yield pa.Table.from_batches([batch.slice(row)])
            row = 0


def _cut(tables: Iterable[Any], height: int) -> Iterator[Any]:
    """The same rows in tables of the given height, the last one shorter."""
    pa = _pyarrow()
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


def _kinds(schema: Any, file: str) -> dict[str, str]:
    """What each column holds, number or text or the name of another type."""
    pa = _pyarrow()
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


def _check_columns(wanted: Sequence[str], kinds: dict[str, str], file: str) -> None:
    if len(set(wanted)) < len(wanted):
        twice = sorted({name for name in wanted if wanted.count(name) > 1})
        raise ValueError(f"inputs, targets and weight must differ, got {twice} more than once")
    missing = [name for name in wanted if name not in kinds]
    if missing:
        raise BatchError(f"{file}: has no column {', '.join(map(repr, missing))}; it has {list(kinds)}")
    other = [name for name in wanted if kinds[name] not in ("number", "text")]
    if other:
        raise BatchError(
            f"{file}: columns must hold numbers or text, got {kinds[other[0]]} in {other[0]!r}; leave it out"
        )


def _find_files(path: Any) -> list[str]:
    """Files of a path, folder, pattern or list of these, each once, in the order of their names."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    found: dict[str, None] = {}
    for name in [str(os.fspath(one)) for one in paths]:
        if os.path.isdir(name):
            inside = sorted(str(file) for file in Path(name).rglob("*") if _is_table(file, name))
            if not inside:
                raise BatchError(f"{name}: the folder holds no {', '.join(_SUFFIXES)} files")
            found |= dict.fromkeys(inside)
        elif os.path.exists(name):
            _file_kind(name)
            found[name] = None
        else:
            matches = sorted(glob(name, recursive=True))
            if not matches:
                raise BatchError(f"{name}: no such file, and no file matches it")
            found |= dict.fromkeys(_find_files(matches))
    if not found:
        raise BatchError("no files to read: path is an empty list")
    return list(found)


def _is_table(file: Path, folder: str) -> bool:
    """Whether to read a file of a folder; what begins with a dot or an underscore is not data."""
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return file.is_file() and not hidden and Path(str(file).removesuffix(".gz")).suffix.lower() in _SUFFIXES


def _file_kind(path: str) -> str:
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if suffix not in _SUFFIXES:
        raise BatchError(f"{path}: the name must end in one of {', '.join(_SUFFIXES)}")
    return _SUFFIXES[suffix]


def _pyarrow() -> Any:
    try:
        import pandas  # noqa: F401
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            'reading tables in batches needs pyarrow and pandas: pip install "entangled-kernels[data]"'
        ) from error
    return pa
