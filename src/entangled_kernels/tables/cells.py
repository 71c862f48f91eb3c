"""What the columns of a table hold: numbers or text, checked cell by cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from .errors import TableError
from .phrases import counted, quoted

__all__ = [
    "Hints",
    "first_texts",
    "looks_like_a_date",
    "looks_like_a_decimal_comma",
    "require_columns",
    "require_numbers",
    "require_text",
    "text_columns",
]

DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
DATE = re.compile(r"\s*\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[T ].*)?\s*|\s*\d{1,2}:\d{2}(?::\d{2})?.*")
EMPTY = "the cell is empty"
# Squares of larger numbers are infinite, and so are the variances of their columns.
LARGEST = 1e150


class Hints(NamedTuple):
    """Ways out of an error, each added to its sentence: what a caller offers for such a cell."""

    text: str = ""
    date: str = ""
    comma: str = "; if its comma is a decimal sign, read the file with decimal ','"
    empty: str = ""


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
    hints: Hints = Hints(),  # noqa: B008
    rows_before: int = 0,
    blanks: bool = False,
) -> Any:
    """The columns as float64; raises on the first cell that is missing, infinite or too large.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : sequence of str
    path : path
        Of the file, for the error.
    hints : Hints, optional
        What to do about a wrong cell, added to the error.
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
        _require_number_type(frame[name], path, hints, rows_before)
    numbers = frame[list(names)].astype(np.float64)
    values = numbers.to_numpy()
    bad = np.abs(values) > LARGEST if blanks else ~(np.abs(values) <= LARGEST)
    if bad.any():
        _raise_first_bad_cell(values, bad, list(names), path, hints, rows_before)
    return numbers


def require_text(
    frame: Any,
    names: Sequence[str],
    path: Any,
    *,
    hints: Hints = Hints(),  # noqa: B008
    rows_before: int = 0,
    blanks: bool = False,
) -> Any:
    """The columns as text; raises on the first cell that is empty. Parameters as in `require_numbers`.

    With ``blanks`` such a cell is the empty text.
    """
    require_columns(frame, names, path)
    for name in names:
        missing = np.flatnonzero(frame[name].isna().to_numpy())
        if missing.size and not blanks:
            raise TableError(path, EMPTY + hints.empty, row=rows_before + int(missing[0]) + 1, column=name)
    texts = frame[list(names)]
    return texts.astype(str).where(texts.notna(), "") if blanks else texts.astype(str)


def first_texts(frame: Any, names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """The first cell that is no number in every column that holds some: its row, from 1, and text."""
    found = {}
    for name in names:
        if _kind(frame[name]) in ("text", "time"):
            for place, cell in enumerate(frame[name], start=1):
                if not _is_number(cell) and not _is_missing(cell):
                    found[name] = place, str(cell)
                    break
    return found


def looks_like_a_date(text: str) -> bool:
    """Whether a cell looks like a date or a time of day."""
    return DATE.fullmatch(text) is not None


def looks_like_a_decimal_comma(text: str) -> bool:
    """Whether a cell would be a number if its comma were a point."""
    return DECIMAL_COMMA.fullmatch(text) is not None


def _require_number_type(column: Any, path: Any, hints: Hints, rows_before: int) -> None:
    kind = _kind(column)
    if kind == "number":
        return
    if kind == "time":
        raise TableError(path, f"dates and times are no numbers{hints.date}", column=column.name)
    for place, cell in enumerate(column, start=rows_before + 1):
        if isinstance(cell, str) and not _is_number(cell):
            hint = hints.text
            if looks_like_a_decimal_comma(cell):
                hint = hints.comma
            elif looks_like_a_date(cell):
                hint = f", it looks like a date or a time{hints.date}"
            raise TableError(path, f"'{cell}' is no number{hint}", row=place, column=column.name)
    raise TableError(
        path, f"the column holds no plain numbers ({column.dtype}){hints.text}", column=column.name
    )


def _raise_first_bad_cell(
    values: Any, wrong: Any, names: list[str], path: Any, hints: Hints, rows_before: int
) -> None:
    bad = np.argwhere(wrong)
    row, column = (int(place) for place in bad[0])
    value = values[row, column]
    if np.isnan(value):
        problem = EMPTY + hints.empty
    elif np.isinf(value):
        problem = f"{value} is not finite"
    else:
        problem = f"{value:g} is too large: its square is infinite; change the unit or mend the cell"
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


def _is_missing(cell: Any) -> bool:
    return cell is None or cell != cell
