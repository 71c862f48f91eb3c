"""Checks of arguments, with messages that name the argument, what it got and what it needs.

Feature maps and estimators share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "check_choice",
    "check_feature_map",
    "check_flag",
    "check_fraction",
    "check_grid",
    "check_integer",
    "check_numeric_columns",
    "check_positive",
    "check_range",
    "check_rank",
    "check_rank_fits",
    "check_real",
    "check_share",
    "check_weights",
]

LARGEST, SMALLEST = 1e70, 1e-70


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless value is one of the strings."""
    options = list(choices)
    if not (isinstance(value, str) and value in options):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")


def check_real(name: str, value: Any, need: str) -> float:
    """Value as a finite float, or an error that says what is needed."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {need}, got {value!r} of type {type(value).__name__}")
    if not np.isfinite(float(value)):
        raise ValueError(f"{name} must be {need}, got {value!r}")
    return float(value)


def check_fraction(name: str, value: Any) -> None:
    """Raise unless 0 <= value <= 1."""
    need = "a number between 0 and 1"
    if not 0.0 <= check_real(name, value, need) <= 1.0:
        raise ValueError(f"{name} must be {need}, got {value!r}")


def check_share(name: str, value: Any) -> None:
    """Raise unless 0 < value < 1."""
    need = "a number between 0 and 1, neither of them"
    if not 0.0 < check_real(name, value, need) < 1.0:
        raise ValueError(f"{name} must be {need}, got {value!r}")


def check_positive(name: str, value: Any, *, zero_allowed: bool = False) -> None:
    """Raise unless value is positive, or zero where that is allowed."""
    need = "a number of at least 0" if zero_allowed else "a positive number"
    number = check_real(name, value, need)
    if number < 0.0 or (number == 0.0 and not zero_allowed):
        raise ValueError(f"{name} must be {need}, got {value!r}")


def check_integer(name: str, value: Any, low: int) -> None:
    """Raise unless value is a whole number of at least low."""
    need = f"a whole number of at least {low}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be {need}, got {value!r} of type {type(value).__name__}")
    if value < low:
        raise ValueError(f"{name} must be {need}, got {value!r}")


def check_range(name: str, values: Any, smallest: float = SMALLEST) -> None:
    """Raise unless the largest value, in size, can be squared and summed."""
    largest = float(max(values.max(), -values.min()))
    if largest > LARGEST or 0.0 < largest < smallest:
        raise ValueError(
            f"{name} must have values between {SMALLEST:g} and {LARGEST:g} in size, so that their squares "
            f"can be summed; got {largest:g} as the largest; scale the columns"
        )


def check_weights(
    sample_weight: ArrayLike | None, n: int, *, all_zero: bool = False
) -> NDArray[np.float64] | None:
    """Weights of n rows, finite, not negative, and not ``all_zero`` unless that is allowed.

    A number stands for n of it.
    """
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight must be a number or {n} numbers, got {sample_weight!r:.80}"
        ) from None
    weight = np.full(n, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must be a number or of shape ({n},), got shape {weight.shape}")
    if not np.isfinite(weight).all() or weight.min(initial=0.0) < 0.0:
        raise ValueError("sample_weight must be finite and not negative")
    if not (all_zero or weight.any()):
        raise ValueError("sample_weight must be positive for at least one row, got zero weights only")
    return weight


def check_feature_map(feature_map: Any) -> None:
    """Raise unless feature_map is None or a transformer."""
    if feature_map is not None and not hasattr(feature_map, "transform"):
        raise TypeError(
            f"feature_map must be None or a transformer with fit and transform, got {feature_map!r}"
        )


def check_flag(name: str, value: Any) -> None:
    """Raise unless value is true or false."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r} of type {type(value).__name__}")


def check_rank(rank: Any) -> None:
    """Raise unless rank is None, a count, or a fraction."""
    need = "None, a whole number of at least 1, or a fraction of the full rank in (0, 1]"
    if rank is None:
        return
    if _is_count(rank):
        if int(rank) < 1:
            raise ValueError(f"rank must be {need}, got {rank!r}")
    elif not 0.0 < check_real("rank", rank, need) <= 1.0:
        raise ValueError(f"rank must be {need}, got {rank!r}")


def check_rank_fits(rank: Any, n_features: int, n_outputs: int) -> None:
    """Raise when rank is a count larger than features times outputs."""
    limit = n_features * n_outputs
    if _is_count(rank) and int(rank) > limit:
        raise ValueError(
            f"rank must be between 1 and the full rank {limit} ({n_features} features times {n_outputs} "
            f"outputs), got {rank}; use rank=None for the full rank"
        )


def _is_count(rank: Any) -> bool:
    return isinstance(rank, Integral) and not isinstance(rank, bool | np.bool_)


def check_grid(name: str, values: Any) -> list[Any]:
    """Values of a grid as a list, or an error that names it."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a sequence of values to try, got {values!r}")
    grid = list(values)
    if not grid:
        raise ValueError(f"{name} must hold at least one value, got none")
    return grid


def check_numeric_columns(X: Any) -> None:
    """Name the columns of a data frame that hold text; scikit-learn's own error names a value."""
    if not hasattr(X, "columns"):
        return
    # Only columns of objects or of a text type can hold it; numbers are not looked at one by one.
    kinds = {name: np.asarray(X[name][:1]).dtype.kind for name in X.columns}
    text = [
        name
        for name, kind in kinds.items()
        if kind in "OUST" and any(isinstance(value, str) for value in X[name])
    ]
    if text:
        raise ValueError(
            f"X must hold numbers, got text in {', '.join(map(repr, text))}; leave these columns out, or "
            f"encode them with a ColumnTransformer as feature_map"
        )
