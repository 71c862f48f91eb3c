"""The one error of tables."""

from __future__ import annotations

import os

__all__ = ["TableError"]


class TableError(ValueError):
    """A table that cannot be used: the message names the file and, where there is one, row and column.

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
        place = [] if row is None else [f"row {row}"]
        place += [] if column is None else [f"column '{column}'"]
        super().__init__(": ".join([self.path, *([", ".join(place)] if place else []), problem]))
