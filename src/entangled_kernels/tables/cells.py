"""What the columns of a table hold: numbers or text, checked cell by cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from .errors import TableError
from .phrases import counted, quoted

__all__ = ["require_columns", "require_numbers", "require_text", "text_columns"]

DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
DATE = re.compile(r"\s*\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[T ].*)?\s*|\s*\d{1,2}:\d{2}(?::\d{2})?.*")
EMPTY = "the cell is empty; fill it, or leave out the row (--missing drop) or the column (--exclude)"
EXCLUDE_DATES = "exclude it (--exclude), or turn it into numbers, such as days since the first"


def require_columns(frame: Any, names: Sequence[str], path: Any) -> None:
    """Raise unless the table has all these columns once; the error names what is near a missing one."""
    have = [str(name) for name in frame.columns]
    twice = [name for name in names if have.count(name) > 1]
    if twice:
        places = [str(place + 1) for place, name in enumerate(have) if name == twice[0]]
        raise TableError(
            path,
            f"{len(places)} columns have the name '{twice[0]}' (columns {' and '.join(places)}); rename or "
            f"exclude them",
        )
    missing = [name for name in names if name not in have]
    if not missing:
        return
    near = {name: get_close_matches(name, have, n=2, cutoff=0.6) for name in missing[:5]}
    hints = [f"'{name}'" + (f" (is it {quoted(near[name], 'or')}?)" if near[name] else "") for name in near]
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    there = "there is no column" if len(missing) == 1 else "there are no columns"
    problem = f"{there} {', '.join(hints)}{more}"
    if not any(near.values()):
        problem += f"; the table has {quoted(have, most=8)}"
    raise TableError(path, problem)


def text_columns(frame: Any, names: Sequence[str]) -> list[str]:
    """Those of the columns that hold text; dates and times are none."""
    return [name for name in names if _kind(frame[name]) == "text"]


def require_numbers(
    frame: Any,
    names: Sequence[str],
    path: Any,
    *,
    way_out: str = "",
    rows_before: int = 0,
    blanks: bool = False,
) -> Any:
    """The columns as float64; raises on the first cell that is missing or is no finite number.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : sequence of str
    path : path
        Of the file, for the error.
    way_out : str, optional
        What to do about text, added to the error.
    rows_before : int, default=0
        Rows of the file that stand before those of the frame.
    blanks : bool, default=False
        Whether cells may be missing; they are NaN then.

    Returns
    -------
    frame : pandas.DataFrame
    """
    require_columns(frame, names, path)
    for name in names:
        _require_number_type(frame[name], path, way_out, rows_before)
    numbers = frame[list(names)].astype(np.float64)
    values = numbers.to_numpy()
    bad = np.isinf(values) if blanks else ~np.isfinite(values)
    if bad.any():
        _raise_first_bad_cell(values, bad, list(names), path, rows_before)
    return numbers


def require_text(
    frame: Any, names: Sequence[str], path: Any, *, rows_before: int = 0, blanks: bool = False
) -> Any:
    """The columns as text; raises on the first cell that is empty. Parameters as in `require_numbers`.

    With ``blanks`` such a cell is the empty text.
    """
    require_columns(frame, names, path)
    for name in names:
        missing = np.flatnonzero(frame[name].isna().to_numpy())
        if missing.size and not blanks:
            raise TableError(path, EMPTY, row=rows_before + int(missing[0]) + 1, column=name)
    texts = frame[list(names)]
    return texts.astype(str).where(texts.notna(), "") if blanks else texts.astype(str)


def _require_number_type(column: Any, path: Any, way_out: str, rows_before: int) -> None:
    kind = _kind(column)
    if kind == "number":
        return
    if kind == "time":
        raise TableError(path, f"dates and times are no numbers; {EXCLUDE_DATES}", column=column.name)
    for place, cell in enumerate(column, start=rows_before + 1):
        if isinstance(cell, str) and not _is_number(cell):
            hint = way_out
            if DECIMAL_COMMA.fullmatch(cell):
                hint = "; if its comma is a decimal sign, read the file with decimal ',' (--decimal ,)"
            elif DATE.fullmatch(cell):
                hint = f", it looks like a date or a time; {EXCLUDE_DATES}"
            raise TableError(path, f"'{cell}' is no number{hint}", row=place, column=column.name)
    raise TableError(
        path, f"the column holds no plain numbers ({column.dtype})" + way_out, column=column.name
    )


def _raise_first_bad_cell(values: Any, wrong: Any, names: list[str], path: Any, rows_before: int) -> None:
    bad = np.argwhere(wrong)
    row, column = (int(place) for place in bad[0])
    problem = EMPTY if np.isnan(values[row, column]) else f"{values[row, column]} is not finite"
    if len(bad) > 1:
        problem += f" (one of {len(bad)} such cells, in {counted(len(set(bad[:, 0].tolist())), 'row')})"
    raise TableError(path, problem, row=rows_before + row + 1, column=names[column])


def _kind(column: Any) -> str:
    from pandas.api import types

    if types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        return "number"
    if types.is_datetime64_any_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype):
        return "time"
    # A column without any cell is read as objects, all of them None; decimals come as objects too.
    if types.is_object_dtype(column.dtype) and not any(isinstance(cell, str) for cell in column):
        return "number" if all(cell is None or _is_number(cell) for cell in column) else "other"
    return "text"


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True
