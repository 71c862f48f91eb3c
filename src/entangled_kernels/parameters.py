"""Checks of arguments, with messages that name the argument, what it got and what it needs.

Feature maps and estimators share them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

__all__ = [
    "as_table",
    "check_alphas",
    "check_choice",
    "check_feature_map",
    "check_flag",
    "check_fraction",
    "check_grid",
    "check_groups",
    "check_integer",
    "check_numeric_columns",
    "check_penalty",
    "check_positive",
    "check_range",
    "check_rank",
    "check_rank_fits",
    "check_real",
    "check_settings",
    "check_share",
    "check_solver_params",
    "check_weights",
    "is_dask",
    "naming_columns",
    "validate_rows",
    "warn_user",
    "weight_unit",
]

_BEFORE_MAPS = "before every feature map (features.default_feature_maps() are the automatic ones)"
_WITHOUT_TEXT = (
    f"leave these columns out, or put a ColumnTransformer that encodes them {_BEFORE_MAPS}"
)

LARGEST, SMALLEST = 1e70, 1e-70


def is_dask(*tables: Any) -> bool:
    """Whether any of the tables is a Dask collection."""
    return any(hasattr(table, "__dask_graph__") for table in tables)


def as_table(X: Any) -> NDArray[Any]:
    """A table as an array; lists with text as objects, since an array of text is as wide as the longest.

    Examples
    --------
    >>> as_table(["a", "long"]).dtype, as_table([[1, 2]]).dtype
    (dtype('O'), dtype('int64'))
    """
    if isinstance(X, list | tuple):
        rows = (row if isinstance(row, list | tuple) else [row] for row in X)
        if any(isinstance(value, str) for row in rows for value in row):
            return np.asarray(X, dtype=object)
    return np.asarray(X)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of the package whose call led here."""
    # The caller of this function is at level two.
    package, level, frame = f"{Path(__file__).parent}{os.sep}", 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless value is one of the strings."""
    options = list(choices)
    if not (isinstance(value, str) and value in options):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")


def check_real(
    name: str,
    value: Any,
    need: str,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    without: tuple[float, ...] = (),
    kind: type[Any] = Real,
) -> float:
    """Return value as a finite float from low to high that is not one of ``without``.

    The error says ``need``.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {need}, got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if not (np.isfinite(number) and low <= number <= high and number not in without):
        raise ValueError(f"{name} must be {need}, got {value!r}")
    return number


check_fraction = partial(check_real, need="a number between 0 and 1", low=0.0, high=1.0)
check_share = partial(
    check_real,
    need="a number between 0 and 1, neither of them",
    low=0.0,
    high=1.0,
    without=(0.0, 1.0),
)


def check_positive(name: str, value: Any, *, zero_allowed: bool = False) -> None:
    """Raise unless value is positive, or zero where that is allowed."""
    need = "a number of at least 0" if zero_allowed else "a positive number"
    check_real(name, value, need, 0.0, without=() if zero_allowed else (0.0,))


def check_penalty(name: str, value: Any, *, zero_allowed: bool = False) -> None:
    """Raise unless value is positive, or zero where allowed, and its square is a normal number."""
    check_positive(name, value, zero_allowed=zero_allowed)
    number = float(value)
    if number > LARGEST or 0.0 < number < SMALLEST:
        raise ValueError(
            f"{name} must be a number between {SMALLEST:g} and {LARGEST:g}, got {value!r}"
        )


