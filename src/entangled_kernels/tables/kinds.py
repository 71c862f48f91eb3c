"""Which kind of table a file is, by the end of its name."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import TableError

__all__ = ["KINDS", "table_kind"]

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
TEXT = ("csv", "tsv")


def table_kind(path: str | os.PathLike[str], *, compressed: bool = False) -> str:
    """One of "csv", "tsv", "parquet", "arrow" and "npz".

    Parameters
    ----------
    path : path
    compressed : bool, default=False
        Whether ``.csv.gz`` and ``.tsv.gz`` will do too.

    Examples
    --------
    >>> table_kind("speed.parquet")
    'parquet'
    """
    name = Path(path).name.lower()
    packed = compressed and name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz") if packed else name).suffix
    kind = KINDS.get(suffix)
    if kind is None or (packed and kind not in TEXT):
        known = ", ".join(KINDS)
        hint = "; save the sheet as CSV" if suffix in (".xlsx", ".xls", ".ods") else ""
        raise TableError(path, f"the name must end in one of {known}, got '{Path(path).suffix}'{hint}")
    return kind
