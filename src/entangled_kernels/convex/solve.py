"""Rounds of a solver until the duality gap is closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..linalg import Array
from .certificate import Gram, Point, Step, certify, witnessed
from .dual import dual_round
from .factor import factor_round
from .model import model_round
from .penalties import Penalty
from .proximal import proximal_round

__all__ = ["SOLVERS", "Solution", "Solver", "solve_convex"]


class Solver(NamedTuple):
    """A round of a solver, and the steps after which it begins again at the parameters found so far."""

    run: Callable[[Any, Any, Point, int, float], Step]
    steps: int


#: Solvers by name; each takes a Gram matrix, a penalty, a point, a number of steps and a tolerance. A
#: proximal step is taken to its end, since one that is cut off may lead nowhere.
SOLVERS: MappingProxyType[str, Solver] = MappingProxyType(
    {
        "dual": Solver(dual_round, 40),
        "factor": Solver(factor_round, 40),
        "model": Solver(model_round, 40),
        "proximal": Solver(proximal_round, 400),
    }
)
# Rounds in a row that may bring nothing, as where rounding is all that is left.
IDLE = 5


@dataclass(frozen=True, eq=False)
class Solution:
    """Learned parameters with their certificate.

    Attributes
    ----------
    point : Point
        Parameters, coefficients, objective and duality gap.
    converged : bool
    reason : str
        ``"tolerance"``, ``"max_iter"``, or ``"stalled"`` when rounds bring nothing any more.
    n_iter : int
        Evaluations of the objective or of its dual.
    history : ndarray
        Objective at the start and after every round; it never rises.
    """

    point: Point
    converged: bool
    reason: str
    n_iter: int
    history: Array


def solve_convex(
    gram: Gram,
    penalty: Penalty,
    start: Array,
    *,
    solver: str | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> Solution:
    """Minimise y^T (G_L + alpha I)^-1 y / 2 + P(L) over stacks L of psd matrices.

    Parameters
    ----------
    gram : Gram
        Linear in L.
    penalty : Penalty
    start : ndarray of shape (m, k, k)
        Positive definite, and within the constraint where there is one.
    solver : {"dual", "factor", "model", "proximal"}, optional
        None is the one that suits the penalty.
    max_iter : int, default=1000
        Evaluations after which no further round is begun.
    tol : float, default=1e-6
        Stop when the duality gap is at most this share of the objective.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.convex import Schatten
    >>> from entangled_kernels.convex.kronecker import KroneckerGram
    >>> gram = KroneckerGram(np.array([2.0, 1.0]), np.array([[3.0, 3.0], [0.0, 0.1]]), alpha=0.5)
    >>> found = solve_convex(gram, Schatten(1.0, radius=2.0), np.eye(2)[None])
    >>> found.point.gap <= 1e-6 * found.point.value
    True
    >>> found.point.L[0].round(2)
    array([[1., 1.],
           [1., 1.]])
    """
    run, steps = SOLVERS[penalty.solver if solver is None else solver]
    best = last = certify(gram, penalty, start)
    history, used, idle, reason = [best.value], 1, 0, "tolerance"
    while best.gap > tol * best.value:
        if used >= max_iter or idle >= IDLE:
            reason = "max_iter" if used >= max_iter else "stalled"
            break
        step = run(gram, penalty, last, min(steps, max_iter - used), tol)
        point = certify(gram, penalty, step.L)
        last = point
        if step.C is not None:
            point = witnessed(gram, penalty, point, step.C)
            last = replace(point, C=step.C)
        used += step.evaluations
        idle = 0 if point.value < best.value or point.gap < best.gap else idle + 1
        if point.gap < best.gap:
            best = point
        history.append(min(history[-1], point.value))
    return Solution(best, reason == "tolerance", reason, used, np.array(history))
