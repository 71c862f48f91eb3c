"""The kind of a table, or an error that says which kinds there are."""

from __future__ import annotations

import os
from pathlib import Path

from ..streams import KINDS, file_kind
from .errors import TableError

__all__ = ["table_kind"]

SPREADSHEETS = (".xlsx", ".xls", ".ods")


def table_kind(path: str | os.PathLike[str], *, compressed: bool = False) -> str:
    """One of "csv", "tsv", "parquet", "arrow" and "npz", by the end of the name.

    Parameters
    ----------
    path : path
    compressed : bool, default=False
        Whether ``.csv.gz`` and ``.tsv.gz`` will do too, as they do for reading.

    Examples
    --------
    >>> table_kind("speed.parquet")
    'parquet'
    """
    kind = file_kind(path, compressed=compressed)
    if kind is None:
        suffix = Path(path).suffix
        hint = "; save the sheet as CSV" if compressed and suffix.lower() in SPREADSHEETS else ""
        raise TableError(path, f"the name must end in one of {', '.join(KINDS)}, got '{suffix}'{hint}")
    return kind
