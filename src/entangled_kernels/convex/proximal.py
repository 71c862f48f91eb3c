"""Proximal steps by descent on the coefficients, for the trace ball, whose conjugate is not smooth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array
from .certificate import Gram, Point, Step
from .descent import minimise
from .penalties import Schatten, compose

__all__ = ["Proximal", "proximal_round"]

# The length of a step in its unit.
REACH = 1.0
# A round ends where its own problem is solved this well, in terms of the gap: more would be lost on the next.
ROUGH, SLACK = 1e-3, 0.1


@dataclass(frozen=True, eq=False)
class Proximal:
    """||L - centre||^2 / (2 length) in the ball tr(L) <= radius: a penalty with a smooth conjugate.

    Attributes
    ----------
    radius : float
    centre : ndarray of shape (m, k, k)
    length : float

    Notes
    -----
    <L, S> / 2 less this is largest at the point of the ball that is nearest to centre + length S / 2: there
    all levels are less by the same amount, and those that would become negative are zero.

    Examples
    --------
    >>> import numpy as np
    >>> near = Proximal(2.0, np.eye(2)[None], 1.0)
    >>> near.argmax(np.diag([2.0, 1.0])[None])[0]
    array([[1.25, 0.  ],
           [0.  , 0.75]])
    """

    radius: float
    centre: Array
    length: float

    def value(self, L: Array) -> float:
        """The squared distance from the centre."""
        return float(np.sum((L - self.centre) ** 2)) / (2.0 * self.length)

    def argmax(self, S: Array) -> Array:
        """The L at which <L, S> / 2 less the value is largest."""
        levels, V = np.linalg.eigh(self.centre + 0.5 * self.length * S)
        return compose(_to_ball(levels, self.radius), V)


def proximal_round(gram: Gram, penalty: Schatten, point: Point, steps: int, tol: float = 0.0) -> Step:
    """Better parameters than those of a point: a proximal step, taken in the dual problem.

    Notes
    -----
    A proximal step minimises J(L) + ||L - L_0||^2 / (2 length) from the L_0 of the point. Its dual is that of
    `dual_round` with `Proximal` for the penalty, which has a smooth conjugate; no ridge system is solved. The
    step brings J to within ||L* - L_0||^2 / (2 length) of its minimum at L*, and is the harder to take the
    longer it is. The length is ||L_0||^2 / sqrt(gap J), with nothing in J that no kernel can reach. Where J
    grows as the squared distance from L*, the gap after a step is then at most a multiple of its power 3 / 2.

    Coefficients c of the search solve the ridge system of their L up to e, which is the slope. So the gap of
    both is at most P*(S / 2) - <L, S> / 2 + |e|^2 / (2 alpha), and the search ends where that is
    within the tolerance, or where more steps would only better the proximal problem.
    """
    reachable = max(point.value - gram.constant, point.gap, np.finfo(float).tiny)
    length = REACH * float(np.vdot(point.L, point.L)) / np.sqrt(point.gap * reachable)
    assert penalty.radius is not None  # a ball
    near = Proximal(penalty.radius, point.L, length)
    change = gram.preconditioner(point.L)
    latest = {"enough": False}

    def value_and_slope(X: Array) -> tuple[float, Array]:
        C = change.forward(X)
        S = gram.squares(C)
        L = near.argmax(S)
        e = gram.alpha * C - gram.targets + gram.apply(L, C)
        slope = change.adjoint(e)
        inner, fit = float(np.vdot(L, S)), float(np.vdot(gram.targets, C))
        size = gram.alpha * float(np.vdot(C, C))
        slack = float(np.vdot(e, e)) / (2.0 * gram.alpha)
        gap = penalty.conjugate(S) - 0.5 * inner
        value = slack + fit - 0.5 * (inner + size) + gram.constant
        solved = 0.5 * float(np.vdot(slope, slope)) <= ROUGH * gap and slack <= SLACK * gap
        latest["enough"] = solved or gap + slack <= tol * value
        return 0.5 * (size + inner) - fit - near.value(L), slope

    X, evaluations = minimise(
        value_and_slope, change.inverse(point.C), steps, lambda: latest["enough"], whitened=True
    )
    C = change.forward(X)
    return Step(near.argmax(gram.squares(C)), C, evaluations)


def _to_ball(levels: Array, radius: float) -> Array:
    """The nearest non-negative levels whose sum is at most the radius."""
    if np.maximum(levels, 0.0).sum() <= radius:
        return np.maximum(levels, 0.0)
    falling = -np.sort(-levels, axis=None)
    excess = (np.cumsum(falling) - radius) / np.arange(1, levels.size + 1)
    return np.asarray(np.maximum(levels - excess[np.flatnonzero(falling > excess)[-1]], 0.0))
