"""L-BFGS on an array of any shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["minimise"]

Array = NDArray[np.float64]

MEMORY = 20


def minimise(
    value_and_slope: Callable[[Array], tuple[float, Array]],
    start: Array,
    steps: int,
    enough: Callable[[], bool] = lambda: False,
) -> tuple[Array, int]:
    """The best point that a number of L-BFGS steps finds, and how often the function was evaluated.

    Parameters
    ----------
    value_and_slope : callable
        From an array to the value and the gradient there, an array of the same shape.
    start : ndarray
    steps : int
    enough : callable, optional
        Asked after every step whether the last point evaluated will do.

    Notes
    -----
    The value at the start is the unit, since L-BFGS-B has absolute safeguards.
    """
    unit = abs(value_and_slope(start)[0]) or 1.0

    def flat(x: Array) -> tuple[float, Array]:
        value, slope = value_and_slope(x.reshape(start.shape))
        return value / unit, slope.ravel() / unit

    def stop(_: Array) -> None:
        if enough():
            raise StopIteration

    options = {"maxiter": steps, "maxfun": 2 * steps + 20, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0}
    found = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options)
    return np.asarray(found.x).reshape(start.shape), int(found.nfev) + 1
