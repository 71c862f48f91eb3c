"""Riemannian steepest ascent of the alignment on the unit sphere: the published algorithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernel import LearnedKernel
from ..problem import Problem
from .result import Progress, SolverOptions, SolverResult
from .start import starting_point

__all__ = ["solve_ascent"]

SUFFICIENT_INCREASE = 1e-4
MAX_HALVINGS = 60


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
        step = _backtrack(line, at.value, gradient_norm**2, 2.0 * step or 1.0 / gradient_norm)
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


def _backtrack(objective: Callable[[float], float], value: float, slope: float, step: float) -> float:
    """Longest of step, step/2, step/4, ... that brings a sufficient increase, or 0 when none does."""
    for _ in range(MAX_HALVINGS):
        if objective(step) >= value + SUFFICIENT_INCREASE * step * slope:
            return step
        step *= 0.5
    return 0.0
