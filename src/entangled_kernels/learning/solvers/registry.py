"""The registry of solvers, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...threads import one_thread
from ..kernel import LearnedKernel
from ..problem import Problem
from .ascent import solve_ascent
from .closed_form import solve_closed_form
from .lbfgs import solve_lbfgs
from .result import SolverOptions, SolverResult

__all__ = ["SOLVERS", "Solver", "solve"]

# Below this many multiplications a step, waking a second BLAS thread costs more than it saves.
_SMALL_STEP = 2e7


@dataclass(frozen=True)
class Solver:
    """A way to learn a kernel, and what is to be known of it.

    Attributes
    ----------
    function : callable
        ``solve(problem, options) -> SolverResult``.
    iterative : bool
        Whether it takes steps from a start. Then it reads ``init``, ``max_iter`` and ``tol``, not
        ``target_alpha``, and without a rank it learns as many Kraus operators as the data can use.
    has_path : bool
        Whether the kernels after few steps are regularised ones that are worth selecting from.
    """

    function: Callable[[Problem, SolverOptions], SolverResult]
    iterative: bool
    has_path: bool


SOLVERS: Final[dict[str, Solver]] = {
    "closed-form": Solver(solve_closed_form, iterative=False, has_path=False),
    "ascent": Solver(solve_ascent, iterative=True, has_path=True),
    "lbfgs": Solver(solve_lbfgs, iterative=True, has_path=False),
}


def solve(name: str, problem: Problem, options: SolverOptions) -> SolverResult:
    """Learn a kernel with the named solver; the plain kernel where features tell nothing of the targets."""
    m, k = problem.targets.shape
    if not problem.targets.any():
        kernel = LearnedKernel(
            1.0 / (problem.n_features * problem.n_outputs), np.zeros((m, 0)), np.zeros((m, k, 0))
        )
        return SolverResult(kernel, 0.0, True, "nothing to learn", 1, 0, np.zeros(1))
    solver = SOLVERS[name]
    rank = problem.resolve_rank(options.rank) or problem.full_rank
    if not isinstance(options.init, str):
        rank = options.init.shape[2]
    with one_thread(solver.iterative and m * k * rank * (m + rank) <= _SMALL_STEP):
        return solver.function(problem, options)
