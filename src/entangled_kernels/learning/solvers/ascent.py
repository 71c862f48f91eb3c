"""Riemannian steepest ascent of the alignment on the unit sphere: the published algorithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...linalg import Array
from ..alignment import Line
from ..kernel import LearnedKernel
from ..problem import Problem
from .result import Progress, SolverOptions, SolverResult
from .start import starting_point

__all__ = ["ascend", "solve_ascent"]

SUFFICIENT_INCREASE = 1e-4
MAX_HALVINGS = 60
FindStep = Callable[[Line, list[float], Array, float], float]


def solve_ascent(problem: Problem, options: SolverOptions) -> SolverResult:
    """Follow the gradient of the alignment over Q of unit norm, with backtracking.

    Notes
    -----
    The alignment does not change when Q is scaled, so its gradient at Q is tangent to the sphere, and a step
    followed by division by the norm is a retraction. The first trial step has unit length, later ones twice
    the last that was taken; a step is halved until it brings `SUFFICIENT_INCREASE` of what the gradient
    promises. The value never falls, so the last point is the best.

    Reduced coordinates are a rotation of the original ones, so the path is the same as there. The objective
    is evaluated at sqrt(scale) * Q, where the features' form is the identity.

    Time per step m' k r (m' + r), however many trial steps it takes.
    """
    return ascend(problem, options, _double_and_halve)


def ascend(problem: Problem, options: SolverOptions, find_step: FindStep) -> SolverResult:
    """Steepest ascent on the sphere, its steps found by a rule.

    ``find_step(line, history, gradient, last)`` gets the objective along the gradient, its values so far, the
    gradient, and the last step, and gives the next step; zero ends the ascent.
    """
    Q = starting_point(problem, options)
    root = np.sqrt(problem.scale)[:, None, None]
    at = problem.whitened.evaluate(root * Q)
    history, reason, step, n_iter = [at.value], "max_iter", 0.0, 0
    while True:
        gradient = root * at.gradient
        gradient_norm = float(np.linalg.norm(gradient))
        if n_iter > 0 and options.callback is not None:
            Q.flags.writeable = False
            if options.callback(Progress(n_iter, at.value, gradient_norm, Q)):
                reason = "callback"
                break
        if gradient_norm <= options.tol:
            reason = "tolerance"
            break
        if n_iter == options.max_iter:
            break
        line = problem.whitened.line(root * Q, root * gradient, at)
        step = find_step(line, history, gradient, step)
        if step == 0.0:
            reason = "stalled"
            break
        Q = Q + step * gradient
        norm = float(np.linalg.norm(Q))
        Q /= norm
        at = problem.whitened.evaluate(root * Q, line.inner_at(step, 1.0 / norm))
        history.append(at.value)
        n_iter += 1
    kernel = LearnedKernel.from_operators(Q)
    converged = reason == "tolerance"
    return SolverResult(kernel, at.value, converged, reason, n_iter, n_iter + 1, np.array(history))


def _double_and_halve(line: Line, history: list[float], gradient: Array, last: float) -> float:
    """Longest of twice the last step, or one of unit length, and its halves that rises enough, or 0."""
    gradient_norm = float(np.linalg.norm(gradient))
    step = 2.0 * last or 1.0 / gradient_norm
    for _ in range(MAX_HALVINGS):
        if line(step) >= history[-1] + SUFFICIENT_INCREASE * step * gradient_norm**2:
            return step
        step *= 0.5
    return 0.0