def check_alphas(alphas: ArrayLike) -> NDArray[np.float64]:
    """Ridge penalties to try (a,), at least one, positive and finite."""
    need = "alphas must be a list of one or more positive numbers"
    try:
        values = np.array(alphas, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{need}, got {alphas!r:.80}") from error
    if values.ndim != 1 or not values.size:
        raise ValueError(f"{need}, got {alphas!r:.80}")
    bad = values[~(np.isfinite(values) & (values > 0.0))]
    if bad.size:
        raise ValueError(f"{need}, got {bad[0]:g} among them")
    return values


def check_integer(name: str, value: Any, low: int) -> None:
    """Raise unless value is a whole number of at least low."""
    check_real(name, value, f"a whole number of at least {low}", low, kind=Integral)


def check_range(name: str, values: Any, smallest: float = SMALLEST) -> None:
    """Raise if the squares of values would overflow, or vanish although a value is not zero."""
    largest = float(max(values.max(), -values.min()))
    if largest > LARGEST or 0.0 < largest < smallest:
        raise ValueError(
            f"{name} must have values between {SMALLEST:g} and {LARGEST:g} in size, so that their squares "
            f"can be summed; got {largest:g} as the largest; scale the columns"
        )


def check_weights(
    weights: ArrayLike | None,
    n: int,
    n_targets: int | None = None,
    *,
    all_zero: bool = False,
    name: str = "sample_weight",
) -> NDArray[np.float64] | None:
    """Weights of n rows (n,), or of each target of each row (n, n_targets) where that is allowed.

    They are finite, not negative, and not ``all_zero`` unless that is allowed. A number stands for
    n of it.
    """
    if weights is None:
        return None
    need = f"{name} must be a number or of shape ({n},)"
    need += "" if n_targets is None else f" or ({n}, {n_targets})"
    try:
        weight = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{need}, got {weights!r:.80}") from None
    weight = np.full(n, float(weight)) if weight.ndim == 0 else weight
    if weight.shape not in ((n,), (n, n_targets)):
        raise ValueError(f"{need}, got shape {weight.shape}")
    if not np.isfinite(weight).all() or weight.min(initial=0.0) < 0.0:
        raise ValueError(
            f"{name} must be finite and not negative; a target of weight zero is missing"
        )
    with np.errstate(over="ignore"):
        total = np.square(weight).sum()
    # Also times squares of the largest numbers, the sum has to be finite.
    if not total <= LARGEST**2:
        raise ValueError(
            f"{name} must be so small that the squares have a finite sum, got {weight.max():g} as "
            f"the largest; divide all weights by it"
        )
    if not (all_zero or weight.any()):
        raise ValueError(f"{name} must be positive for at least one row, got zero weights only")
    return weight


def weight_unit(weight: NDArray[np.float64]) -> float:
    """The weight of one row. A search divides weights (n,) or (n, p) by it, so that their scale is free.

    If all weights are whole multiples of the smallest positive one, they count copies of rows, and
    the smallest is the unit: results are those of the table with repeated rows. Otherwise the unit
    is the mean of the positive weights. A row of weights (n, p) counts with its largest one.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.parameters import weight_unit
    >>> weight_unit(np.array([2.0, 0.0, 6.0])), weight_unit(np.array([1.0, 2.5, 4.0]))
    (2.0, 2.5)
    """
    rows = weight if weight.ndim == 1 else weight.max(axis=1)
    rows = rows[rows > 0.0]
    least = float(rows.min(initial=np.inf))
    counts = rows / least
    if len(rows) and np.all(np.abs(counts - np.round(counts)) <= 1e-9 * counts):
        return least
    return float(rows.mean())


def check_groups(groups: Any, n_rows: int) -> NDArray[Any]:
    """The groups of rows (n_rows,), numbers or texts; a missing group is an error."""
    values = np.asarray(groups)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n_rows,):
        raise ValueError(
            f"groups must hold one value for each of the {n_rows} rows, got shape {values.shape}"
        )
    blank = np.flatnonzero(list(_is_missing(values)))
    if values.dtype.kind == "O" and len(blank) == 0:
        # Objects that are all numbers become numbers; other objects become text.
        values = np.asarray(values.tolist())
        values = values if values.dtype.kind in "biufU" else values.astype(str)
    if values.dtype.kind == "U":
        blank = np.flatnonzero(values == "")
    if len(blank):
        raise ValueError(
            f"groups must hold a value in every row, got a blank in row {blank[0] + 1}; fill it, or leave "
            f"out the row"
        )
    return values


def check_feature_map(feature_map: Any) -> None:
    """Raise unless feature_map is None or a transformer."""
    if feature_map is not None and not hasattr(feature_map, "transform"):
        raise TypeError(
            f"feature_map must be None or a transformer with fit and transform, got {feature_map!r}"
        )


def check_settings(name: str, given: Any, defaults: dict[str, Any]) -> dict[str, Any]:
    """Defaults updated by a dictionary of settings, or an error that lists the possible keys."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(
            f"{name} must be None or a dictionary with keys of {list(defaults)}, got {given!r}"
        )
    unknown = [key for key in given or {} if key not in defaults]
    if unknown:
        raise ValueError(f"{name} must have keys of {list(defaults)}, got {unknown[0]!r}")
    return {**defaults, **(given or {})}


def check_solver_params(solver_params: Any, *, zero_allowed: bool = False) -> dict[str, Any]:
    """``max_iter`` and ``tol`` from a dictionary of solver settings, checked."""
    settings = check_settings("solver_params", solver_params, {"max_iter": 1000, "tol": 1e-3})
    check_integer("solver_params['max_iter']", settings["max_iter"], low=1)
    check_positive("solver_params['tol']", settings["tol"], zero_allowed=zero_allowed)
    return {"max_iter": int(settings["max_iter"]), "tol": float(settings["tol"])}


def check_flag(name: str, value: Any) -> None:
    """Raise unless value is true or false."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(
            f"{name} must be True or False, got {value!r} of type {type(value).__name__}"
        )


