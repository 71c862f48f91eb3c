"""Normal laws of transformed targets, taken back to the targets: means, deviations, covariances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_hermitenorm

from ..linalg import Array

__all__ = [
    "covariance_through",
    "domain_ends",
    "lognormal_covariance",
    "lognormal_moments",
    "moments_through",
]

# From a table (n, p) to one of the same shape, each column by itself.
Function = Callable[[Array], Array]

# Of Gauss-Hermite quadrature: exact for polynomials of degree 39.
N_NODES = 20
_FAR, _HALVINGS = 1e3, 60


def lognormal_moments(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of exp(z), for z normal.

    Notes
    -----
    exp(mean + variance / 2), and that times sqrt(exp(variance) - 1).

    Examples
    --------
    >>> import numpy as np
    >>> mean, std = lognormal_moments(np.zeros(1), np.log([2.0]))
    >>> mean.round(3).tolist(), std.round(3).tolist()
    ([1.414], [1.414])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        centre = np.exp(mean + variance / 2.0)
        std = np.where(variance > 0.0, centre * np.sqrt(np.expm1(variance)), 0.0)
    return centre, std


def lognormal_covariance(mean: Array, covariance: Array, logged: NDArray[np.bool_]) -> Array:
    """Covariance (n, p, p) of targets of which some are exp(z), the others z, for z normal row by row.

    Parameters
    ----------
    mean : ndarray of shape (n, p)
    covariance : ndarray of shape (n, p, p)
    logged : ndarray of bool of shape (p,)

    Notes
    -----
    With S the covariance of z and E the means of exp(z), E_a E_b (exp(S_ab) - 1) for two logarithms and
    E_a S_ab for one.
    """
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.where(logged, np.exp(mean + variance / 2.0), 1.0)
        both = logged[:, None] & logged
        spread = np.where(both, np.expm1(covariance), covariance)
        return np.asarray(slope[:, :, None] * spread * slope[:, None, :])


def moments_through(inverse: Function, mean: Array, std: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (n, p) of inverse(z), for z normal, by Gauss-Hermite quadrature."""
    values, weight, _ = _at_nodes(inverse, mean, std)
    centre = np.einsum("k,kno->no", weight, values)  # (n, p)
    square = np.einsum("k,kno->no", weight, (values - centre) ** 2)  # (n, p)
    return np.where(std > 0.0, centre, values[0]), np.where(std > 0.0, np.sqrt(square), 0.0)


def covariance_through(inverse: Function, mean: Array, covariance: Array) -> Array:
    """Covariance (n, p, p) of inverse(z), for z normal with this covariance row by row.

    Notes
    -----
    With a_j the coefficients of inverse(mean + std x) in normalised Hermite polynomials of x, and R the
    correlations of z, Mehler's formula gives sum_j a_aj a_bj R_ab^j over j = 1, 2, ... The coefficients are
    found by the quadrature of `moments_through`, so the diagonal is its variance.
    """
    std = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))  # (n, p)
    values, weight, nodes = _at_nodes(inverse, mean, std)
    values = np.where(std > 0.0, values, 0.0)
    unit = np.where(std > 0.0, std, 1.0)
    R = covariance / unit[:, :, None] / unit[:, None, :]
    power, total = np.ones_like(R), np.zeros_like(R)
    before, polynomial = np.zeros_like(nodes), np.ones_like(nodes)
    for j in range(1, N_NODES):
        # Of normalised polynomials: sqrt(j) h_j = x h_{j-1} - sqrt(j - 1) h_{j-2}.
        before, polynomial = polynomial, (nodes * polynomial - np.sqrt(j - 1) * before) / np.sqrt(j)
        a = np.einsum("k,kno->no", weight * polynomial, values)  # (n, p)
        power = power * R
        total += a[:, :, None] * a[:, None, :] * power
    return total


def domain_ends(inverse: Function, Z: Array, Y: Array | None = None) -> tuple[Array, Array]:
    """Where the inverse of every target ends, below and above; infinite where it goes on.

    Parameters
    ----------
    inverse : callable
        NaN where it is not defined, as that of a power transform beyond its end.
    Z : ndarray of shape (n, p)
        Transformed targets, from which to set out; NaN in blanks.
    Y : ndarray of shape (n, p), optional
        The targets, where their range is that of all there are.

    Notes
    -----
    An inverse may have a pole at its end, as that of a power transform of skewed targets has. So one that
    ends somewhere is followed no further beyond the range of the target, if that is known, than the range is
    wide. Found by bisection.
    """
    highest = np.full(Z.shape[1], np.finfo(np.float64).max)
    lowest = -highest
    if Y is not None:
        low, high = np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)
        lowest, highest = 2.0 * low - high, 2.0 * high - low
    # Of a target that was never measured zero is as good a start as any.
    known = np.where(np.isnan(Z).all(axis=0), 0.0, Z)
    start = np.nanmean(known, axis=0)
    step = _FAR * np.maximum(np.nanmax(np.abs(known - start), axis=0), 1.0)
    begins = ~np.isnan(inverse(start[None]))[0]
    ends = []
    for sign in (-1.0, 1.0):
        outside = start + sign * step
        ended = np.isnan(inverse(outside[None]))[0] & begins
        inside = start.copy()
        for _ in range(_HALVINGS if ended.any() else 0):
            middle = (inside + outside) / 2.0
            value = inverse(middle[None])[0]
            fine = (value >= lowest) & (value <= highest)
            inside, outside = np.where(fine, middle, inside), np.where(fine, outside, middle)
        ends.append(np.where(ended, inside, sign * np.inf))
    return ends[0], ends[1]


def _at_nodes(inverse: Function, mean: Array, std: Array) -> tuple[Array, Array, Array]:
    """Values (k, n, p) of the inverse at the nodes of the quadrature, its weights (k,) and its nodes (k,)."""
    nodes, weight = roots_hermitenorm(N_NODES)
    points = mean + nodes[:, None, None] * std  # (k, n, p)
    values = inverse(points.reshape(-1, mean.shape[1])).reshape(points.shape)  # (k, n, p)
    return values, weight / weight.sum(), nodes
