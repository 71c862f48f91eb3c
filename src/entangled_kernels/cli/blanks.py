"""Blank cells among the targets of a table to learn from, counted as its rows are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..tables.phrases import counted

__all__ = ["Blanks"]

SHOWN = 5


@dataclass
class Blanks:
    """How many cells of each target are blank, and how many rows have no target at all.

    Attributes
    ----------
    cells : dict of int
        Blank cells of the targets that have any, rows without any target not counted.
    rows : int
        Rows that were looked at.
    empty_rows : int
        Rows without any target, which nothing can be learned from.
    """

    cells: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    empty_rows: int = 0

    def count(self, Y: Any) -> None:
        """Count the cells of more rows, a pandas data frame or a Dask one."""
        blank = Y.isna()
        # One pass of a Dask table for all three; plain numbers pass through.
        found = blank.sum(), blank.all(axis=1).sum(), blank.shape[0]
        if hasattr(Y, "dask"):
            from dask.base import compute

            found = compute(*found)  # type: ignore[no-untyped-call]
        cells, empty, n_rows = found
        for name, number in cells.items():
            if number > empty:
                self.cells[str(name)] = self.cells.get(str(name), 0) + int(number - empty)
        self.rows, self.empty_rows = self.rows + int(n_rows), self.empty_rows + int(empty)

    def in_words(self, rows: int) -> list[str]:
        """Sentences for a table of so many rows; none where nothing is blank."""
        sentences = []
        read = "" if self.rows == rows else f" of the {counted(self.rows, 'row')} read since the checkpoint"
        if self.empty_rows:
            verb = "has no target and is" if self.empty_rows == 1 else "have no target and are"
            sentences.append(f"{counted(self.empty_rows, 'row')}{read} {verb} left out.")
        if self.cells:
            most = sorted(self.cells.items(), key=lambda item: -item[1])
            shown = ", ".join(f"{number:,} of '{name}'" for name, number in most[:SHOWN])
            more = f" and more of {counted(len(most) - SHOWN, 'target')}" if len(most) > SHOWN else ""
            total = counted(sum(self.cells.values()), "target cell")
            verb = "is" if total.startswith("1 ") else "are"
            sentences.append(
                f"{total}{read} {verb} blank: {shown}{more}; each target is learned from the rows that have "
                f"it."
            )
        return sentences
