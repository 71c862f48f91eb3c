"""Nonlinear vector autoregression: Hadamard and additive operator-valued kernels of windows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.pairwise import rbf_kernel

from ..linalg import Array
from .grams import Gram, Preconditioner
from .multiple_kernels import learn_diagonal
from .penalties import OutputPenalty
from .problem import KernelPart, Result, reduce_problem, refuse_overflow
from .solvers import solve_convex

__all__ = [
    "AdditiveModel",
    "HadamardGram",
    "HadamardModel",
    "hadamard_gram",
    "lag_windows",
    "learn_additive",
    "learn_hadamard",
    "pivoted_features",
]

# Largest error of the diagonal of the kernel between variables by its features.
FEATURE_ERROR = 1e-10


def lag_windows(series: Array, lags: int) -> Array:
    """Windows (t - lags + 1, p, lags) of a series (t, p), the most recent step first.

    Window i ends at row i + lags - 1; the last one has no next step yet.

    Examples
    --------
    >>> import numpy as np
    >>> lag_windows(np.arange(8.0).reshape(4, 2), 2)[0]
    array([[2., 0.],
           [3., 1.]])
    """
    windows = np.lib.stride_tricks.sliding_window_view(series, lags, axis=0)
    return np.ascontiguousarray(windows[:, :, ::-1])


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """f_s(x) = sum_j weights_js sum_l exp(-gamma |x_j - x_lj|^2) C_ls + intercept_s.

    ``windows`` (n, p, lags) are those of training; ``weights`` (p, p) have T_j[s, s] over the scale
    of kernel j in row j and column s.
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
            prediction += rbf_kernel(windows[:, j], self.windows[:, j], gamma=self.gamma) @ (
                self.C * weight
            )
        return prediction

    def jacobian(self, windows: Array) -> Array:
        """Derivatives (t, p, p, lags) of target s by variable j and lag, in row s and column j."""
        t, p, lags = windows.shape
        slopes = np.empty((t, p, p, lags))
        for j, weight in enumerate(self.weights):
            K = rbf_kernel(windows[:, j], self.windows[:, j], gamma=self.gamma)  # (t, n)
            delta = windows[:, None, j] - self.windows[None, :, j]  # (t, n, lags)
            slopes[:, :, j] = (
                -2.0
                * self.gamma
                * np.einsum("tn,tnk,ns->tsk", K, delta, self.C * weight, optimize=True)
            )
        return slopes


def learn_additive(
    windows: Array,
    targets: Array,
    alpha: float,
    *,
    gamma: float,
    norm: float,
    max_iter: int,
    tol: float,
) -> tuple[AdditiveModel, Result]:
    """Learn weights by target of one Gaussian kernel for every variable, as `learn_diagonal` does.

    With ``norm`` 1 every target gets few variables.
    """
    parts = [
        KernelPart(np.asarray(rbf_kernel(windows[:, j], gamma=gamma)))
        for j in range(windows.shape[1])
    ]
    problem = reduce_problem(parts, targets, centred=True, normalized=True)
    result = learn_diagonal(problem, alpha, norm=norm, max_iter=max_iter, tol=tol)
    weights = result.weights / problem.scales[:, None]
    return AdditiveModel(windows, result.C, weights, result.intercept, gamma), result


@dataclass(frozen=True, eq=False)
class HadamardGram(Gram):
    """The Gram matrix of B_ij k(x, z) h(x_i, z_j), linear in B, a stack (1, p, p).

    ``K`` (n, n) is the Gram matrix of k between rows, and ``features`` (n, p, r) give
    h(x_ti, x_lj) = sum_a features[t, i, a] features[l, j, a].

    Notes
    -----
    Entry ((t, i), (l, j)) is B_ij K_tl h(x_ti, x_lj): it takes n^2 p r + n p^2 r to apply, without
    a matrix of n p rows. The preconditioner replaces h by its mean over rows, so that it is
    separable.
    """

    K: Array
    features: Array
    cg_tolerance = 1e-10

    def apply(self, L: Array, C: Array) -> Array:
        """G c."""
        n, p, r = self.features.shape
        weighted = np.einsum("lja,lj->laj", self.features, C)  # (n, r, p)
        images = self.K @ (weighted @ L[0]).reshape(n, r * p)  # (n, r p)
        return np.asarray(np.einsum("tia,tai->ti", self.features, images.reshape(n, r, p)))

    def inner_products(self, C: Array) -> Array:
        """S_ij = sum_tl c_ti c_lj K_tl h(x_ti, x_lj)."""
        n, p, r = self.features.shape
        weighted = np.einsum("lja,lj->laj", self.features, C)  # (n, r, p)
        images = (self.K @ weighted.reshape(n, r * p)).reshape(n * r, p)
        S = weighted.reshape(n * r, p).T @ images  # (p, p)
        return np.asarray(0.5 * (S + S.T))[None]

    def preconditioner(self, L: Array) -> Preconditioner:
        """The inverse root of K kron (B h) + alpha I with the mean of h, and a larger ridge."""
        mean = self.features.mean(axis=0)  # (p, r)
        levels, V = eigh(L[0] * (mean @ mean.T))
        values, U = eigh(self.K)
        size = float(np.mean(np.diag(L[0]) * (1.0 - np.sum(mean**2, axis=1))))
        eigenvalues = np.outer(np.maximum(values, 0.0), np.maximum(levels, 0.0))  # (n, p)
        return Preconditioner.scaled(1.0 / np.sqrt(eigenvalues + self.alpha + max(size, 0.0)), U, V)


