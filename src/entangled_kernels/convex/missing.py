"""Learn from targets of which some are missing, by a solver for complete targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..linalg import Array, related_targets
from .grams import missing_gram
from .problem import Problem, Result, check_finite, retarget
from .solvers import minimise

__all__ = ["INNER", "far_apart", "learn_missing", "solve_missing"]

TINY = float(np.finfo(np.float64).tiny)
# Unrelated targets whose norms differ by more than this are solved apart.
FAR = 1e3
# Complete problems are solved to this share of the tolerance, so that their errors do not matter.
INNER = 0.1
# Steps of L-BFGS in a round, and rounds in a row that may lower nothing.
ROUND, IDLE = 200, 2


def learn_missing(
    problem: Problem,
    alpha: float,
    solve: Callable[[Problem, Result | None], Result],
    conjugate: Callable[[Array, Result], tuple[float, float]],
    *,
    by_slope: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Result:
    """Minimise sum w_io (y_io - f_o(x_i))^2 / (2 alpha) + penalty; w_io = 0 if y_io is missing.

    Parameters
    ----------
    problem : Problem
        With ``missing``.
    alpha : float
        The ridge.
    solve : callable
        From the problem with complete targets, and the last result or None, to the result.
    conjugate : callable
        From the inner products C^T K_j C, (m, p, p), of dual coefficients and the last result to a
        factor t of at most one and the conjugate of the penalty at t C.
    by_slope : bool, default=False
        True to stop by the slope too, for problems that are not convex, whose gap need not close.
    max_iter : int, default=1000
        Largest number of complete problems.
    tol : float, default=1e-3
        Stop when the duality gap is at most tol^2 times the objective. By the slope, stop when a
        step that replaces missing targets by fitted values would lower the objective by at most
        that.

    Returns
    -------
    Result
        Of the complete problem with the best values for missing targets. Value, gap and history
        are of the problem with missing targets; ``n_iter`` counts complete problems.

    Notes
    -----
    A target of weight w below the weight v of its row satisfies, for a free value z,

        w (y - f)^2 = min over z of   v (z - f)^2 + u (y - z)^2,   u = v w / (v - w)

    and u = 0 if it is missing. So the problem is to minimise, over these values Z, the least
    objective of complete targets plus sum u (y - Z)^2 / (2 alpha): convex if the complete problem
    is, with the gradient C + u (Z - y) / alpha. A gradient step of length alpha / (v + u) puts
    Z = f + (w / v) (y - f), the step of majorisation; L-BFGS in variables scaled by the root of
    that begins with it, and converges sooner.

    Coefficients w (y - f) / alpha, shifted to sum to zero under an intercept, are zero for missing
    targets and so belong to the dual problem,

        max over c of   c^T y - alpha sum c^2 / (2 w) - P*(c)

    whose value bounds the minimum from below.

    Time: complete problems, and n p r + m r^2 p each to change their targets.
    """
    assert problem.missing is not None
    Y, weights = problem.missing
    v = weights.max(axis=1)[:, None]  # (n, 1)
    free, present = weights < v, weights > 0.0
    Y = np.where(present, Y, 0.0)
    u = np.where(free, v * weights / np.where(free, v - weights, 1.0), 0.0)  # (n, p)
    unit = np.sqrt(alpha / (v + u))[free]
    best: Result | None = None
    last: Result | None = None
    history: list[float] = []

    def dual_gap(value: float, residual: Array, result: Result) -> float:
        if problem.centred:
            residual = residual - np.sum(weights * residual, axis=0) / weights.sum(axis=0)
        C = weights * residual / alpha
        S = problem.inner_products(C)
        check_finite(S)
        t, P = conjugate(S, result)
        fit = float(np.vdot(Y, C))
        size = alpha * float(np.sum(np.where(present, C**2, 0.0) / np.where(present, weights, 1.0)))
        if t < 1.0:
            t = min(t, fit / max(size, TINY))
        return max(value - (t * fit - 0.5 * t**2 * size - P), 0.0)

    def value_and_slope(X: Array) -> tuple[float, Array]:
        nonlocal best, last
        Z = Y.copy()
        Z[free] = X * unit
        last = solve(retarget(problem, Z), last)
        slope = (last.C + u * (Z - Y) / alpha)[free] * unit
        residual = Y - Z + alpha * last.C / v  # y - f, without meaning for missing targets
        # The penalty is the complete objective without its squared errors.
        penalty = last.value - 0.5 * alpha * float(np.sum(last.C**2 / v))
        value = penalty + float(np.sum(weights * residual**2)) / (2 * alpha)
        if best is None or value < best.value:
            gap = dual_gap(value, residual, last)
            size = float(np.vdot(slope, slope))
            within = gap <= tol * tol * value or (by_slope and size <= tol * tol * value)
            best = replace(last, value=value, gap=gap, converged=bool(within))
        history.append(best.value)
        return last.value + float(np.sum(u * (Z - Y) ** 2)) / (2 * alpha), slope

    means = np.zeros(Y.shape[1])
    if problem.centred:
        means = np.sum(weights * Y, axis=0) / weights.sum(axis=0)
    X = np.where(present, Y, means)[free] / unit
    idle, before = 0, np.inf
    while True:
        steps = min(ROUND, max_iter - len(history))
        X, _ = minimise(value_and_slope, X, steps, lambda: best is not None and best.converged)
        assert best is not None  # every round evaluates
        idle = 0 if best.value < before else idle + 1
        before = best.value
        if best.converged or len(history) >= max_iter or idle >= IDLE:
            break
    reason = "max_iter" if len(history) >= max_iter else "stalled"
    reason = "tolerance" if best.converged else reason
    return replace(best, reason=reason, n_iter=len(history), history=np.array(history))


def far_apart(problem: Problem, T: Array) -> bool:
    """True if output kernels (m, p, p) leave targets unrelated whose sizes are far apart.

    `learn_missing` then stops before the small ones have converged; `solve_missing` does not.
    """
    groups = related_targets(T)
    norms = np.array([np.linalg.norm(problem.targets[:, group]) for group in groups])
    norms = norms[norms > 0.0]
    return len(norms) > 1 and bool(norms.max() > FAR * norms.min())


def solve_missing(problem: Problem, alpha: float, result: Result, penalty: float = 0.0) -> Result:
    """Solve the ridge system with missing targets for the kernels of a result, exactly.

    `learn_missing` stops by the objective of all targets together. Targets in small units add
    almost nothing to it, and their missing values may be far from converged. Here each group of
    related targets is solved by itself, to a residual relative to the size of these targets.

    Parameters
    ----------
    problem : Problem
        With ``missing``.
    alpha : float
    result : Result
        With ``T`` and ``weights``.
    penalty : float, default=0.0
        Value of the penalty of these kernels.

    Returns
    -------
    Result
        With coefficients and value of the solution, and the gap by the same lower bound.
    """
    gram = missing_gram(problem, alpha)
    T = result.T[: len(gram.summed.kernels)]
    C, slack = gram.solve(T)
    inner, fit = float(np.vdot(T, gram.inner_products(C))), float(np.vdot(gram.targets, C))
    value = penalty + slack + fit - 0.5 * (inner + alpha * float(np.vdot(C, C)))
    gap = slack if result.reason == "fixed" else max(result.gap + value - result.value, 0.0)
    return gram.expand(
        replace(result, C=C, witness=C, value=value, gap=gap), result.T, result.weights
    )
