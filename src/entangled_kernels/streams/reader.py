"""Tables larger than memory, read in batches of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from ..files import KINDS, TextFormat, file_kind
from .arrow import (
    SEVERAL,
    bytes_per_row,
    column_kinds,
    cut_tables,
    need_arrow,
    open_table,
    unreadable,
)
from .batch import Batch, BatchError, Source

__all__ = ["BatchReader", "find_files", "read_batches", "table_columns"]

# Kinds of files that can be read in batches.
_BATCHED = set(KINDS.values()) - {"npz"}
_ENDINGS = ", ".join(ending for ending, kind in KINDS.items() if kind in _BATCHED)
# A number takes 8 bytes in the file's columns, 8 in the data frame, and 16 while this is made.
_BYTES_PER_NUMBER = 32
_FEWEST_ROWS, _MOST_ROWS = 256, 65_536


def read_batches(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    inputs: Sequence[str] | None = None,
    targets: Sequence[str] = (),
    weight: str | None = None,
    batch_rows: int | None = None,
    max_memory: float = 2**28,
    text_format: TextFormat | None = None,
    drop_blank_inputs: bool = False,
    groups: str | None = None,
) -> BatchReader:
    r"""Read Parquet, Arrow, CSV or TSV files in batches of rows.

    Parameters
    ----------
    path : path, folder, glob pattern, or list of these
        Files are read in the order of their names, folders with everything below them.
    inputs : list of str, optional
        Columns of X; by default all that are neither targets nor weight nor groups.
    targets : list of str
        Columns of y; empty for X alone.
    weight : str, optional
        Column of sample weights.
    batch_rows : int, optional
        Rows in a batch. A batch never spans two files, so the last one of a file may be shorter.
    max_memory : float, default=2**28
        Bytes that one batch may take while it is made, which gives the default of ``batch_rows``.
    text_format : TextFormat, optional
        Separators and decimal signs of CSV and TSV files, if they cannot be detected.
    drop_blank_inputs : bool, default=False
        Whether rows with a missing input are left out of their batch.
    groups : str, optional
        Column with the group of each row, numbers or text.

    Returns
    -------
    BatchReader
        An iterable of `Batch`, which may be iterated again. X and y are pandas data frames.

    Notes
    -----
    Only the named columns are read. Memory is that of one batch, and of compressed pages for
    Parquet, which are read in small pieces. A CSV column holds numbers if the first rows of the
    first file do.

    Every file must have the columns and kinds of the first. An error names the file and its rows,
    after the batches before it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from entangled_kernels.streams import read_batches
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in "ab":
    ...     _ = (folder / f"{name}.csv").write_text("speed,weight,force\n1,2,3\n4,5,6\n7,8,9\n")
    >>> reader = read_batches(folder, targets=["force"], batch_rows=2)
    >>> [(batch.X.shape, Path(batch.source.file).name, batch.source.start) for batch in reader]
    [((2, 2), 'a.csv', 0), ((1, 2), 'a.csv', 2), ((2, 2), 'b.csv', 0), ((1, 2), 'b.csv', 2)]
    """
    need_arrow()
    files = find_files(path)
    text_format = text_format or TextFormat()
    kinds = column_kinds(open_table(files[0], text_format=text_format).schema)
    targets = [targets] if isinstance(targets, str) else list(targets)
    other = {*targets, weight, groups}
    inputs = [name for name in kinds if name not in other] if inputs is None else list(inputs)
    wanted = [*inputs, *targets, *([] if weight is None else [weight])]
    # Groups may be an input too.
    wanted += [] if groups is None or groups in inputs else [groups]
    _check_columns(wanted, kinds, files[0])
    for name in [*targets, *([] if weight is None else [weight])]:
        if kinds[name] != "number":
            raise BatchError(
                f"{files[0]}: column {name!r} must hold numbers, it holds {kinds[name]}"
            )
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
        text_format,
        drop_blank_inputs,
        groups,
    )


def table_columns(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    text_format: TextFormat | None = None,
) -> dict[str, str]:
    """Kinds of the columns of the first file by name: ``"number"``, ``"text"`` or another type.

    The kind is ``"several columns"`` if more than one column has the name.
    """
    need_arrow()
    return column_kinds(open_table(find_files(path)[0], text_format=text_format).schema)


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
    text_format : TextFormat
    drop_blank_inputs : bool
    groups : str or None
    """

    files: tuple[str, ...]
    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    batch_rows: int
    kinds: dict[str, str]
    text_format: TextFormat = field(default_factory=TextFormat)
    drop_blank_inputs: bool = False
    groups: str | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self.after(None)

    def after(self, source: Source | None) -> Iterator[Batch]:
        """Batches after the one from ``source``, as in a pass without an interruption."""
        files = self.files
        if source is not None:
            if source.file not in files:
                raise BatchError(
                    f"{source.file}, where reading was interrupted, is not among the files"
                )
            files = files[files.index(source.file) :]
        for file in files:
            yield from self._batches_of(
                file, source.stop if source is not None and source.file == file else 0
            )

    def layout(self) -> dict[str, Any]:
        """The size of batches and the columns, which must not change before a pass continues."""
        return {name: value for name, value in asdict(self).items() if name != "files"}

    def files_before(self, source: Source) -> tuple[str, ...]:
        """Files that had been read completely when the batch from ``source`` was read."""
        return self.files[: self.files.index(source.file)]

    def until(self, source: Source) -> Iterator[Batch]:
        """Batches of the file of ``source``, up to the one from ``source``."""
        for batch in self._batches_of(source.file, 0):
            if batch.source is None or batch.source.start >= source.stop:
                return
            yield batch

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(os.path.getsize(file) for file in self.files)

    def bytes_until(self, source: Source) -> int:
        """About how many bytes of the files have been read after the batch from ``source``."""
        size = os.path.getsize(source.file)
        n_rows = open_table(source.file, text_format=self.text_format).n_rows
        share = 1.0 if not n_rows else source.stop / n_rows
        if n_rows is None:
            share = min(1.0, source.stop * bytes_per_row(source.file) / max(1, size))
        return sum(os.path.getsize(file) for file in self.files_before(source)) + int(share * size)

    @property
    def n_rows(self) -> int | None:
        """Number of rows of all files, None if unknown before reading (CSV, rows left out)."""
        if self.drop_blank_inputs:
            return None
        counts = [open_table(file, text_format=self.text_format).n_rows for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)

    def _batches_of(self, file: str, row: int) -> Iterator[Batch]:
        try:
            text = [name for name, kind in self.kinds.items() if kind == "text"]
            opened = open_table(file, text, self.text_format)
            where = f"{file}, from row {row + 1} on"
            kinds = column_kinds(opened.schema)
            _check_columns(list(self.kinds), kinds, where)
            for name, kind in self.kinds.items():
                if kinds[name] != kind:
                    raise BatchError(
                        f"{where}: column {name!r} holds {kinds[name]}, before it held {kind}"
                    )
            for table in cut_tables(
                opened.tables(list(self.kinds), row, self.batch_rows), self.batch_rows
            ):
                yield self._batch(table, Source(file, row, row + table.num_rows))
                row += table.num_rows
        except (need_arrow().ArrowException, OSError) as error:
            raise unreadable(file, row, error) from error

    def _batch(self, table: Any, source: Source) -> Batch:
        X = self._frame(table, self.inputs)
        y = self._frame(table, self.targets) if self.targets else None
        weight = None if self.weight is None else self._numbers(table, (self.weight,))[:, 0]
        groups = None if self.groups is None else table.column(self.groups).to_pandas().to_numpy()
        if self.drop_blank_inputs:
            whole = X.notna().all(axis=1).to_numpy()
            X, y, weight, groups = (
                None if values is None else values[whole] for values in (X, y, weight, groups)
            )
        return Batch(X, y, weight, source, groups)

    def _frame(self, table: Any, names: Sequence[str]) -> Any:
        import pandas as pd

        if all(self.kinds[name] == "number" for name in names):
            return pd.DataFrame(self._numbers(table, names), columns=list(names), copy=False)
        frame = table.select(list(names)).to_pandas()
        # Before pandas 3 a missing text is None, which scikit-learn treats as a value.
        return frame.where(frame.notna(), np.nan)

    def _numbers(self, table: Any, names: Sequence[str]) -> Any:
        """Columns as one array, column-major so that a data frame of it needs no copy; nulls are NaN."""
        pa = need_arrow()
        columns = [table.column(name) for name in names]
        single = all(column.type in (pa.float32(), pa.float16()) for column in columns)
        numbers = np.empty(
            (table.num_rows, len(columns)), dtype=np.float32 if single else float, order="F"
        )
        for number, column in enumerate(columns):
            if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
                column = column.cast(
                    pa.float64() if pa.types.is_decimal(column.type) else pa.int8()
                )
            numbers[:, number] = column.to_numpy()
        return numbers


