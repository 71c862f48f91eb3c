"""Whether a published mean over a few partitions agrees with our errors over many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from scipy.stats import t as student

from ..linalg import Array

__all__ = [
    "AGREES",
    "BESIDE",
    "ENOUGH",
    "HIGHER",
    "LOWER",
    "TOO_FEW",
    "Effect",
    "Verdict",
    "judge",
    "means_of_as_many",
]

AGREES, LOWER, HIGHER = "agrees", "lower than ours", "higher than ours"
TOO_FEW = "too few partitions"
# Of a method that stands beside the one that the figure is about.
BESIDE = "beside"
# Partitions of ours below which nothing is said.
ENOUGH = 20
# The central part of our means in which a published one agrees.
LEVEL = 0.95
N_DRAWS = 4000


class Verdict(NamedTuple):
    """What was found of one published mean.

    Attributes
    ----------
    word : str
        `AGREES`, or where the published mean lies: `LOWER`, `HIGHER`; `TOO_FEW` where ours cannot tell.
    percentile : float
        Where it lies among means of as many partitions of ours, 0 to 100; NaN for `TOO_FEW`.
    ours, deviation : float
        Mean and standard deviation of our partitions.
    difference : float
        Published mean less ours.
    in_errors : float
        The difference in units of its standard error; NaN where nothing varies.
    """

    word: str
    percentile: float
    ours: float
    deviation: float
    difference: float
    in_errors: float


def judge(
    ours: ArrayLike,
    paper: float,
    count: int,
    rng: np.random.Generator,
    *,
    deviation: float | None = None,
    unit: float = 0.0,
) -> Verdict:
    """Say where a published mean lies among means of as many partitions of ours.

    Parameters
    ----------
    ours : array-like of shape (N,)
        Our value on every partition.
    paper : float
        The published mean.
    count : int
        Partitions that it is the mean of.
    rng : numpy.random.Generator
    deviation : float, optional
        Published standard deviation over partitions, for the standard error; ours by default.
    unit : float, default=0
        Unit of the last printed digit. The published mean is taken as what is closest to the middle of ours
        among all that print alike.

    Notes
    -----
    The means are those of `means_of_as_many`, so that what N partitions leave unknown of our own mean
    counts as well: with `count` = 10 and N = 50 it adds a fifth to the variance. In units of the standard
    error the difference is (paper - mean) / sqrt(s^2 / N + deviation^2 / count).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ours = rng.normal(1.0, 0.1, size=60)
    >>> judge(ours, 1.02, 5, rng).word, judge(ours, 1.3, 5, rng).word
    ('agrees', 'higher than ours')
    """
    values = np.asarray(ours, dtype=np.float64)
    mean, own = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
    difference = paper - mean
    spread = own if deviation is None else deviation
    error = float(np.sqrt(own**2 / len(values) + spread**2 / count))
    in_errors = difference / error if error > 0.0 else float("nan")
    if len(values) < ENOUGH:
        return Verdict(TOO_FEW, float("nan"), mean, own, difference, in_errors)
    means = means_of_as_many(values, count, rng)
    middle = float(np.median(means))
    shift = np.clip(middle - paper, -unit / 2.0, unit / 2.0)
    # Rounding of sums may part means that are equal.
    slack = 1e-12 * max(1.0, abs(middle))
    below = float(np.mean(means < paper + shift - slack))
    above = float(np.mean(means > paper + shift + slack))
    percentile = 100.0 * (below + (1.0 - below - above) / 2.0)
    tail = 50.0 * (1.0 - LEVEL)
    word = LOWER if percentile < tail else HIGHER if percentile > 100.0 - tail else AGREES
    return Verdict(word, percentile, mean, own, difference, in_errors)


def means_of_as_many(values: Array, count: int, rng: np.random.Generator, n_draws: int = N_DRAWS) -> Array:
    """Means of ``count`` further partitions, as the values at hand foretell them, (n_draws,).

    Notes
    -----
    Draws of a Polya urn: each further value is one of the N at hand or, as likely as each of those, one
    of the j already drawn. This is the Bayesian bootstrap: the law that the values come from is not taken
    for known, and the variance of a mean is s^2 (1 / count + (1 - 1 / count) / (N + 1)). It takes the
    deviation of N values for what it should be, so distances from the centre are stretched by
    sqrt(N / (N - 1)) and by the ratio of Student's quantile to the normal one, 3.6% for N = 50.

    Time n_draws * count.
    """
    n = len(values)
    picks = rng.integers(n + np.arange(count), size=(n_draws, count))
    for j in range(1, count):
        again = np.flatnonzero(picks[:, j] >= n)
        picks[again, j] = picks[again, picks[again, j] - n]
    tail = (1.0 - LEVEL) / 2.0
    stretch = np.sqrt(n / (n - 1)) * student.ppf(tail, n - 1) / norm.ppf(tail)
    centre = values.mean()
    return np.asarray(centre + stretch * (values[picks].mean(axis=1) - centre))


class Effect(NamedTuple):
    """A mean paired difference over partitions, its standard error, and the interval of the mean."""

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def of(cls, differences: ArrayLike) -> Effect:
        """Mean difference with Student's interval; without end from a single partition."""
        values = np.asarray(differences, dtype=np.float64)
        mean = float(values.mean())
        if len(values) < 2:
            return cls(mean, float("inf"), -float("inf"), float("inf"))
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        half = float(student.ppf((1.0 + LEVEL) / 2.0, len(values) - 1)) * error
        return cls(mean, error, mean - half, mean + half)

    @property
    def sign(self) -> int:
        """-1 or 1 where the interval has one sign, else 0."""
        return -1 if self.high < 0.0 else 1 if self.low > 0.0 else 0
