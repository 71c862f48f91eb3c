"""Steepest ascent with the line search that the common manifold library takes by default."""

from __future__ import annotations

import numpy as np

from ..learning import Problem, SolverOptions
from ..learning.alignment import Line
from ..learning.solvers import SolverResult
from ..learning.solvers.ascent import ascend
from ..linalg import Array

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
    return ascend(problem, options, _find_step)


def _find_step(line: Line, history: list[float], gradient: Array, last: float) -> float:
    slope, value = float(np.vdot(gradient, gradient)), history[-1]
    step = 1.0 / np.sqrt(slope) if len(history) == 1 else 2.0 * OPTIMISM * (value - history[-2]) / slope
    for _ in range(MAX_TRIALS):
        if line(step) >= value + SUFFICIENT * step * slope:
            break
        step *= CONTRACTION
    stalled = line(step) < value or step * np.sqrt(slope) < SHORTEST
    return 0.0 if stalled else float(step)
