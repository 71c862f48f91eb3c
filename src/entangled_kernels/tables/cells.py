"""What the columns of a table hold: numbers, checked cell by cell, or text, as numbers on request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from .errors import TableError

__all__ = [
    "categories_of",
    "encode_categories",
    "require_columns",
    "require_numbers",
    "text_columns",
    "unseen_categories",
]

DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


def require_columns(frame: Any, names: Sequence[str], path: Any) -> None:
    """Raise unless the table has all these columns; the error names those missing and what is near them."""
    have = [str(name) for name in frame.columns]
    missing = [name for name in names if name not in have]
    if not missing:
        return
    near = {name: get_close_matches(name, have, n=2, cutoff=0.6) for name in missing[:5]}
    hints = [f"'{name}'" + (f" (is it {_listed(near[name], 'or')}?)" if near[name] else "") for name in near]
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    there = "there is no column" if len(missing) == 1 else "there are no columns"
    problem = f"{there} {', '.join(hints)}{more}"
    if not any(near.values()):
        problem += f"; the table has {_listed(have[:8], 'and')}{' and others' if len(have) > 8 else ''}"
    raise TableError(path, problem)


def text_columns(frame: Any, names: Sequence[str]) -> list[str]:
    """Those of the columns that hold text; dates and times are none."""
    return [name for name in names if _kind(frame[name]) == "text"]


def require_numbers(frame: Any, names: Sequence[str], path: Any, *, way_out: str = "") -> Any:
    """The columns as float64; raises on the first cell that is missing or is no finite number.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : sequence of str
    path : path
        Of the file, for the error.
    way_out : str, optional
        What to do about text, added to the error.

    Returns
    -------
    frame : pandas.DataFrame
    """
    require_columns(frame, names, path)
    for name in names:
        _require_number_type(frame[name], path, way_out)
    numbers = frame[list(names)].astype(np.float64)
    values = numbers.to_numpy()
    if not np.isfinite(values).all():
        _raise_first_bad_cell(values, list(names), path)
    return numbers


def _require_number_type(column: Any, path: Any, way_out: str) -> None:
    kind = _kind(column)
    if kind == "number":
        return
    if kind == "time":
        raise TableError(path, "dates and times are no numbers" + way_out, column=column.name)
    for place, cell in enumerate(column):
        if isinstance(cell, str) and not _is_number(cell):
            comma = "; write decimals with a point" if DECIMAL_COMMA.fullmatch(cell) else way_out
            raise TableError(path, f"'{cell}' is no number{comma}", row=place + 1, column=column.name)
    raise TableError(
        path, f"the column holds no plain numbers ({column.dtype})" + way_out, column=column.name
    )


def _raise_first_bad_cell(values: Any, names: list[str], path: Any) -> None:
    bad = np.argwhere(~np.isfinite(values))
    row, column = (int(place) for place in bad[0])
    missing = bool(np.isnan(values[row, column]))
    problem = (
        "the cell is empty; fill it, or leave out the row or the column"
        if missing
        else f"{values[row, column]} is not finite"
    )
    others = len(bad) - 1
    if others:
        rows = len({int(place) for place, _ in bad})
        problem += f" (one of {others + 1} such cells, in {rows} row{'s' if rows > 1 else ''})"
    raise TableError(path, problem, row=row + 1, column=names[column])


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


def categories_of(frame: Any, names: Sequence[str], path: Any) -> dict[str, list[str]]:
    """Values of columns of text, sorted; raises where a cell is empty."""
    categories = {}
    for name in names:
        missing = np.flatnonzero(frame[name].isna().to_numpy())
        if missing.size:
            raise TableError(path, "the cell is empty", row=int(missing[0]) + 1, column=name)
        categories[name] = sorted({str(cell) for cell in frame[name]})
    return categories


def encode_categories(frame: Any, categories: dict[str, list[str]]) -> Any:
    """The frame with each column of text replaced by a column of 0 and 1 for each of its values.

    Examples
    --------
    >>> import pandas as pd
    >>> encode_categories(pd.DataFrame({"town": ["Ulm", "Aix"], "x": [1, 2]}), {"town": ["Aix", "Ulm"]})
       town=Aix  town=Ulm  x
    0       0.0       1.0  1
    1       1.0       0.0  2
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in frame.columns:
        if name in categories:
            cells = frame[name].astype(str)
            for value in categories[name]:
                columns[f"{name}={value}"] = (cells == value).astype(np.float64)
        else:
            columns[name] = frame[name]
    return pd.DataFrame(columns, index=frame.index)


def unseen_categories(frame: Any, categories: dict[str, list[str]]) -> dict[str, list[str]]:
    """Values of columns of text that are in none of their lists."""
    found = {
        name: sorted({str(cell) for cell in frame[name]} - set(known)) for name, known in categories.items()
    }
    return {name: values for name, values in found.items() if values}


def _listed(names: Sequence[str], word: str) -> str:
    """'a', 'b' and 'c'."""
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"
