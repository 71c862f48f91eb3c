"""L-BFGS on an array of any shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from ..linalg import Array

__all__ = ["minimise"]

MEMORY = 20
# A slope this much shorter than the first one is zero up to rounding.
FLAT = 1e-12
# More than the relative rounding of values, whose terms may cancel.
NOISE = 1e-9


def minimise(
    value_and_slope: Callable[[Array], tuple[float, Array]],
    start: Array,
    steps: int,
    enough: Callable[[], bool] = lambda: False,
    *,
    whitened: bool = False,
    tol: float = 0.0,
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
    whitened : bool, default=False
        Whether the Hessian is near the identity.
    tol : float, default=0.0
        Where it is, stop when |slope|^2 / 2, about what is left to gain, is at most this share of the value
        at the start; nothing is stopped for it where that is so from the start.

    Notes
    -----
    The value at the start is the unit, since L-BFGS-B has absolute safeguards. Its first trial is a step of
    length one, whatever the slope; where the Hessian is near the identity, the length of the slope at the
    start is made the unit of the array, and this trial is Newton's step.
    """
    first, first_slope = value_and_slope(start)
    if not start.size:
        # SciPy before 1.13 fails on it.
        return start, 1
    unit = abs(first) or 1.0
    size = (float(np.linalg.norm(first_slope)) or 1.0) if whitened else 1.0
    begin = start.ravel() / size
    left, stopped = np.inf, False
    little = tol * unit if 0.5 * float(np.vdot(first_slope, first_slope)) > tol * unit else 0.0

    def flat(x: Array) -> tuple[float, Array]:
        # The search begins where the units were found.
        known = np.array_equal(x, begin)
        value, slope = (first, first_slope) if known else value_and_slope(size * x.reshape(start.shape))
        nonlocal left
        left = 0.5 * float(np.vdot(slope, slope))
        return value / unit, slope.ravel() * (size / unit)

    def stop(_: Array) -> None:
        nonlocal stopped
        stopped = enough() or (whitened and left <= little)
        if stopped:
            raise StopIteration

    options = {"maxiter": steps, "maxfun": 2 * steps + 20, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0}
    found = minimize(flat, begin, jac=True, method="L-BFGS-B", callback=stop, options=options)
    x, evaluations = np.asarray(found.x), int(found.nfev)
    if not stopped and np.linalg.norm(found.jac) > FLAT * size / unit * np.linalg.norm(first_slope):
        rest = {"maxiter": steps - found.nit, "maxfun": options["maxfun"] - found.nfev}
        if min(rest.values()) > 0:
            x, more = _minimise_by_slopes(flat, x, found.fun, found.jac, stop, options | rest)
            evaluations += more
    return size * x.reshape(start.shape), evaluations


def _minimise_by_slopes(
    value_and_slope: Callable[[Array], tuple[float, Array]],
    start: Array,
    first: float,
    first_slope: Array,
    stop: Callable[[Array], None],
    options: dict[str, float],
) -> tuple[Array, int]:
    """Go on with L-BFGS where rounding hides the differences between values.

    Between two points near each other, the value changes by the inner product of their difference with the
    mean of the two gradients, up to terms of third order. This has all its digits where a difference of
    values has none. If the value is higher at the end by more than rounding, the start is returned.
    """
    unit = float(first_slope @ first_slope)
    # Position, change of the value since the start, and gradient: at the last step, and where it was last
    # evaluated.
    base = latest = (start, 0.0, first_slope)
    value = first

    def change_and_slope(x: Array) -> tuple[float, Array]:
        nonlocal latest, value
        if np.array_equal(x, start):
            return 0.0, first_slope / unit
        value, slope = value_and_slope(x)
        change = base[1] + 0.5 * float((slope + base[2]) @ (x - base[0])) / unit
        latest = (x.copy(), change, slope)
        return change, slope / unit

    def step(x: Array) -> None:
        nonlocal base
        base = latest
        stop(x)

    found = minimize(change_and_slope, start, jac=True, method="L-BFGS-B", callback=step, options=options)
    x = np.asarray(found.x)
    return (x if value <= first + NOISE * abs(first) else start), int(found.nfev) - 1
