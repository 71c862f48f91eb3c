"""Quantiles of scores with a finite-sample correction: how wide intervals must be to cover new rows."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import norm

from ..linalg import Array, Index

__all__ = ["score_quantile", "target_quantiles"]

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
    mass = np.cumsum(weight[order]) / weight.sum()
    return _at(int(np.searchsorted(mass, _needed(n_rows, coverage))), scores[order], n_rows, coverage)


def target_quantiles(scores: Array, weight: Array, n_rows: int, coverage: float) -> Array:
    """A quantile for every target, (p,), of its own scores and, where rows are few, of all scores pooled.

    ``scores`` is (N, p), NaN where a target was not measured. With n rows the own scores have n / (n + 100)
    of the mass.

    Time N p log(N p).
    """
    row, target = np.nonzero(np.isfinite(scores))
    order = np.argsort(scores[row, target], kind="stable")
    row, target = row[order], target[order]
    pooled, mass = scores[row, target], weight[row]
    everyone = np.cumsum(mass) / mass.sum()
    share, needed = n_rows / (n_rows + HALF_OWN), _needed(n_rows, coverage)
    quantiles = np.empty(scores.shape[1])
    ends = np.cumsum(np.bincount(target, minlength=scores.shape[1]))
    for number, own in enumerate(np.split(np.argsort(target, kind="stable"), ends[:-1])):
        place = _mixed_place(everyone, own, mass[own], share if len(own) else 0.0, needed)
        quantiles[number] = _at(place, pooled, n_rows, coverage)
    return quantiles


def _mixed_place(everyone: Array, own: Index, mass: Array, share: float, needed: float) -> int:
    """First place where the mass reaches what is needed, ``share`` of it that of a target's ``own`` places.

    Between two of its own places the mass of a target stays what it is, and only that of all scores grows.
    """
    reached = share * np.cumsum(mass) / max(mass.sum(), np.finfo(float).tiny)
    enough = int(np.searchsorted(reached + (1.0 - share) * everyone[own], needed))
    before = reached[enough - 1] if enough > 0 else 0.0
    place = int(np.searchsorted(everyone, (needed - before) / (1.0 - share)))
    return place if enough == len(own) else min(place, int(own[enough]))


def _needed(n_rows: int, coverage: float) -> float:
    """Share of the mass of the scores that makes up the coverage, where a new row is one more."""
    return (coverage - 1e-12) * (n_rows + 1.0) / n_rows


def _at(place: int, scores: Array, n_rows: int, coverage: float) -> float:
    """The score at a place among scores that increase; beyond the last one, that one stretched."""
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
