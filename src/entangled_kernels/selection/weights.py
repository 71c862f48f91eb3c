"""Choosing among candidates by their held-out errors."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array

__all__ = [
    "bootstrap_weights",
    "bootstrap_winners",
    "choose",
    "draws_without",
    "one_standard_error",
    "split_draws",
]

# Errors that differ by no more than this share of the least are alike.
TIE = 1e-4
# The same, where rounding alone must not decide.
ROUNDING = 1e-9
DRAWS = 500
# Draws whose winners rule out other candidates before all draws are counted.
RIVALS = 4
# Means of so many numbers stay near the processor; draws are taken together up to there.
_NUMBERS_AT_ONCE = 2**16


def choose(errors: Array, allowance: float | None = None) -> int:
    """The first candidate whose mean error is the least, or above it by no more than the allowance.

    Parameters
    ----------
    errors : ndarray of shape (splits, candidates)
        The candidates that are preferred among equals come first.
    allowance : float, optional
        None counts errors that agree to four digits as equal.
    """
    mean = errors.mean(axis=0)
    least = mean.min()
    return int(np.argmax(mean <= least + (TIE * least if allowance is None else allowance)))


def one_standard_error(errors: Array) -> float:
    """Standard error of the mean error of the best candidate, from errors (splits, candidates)."""
    best = errors[:, errors.mean(axis=0).argmin()]
    return float(best.std(ddof=1) / np.sqrt(len(best))) if len(best) > 1 else 0.0


def bootstrap_weights(errors: Array, n_repeats: float = 1.0) -> Array:
    """How often each candidate is the best, over random weights of the splits.

    Parameters
    ----------
    errors : ndarray of shape (splits, candidates)
        The candidates that are preferred among equals come first. An infinite error rules one out.
    n_repeats : float, default=1.0
        How often a row is held out; the splits are worth that many times fewer independent ones.

    Returns
    -------
    weights : ndarray of shape (candidates,)
        They add up to one.

    Notes
    -----
    The Bayesian bootstrap (Rubin, 1981): weights of the splits are drawn from a Dirichlet distribution, and
    the candidate with the least weighted error is counted. Where the errors cannot tell candidates apart,
    many share the weight; where one is clearly best, it gets all. The draws are the same in every call.
    """
    return np.bincount(bootstrap_winners(errors, n_repeats), minlength=errors.shape[1]) / DRAWS


def bootstrap_winners(errors: Array, n_repeats: float = 1.0) -> NDArray[np.intp]:
    """The best candidate of every draw of `bootstrap_weights`, (draws,)."""
    draws = split_draws(len(errors), n_repeats)
    able = _able_to_win(errors, draws[:RIVALS])
    left, winners = errors[:, able], np.empty(len(draws), dtype=np.intp)
    step = max(20, _NUMBERS_AT_ONCE // max(1, len(able)))
    for start in range(0, len(draws), step):
        means = draws[start : start + step] @ left
        alike = means <= (1.0 + ROUNDING) * means.min(axis=1, keepdims=True)
        winners[start : start + step] = np.argmax(alike, axis=1)
    return np.asarray(able[winners])


def _able_to_win(errors: Array, draws: Array) -> NDArray[np.intp]:
    """Places of candidates that do better on some split than each of a few good ones; no other can win.

    The good ones are the one with the least mean error, then the best of every draw among those left.
    """
    able = np.flatnonzero(np.isfinite(errors.sum(axis=0)))
    left = errors[:, able]
    for weights in [np.full(len(errors), 1.0 / len(errors)), *draws]:
        best = left[:, [np.argmin(weights @ left)]]
        keep = np.flatnonzero((left <= (1.0 + ROUNDING) * best).any(axis=0))
        if len(keep) < 0.9 * len(able):
            able, left = able[keep], left[:, keep]
    return able


@lru_cache(maxsize=8)
def split_draws(n_splits: int, n_repeats: float) -> Array:
    """Random weights of the splits, (draws, splits), each row adding up to one."""
    draws = np.random.default_rng(0).gamma(1.0 / n_repeats, size=(DRAWS, n_splits))
    draws /= np.maximum(draws.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    draws.flags.writeable = False
    return draws


def draws_without(split: int, n_splits: int, n_repeats: float) -> NDArray[np.intp]:
    """The quarter of the draws that give a split the least weight: what they choose hardly depends on it."""
    return np.argsort(split_draws(n_splits, n_repeats)[:, split], kind="stable")[: DRAWS // 4]
