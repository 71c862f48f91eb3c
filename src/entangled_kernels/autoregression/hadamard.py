"""Learning an output kernel that multiplies a kernel between variables, as nonlinear autoregression does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.pairwise import rbf_kernel

from ..convex import Solution, solve_convex
from ..convex.certificate import Preconditioner
from ..convex.conjugate_gradients import conjugate_gradients
from ..linalg import Array
from ..output_kernel import OutputPenalty

__all__ = ["HadamardGram", "HadamardModel", "hadamard_gram", "learn_hadamard", "pivoted_features"]

ROUGH = 1e-10
# What the features of the kernel between variables leave of its diagonal.
FEATURE_ERROR = 1e-10


@dataclass(frozen=True, eq=False)
class HadamardGram:
    """The Gram matrix of B_ij k(x, z) h(x_i, z_j), linear in B, a stack (1, p, p).

    Attributes
    ----------
    K : ndarray of shape (n, n)
        Gram matrix of k between rows.
    features : ndarray of shape (n, p, r)
        h(x_ti, x_lj) = sum_a features[t, i, a] features[l, j, a].
    targets : ndarray of shape (n, p)
    alpha : float
    constant : float

    Notes
    -----
    Entry ((t, i), (l, j)) is B_ij K_tl h(x_ti, x_lj): it takes n^2 p r + n p^2 r to apply, without a
    matrix of n p rows. The preconditioner has the mean of h over rows in the place of h, so that it is
    separable.
    """

    K: Array
    features: Array
    targets: Array
    alpha: float
    constant: float = 0.0

    def apply(self, L: Array, C: Array) -> Array:
        """G c."""
        n, p, r = self.features.shape
        weighted = np.einsum("lja,lj->laj", self.features, C)  # (n, r, p)
        images = self.K @ (weighted @ L[0]).reshape(n, r * p)  # (n, r p)
        return np.asarray(np.einsum("tia,tai->ti", self.features, images.reshape(n, r, p)))

    def squares(self, C: Array) -> Array:
        """S_ij = sum_tl c_ti c_lj K_tl h(x_ti, x_lj)."""
        n, p, r = self.features.shape
        weighted = np.einsum("lja,lj->laj", self.features, C)  # (n, r, p)
        images = (self.K @ weighted.reshape(n, r * p)).reshape(n * r, p)
        S = weighted.reshape(n * r, p).T @ images  # (p, p)
        return np.asarray(0.5 * (S + S.T))[None]

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients by conjugate gradients, and what these leave."""
        return conjugate_gradients(self, L, ROUGH)

    def preconditioner(self, L: Array) -> Preconditioner:
        """The inverse root of K kron (B h) + alpha I, with the mean of h; its rest goes to the ridge."""
        mean = self.features.mean(axis=0)  # (p, r)
        levels, V = eigh(L[0] * (mean @ mean.T))
        values, U = eigh(self.K)
        size = float(np.mean(np.diag(L[0]) * (1.0 - np.sum(mean**2, axis=1))))
        ridge = self.alpha + max(size, 0.0)
        scale = 1.0 / np.sqrt(np.outer(np.maximum(values, 0.0), np.maximum(levels, 0.0)) + ridge)
        return Preconditioner(
            lambda X: np.asarray(U @ (X * scale) @ V.T),
            lambda C: np.asarray((U.T @ C @ V) / scale),
            lambda C: np.asarray((U.T @ C @ V) * scale),
        )

    def curvature(self, L: Array, C: Array) -> Array:
        """None that is cheap."""
        return np.zeros_like(L)


