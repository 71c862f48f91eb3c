"""Where the iterative solvers begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..reduction import Problem
from .result import SolverOptions

__all__ = ["starting_point"]

Array = NDArray[np.float64]


def starting_point(problem: Problem, options: SolverOptions) -> Array:
    """Q (m', k, r) of unit norm.

    ``"identity"`` is the plain kernel, D proportional to the identity. With fewer operators than that
    needs, it keeps the coordinates (eigenvector of the features, output) that hold most of the targets.
    """
    m, k = problem.targets.shape
    rank = problem.full_rank if options.rank is None else min(options.rank, problem.full_rank)
    if not isinstance(options.init, str):
        Q = np.array(options.init, dtype=np.float64)
    elif options.init == "random":
        Q = options.rng.standard_normal((m, k, rank))
    else:
        order = np.argsort(-np.abs(problem.targets.reshape(-1)), kind="stable")[:rank]
        stacked = np.zeros((m * k, rank))
        stacked[np.sort(order), np.arange(rank)] = 1.0
        Q = stacked.reshape(m, k, rank)
    return np.asarray(Q / np.linalg.norm(Q))
