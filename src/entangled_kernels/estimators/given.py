"""Targets of new rows that are measured already: taken from arrays or frames, matched by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..linalg import Array
from .cells import check_targets
from .frames import target_names

__all__ = ["check_costs", "check_given"]


def check_given(given: Any, X: Any, n_rows: int, names: list[str], *, named: bool) -> Array:
    """Measured targets (n, p), NaN where one is to be predicted.

    Parameters
    ----------
    given : array-like of shape (n, p) or (n,), or data frame
        Columns of a frame are matched by name, and some of them will do.
    X : table
        Its rows; where both are pandas frames the index of ``given`` must be that of X, in any order.
    n_rows : int
    names : list of str
        Of the targets.
    named : bool
        Whether the names are those of the training table, not made up.
    """
    columns = target_names(given)
    if columns is not None and len(set(columns)) < len(columns):
        raise ValueError(f"given must name each target once, got {list(columns)}")
    given = _like_rows(given, X)
    values = check_targets(given, columns)
    values = values.reshape(len(values), -1)
    if len(values) != n_rows:
        raise ValueError(f"given must have a row for each of the {n_rows} rows of X, got {len(values)}")
    if columns is None or (not named and len(columns) == len(names) and not set(columns) & set(names)):
        if values.shape[1] != len(names):
            raise ValueError(
                f"given must have {len(names)} columns, a target each, NaN where it is not measured, "
                f"got {values.shape[1]}; a data frame may have some of them, by name"
            )
        return np.array(values)
    unknown = [str(name) for name in columns if name not in names]
    if unknown:
        raise ValueError(
            f"given must have columns that are targets, {names if len(names) <= 12 else names[:12]}, got "
            f"{', '.join(map(repr, unknown))} as well; leave out what is not a target"
        )
    found = np.full((n_rows, len(names)), np.nan)
    found[:, [names.index(name) for name in columns]] = values
    return found


def _like_rows(given: Any, X: Any) -> Any:
    """A pandas frame in the order of the rows of X."""
    rows: Any = getattr(X, "index", None)
    comparable = hasattr(given, "reindex") and hasattr(rows, "equals")
    # Where there are not as many rows as in X, that is the error to come.
    if not comparable or len(given.index) != len(rows) or rows.equals(given.index):
        return given
    if rows.is_unique and set(given.index) == set(rows):
        return given.reindex(rows)
    raise ValueError(
        "given must have the index of X, so that its rows can be told apart; use "
        "given.set_axis(X.index) where rows correspond by their order"
    )


def check_costs(cost: Any, names: list[str]) -> Array:
    """What each measurement costs, (p,), from numbers in the order of the targets or a mapping by name."""
    if cost is None:
        return np.ones(len(names))
    if isinstance(cost, Mapping):
        unknown = [str(name) for name in cost if str(name) not in names]
        if unknown:
            raise ValueError(f"cost must name targets, {names}, got {', '.join(map(repr, unknown))}")
        cost = [cost.get(name, 1.0) for name in names]
    costs = np.asarray(cost, dtype=np.float64)
    if costs.shape != (len(names),):
        raise ValueError(f"cost must hold {len(names)} numbers, one a target, got shape {costs.shape}")
    if not np.isfinite(costs).all() or costs.min(initial=1.0) <= 0.0:
        raise ValueError(f"cost must be positive and finite, got {costs.tolist()}")
    return costs
