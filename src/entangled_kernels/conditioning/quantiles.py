"""Quantiles of scores with a finite-sample correction: how wide intervals must be to cover new rows."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

__all__ = ["score_quantile", "target_quantiles"]

Array = NDArray[np.float64]

# With so many rows a target's own scores count as much as those of all targets together.
HALF_OWN = 100.0


def score_quantile(scores: Array, weight: Array, n_rows: int, coverage: float) -> float:
    """The score that a new row exceeds with probability 1 - coverage.

    Parameters
    ----------
    scores : ndarray of shape (N,)
    weight : ndarray of shape (N,)
    n_rows : int
        Number of independent rows that the scores come from.
    coverage : float

    Notes
    -----
    The new row is one more beside the n, and may be the worst: the scores carry n / (n + 1) of the mass, and
    the rest lies above them. Where the coverage is more than that, no score says how far, and the largest
    one is stretched as the tail of a normal distribution would have it; a warning says so.

    Examples
    --------
    >>> score_quantile(np.arange(1.0, 10.0), np.ones(9), 9, 0.8)
    8.0
    """
    order = np.argsort(scores, kind="stable")
    return _quantile(scores[order], weight[order], n_rows, coverage)


def target_quantiles(scores: Array, weight: Array, n_rows: int, coverage: float) -> Array:
    """A quantile for every target, (p,), of its own scores and, where rows are few, of all scores pooled.

    ``scores`` is (N, p), NaN where a target was not measured. With n rows the own scores have n / (n + 100)
    of the mass.
    """
    row, target = np.nonzero(np.isfinite(scores))
    order = np.argsort(scores[row, target], kind="stable")
    row, target = row[order], target[order]
    pooled, mass = scores[row, target], weight[row]
    share = n_rows / (n_rows + HALF_OWN)
    quantiles = np.empty(scores.shape[1])
    for place in range(scores.shape[1]):
        own = mass * (target == place)
        mixed = mass / mass.sum()
        if own.any():
            mixed = share * own / own.sum() + (1.0 - share) * mixed
        quantiles[place] = _quantile(pooled, mixed, n_rows, coverage)
    return quantiles


def _quantile(scores: Array, weight: Array, n_rows: int, coverage: float) -> float:
    """`score_quantile` of scores that increase."""
    mass = np.cumsum(weight) / weight.sum() * (n_rows / (n_rows + 1.0))
    place = int(np.searchsorted(mass, coverage - 1e-12))
    if place < len(scores):
        return float(scores[place])
    warnings.warn(
        f"{n_rows} rows cannot show what covers {coverage:g} of new ones, only {n_rows / (n_rows + 1):.3g}; "
        f"intervals are stretched beyond by the normal distribution",
        UserWarning,
        stacklevel=5,
    )
    reached = norm.ppf(0.5 + 0.5 * n_rows / (n_rows + 1.0))
    return float(scores[-1] * norm.ppf(0.5 + 0.5 * coverage) / reached)
