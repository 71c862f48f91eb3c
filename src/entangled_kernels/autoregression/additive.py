"""Additive autoregression: a function of every variable's past for every target, with sparse weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from ..linalg import Array
from ..multiple_kernels import KernelPart, KernelsResult, learn_diagonal, reduce_kernels

__all__ = ["AdditiveModel", "learn_additive"]


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """f_s(x) = sum_j weights_js sum_l k(x_j, x_lj) C_ls + intercept_s, k(u, v) = exp(-gamma |u - v|^2).

    Attributes
    ----------
    windows : ndarray of shape (n, p, lags)
        Training windows.
    C : ndarray of shape (n, p)
    weights : ndarray of shape (p, p)
        T_j[s, s] in row j and column s, over the scale of kernel j.
    intercept : ndarray of shape (p,)
    gamma : float
    """

    windows: Array
    C: Array
    weights: Array
    intercept: Array
    gamma: float

    def predict(self, windows: Array) -> Array:
        """The next step after every window, (t, p)."""
        prediction = np.tile(self.intercept, (len(windows), 1))
        for j, weight in enumerate(self.weights):
            prediction += rbf_kernel(windows[:, j], self.windows[:, j], gamma=self.gamma) @ (self.C * weight)
        return prediction

    def jacobian(self, windows: Array) -> Array:
        """Derivatives (t, p, p, lags) of target s by variable j and lag, in row s and column j."""
        t, p, lags = windows.shape
        slopes = np.empty((t, p, p, lags))
        for j, weight in enumerate(self.weights):
            K = rbf_kernel(windows[:, j], self.windows[:, j], gamma=self.gamma)  # (t, n)
            delta = windows[:, None, j] - self.windows[None, :, j]  # (t, n, lags)
            slopes[:, :, j] = (
                -2.0 * self.gamma * np.einsum("tn,tnk,ns->tsk", K, delta, self.C * weight, optimize=True)
            )
        return slopes


def learn_additive(
    windows: Array, targets: Array, alpha: float, *, gamma: float, norm: float, max_iter: int, tol: float
) -> tuple[AdditiveModel, KernelsResult]:
    """Learn weights by target of one Gaussian kernel for every variable.

    With ``norm`` 1 every target gets few variables. Parameters are those of
    `entangled_kernels.multiple_kernels.learn_diagonal`, whose cost this has.
    """
    parts = [KernelPart(np.asarray(rbf_kernel(windows[:, j], gamma=gamma))) for j in range(windows.shape[1])]
    problem = reduce_kernels(parts, targets, centred=True, normalized=True)
    result = learn_diagonal(problem, alpha, norm=norm, max_iter=max_iter, tol=tol)
    weights = result.weights / problem.scales[:, None]
    return AdditiveModel(windows, result.C, weights, result.intercept, gamma), result
