"""Which kind of table a file is, by the end of its name; one table of kinds for all that reads or writes."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["DELIMITERS", "KINDS", "TEXT_KINDS", "file_kind", "text_delimiter"]

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
    """What separates the cells of a text file: a tab in TSV, in CSV what the first line has most of.

    That is a comma, a semicolon or a tab.
    """
    if file_kind(path) == "tsv":
        return "\t"
    from .arrow import need_arrow

    with need_arrow().input_stream(os.fspath(path), compression="detect") as stream:
        line = stream.read(2**20).lstrip(b"\xef\xbb\xbf\r\n").partition(b"\n")[0].decode(errors="replace")
    # Names in quotes may hold what separates nothing.
    return max(DELIMITERS, key=re.sub('"[^"]*"', "", line).count)
