"""Hyper-parameters of a scalar kernel by marginal likelihood, shared over outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.optimize import minimize

from ..threads import SMALL_MATRIX, one_thread

__all__ = ["Evidence", "tune_kernel"]

Array = NDArray[np.float64]

# Noise, in units of the variance of the targets.
NOISE_BOUNDS = (1e-6, 1e2)


@dataclass(frozen=True)
class Evidence:
    """A tuned kernel, the variance of the noise that goes with it, and the log likelihood per output."""

    kernel: Any
    noise: float
    log_likelihood: float


def tune_kernel(
    kernel: Any, X: Array, Y: Array, weight: Array | None = None, *, noise: float = 0.1, max_iter: int = 100
) -> Evidence:
    """Maximise the mean over outputs of the log marginal likelihood of y ~ N(0, k + noise).

    Parameters
    ----------
    kernel : scikit-learn Gaussian-process kernel
        Where the search starts; its bounds are kept.
    X : ndarray of shape (n, d)
    Y : ndarray of shape (n, p)
        Targets about their means.
    weight : ndarray of shape (n,), optional
        Positive; a row of weight w counts as w rows alike.
    noise : float, default=0.1
        Where the search for the variance of the noise starts.
    max_iter : int, default=100

    Notes
    -----
    The outputs enter through S = Y Y^T / p alone, so the time of a step, n^3, does not depend on how many
    there are. With A = K + noise diag(1/w) and w rows in total weight W, up to a constant

        -2 L = log|A| + tr(A^-1 S) + (W - n) log noise,   dA -> tr((A^-1 - A^-1 S A^-1) dA)
    """
    n = len(X)
    w = np.ones(n) if weight is None else weight
    S, extra = Y @ Y.T / Y.shape[1], float(w.sum()) - n

    def loss(theta: Array) -> tuple[float, Array]:
        level = float(np.exp(theta[-1]))
        A, dK = kernel.clone_with_theta(theta[:-1])(X, eval_gradient=True)
        A[np.diag_indices(n)] += level / w
        try:
            factor = (cholesky(A, lower=True), True)
        except LinAlgError:
            return np.inf, np.zeros_like(theta)
        inverse = cho_solve(factor, np.eye(n))
        solved = inverse @ S
        inner = inverse - solved @ inverse
        value = 2.0 * np.log(np.diag(factor[0])).sum() + np.trace(solved) + extra * theta[-1]
        slope = np.append(np.tensordot(inner, dK, axes=2), np.diag(inner) @ (level / w) + extra)
        return 0.5 * float(value), 0.5 * slope

    bounds = np.vstack([kernel.bounds, np.log([NOISE_BOUNDS])])
    start = np.clip(np.append(kernel.theta, np.log(noise)), *bounds.T)
    options = {"maxiter": max_iter, "ftol": 1e-10}
    with one_thread(n <= SMALL_MATRIX):
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    # Finer than the rows can tell, and the same when rounding has led the search along another path.
    theta = np.clip(np.round(found.x, 3), *bounds.T)
    likelihood = -loss(theta)[0] - 0.5 * n * np.log(2.0 * np.pi)
    return Evidence(kernel.clone_with_theta(theta[:-1]), float(np.exp(theta[-1])), likelihood)
