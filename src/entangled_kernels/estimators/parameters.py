"""Checks of constructor arguments, with messages that name the argument, what it got and what it needs."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "check_choice",
    "check_fraction",
    "check_integer",
    "check_positive",
    "check_real",
    "check_weights",
    "resolve_rank",
]


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


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Weights of n rows, finite, not negative and not all zero; a number stands for n of it."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    weight = np.full(n, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must be a number or of shape ({n},), got shape {weight.shape}")
    if not np.isfinite(weight).all() or weight.min() < 0.0:
        raise ValueError("sample_weight must be finite and not negative")
    if not weight.any():
        raise ValueError("sample_weight must be positive for at least one row, got zero weights only")
    return weight


def resolve_rank(rank: Any, n_features: int, n_outputs: int, full_rank: int) -> int | None:
    """Number of Kraus operators asked for by an int, or by a fraction of the full rank.

    An int may be as large as features times outputs; what the data cannot use, above ``full_rank``, is
    left out.
    """
    if rank is None:
        return None
    if isinstance(rank, Integral) and not isinstance(rank, bool | np.bool_):
        limit = n_features * n_outputs
        if not 1 <= int(rank) <= limit:
            raise ValueError(
                f"rank must be between 1 and the full rank {limit} ({n_features} features times {n_outputs} "
                f"outputs), got {rank}; use rank=None for the full rank"
            )
        return min(int(rank), full_rank)
    need = "None, a whole number of at least 1, or a fraction of the full rank in (0, 1]"
    fraction = check_real("rank", rank, need)
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"rank must be {need}, got {rank!r}")
    return max(1, round(fraction * full_rank))
