"""Descent of output kernel learning: Newton steps for the full problem, balanced factors for low rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh, qr, svd

from ..convex.conjugate_gradients import solve_psd
from ..linalg import Array
from .problem import EPS
from .reduced import Point, Reduced

__all__ = ["descend", "factor_gap", "factor_step", "newton_gap", "newton_step"]

TINY = float(np.finfo(np.float64).tiny)
HALVINGS = 40
CG_STEPS = 10

Step = Callable[[Reduced, Point], Point | None]
Gap = Callable[[Reduced, Point], float]


def descend(
    reduced: Reduced, point: Point, step: Step, gap: Gap, max_iter: int, tol: float
) -> tuple[Point, list[float], str]:
    """Take steps until the gap closes; the last point, the objective at every point, and why it ended."""
    history, last = [point.value], gap(reduced, point)
    for _ in range(max_iter):
        following = step(reduced, point)
        if following is None or following.value > history[-1] * (1 + 100 * EPS):
            return point, history, "tolerance" if last <= tol else "stalled"
        point, current = following, gap(reduced, following)
        # Steps this close to the minimum change the objective by rounding only, though they still improve L.
        history.append(min(point.value, history[-1]))
        if current <= tol:
            return point, history, "tolerance"
        if history[-1] == history[-2] and current >= last:
            return point, history, "stalled"
        last = current
    return point, history, "max_iter"


def newton_gap(reduced: Reduced, point: Point) -> float:
    """||P|| / ||L||."""
    return float(np.linalg.norm(_descent(point))) / _size(point)


def _size(point: Point) -> float:
    """||L||, kept from underflow to zero."""
    return max(float(np.linalg.norm(point.levels)), TINY)


def _descent(point: Point) -> Array:
    """P = S / 2 - L in the eigenbasis of L, (k, k)."""
    return point.S / 2 - np.diag(point.levels)


def newton_step(reduced: Reduced, point: Point) -> Point | None:
    """Newton's step, shortened until it lowers the objective; None when none does."""
    P = _descent(point)
    D = _newton_direction(reduced, point, P)
    slope = float(np.vdot(P, D))
    for halving in range(HALVINGS):
        t = 0.5**halving
        levels, Q = eigh(np.diag(point.levels) + t * D, check_finite=False)
        following = reduced.evaluate(np.maximum(levels, 0.01 * point.levels.min()), point.V @ Q)
        if following.value <= point.value - 1e-4 * t * slope + 10 * EPS * point.value:
            return following
    return None


def _newton_direction(reduced: Reduced, point: Point, P: Array) -> Array:
    """Solve Hessian(D) = P by conjugate gradients.

    The residual asked for falls with P, so that the last steps converge faster than linearly.
    """
    F = reduced.values[:, None] * point.Z  # (q, k)
    quotients = 1.0 / (np.outer(reduced.values, point.levels) + reduced.alpha)  # (q, k)
    A = quotients.T @ F**2  # (k, k)
    diagonal = 1.0 + (A + A.T) / 2
    size = float(np.linalg.norm(P))
    enough = size * min(0.1, size / _size(point))

    def apply(D: Array) -> Array:
        bent = F.T @ ((F @ D) * quotients)  # (k, k)
        return np.asarray(D + (bent + bent.T) / 2)

    return solve_psd(apply, lambda residual: residual / diagonal, P, enough, CG_STEPS)


def factor_gap(reduced: Reduced, point: Point) -> float:
    """||(I - S) B|| ||B|| over the objective."""
    SV = point.V @ point.S  # (k, r)
    if point.missed is not None:
        SV += point.missed.T @ (reduced.values[:, None] * point.Z) / reduced.alpha
    gradient = (point.V - SV) * np.sqrt(point.levels)
    return float(np.linalg.norm(gradient) * np.sqrt(point.levels.sum()) / point.value)


def factor_step(reduced: Reduced, point: Point) -> Point:
    """Best B for Z, then the balanced factors of their product; Z for the new B comes with the point."""
    Z = point.Z * np.sqrt(point.levels)  # (q, r)
    F = reduced.values[:, None] * Z
    squares, Q = eigh(F.T @ F)
    B = ((reduced.T.T @ F) @ Q / (np.maximum(squares, 0.0) + reduced.alpha)) @ Q.T  # (k, r)
    R_Z = qr(np.sqrt(reduced.values)[:, None] * Z, mode="r")[0]
    Q_B, R_B = qr(B, mode="economic")
    _, levels, right = svd(R_Z[: len(R_B)] @ R_B.T)
    return reduced.evaluate(levels, Q_B @ right.T)
