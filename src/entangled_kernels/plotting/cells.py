"""Values as text: cells of tables, and visible escapes of control characters."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

__all__ = ["PageTable", "Table", "visible"]

# Cells with more letters than this are wrapped.
LONG = 28
MINUS, NOTHING = "\N{MINUS SIGN}", "\N{EN DASH}"


class PageTable(NamedTuple):
    """A table to print or to add to a page; the parameters are those of `Report.table`.

    A page leaves out the tables of the metrics in ``replaces``.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str
    note: str = ""
    digits: int | Mapping[str, int] = 3
    row_headers: int = 1
    replaces: tuple[str, ...] = ()


class Table:
    """Rows and columns of a page's table; the parameters are those of `Report.table`."""

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        digits: int | Mapping[str, int] = 3,
        best: str | None = None,
        best_among: Sequence[str | int] | None = None,
        row_headers: int = 1,
        sure: Collection[tuple[int, str]] | None = None,
        marked: Collection[tuple[int, str]] = (),
    ) -> None:
        self.sure, self.marked = None if sure is None else set(sure), set(marked)
        self.columns, self.rows = [str(column) for column in columns], [list(row) for row in rows]
        width = len(self.columns)
        for j, row in enumerate(self.rows):
            if len(row) != width:
                raise ValueError(
                    f"row {j} must have {width} cells as there are columns, got {len(row)}"
                )
        if best not in (None, "min", "max"):
            raise ValueError(f"best must be 'min', 'max' or None, got {best!r}")
        unknown = [
            name
            for name in best_among or ()
            if name not in self.columns and name not in range(width)
        ]
        if unknown:
            raise ValueError(
                f"best_among must hold names or positions of columns, got {unknown[0]!r}"
            )
        if not 0 <= row_headers <= width:
            raise ValueError(f"row_headers must lie between 0 and {width}, got {row_headers}")
        by_name = digits if isinstance(digits, Mapping) else dict.fromkeys(self.columns, digits)
        self.digits = [by_name.get(column, 3) for column in self.columns]
        self.best, self.row_headers = best, row_headers
        among = range(row_headers, width) if best_among is None else best_among
        self.competing = [j for j, name in enumerate(self.columns) if name in among or j in among]
        self.numeric = [self._is_numeric(j) for j in range(width)]

    def heads(self) -> list[dict[str, Any]]:
        """Text and classes of the column headers."""
        return [
            {"text": column, "classes": self._classes(j)} for j, column in enumerate(self.columns)
        ]

    def cells(self) -> list[list[dict[str, Any]]]:
        """Text and classes of all cells, and whether a cell is a header or the best of its row."""
        return [self._row(number, row) for number, row in enumerate(self.rows)]

    def best_in_words(self) -> str:
        """Meaning of the star; empty if there is none."""
        if not any(self._best_columns(row, number) for number, row in enumerate(self.rows)):
            return ""
        word = "lowest" if self.best == "min" else "highest"
        sure = "" if self.sure is None else ", by more than chance would give"
        return f"★ {word} of the row{sure}."

    def _row(self, number: int, row: list[Any]) -> list[dict[str, Any]]:
        best = self._best_columns(row, number)
        best |= {j for j, name in enumerate(self.columns) if (number, name) in self.marked}
        cells = []
        for j, (value, digits) in enumerate(zip(row, self.digits, strict=True)):
            text, header = format_cell(value, digits), j < self.row_headers
            is_best = j in best and not header
            more = ["best"] if is_best else ["long"] * (len(text) > LONG)
            classes = self._classes(j) + more
            cells.append({"text": text, "classes": classes, "header": header, "best": is_best})
        return cells

    def _best_columns(self, row: list[Any], number: int = 0) -> set[int]:
        """Columns of the smallest or largest number as printed; none if fewer than two compete."""
        rounded = {
            j: round(value, self.digits[j])
            for j in self.competing
            if (value := _number(row[j])) is not None
        }
        if self.best is None or len(rounded) < 2:
            return set()
        target = min(rounded.values()) if self.best == "min" else max(rounded.values())
        best = {j for j, value in rounded.items() if value == target}
        if self.sure is not None:
            best = {j for j in best if (number, self.columns[j]) in self.sure}
        return best if len(best) < len(rounded) else set()

    def _classes(self, j: int) -> list[str]:
        return ["num"] if self.numeric[j] else []

    def _is_numeric(self, j: int) -> bool:
        cells = [row[j] for row in self.rows if row[j] is not None]
        return bool(cells) and all(
            isinstance(cell, Real | tuple) and not _is_bool(cell) for cell in cells
        )


def format_cell(value: Any, digits: int) -> str:
    """A cell as text: numbers with ``digits`` after the point, pairs as mean ± spread, a dash for None.

    Examples
    --------
    >>> format_cell(0.12345, 3), format_cell((0.5, 0.01), 2), format_cell(None, 3)
    ('0.123', '0.50 ± 0.01', '–')
    """
    if value is None:
        return NOTHING
    if _is_bool(value):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ± ".join(format_cell(part, digits) for part in value)
    if isinstance(value, Integral):
        return str(value).replace("-", MINUS)
    if isinstance(value, Real):
        number = float(value)
        return NOTHING if math.isnan(number) else f"{number:.{digits}f}".replace("-", MINUS)
    return str(value)


def _number(value: Any) -> float | None:
    """The number of a cell, or the mean of a pair; None for other cells."""
    value = value[0] if isinstance(value, tuple) and value else value
    if not isinstance(value, Real) or _is_bool(value) or math.isnan(value):
        return None
    return float(value)


def _is_bool(value: Any) -> bool:
    # NumPy 1 calls its own type bool_.
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


# Control characters, which terminals obey, and marks that change the direction of writing.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str, *, keep: str = "") -> str:
    r"""Text with control characters and marks of direction written as escapes, which JSON has too.

    Parameters
    ----------
    text : str
    keep : str, optional
        Characters to leave as they are.

    Examples
    --------
    >>> print(visible("net load\x1b[2J \u202eGPJ.exe"))
    net load\u001b[2J \u202eGPJ.exe
    """
    return HIDDEN.sub(lambda sign: sign[0] if sign[0] in keep else f"\\u{ord(sign[0]):04x}", text)