@dataclass(frozen=True, eq=False)
class HadamardModel:
    """The sum over l and j of B_ij k(x, x_l) h(x_i, x_lj) C_lj, plus intercept_i, for target i.

    k(x, z) = exp(-gamma |x - z|^2) between ``windows`` (n, p, lags) of training and new ones, and
    h(u, v) = exp(-output_gamma |u - v|^2) between the pasts of two variables.
    """

    windows: Array
    C: Array
    B: Array
    intercept: Array
    gamma: float
    output_gamma: float

    def predict(self, windows: Array) -> Array:
        """The next step after every window, (t, p); time t n p^2 lags."""
        K = self._between_rows(windows)
        prediction = np.tile(self.intercept, (len(windows), 1))
        for i in range(len(self.B)):
            h, _ = self._between_variables(windows, i)  # (t, n, p)
            prediction[:, i] += np.einsum("tl,tlj,lj->t", K, h, self.C * self.B[i], optimize=True)
        return prediction

    def jacobian(self, windows: Array) -> Array:
        """Derivatives (t, p, p, lags) of target i by variable j and lag, in row i and column j.

        With M_til = sum_j B_ij k(x_t, x_l) h(x_ti, x_lj) C_lj those by any variable are -2 gamma
        sum_l M_til (x_tj - x_lj); variable i itself adds the derivative of h. Time t n p^2 lags.
        """
        t, p, lags = windows.shape
        K = self._between_rows(windows)
        slopes = np.empty((t, p, p, lags))
        differences = windows[:, None] - self.windows[None]  # (t, n, p, lags)
        for i in range(p):
            h, delta = self._between_variables(windows, i)  # (t, n, p), (t, n, p, lags)
            terms = K[:, :, None] * h * (self.C * self.B[i])  # (t, n, p)
            slopes[:, i] = (
                -2.0
                * self.gamma
                * np.einsum("tl,tljk->tjk", terms.sum(axis=2), differences, optimize=True)
            )
            slopes[:, i, i] -= (
                2.0 * self.output_gamma * np.einsum("tlj,tljk->tk", terms, delta, optimize=True)
            )
        return slopes

    def _between_rows(self, windows: Array) -> Array:
        flat = windows.reshape(len(windows), -1), self.windows.reshape(len(self.windows), -1)
        return np.asarray(rbf_kernel(*flat, gamma=self.gamma))

    def _between_variables(self, windows: Array, i: int) -> tuple[Array, Array]:
        """h(x_ti, x_lj), (t, n, p), and the differences x_ti - x_lj, (t, n, p, lags)."""
        delta = windows[:, i][:, None, None] - self.windows[None]
        return np.exp(-self.output_gamma * np.sum(delta**2, axis=3)), delta


def hadamard_gram(
    windows: Array, targets: Array, alpha: float, gamma: float, output_gamma: float
) -> HadamardGram:
    """The Gram matrix of B_ij exp(-gamma |x - z|^2) exp(-output_gamma |x_i - z_j|^2) on windows."""
    n, p, lags = windows.shape
    K = rbf_kernel(windows.reshape(n, p * lags), gamma=gamma)
    features = pivoted_features(windows.reshape(n * p, lags), output_gamma).reshape(n, p, -1)
    return HadamardGram(targets, alpha, np.asarray(K), features)


@refuse_overflow
def learn_hadamard(
    windows: Array,
    targets: Array,
    alpha: float,
    *,
    gamma: float,
    output_gamma: float,
    penalty: OutputPenalty,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> tuple[HadamardModel, Result]:
    """Learn B with a convex penalty, by the dual problem.

    Parameters
    ----------
    windows : ndarray of shape (n, p, lags)
    targets : ndarray of shape (n, p)
        The next steps; their means become the intercept.
    alpha, gamma, output_gamma : float
    penalty : OutputPenalty
        One with a smooth conjugate: neither the trace nor the clusters.
    max_iter : int, default=1000
    tol : float, default=1e-3
        The duality gap is at most tol^2 times the objective.

    Notes
    -----
    The objective y^T (G_B + alpha I)^-1 y / 2 + P(B) is convex, and B psd is enough for a kernel,
    since a Hadamard product of psd matrices is psd. Time n^2 p r for an evaluation, with r
    features.
    """
    mean = targets.mean(axis=0)
    gram = hadamard_gram(windows, targets - mean, alpha, gamma, output_gamma)
    p = len(mean)
    result = solve_convex(
        gram, penalty.build(p, p), np.eye(p)[None], solver="dual", max_iter=max_iter, tol=tol * tol
    )
    result = replace(result, intercept=mean)
    return HadamardModel(windows, result.C, result.L, mean, gamma, output_gamma), result


def pivoted_features(points: Array, gamma: float, error: float = FEATURE_ERROR) -> Array:
    """Features (n, r) with the products exp(-gamma |x - z|^2), by pivoted Cholesky.

    Time n r^2, with few r: the eigenvalues of a Gaussian kernel in few dimensions fall faster than
    any power.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> features = pivoted_features(x, 1.0)
    >>> features.shape[1] < 15
    True
    >>> bool(np.abs(features @ features.T - np.exp(-((x - x.T) ** 2))).max() < 1e-9)
    True
    """
    if gamma == 0.0:
        return np.ones((len(points), 1))
    left = np.ones(len(points))
    columns: list[Array] = []
    while len(columns) < len(points):
        pivot = int(np.argmax(left))
        if left[pivot] <= error:
            break
        column = np.exp(-gamma * np.sum((points - points[pivot]) ** 2, axis=1))
        if columns:
            done = np.stack(columns, axis=1)  # (n, r)
            column = column - done @ done[pivot]
        column = column / np.sqrt(left[pivot])
        columns.append(column)
        left = np.maximum(left - column**2, 0.0)
    return np.stack(columns, axis=1)
