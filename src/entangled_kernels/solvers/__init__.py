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


def solve(name: str, problem: Problem, options: SolverOptions) -> SolverResult:
    """Learn a kernel with the named solver; the plain kernel where features tell nothing of the targets."""
    if problem.targets.any():
        return SOLVERS[name](problem, options)
    plain = 1.0 / (problem.n_features * problem.n_outputs)
    m, k = problem.targets.shape
    kernel = LearnedKernel(plain, np.zeros((m, 0)), np.zeros((m, k, 0)))
    return SolverResult(kernel, 0.0, True, "nothing to learn", 1, 0, np.zeros(1))
