"""Which kind of table a file is, by the end of its name; one table of kinds for all that reads or writes."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["KINDS", "TEXT_KINDS", "file_kind"]

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
