"""Slopes of scikit-learn kernels by their first argument."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from ..linalg import Array

__all__ = ["Slope", "has_slopes", "kernel_slopes", "pull_slopes"]

# Matern kernels that are differentiable everywhere, in closed form.
MATERNS = (1.5, 2.5)


class Slope(NamedTuple):
    """A term of the slope of k(z, r) by z: scale * (towards r + own z).

    Matrices (n, R) of rows z and r, and a number or (d,) that multiplies the columns.
    """

    towards: Array
    own: Array
    scale: Any


def has_slopes(kernel: Any) -> bool:
    """Whether `kernel_slopes` knows the kernel.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> has_slopes(2.0 * RBF() + Matern(nu=2.5)), has_slopes(Matern(nu=0.5))
    (True, False)
    """
    if isinstance(kernel, Sum | Product):
        return has_slopes(kernel.k1) and has_slopes(kernel.k2)
    if isinstance(kernel, Exponentiation):
        return has_slopes(kernel.kernel)
    if isinstance(kernel, Matern):
        return kernel.nu in MATERNS
    return isinstance(kernel, RBF | RationalQuadratic | DotProduct | ConstantKernel)


def kernel_slopes(kernel: Any, Z: Array, R: Array) -> tuple[Array, list[Slope]]:
    """Values k(z, r), (n, R), and the terms of their slopes by z, for rows Z (n, d) and R (R, d).

    Notes
    -----
    With D the distance in units of the length scales l: the Gaussian exp(-D^2/2) has the slope k (r - z)/l^2,
    Matern kernels of smoothness 3/2 and 5/2 have 3 e (r - z)/l^2 with e = exp(-sqrt(3) D), and
    5/3 (1 + sqrt(5) D) e (r - z)/l^2 with e = exp(-sqrt(5) D); the rational quadratic (1 + s)^-a, s = D^2/2a,
    has (1 + s)^(-a - 1) (r - z)/l^2. That of the inner product is r. Sums and products follow their rules.
    """
    if isinstance(kernel, Sum | Product):
        (K1, slopes1), (K2, slopes2) = (kernel_slopes(part, Z, R) for part in (kernel.k1, kernel.k2))
        if isinstance(kernel, Sum):
            return K1 + K2, slopes1 + slopes2
        return K1 * K2, _times(slopes1, K2) + _times(slopes2, K1)
    if isinstance(kernel, Exponentiation):
        K, slopes = kernel_slopes(kernel.kernel, Z, R)
        return K**kernel.exponent, _times(slopes, kernel.exponent * K ** (kernel.exponent - 1.0))
    K = np.asarray(kernel(Z, R))
    if isinstance(kernel, ConstantKernel):
        return K, []
    if isinstance(kernel, DotProduct):
        return K, [Slope(np.ones_like(K), np.zeros_like(K), 1.0)]
    length = kernel.length_scale
    if isinstance(kernel, Matern):
        distance = np.sqrt(2.0 * kernel.nu) * cdist(Z / length, R / length)
        factor = np.exp(-distance)
        factor *= 3.0 if kernel.nu == MATERNS[0] else 5.0 / 3.0 * (1.0 + distance)
    elif isinstance(kernel, RationalQuadratic):
        factor = K ** (1.0 + 1.0 / kernel.alpha)
    else:
        factor = K
    return K, [Slope(factor, -factor, 1.0 / np.square(length))]


def pull_slopes(slopes: list[Slope], weights: Array, Z: Array, R: Array) -> Array:
    """Slopes (n, q, d) of sum_r weights[..., r] k(z, r) by z, for weights (q, R) or (n, q, R).

    Time n q R d.
    """
    found = np.zeros((len(Z), weights.shape[-2], Z.shape[1]))
    for towards, own, scale in slopes:
        part = (weights * towards[:, None, :]) @ R  # (n, q, d)
        part += (weights * own[:, None, :]).sum(axis=2)[:, :, None] * Z[:, None, :]
        found += part * scale
    return found


def _times(slopes: list[Slope], K: Array) -> list[Slope]:
    return [Slope(towards * K, own * K, scale) for towards, own, scale in slopes]