@dataclass(frozen=True, eq=False)
class HadamardModel:
    """h_i(x) = sum_lj B_ij exp(-gamma |x - x_l|^2) exp(-output_gamma |x_i - x_lj|^2) C_lj + intercept_i.

    Attributes
    ----------
    windows : ndarray of shape (n, p, lags)
        Training windows.
    C : ndarray of shape (n, p)
    B : ndarray of shape (p, p)
    intercept : ndarray of shape (p,)
    gamma, output_gamma : float
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

        With M_til = sum_j B_ij k(x_t, x_l) h(x_ti, x_lj) C_lj those by any variable are -2 gamma sum_l
        M_til (x_tj - x_lj); target i's own variable adds the derivative of h. Time t n p^2 lags.
        """
        t, p, lags = windows.shape
        K = self._between_rows(windows)
        slopes = np.empty((t, p, p, lags))
        apart = windows[:, None] - self.windows[None]  # (t, n, p, lags)
        for i in range(p):
            h, own = self._between_variables(windows, i)  # (t, n, p), (t, n, p, lags)
            terms = K[:, :, None] * h * (self.C * self.B[i])  # (t, n, p)
            slopes[:, i] = (
                -2.0 * self.gamma * np.einsum("tl,tljk->tjk", terms.sum(axis=2), apart, optimize=True)
            )
            slopes[:, i, i] -= 2.0 * self.output_gamma * np.einsum("tlj,tljk->tk", terms, own, optimize=True)
        return slopes

    def _between_rows(self, windows: Array) -> Array:
        flat = windows.reshape(len(windows), -1), self.windows.reshape(len(self.windows), -1)
        return np.asarray(rbf_kernel(*flat, gamma=self.gamma))

    def _between_variables(self, windows: Array, i: int) -> tuple[Array, Array]:
        """h(x_ti, x_lj), (t, n, p), and the differences it is of, (t, n, p, lags)."""
        delta = windows[:, i][:, None, None] - self.windows[None]
        return np.exp(-self.output_gamma * np.sum(delta**2, axis=3)), delta


def hadamard_gram(
    windows: Array, targets: Array, alpha: float, gamma: float, output_gamma: float
) -> HadamardGram:
    """The Gram matrix of B_ij exp(-gamma |x - z|^2) exp(-output_gamma |x_i - z_j|^2) on rows.

    Parameters
    ----------
    windows : ndarray of shape (n, p, lags)
        What is known of every variable in every row.
    targets : ndarray of shape (n, p)
    alpha, gamma, output_gamma : float
    """
    n, p, lags = windows.shape
    K = rbf_kernel(windows.reshape(n, p * lags), gamma=gamma)
    features = pivoted_features(windows.reshape(n * p, lags), output_gamma).reshape(n, p, -1)
    return HadamardGram(np.asarray(K), features, targets, alpha)


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
) -> tuple[HadamardModel, Solution]:
    """Learn B with a convex penalty, by the dual problem.

    Parameters
    ----------
    windows : ndarray of shape (n, p, lags)
    targets : ndarray of shape (n, p)
        The next steps; their means become the intercept.
    alpha, gamma, output_gamma : float
    penalty : OutputPenalty
        Any with a smooth conjugate: not the trace, and not the clusters.
    max_iter : int, default=1000
    tol : float, default=1e-3
        The duality gap is at most tol^2 times the objective.

    Notes
    -----
    The objective y^T (G_B + alpha I)^-1 y / 2 + P(B) is convex, and B psd is enough for a kernel, since a
    Hadamard product of psd matrices is psd. Time n^2 p r for an evaluation, with r features.
    """
    mean = targets.mean(axis=0)
    gram = hadamard_gram(windows, targets - mean, alpha, gamma, output_gamma)
    p = len(mean)
    built = penalty.build(p, p)
    solution = solve_convex(gram, built, np.eye(p)[None], solver="dual", max_iter=max_iter, tol=tol**2)
    point = solution.point
    return HadamardModel(windows, point.C, point.L[0], mean, gamma, output_gamma), solution


def pivoted_features(points: Array, gamma: float, error: float = FEATURE_ERROR) -> Array:
    """Features (n, r) whose products are exp(-gamma |x - z|^2) on these points, by pivoted Cholesky.

    Time n r^2, with few r: the eigenvalues of a Gaussian kernel in few dimensions fall faster than any power.

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
