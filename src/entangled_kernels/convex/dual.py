"""Descent on the coefficients: L-BFGS on the dual problem, for penalties with a smooth conjugate."""

from __future__ import annotations

import numpy as np

from ..linalg import Array
from .certificate import Gram, Point, Step
from .descent import minimise
from .penalties import Penalty

__all__ = ["dual_round"]

# The dual value is to be much nearer to its maximum than the gap asks for: that of the parameters lags.
SHARP = 1e-6


def dual_round(gram: Gram, penalty: Penalty, point: Point, steps: int, tol: float = 0.0) -> Step:
    """Better parameters than those of a point, from the coefficients that it has.

    Notes
    -----
    Minimises F(c) = alpha |c|^2 / 2 - c^T y + P*(S / 2), whose gradient is alpha c - y + G_L c with the L at
    which P*(S / 2) is attained. At fixed L the Hessian is G_L + alpha I, which the preconditioner of the
    point's L turns into the identity.
    """
    change = gram.preconditioner(point.L)

    def value_and_slope(X: Array) -> tuple[float, Array]:
        C = change.forward(X)
        S = gram.squares(C)
        L = penalty.argmax(S)
        conjugate = 0.5 * float(np.vdot(L, S)) - penalty.value(L)
        value = 0.5 * gram.alpha * float(np.vdot(C, C)) - float(np.vdot(C, gram.targets)) + conjugate
        return value, change.adjoint(gram.alpha * C - gram.targets + gram.apply(L, C))

    X, evaluations = minimise(value_and_slope, change.inverse(point.C), steps, whitened=True, tol=SHARP * tol)
    C = change.forward(X)
    return Step(penalty.argmax(gram.squares(C)), C, evaluations)