def _check_columns(wanted: Sequence[str], kinds: dict[str, str], file: str) -> None:
    if len(set(wanted)) < len(wanted):
        twice = sorted({name for name in wanted if wanted.count(name) > 1})
        raise ValueError(
            f"inputs, targets, weight and groups must differ, got {twice} more than once"
        )
    missing = [name for name in wanted if name not in kinds]
    if missing:
        raise BatchError(
            f"{file}: has no column {', '.join(map(repr, missing))}; it has {list(kinds)}"
        )
    twice = [name for name in wanted if kinds[name] == SEVERAL]
    if twice:
        raise BatchError(
            f"{file}: several columns have the name {twice[0]!r}; rename or exclude them"
        )
    other = [name for name in wanted if kinds[name] not in ("number", "text")]
    if other:
        raise BatchError(
            f"{file}: columns must hold numbers or text, got {kinds[other[0]]} in {other[0]!r}; leave it out"
        )


def find_files(path: Any) -> list[str]:
    """Files of a path, folder, pattern or list of these, each once, in the order of their names."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    files: dict[str, None] = {}
    for name in [str(os.fspath(each)) for each in paths]:
        if os.path.isdir(name):
            inside = sorted(str(file) for file in Path(name).rglob("*") if _is_table(file, name))
            if not inside:
                raise BatchError(f"{name}: the folder holds no {_ENDINGS} files")
            files |= dict.fromkeys(inside)
        elif os.path.exists(name):
            if file_kind(name) not in _BATCHED:
                raise BatchError(f"{name}: the name must end in one of {_ENDINGS}")
            files[name] = None
        else:
            matches = sorted(glob(name, recursive=True))
            if not matches:
                raise BatchError(f"{name}: no such file, and no file matches it")
            files |= dict.fromkeys(find_files(matches))
    if not files:
        raise BatchError("no files to read: path is an empty list")
    return list(files)


def _is_table(file: Path, folder: str) -> bool:
    """Whether a file of a folder is a table; names that begin with a dot or an underscore are not."""
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return file.is_file() and not hidden and file_kind(file) in _BATCHED
