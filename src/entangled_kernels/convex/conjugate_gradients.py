"""Conjugate gradients for the ridge system of a Gram matrix that can only be applied."""

from __future__ import annotations

import numpy as np

from ..linalg import Array
from .certificate import Gram

__all__ = ["conjugate_gradients"]

STEPS = 5000


def conjugate_gradients(gram: Gram, L: Array, rough: float, steps: int = STEPS) -> tuple[Array, float]:
    """Coefficients c of (G_L + alpha I) c = y, and what is left of y.

    Parameters
    ----------
    gram : Gram
        Its ``apply`` and ``preconditioner`` are used.
    L : ndarray of shape (m, k, k)
    rough : float
        Relative residual at which to stop.
    steps : int, default=5000

    Returns
    -------
    C : ndarray
    slack : float
        ||e||^2 / (2 alpha) for the residual e, computed anew, as the duality gap needs it.
    """
    change = gram.preconditioner(L)
    C = np.zeros_like(gram.targets)
    residual = gram.targets.copy()
    enough = rough * float(np.linalg.norm(residual))
    search = scaled = change.forward(change.adjoint(residual))
    square = float(np.vdot(residual, scaled))
    for _ in range(steps):
        if float(np.linalg.norm(residual)) <= enough:
            break
        image = gram.apply(L, search) + gram.alpha * search
        length = square / float(np.vdot(search, image))
        C += length * search
        residual -= length * image
        scaled = change.forward(change.adjoint(residual))
        previous, square = square, float(np.vdot(residual, scaled))
        search = scaled + (square / previous) * search
    left = gram.targets - gram.apply(L, C) - gram.alpha * C
    return C, float(np.vdot(left, left)) / (2 * gram.alpha)
