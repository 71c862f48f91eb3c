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
# Of more candidates than this those that cannot win are found first, by the winners of every so many draws.
_MANY, _EVERY = 256, 32
# With more splits than this, so many candidates that stand together, and are much alike, are judged together.
_FEW_SPLITS, _TOGETHER = 8, 16
# Means of so many numbers stay near the processor; draws, or voters, are taken together up to there.
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
    winners = bootstrap_winners(errors[:, :, None], n_repeats)[:, 0]
    return np.bincount(winners, minlength=errors.shape[1]) / DRAWS


def bootstrap_winners(errors: Array, n_repeats: float = 1.0) -> NDArray[np.intp]:
    """The best candidate of every draw of `bootstrap_weights`, (draws, voters).

    ``errors`` are (splits, candidates, voters), since targets may have errors of their own.
    """
    draws = split_draws(len(errors), n_repeats)
    by_voter = np.ascontiguousarray(np.moveaxis(errors, 2, 0))  # (voters, splits, candidates)
    winners = np.empty((len(by_voter), len(draws)), dtype=np.intp)
    if errors.shape[1] <= _MANY and np.isfinite(by_voter.sum()):
        step = max(1, _NUMBERS_AT_ONCE // (len(draws) * errors.shape[1]))
        for start in range(0, len(by_voter), step):
            winners[start : start + step] = _first_of_the_least(draws @ by_voter[start : start + step])
        return winners.T
    for own, best in zip(by_voter, winners, strict=True):
        able = _able_to_win(own, draws)
        left, step = own[:, able], max(20, _NUMBERS_AT_ONCE // max(1, len(able)))
        for start in range(0, len(draws), step):
            best[start : start + step] = able[_first_of_the_least(draws[start : start + step] @ left)]
    return winners.T


def _first_of_the_least(means: Array) -> NDArray[np.intp]:
    """Place along the last axis of the first number that is the least, but for rounding."""
    return np.asarray(np.argmax(means <= (1.0 + ROUNDING) * means.min(axis=-1, keepdims=True), axis=-1))


def _able_to_win(errors: Array, draws: Array) -> NDArray[np.intp]:
    """Places of candidates that may be the best in some draw, of errors (splits, candidates).

    No other can win beside the winners of a few draws. Where splits are few, it is worse than one of these on
    each of them. Else it would be worse than one of them in every draw even with the least errors on each
    split of all that stand together with it.
    """
    able = np.flatnonzero(np.isfinite(errors.sum(axis=0)))
    if len(able) <= _MANY:
        return able
    left = errors if len(able) == errors.shape[1] else errors[:, able]
    rivals = np.unique(np.argmin(draws[::_EVERY] @ left, axis=1))
    if len(errors) <= _FEW_SPLITS:
        for rival in left[:, rivals].T:
            keep = np.flatnonzero((left <= (1.0 + ROUNDING) * rival[:, None]).any(axis=0))
            able, left = able[keep], left[:, keep]
        return able
    reached = (draws @ left[:, rivals]).min(axis=1, keepdims=True)
    least = np.minimum.reduceat(left, np.arange(0, len(able), _TOGETHER), axis=1)
    near = (draws @ least <= (1.0 + 2.0 * ROUNDING) * reached).any(axis=0)
    return np.asarray(able[np.repeat(near, _TOGETHER)[: len(able)]])


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