def check_rank(rank: Any) -> None:
    """Raise unless rank is None, a count, or a fraction."""
    if rank is None:
        return
    need = "None, a whole number of at least 1, or a fraction of the full rank in (0, 1]"
    if isinstance(rank, Integral):
        check_real("rank", rank, need, 1.0)
    else:
        check_real("rank", rank, need, 0.0, 1.0, without=(0.0,))


def check_rank_fits(rank: Any, n_features: int, n_outputs: int, *, reduced: bool = False) -> None:
    """Raise when rank is a count larger than features times outputs, or ``reduced``, than outputs."""
    if reduced and isinstance(rank, Integral) and int(rank) > n_outputs:
        raise ValueError(
            f"rank must be between 1 and the number of targets, {n_outputs}, with "
            f"prediction='reduced_rank', got {rank}; use rank=None for all directions"
        )
    limit = n_features * n_outputs
    if isinstance(rank, Integral) and int(rank) > limit:
        raise ValueError(
            f"rank must be between 1 and the full rank {limit} ({n_features} features times {n_outputs} "
            f"outputs), got {rank}; use rank=None for the full rank"
        )


def check_grid(name: str, values: Any) -> list[Any]:
    """Values of a grid as a list, or an error that names it."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a sequence of values to try, got {values!r}")
    grid = list(values)
    if not grid:
        raise ValueError(f"{name} must hold at least one value, got none")
    return grid


def check_numeric_columns(X: Any) -> None:
    """Raise an error that names all columns of a data frame with text; scikit-learn's names a value."""
    if not hasattr(X, "columns"):
        return
    # Only columns of objects or text can hold text; columns of numbers are not searched.
    kinds = {name: np.asarray(X[name][:1]).dtype.kind for name in X.columns}
    text = [name for name, kind in kinds.items() if kind in "OUST" and _holds_text(X[name])]
    if text:
        raise ValueError(f"X must hold numbers, got text in {_listed(text)}; {_WITHOUT_TEXT}")


def validate_rows(estimator: Any, X: Any, **checks: Any) -> Any:
    """scikit-learn's `validate_data`, whose errors name the columns of a data frame."""
    with naming_columns(X):
        return validate_data(estimator, X, **checks)


@contextmanager
def naming_columns(X: Any, feature_map: Any = None) -> Iterator[None]:
    """Name the columns of a data frame that an error is about: text, dates, missing values or infinity.

    Columns are only searched after an error, so that valid tables cost nothing. If a feature map
    does not accept sparse rows, the error names an alternative.
    """
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"X has columns too large or too small for its features: {error}"
        ) from error
    except (TypeError, ValueError) as error:
        if feature_map is not None and issparse(X) and "sparse" in str(error).lower():
            raise TypeError(
                f"X is sparse, and {type(feature_map).__name__} needs dense rows; use X.toarray(), or a "
                f"feature_map for sparse rows, such as MaxAbsScaler() ({error})"
            ) from error
        sentence = _with_columns(str(error), X) if hasattr(X, "columns") else None
        if sentence is None:
            raise
        raise ValueError(sentence) from error


def _with_columns(message: str, X: Any) -> str | None:
    """The message with the names of the columns that it is about; None if no column matches."""
    columns = {name: np.asarray(X[name]) for name in X.columns}
    if "NaN" in message:
        found = [name for name, values in columns.items() if any(_is_missing(values))]
        way_out = f"leave these rows out, or put a SimpleImputer {_BEFORE_MAPS}"
        what = message.partition(" contains ")[0] + " contains NaN"
    elif "infinity" in message:
        found = [
            name
            for name, values in columns.items()
            if values.dtype.kind == "f" and np.isinf(values).any()
        ]
        what, way_out = message.rstrip("."), "X must hold finite numbers"
    else:
        dates = [name for name, values in columns.items() if values.dtype.kind in "Mm"]
        found = dates or [name for name, values in columns.items() if _holds_text(values)]
        what = f"X must hold numbers, got {'dates or times' if dates else 'text'}"
        way_out = (
            "leave them out, or turn them into numbers, such as days since the first"
            if dates
            else _WITHOUT_TEXT
        )
        found = (
            found
            if any(word in message for word in ("string", "DType", "dtype", "convert"))
            else []
        )
    if not found or any(repr(name) in message for name in found):
        return None
    return f"{what} in {'column ' if len(found) == 1 else 'columns '}{_listed(found)}; {way_out}"


def _holds_text(values: Any) -> bool:
    return any(isinstance(value, str) for value in values)


def _is_missing(values: NDArray[Any]) -> Iterator[bool]:
    """Whether each value is missing, in columns of numbers, dates or objects."""
    if values.dtype.kind in "fmM":
        return iter(np.isnan(values).tolist())
    if values.dtype.kind != "O":
        return iter([])
    return (
        value is None
        or type(value).__name__ == "NAType"
        or (isinstance(value, float) and value != value)
        for value in values
    )


def _listed(names: list[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
