"""Where the iterative solvers begin."""

from __future__ import annotations

import numpy as np

from ...linalg import Array
from ..problem import Problem
from .result import SolverOptions

__all__ = ["starting_point"]


def starting_point(problem: Problem, options: SolverOptions) -> Array:
    """Q (m', k, r) of unit norm: the one given, a random one, or the plain kernel."""
    m, k = problem.targets.shape
    rank = problem.resolve_rank(options.rank) or problem.full_rank
    if not isinstance(options.init, str):
        Q = np.array(options.init, dtype=np.float64)
    elif options.init == "random":
        Q = options.rng.standard_normal((m, k, rank))
    else:
        Q = _identity(problem.targets, rank)
    return np.asarray(Q / np.linalg.norm(Q))


def _identity(targets: Array, rank: int) -> Array:
    """The identity in as many operators as there may be.

    With m' * k operators each holds one (feature, output) pair, and D is the identity. With fewer, each holds
    a piece of a diagonal of the (feature, output) table, so that it pairs no feature and no output twice:
    then no operator starts in a subspace that the gradient of the partial-trace term cannot leave, and once
    every pair is taken the partial trace of D is the identity. Diagonals begin at the strongest features and
    outputs, and entries take the signs of the targets.
    """
    m, k = targets.shape
    features = np.argsort(-np.linalg.norm(targets, axis=1), kind="stable")
    outputs = np.argsort(-np.linalg.norm(targets, axis=0), kind="stable")
    diagonal, place = np.divmod(np.arange(min(m * k, rank * min(m, k))), min(m, k))
    feature = features[(place + diagonal * (m >= k)) % m]
    output = outputs[(place + diagonal * (m < k)) % k]
    Q = np.zeros((m, k, rank))
    for operator, pairs in enumerate(np.array_split(np.arange(len(place)), rank)):
        Q[feature[pairs], output[pairs], operator] = np.where(
            targets[feature[pairs], output[pairs]] < 0, -1.0, 1.0
        )
    return Q
