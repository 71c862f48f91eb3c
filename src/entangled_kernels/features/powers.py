"""Powers that make columns symmetric, by the family of Yeo and Johnson, found for all columns together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import boxcox1p

from ..linalg import Array
from .nystroem import some_rows
from .training_rows import mean_and_scale

__all__ = ["POWERS", "ColumnPowers"]

# What is tried: 1 leaves a column as it is, 0 is a logarithm above the mean, 2 one below it. Far from the
# mean no power grows faster than a square.
POWERS = np.linspace(0.0, 2.0, 17)
# The powers are found on no more rows than this, drawn at random.
_MOST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class ColumnPowers:
    """A power for every standardised column.

    With u = (x - mean) / scale a column becomes ((1 + u)^power - 1) / power above the mean, and below it the
    same of -u with 2 - power, mirrored; a logarithm where the power is zero. The slope at the mean is one.

    Attributes
    ----------
    mean, scale, power : ndarray of shape (d,)

    References
    ----------
    Yeo and Johnson (2000), A new family of power transformations to improve normality or symmetry.
    """

    mean: Array
    scale: Array
    power: Array

    @classmethod
    def of(cls, X: Array, weight: Array | None, rng: np.random.RandomState) -> ColumnPowers:
        """Powers with the largest likelihood of a normal law, of rows (n, d) with positive weights (n,)."""
        mean, scale = mean_and_scale(X, weight)
        some = some_rows(len(X), _MOST_ROWS, rng)
        U, w = (X[some] - mean) / scale, np.ones(len(some)) if weight is None else weight[some]
        total, leaning = w.sum(), w @ (np.sign(U) * np.log1p(np.abs(U)))
        likelihood = np.empty((len(POWERS), U.shape[1]))
        for place, power in enumerate(POWERS):
            values = _apply(U, power)
            variance = w @ (values - w @ values / total) ** 2 / total
            likelihood[place] = (power - 1.0) * leaning / total
            likelihood[place] -= 0.5 * np.log(np.maximum(variance, np.finfo(float).tiny))
        varies = np.ptp(U, axis=0) > 0.0
        return cls(mean, scale, np.where(varies, POWERS[likelihood.argmax(axis=0)], 1.0))

    def apply(self, X: Array) -> Array:
        """Columns (n, d) of rows."""
        return _apply((X - self.mean) / self.scale, self.power)

    def slope(self, X: Array) -> Array:
        """Derivatives (n, d) of the columns."""
        U = (X - self.mean) / self.scale
        power = np.where(U >= 0.0, self.power, 2.0 - self.power)
        return np.asarray((1.0 + np.abs(U)) ** (power - 1.0) / self.scale)


def _apply(U: Array, power: float | Array) -> Array:
    size = boxcox1p(np.abs(U), np.where(U >= 0.0, power, 2.0 - power))
    return np.asarray(np.where(U >= 0.0, size, -size))
