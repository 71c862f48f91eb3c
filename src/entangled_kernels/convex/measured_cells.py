"""Learn from the cells of the targets that were measured, by a solver for complete targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from ..linalg import Array
from .descent import minimise
from .penalties import Penalty

__all__ = ["INNER", "CompleteResult", "Filled", "fill_blanks", "shrunk_conjugate"]

# Complete problems are solved to this share of the tolerance: their errors must not lead the search astray.
INNER = 0.1
# Steps of L-BFGS after which it begins again, and rounds in a row that may bring nothing.
ROUND, IDLE = 200, 2


class CompleteResult(Protocol):
    """What comes of complete targets Z: the objective, and its gradient with respect to Z."""

    @property
    def value(self) -> float:
        """The objective."""

    @property
    def C(self) -> Array:
        """Dual coefficients (n, p), v (Z - f) / alpha for row weights v and fitted values f."""


R = TypeVar("R", bound=CompleteResult)


@dataclass(frozen=True, eq=False)
class Filled(Generic[R]):
    """The result for blanks filled in as well as the model can.

    Attributes
    ----------
    result : CompleteResult
        Of the complete problem with the blanks filled in.
    value : float
        The objective over measured cells.
    gap : float
        Duality gap over measured cells, NaN where no conjugate was given.
    converged : bool
    reason : str
        ``"tolerance"``, ``"max_iter"`` or ``"stalled"``.
    n_iter : int
        Complete problems solved.
    history : ndarray
        Objective over measured cells of the best model after every complete problem; it never rises.
    """

    result: R
    value: float
    gap: float
    converged: bool
    reason: str
    n_iter: int
    history: Array


def fill_blanks(
    solve: Callable[[Array, R | None], R],
    Y: Array,
    weights: Array,
    alpha: float,
    *,
    centred: bool,
    conjugate: Callable[[Array], tuple[float, float]] | None = None,
    by_slope: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Filled[R]:
    """Minimise sum w_io (y_io - f_o(x_i))^2 / (2 alpha) + penalty over measured cells.

    Parameters
    ----------
    solve : callable
        From complete targets Z (n, p), and the last result or None, to the result of the same problem with
        row weights v_i, the largest weight of each row's cells.
    Y : ndarray of shape (n, p)
        Anything in blanks.
    weights : ndarray of shape (n, p)
        Of the cells, zero in blanks; every row has a positive one.
    alpha : float
    centred : bool
        Whether the model has an intercept, so that the columns of C sum to zero.
    conjugate : callable, optional
        From dual coefficients C to a factor t of at most one and the conjugate of the penalty at t C.
    by_slope : bool, default=False
        Whether to stop by the slope as well, as where the problem is not convex and the gap does not close.
    max_iter : int, default=1000
        Largest number of complete problems.
    tol : float, default=1e-3
        Stop when the duality gap is at most tol^2 times the objective; by the slope, when a step that fills
        blanks with their fitted values would lower the objective by at most that.

    Notes
    -----
    A cell of weight w below the weight v of its row has, for targets Z that are free there,

        w (y - f)^2 = min over z of   v (z - f)^2 + u (y - z)^2,   u = v w / (v - w)

    and u = 0 in a blank. So the problem is to minimise, over those cells of Z, the least objective of
    complete targets plus sum u (y - Z)^2 / (2 alpha): convex where the complete problem is, with the gradient
    C + u (Z - y) / alpha. A gradient step of length alpha / (v + u) puts Z = f + (w / v) (y - f), which is
    the step of majorisation; L-BFGS in variables scaled by the root of that begins with it, and converges
    sooner.

    Coefficients w (y - f) / alpha, shifted to sum to zero under an intercept, are zero in blanks and so
    belong to the dual problem of the measured cells,

        max over c of   c^T y - alpha sum c^2 / (2 w) - P*(c)

    whose value bounds the minimum from below.

    Time: complete problems, n p beside them.
    """
    v = weights.max(axis=1)[:, None]  # (n, 1)
    free = weights < v
    known = weights > 0.0
    Y = np.where(known, Y, 0.0)
    u = np.where(free, v * weights / np.where(free, v - weights, 1.0), 0.0)  # (n, p)
    unit = np.sqrt(alpha / (v + u))[free]
    best: Filled[R] | None = None
    last: R | None = None
    history: list[float] = []

    def value_and_slope(X: Array) -> tuple[float, Array]:
        nonlocal best, last
        Z = Y.copy()
        Z[free] = X * unit
        last = solve(Z, last)
        slope = (last.C + u * (Z - Y) / alpha)[free] * unit
        residual = Y - Z + alpha * last.C / v  # y - f, of no meaning in blanks
        # The penalty is what the complete objective has beyond its squared errors.
        penalty = last.value - 0.5 * alpha * float(np.sum(last.C**2 / v))
        value = penalty + float(np.sum(weights * residual**2)) / (2 * alpha)
        if best is None or value < best.value:
            gap = _gap(value, residual)
            size = float(np.vdot(slope, slope))
            within = gap <= tol**2 * value or (by_slope and size <= tol**2 * value)
            best = Filled(last, value, gap, bool(within), "", 0, np.empty(0))
        history.append(best.value)
        return last.value + float(np.sum(u * (Z - Y) ** 2)) / (2 * alpha), slope

    def _gap(value: float, residual: Array) -> float:
        if conjugate is None:
            return np.nan
        if centred:
            residual = residual - np.sum(weights * residual, axis=0) / weights.sum(axis=0)
        C = weights * residual / alpha
        t, P = conjugate(C)
        fit = float(np.vdot(Y, C))
        size = alpha * float(np.sum(np.where(known, C**2, 0.0) / np.where(known, weights, 1.0)))
        if t < 1.0:
            t = min(t, fit / size)
        return max(value - (t * fit - 0.5 * t**2 * size - P), 0.0)

    means = np.sum(weights * Y, axis=0) / weights.sum(axis=0) if centred else np.zeros(Y.shape[1])
    X = np.where(known, Y, means)[free] / unit
    idle, before = 0, np.inf
    while True:
        steps = min(ROUND, max_iter - len(history))
        X, _ = minimise(value_and_slope, X, steps, lambda: best is not None and best.converged)
        assert best is not None  # every round evaluates
        idle = 0 if best.value < before else idle + 1
        before = best.value
        reason = "max_iter" if len(history) >= max_iter else "stalled" if idle >= IDLE else None
        reason = "tolerance" if best.converged else reason
        if reason is not None:
            break
    return Filled(best.result, best.value, best.gap, best.converged, reason, len(history), np.array(history))


def shrunk_conjugate(penalty: Penalty, S: Array) -> tuple[float, float]:
    """The largest t of at most one at which the conjugate at t^2 S is finite, and the conjugate there."""
    t = penalty.shrink(S)
    return t, penalty.conjugate(t**2 * S)
