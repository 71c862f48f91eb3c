"""Which kind of table a file is, by the end of its name; one table of kinds for all that reads or writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["DELIMITERS", "KINDS", "TEXT_KINDS", "csv_delimiter", "file_kind", "text_delimiter"]

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
}
TEXT_KINDS = ("csv", "tsv")
DELIMITERS = ",;\t"


def file_kind(path: str | os.PathLike[str], *, compressed: bool = True) -> str | None:
    """One of "csv", "tsv", "parquet", "arrow" and "npz", or None for any other name.

    Parameters
    ----------
    path : path
    compressed : bool, default=True
        Whether ``.csv.gz`` and ``.tsv.gz`` will do too.

    Examples
    --------
    >>> file_kind("speed.parquet"), file_kind("Speed.CSV.gz"), file_kind("speed.xlsx")
    ('parquet', 'csv', None)
    """
    name = Path(path).name.lower()
    packed = compressed and name.endswith(".gz")
    kind = KINDS.get(Path(name.removesuffix(".gz") if packed else name).suffix)
    return None if packed and kind not in TEXT_KINDS else kind


def text_delimiter(path: str | os.PathLike[str]) -> str:
    """What separates the cells of a text file: a tab in TSV, in CSV what the first line has most of."""
    return "\t" if file_kind(path) == "tsv" else csv_delimiter(path)


def csv_delimiter(path: str | os.PathLike[str]) -> str:
    """Comma, semicolon or tab: whichever the first line has most of."""
    with _input_stream(path) as stream:
        line = stream.read(2**20).lstrip(b"\r\n").partition(b"\n")[0].decode(errors="replace")
    return max(DELIMITERS, key=line.count)


def _input_stream(path: str | os.PathLike[str]) -> Any:
    from .arrow import need_arrow

    return need_arrow().input_stream(os.fspath(path), compression="detect")
