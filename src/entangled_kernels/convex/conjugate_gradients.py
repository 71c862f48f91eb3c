"""Conjugate gradients for the ridge system of a Gram matrix that can only be applied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..linalg import Array
from .certificate import Gram

__all__ = ["conjugate_gradients", "solve_psd"]

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
    C = solve_psd(
        lambda search: gram.apply(L, search) + gram.alpha * search,
        lambda residual: change.forward(change.adjoint(residual)),
        gram.targets,
        rough * float(np.linalg.norm(gram.targets)),
        steps,
    )
    left = gram.targets - gram.apply(L, C) - gram.alpha * C
    return C, float(np.vdot(left, left)) / (2 * gram.alpha)


def solve_psd(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    enough: float,
    steps: int,
) -> Array:
    """Solve a positive definite system by steps of preconditioned conjugate gradients.

    They end when the norm of the residual is at most ``enough``. Arrays are of any one shape.
    """
    found, residual = np.zeros_like(right), right.copy()
    search = scaled = precondition(residual)
    square = float(np.vdot(residual, scaled))
    for _ in range(steps):
        if float(np.linalg.norm(residual)) <= enough or square <= 0.0:
            break
        image = apply(search)
        length = square / float(np.vdot(search, image))
        found += length * search
        residual -= length * image
        scaled = precondition(residual)
        previous, square = square, float(np.vdot(residual, scaled))
        search = scaled + (square / previous) * search
    return found
