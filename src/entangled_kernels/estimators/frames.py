"""Data frames in and out: names of targets, and predictions as pandas or polars frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONTAINERS", "target_names", "to_container"]

CONTAINERS = ("default", "pandas", "polars")


def target_names(Y: Any) -> NDArray[np.object_] | None:
    """Column names of a data frame, the name of a series, None for anything else."""
    if hasattr(Y, "columns"):
        return np.array([str(name) for name in Y.columns], dtype=object)
    name = getattr(Y, "name", None)
    # polars names a series without a name "".
    return None if name in (None, "") or not hasattr(Y, "dtype") else np.array([str(name)], dtype=object)


def to_container(kind: str, values: NDArray[np.float64], names: list[str], X: Any) -> Any:
    """Values as an array, or as a frame (a series where they are one-dimensional) with the rows of X."""
    if kind == "default":
        return values
    if kind == "pandas":
        import pandas as pd

        index = X.index if isinstance(X, pd.DataFrame) else None
        if values.ndim == 1:
            return pd.Series(values, index=index, name=names[0])
        return pd.DataFrame(values, index=index, columns=names)
    import polars as pl

    if values.ndim == 1:
        return pl.Series(names[0], values)
    return pl.DataFrame(values, schema=names, orient="row")
