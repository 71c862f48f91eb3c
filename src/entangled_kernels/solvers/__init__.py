"""Ways to learn an entangled kernel, behind one registry.

Every solver is a function ``solve(problem, options) -> SolverResult`` that knows nothing of estimators. To
add one, write such a function and name it in `SOLVERS`: the tests run over the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ..learned import LearnedKernel
from ..reduction import Problem
from ..threads import one_thread
from .ascent import solve_ascent
from .closed_form import solve_closed_form
from .lbfgs import solve_lbfgs
from .result import Progress, SolverOptions, SolverResult

__all__ = ["SOLVERS", "Progress", "SolverOptions", "SolverResult", "solve"]

SOLVERS: Final[dict[str, Callable[[Problem, SolverOptions], SolverResult]]] = {
    "closed-form": solve_closed_form,
    "ascent": solve_ascent,
    "lbfgs": solve_lbfgs,
}


# Below this many multiplications a step, waking a second BLAS thread costs more than it saves.
_SMALL_STEP = 2e7


def solve(name: str, problem: Problem, options: SolverOptions) -> SolverResult:
    """Learn a kernel with the named solver; the plain kernel where features tell nothing of the targets."""
    m, k = problem.targets.shape
    if not problem.targets.any():
        kernel = LearnedKernel(
            1.0 / (problem.n_features * problem.n_outputs), np.zeros((m, 0)), np.zeros((m, k, 0))
        )
        return SolverResult(kernel, 0.0, True, "nothing to learn", 1, 0, np.zeros(1))
    rank = m * k if options.rank is None else options.rank
    if not isinstance(options.init, str):
        rank = options.init.shape[2]
    with one_thread(name != "closed-form" and m * k * rank * (m + rank) <= _SMALL_STEP):
        return SOLVERS[name](problem, options)
