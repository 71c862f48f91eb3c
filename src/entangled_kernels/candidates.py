"""What cross-validation tries by default, and the units in which it measures errors."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from .selection import CHECKPOINTS, Member

__all__ = ["SCORINGS", "default_alphas", "grid_members", "score_weights"]

Array = NDArray[np.float64]

SCORINGS = ("nmse", "mse")

# In units of tr(C) / n, the mean eigenvalue of the Gram matrix of one output.
RELATIVE_ALPHAS = np.logspace(-8, 3, 34)


def grid_members(
    solver: str,
    ranks: Iterable[int | float | None],
    target_alphas: Iterable[float],
    mixes: Iterable[float],
    shrinkages: Iterable[float],
    predictions: Iterable[str],
    *,
    max_iter: int,
) -> list[Member]:
    """Distinct ways to learn and predict, kernel ridge first; the others in the order of the grids.

    ``shrinkage=1`` is kernel ridge whatever the rest, and for the closed form without a rank the
    partial-trace prediction does not depend on the mix and is the entangled one of mix 0.
    """
    steps: list[int | None] = [None]
    if solver == "ascent":
        steps = [*(step for step in CHECKPOINTS if step < max_iter), max_iter]
    ranks = [int(rank) if isinstance(rank, Integral) else rank for rank in ranks]
    # Nothing is left of the operators of kernel ridge, so as few as the grid has will do.
    rank = None if solver == "closed-form" else min(ranks, key=_size)
    members = {Member(solver, 0.0, 1.0, 0.0, rank, "entangled", steps[0]): None}
    grid = itertools.product(ranks, target_alphas, mixes, shrinkages, predictions, steps)
    for rank, target_alpha, mix, shrinkage, prediction, n_steps in grid:
        if shrinkage == 1.0:
            continue
        if solver != "closed-form":
            target_alpha = 0.0
        elif rank is None and (prediction == "partial_trace" or mix == 0.0):
            mix, prediction = 0.0, "partial_trace"
        settings = (float(mix), float(shrinkage), float(target_alpha), rank, prediction, n_steps)
        members[Member(solver, *settings)] = None
    return list(members)


def _size(rank: int | float | None) -> tuple[int, float]:
    """Order of ranks: numbers of operators, then shares of the full rank, then the full rank."""
    return (2, 0.0) if rank is None else (1 if isinstance(rank, float) else 0, rank)


def default_alphas(scale: float, noise: float | None) -> Array:
    """Ridge penalties about the mean squared length of the features, and the noise that they came with."""
    alphas = RELATIVE_ALPHAS * (scale if scale > 0.0 else 1.0)
    return alphas if noise is None else np.sort(np.append(alphas, noise))


def score_weights(scoring: str, variance: Array, mean: Array) -> Array:
    """Weights of the squared errors of the outputs in the score; none for an output that is constant."""
    if scoring == "mse":
        return np.full(len(mean), 1.0 / len(mean))
    varies = variance > (10.0 * np.finfo(float).eps * mean) ** 2
    share = 1.0 / max(1, int(varies.sum()))
    return np.where(varies, share / np.where(varies, variance, 1.0), 0.0)
