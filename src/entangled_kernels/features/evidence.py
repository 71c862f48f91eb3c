"""Hyper-parameters of a scalar kernel by marginal likelihood, shared over outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Product, Sum

from ..linalg import Array
from ..threads import SMALL_MATRIX, one_thread

__all__ = ["Evidence", "thin_root", "tune_kernel"]

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
    matrices = _matrices(kernel, X)

    def loss(theta: Array) -> tuple[float, Array]:
        level = float(np.exp(theta[-1]))
        A, dK = matrices(theta[:-1])
        A[np.diag_indices(n)] += level / w
        value, slope = 0.0, np.zeros_like(theta)
        for group in groups:
            some = group.rows if len(group.rows) < n else slice(None)
            factor, failed = dpotrf(A[some][:, some], lower=1, clean=1)
            if failed:
                return np.inf, np.zeros_like(theta)
            log_determinant = 2.0 * np.log(np.diag(factor)).sum()
            lower = dpotri(factor, lower=1)[0]
            inverse = lower + np.tril(lower, -1).T
            solved = inverse @ group.root
            inner = inverse - solved @ solved.T
            part = log_determinant + np.vdot(group.root, solved) + group.extra * theta[-1]
            along = [np.vdot(inner, own[some][:, some]) for own in dK]
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


def _matrices(kernel: Any, X: Array) -> Callable[[Array], tuple[Array, Sequence[Array]]]:
    """The matrix of a kernel and its slopes, each (n, n), as functions of the kernel's parameters theta.

    That of `EvidenceFeatures`, c1 RBF + c2 linear with theta the logs of c1, the width and c2, is written
    down: in small tables scikit-learn's own takes far longer to read its parameters than to compute.
    """
    if not _is_gaussian_and_linear(kernel):

        def general(theta: Array) -> tuple[Array, Sequence[Array]]:
            K, slopes = kernel.clone_with_theta(theta)(X, eval_gradient=True)
            return K, list(np.moveaxis(slopes, 2, 0))

        return general
    # Rows alike are at a distance of zero exactly, as widths that are next to nothing need.
    squares, linear = cdist(X, X, "sqeuclidean"), X @ X.T

    def written(theta: Array) -> tuple[Array, Sequence[Array]]:
        c1, width, c2 = np.exp(theta)
        apart = squares / width**2
        K1, K2 = c1 * np.exp(-0.5 * apart), c2 * linear
        return K1 + K2, [K1, K1 * apart, K2]

    return written


def _is_gaussian_and_linear(kernel: Any) -> bool:
    parts = [kernel.k1, kernel.k2] if isinstance(kernel, Sum) else []
    if len(parts) != 2 or not all(
        isinstance(part, Product) and isinstance(part.k1, ConstantKernel) for part in parts
    ):
        return False
    gaussian, linear = parts[0].k2, parts[1].k2
    return (
        type(gaussian) is RBF
        and np.ndim(gaussian.length_scale) == 0
        and type(linear) is DotProduct
        and linear.sigma_0 == 0.0
        and linear.hyperparameter_sigma_0.fixed
        and len(kernel.theta) == 3
    )


def thin_root(Y: Array) -> Array:
    """A matrix with the same Y Y^T that has no more columns than rows."""
    n, p = Y.shape
    if p <= n:
        return Y
    values, vectors = eigh(Y @ Y.T)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


class _Group(NamedTuple):
    """Targets measured on the same rows: the rows, a root of Y Y^T over their number, W - n, their number."""

    rows: NDArray[np.intp]
    root: Array
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
            root = thin_root(own) / np.sqrt(own.shape[1])
            yield _Group(rows, root, float(weight[rows].sum()) - len(rows), own.shape[1])
