"""Which rows of a table are held out together: any, those of a group, or those of a stretch of time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables import TableError
from .errors import CommandError

__all__ = ["HeldOut", "error_in_words", "group_values", "read_held_out", "time_values"]

EMPTY = "the cell is empty; fill it, or leave out the row"


@dataclass(frozen=True)
class HeldOut:
    """How rows are held out.

    Attributes
    ----------
    by : {"rows", "groups", "time"}
    column : str or None
        Of the groups, or of the time; None where rows are in the order of time as they are.
    values : ndarray of shape (n,) or None
        Groups of the rows in memory, or their times in increasing order.
    """

    by: str = "rows"
    column: str | None = None
    values: NDArray[Any] | None = field(default=None, compare=False)

    def with_values(self, values: NDArray[Any]) -> HeldOut:
        """The same, with the groups or times of rows in memory."""
        return replace(self, values=values)

    def options(self) -> dict[str, Any]:
        """The options that ask for it."""
        return {
            "--groups": self.column if self.by == "groups" else None,
            "--time-ordered": self.by == "time" and self.column is None,
            "--time-column": self.column if self.by == "time" else None,
        }

    def facts(self) -> dict[str, Any]:
        """What to remember of it, as plain values."""
        groups = self.values if self.by == "groups" else None
        n_groups = None if groups is None else len(np.unique(groups))
        return {"by": self.by, "column": self.column, "groups": n_groups}

    def check_folds(self, folds: int) -> None:
        """Raise where there are fewer groups than folds."""
        n_groups = self.facts()["groups"]
        if n_groups == 1:
            raise CommandError(
                f"--groups: column '{self.column}' has the same value in every row; at least 2 are needed",
                "data",
            )
        if n_groups is not None and n_groups < folds:
            raise CommandError(
                f"--folds {folds} is more than the {n_groups} groups of column '{self.column}'; say --folds "
                f"{n_groups}"
            )

    def splits(self, n_rows: int, folds: int, seed: int) -> list[Any]:
        """Splits of rows in memory, one round of them."""
        from sklearn.model_selection import KFold

        from ..selection import group_splits, time_splits

        if self.by == "time":
            return time_splits(n_rows, folds, self.values)
        if self.values is not None:
            self.check_folds(folds)
            return group_splits(self.values, folds, random_state=seed)
        return list(KFold(min(folds, n_rows), shuffle=True, random_state=seed).split(np.empty((n_rows, 1))))


def read_held_out(groups: str | None, time_ordered: bool, time_column: str | None) -> HeldOut:
    """The values of the options, checked."""
    timed = time_ordered or time_column is not None
    if groups is not None and timed:
        given = "--time-ordered" if time_column is None else "--time-column"
        raise CommandError(f"--groups and {given} hold out different rows; give one of them")
    if groups is not None:
        return HeldOut("groups", groups)
    return HeldOut("time", time_column) if timed else HeldOut()


def error_in_words(facts: dict[str, Any] | None) -> str:
    """What an error on held-out rows is about, from `HeldOut.facts`."""
    by, column = ("rows", None) if facts is None else (facts["by"], facts["column"])
    if by == "groups":
        count = "" if facts is None or facts["groups"] is None else f"{facts['groups']} "
        return f"Cross-validated error on new groups, the {count}groups of '{column}' being held out whole"
    if by == "time":
        return "Cross-validated error on later rows, each fold being predicted from the rows before it"
    return "Cross-validated error"


def group_values(frame: Any, name: str, path: Any) -> NDArray[Any]:
    """Groups of all rows of a table, numbers or texts; raises where one is blank."""
    values = _without_blanks(frame[name], path).to_numpy()
    return np.asarray(values if values.dtype.kind in "biuf" else values.astype(str))


def time_values(frame: Any, name: str, path: Any) -> NDArray[Any]:
    """Times of all rows of a table as numbers: numbers, dates, or texts of dates such as 2024-05-31."""
    import pandas as pd

    column = _without_blanks(frame[name], path)
    if column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(), dtype=np.float64)
    found = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    wrong = np.flatnonzero(found.isna().to_numpy())
    if len(wrong):
        raise TableError(
            path,
            f"'{column.iloc[wrong[0]]}' is no number and no date such as 2024-05-31; sort the rows by time "
            f"and say --time-ordered",
            row=int(wrong[0]) + 1,
            column=name,
        )
    return np.asarray(found.astype("int64").to_numpy())


def _without_blanks(column: Any, path: Any) -> Any:
    """A column of a table; raises where a cell is blank."""
    blank = np.flatnonzero((column.isna() | (column.astype(str).str.strip() == "")).to_numpy())
    if len(blank):
        raise TableError(path, EMPTY, row=int(blank[0]) + 1, column=column.name)
    return column
