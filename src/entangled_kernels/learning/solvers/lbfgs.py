"""Quasi-Newton maximisation of the alignment, for those who want its optimum."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from ...linalg import Array
from ..kernel import LearnedKernel
from ..problem import Problem
from .result import Progress, SolverOptions, SolverResult
from .start import starting_point

__all__ = ["solve_lbfgs"]


def solve_lbfgs(problem: Problem, options: SolverOptions) -> SolverResult:
    """Maximise the scale-invariant alignment with L-BFGS in whitened coordinates.

    Notes
    -----
    The unknown is X = sqrt(scale) * Q, in which the feature form is the identity: the conditioning of the
    features, which slows `solve_ascent`, does not enter. Nothing holds the norm of X, which the objective
    does not see; the gradient is measured as it would be at unit norm.

    Time per evaluation m' k r (m' + r).
    """
    search = _Search(problem, options)
    start = problem.whiten(starting_point(problem, options))
    start /= np.linalg.norm(start)
    search(start.reshape(-1))
    search.record()
    if not search.reason:
        outcome = minimize(
            search,
            start.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            callback=search.after_step,
            # SciPy's own tests look at single entries and single steps; `after_step` decides instead.
            options={"maxiter": options.max_iter, "maxfun": 100 * options.max_iter, "ftol": 0.0, "gtol": 0.0},
        )
        search.reason = search.reason or ("max_iter" if outcome.nit >= options.max_iter else "stalled")
    Q = search.best_Q
    kernel = LearnedKernel.from_operators(Q / np.linalg.norm(Q))
    return SolverResult(
        kernel,
        search.best_value,
        search.reason == "tolerance",
        search.reason,
        len(search.history) - 1,
        search.n_evaluations,
        np.array(search.history),
    )


class _Search:
    """Objective for SciPy with the best point, the history and the reason to stop kept beside it."""

    def __init__(self, problem: Problem, options: SolverOptions) -> None:
        self.problem, self.options = problem, options
        self.root = np.sqrt(problem.scale)[:, None, None]
        self.shape = (*problem.targets.shape, -1)
        self.n_evaluations, self.reason = 0, ""
        self.best_value, self.best_Q = -np.inf, np.empty(0)
        self.best_gradient_norm = np.inf
        self.history: list[float] = []

    def __call__(self, x: Array) -> tuple[float, Array]:
        X = x.reshape(self.shape)
        at = self.problem.whitened.evaluate(X)
        self.n_evaluations += 1
        if at.value > self.best_value:
            self.best_value, self.best_Q = at.value, X / self.root
            self.best_gradient_norm = float(np.linalg.norm(at.gradient) * np.linalg.norm(X))
        return -at.value, -at.gradient.reshape(-1)

    def record(self) -> None:
        self.history.append(self.best_value)
        if self.best_gradient_norm <= self.options.tol:
            self.reason = "tolerance"

    def after_step(self, x: Array) -> None:
        self.record()
        if self.options.callback is not None:
            Q = self.best_Q / np.linalg.norm(self.best_Q)
            Q.flags.writeable = False
            progress = Progress(len(self.history) - 1, self.best_value, self.best_gradient_norm, Q)
            if self.options.callback(progress):
                self.reason = self.reason or "callback"
        if self.reason:
            raise StopIteration
