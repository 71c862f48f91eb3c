"""Hyper-parameters of a scalar kernel by marginal likelihood, shared over outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.optimize import minimize

from ..threads import SMALL_MATRIX, one_thread

__all__ = ["Evidence", "tune_kernel"]

Array = NDArray[np.float64]

# Noise, in units of the variance of the targets.
NOISE_BOUNDS = (1e-6, 1e2)
# Groups of targets, measured on the same rows each, that the likelihood is taken of.
MOST_GROUPS = 8


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
        Targets about their means, NaN where one was not measured.
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

    Targets that were measured on other rows than the rest have an A and an S of these rows, so that a step
    takes n^3 for every such group of targets; of more than 8 groups, 8 are taken.
    """
    n = len(X)
    w = np.ones(n) if weight is None else weight
    groups = list(_measured_groups(Y, w))
    whole = sum(group.share for group in groups)

    def loss(theta: Array) -> tuple[float, Array]:
        level = float(np.exp(theta[-1]))
        A, dK = kernel.clone_with_theta(theta[:-1])(X, eval_gradient=True)
        A[np.diag_indices(n)] += level / w
        value, slope = 0.0, np.zeros_like(theta)
        for group in groups:
            some = group.rows if len(group.rows) < n else slice(None)
            own = A[some][:, some]
            try:
                factor = (cholesky(own, lower=True), True)
            except LinAlgError:
                return np.inf, np.zeros_like(theta)
            inverse = cho_solve(factor, np.eye(len(own)))
            solved = inverse @ group.S
            inner = inverse - solved @ inverse
            log_determinant = 2.0 * np.log(np.diag(factor[0])).sum()
            part = log_determinant + np.trace(solved) + group.extra * theta[-1]
            along = np.tensordot(inner, dK[some][:, some], axes=2)
            noise_part = np.diag(inner) @ (level / w[some]) + group.extra
            value += group.share / whole * float(part)
            slope += group.share / whole * np.append(along, noise_part)
        return 0.5 * value, 0.5 * slope

    bounds = np.vstack([kernel.bounds, np.log([NOISE_BOUNDS])])
    start = np.clip(np.append(kernel.theta, np.log(noise)), *bounds.T)
    options = {"maxiter": max_iter, "ftol": 1e-10}
    with one_thread(n <= SMALL_MATRIX):
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    # Finer than the rows can tell, and the same when rounding has led the search along another path.
    theta = np.clip(np.round(found.x, 3), *bounds.T)
    measured = sum(group.share * len(group.rows) for group in groups) / whole
    likelihood = -loss(theta)[0] - 0.5 * measured * np.log(2.0 * np.pi)
    return Evidence(kernel.clone_with_theta(theta[:-1]), float(np.exp(theta[-1])), likelihood)


class _Group(NamedTuple):
    """Targets measured on the same rows: the rows, Y Y^T over their number, W - n, and their number."""

    rows: NDArray[np.intp]
    S: Array
    extra: float
    share: float


def _measured_groups(Y: Array, weight: Array) -> Iterator[_Group]:
    """Groups of targets that were measured on the same rows, evenly spaced where there are many."""
    patterns, group = np.unique(np.isfinite(Y), axis=1, return_inverse=True)
    numbers = np.arange(patterns.shape[1])
    if len(numbers) > MOST_GROUPS:
        numbers = numbers[np.linspace(0, len(numbers) - 1, MOST_GROUPS).astype(int)]
    for number in numbers:
        rows = np.flatnonzero(patterns[:, number])
        own = Y[rows][:, group.reshape(-1) == number]
        if len(rows):
            yield _Group(
                rows, own @ own.T / own.shape[1], float(weight[rows].sum()) - len(rows), own.shape[1]
            )
