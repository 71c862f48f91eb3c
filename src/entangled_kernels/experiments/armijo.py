"""Steepest ascent with the line search that the common manifold library takes by default."""

from __future__ import annotations

import numpy as np

from ..learning import LearnedKernel, Problem, Progress, SolverOptions
from ..learning.solvers import SolverResult
from ..learning.solvers.start import starting_point

__all__ = ["ascend_as_library"]

CONTRACTION, OPTIMISM, SUFFICIENT = 0.5, 2.0, 1e-4
MAX_TRIALS = 25
SHORTEST = 1e-10


def ascend_as_library(problem: Problem, options: SolverOptions) -> SolverResult:
    """Maximise the alignment over Q of unit norm by steepest ascent with Armijo's rule.

    Notes
    -----
    The first trial step has unit length. A later one is twice the step at which a parabola through the last
    two values has its top, 2 * 2 * (f - f_before) / |gradient|^2, where our own ascent doubles the last step.
    A trial is halved until it brings 1e-4 of what the gradient promises, 25 times at most; a step that
    does not rise after these, or shorter than 1e-10, ends the ascent.
    """
    Q = starting_point(problem, options)
    root = np.sqrt(problem.scale)[:, None, None]
    at = problem.whitened.evaluate(root * Q)
    history, before, reason = [at.value], None, "max_iter"
    for n_iter in range(1, options.max_iter + 1):
        gradient = root * at.gradient
        slope = float(np.vdot(gradient, gradient))
        if np.sqrt(slope) <= options.tol:
            reason = "tolerance"
            break
        line = problem.whitened.line(root * Q, root * gradient, at)
        step = 1.0 / np.sqrt(slope) if before is None else 2.0 * OPTIMISM * (at.value - before) / slope
        for _ in range(MAX_TRIALS):
            if line(step) >= at.value + SUFFICIENT * step * slope:
                break
            step *= CONTRACTION
        if line(step) < at.value or step * np.sqrt(slope) < SHORTEST:
            reason = "stalled"
            break
        Q = Q + step * gradient
        norm = float(np.linalg.norm(Q))
        Q, before = Q / norm, at.value
        at = problem.whitened.evaluate(root * Q, line.inner_at(step, 1.0 / norm))
        history.append(at.value)
        if options.callback is not None:
            options.callback(Progress(n_iter, at.value, float(np.sqrt(slope)), Q))
    n_iter = len(history) - 1
    kernel = LearnedKernel.from_operators(Q)
    return SolverResult(
        kernel, at.value, reason == "tolerance", reason, n_iter, n_iter + 1, np.array(history)
    )
