"""Ridge regression with a learned kernel: one factorisation, coefficients for every alpha."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from .learned import LearnedKernel
from .reduction import Problem

__all__ = ["KernelRidgeFactor"]

Array = NDArray[np.float64]


class KernelRidgeFactor:
    """One factorisation of a ridge problem, serving every alpha.

    Finds the coefficients Theta = D (M D + alpha I)^-1 vec(B) of the linear model f(x) = Theta^T phi(x),
    where M = diag(scale) kron I and D = A kron I + Q Q^T is the kernel.

    Parameters
    ----------
    problem : Problem
    kernel : LearnedKernel

    Notes
    -----
    In whitened coordinates, Dw = M^1/2 D M^1/2 and bw = M^-1/2 vec(B), the dual coefficients are
    (Dw + alpha I)^-1 bw and Theta = D M^1/2 dual. With Aw = U diag(levels) U^T and X = U^T Qw,

        (diag(levels) kron I + alpha I + X X^T)^-1 = Delta - Delta X P^-1 X^T Delta,
        Delta = 1 / (levels + alpha),   P = I + X^T Delta X  (r, r)

    so an alpha costs m' k r^2 + r^3. When r is at least half of m' k that is more than the eigenvalues of
    Dw, which has no more entries than Q by then; these serve all alphas instead.
    """

    def __init__(self, problem: Problem, kernel: LearnedKernel) -> None:
        self.problem, self.kernel = problem, kernel
        self.root = np.sqrt(problem.scale)
        metric = kernel.total_metric()
        m, k = problem.targets.shape
        whitened_targets = problem.targets / self.root[:, None]
        if kernel.metric is not None:
            assert metric is not None
            self.levels, self.U = eigh(self.root[:, None] * metric * self.root)
            self.levels = np.maximum(self.levels, 0.0)
        else:
            self.levels, self.U = kernel.identity * problem.scale, np.eye(m)
        self.X = np.tensordot(self.U.T, problem.whiten(kernel.Q), axes=1)  # (m', k, r)
        self.b = self.U.T @ whitened_targets  # (m', k)
        self._eigen: tuple[Array, Array] | None = None
        if 2 * self.X.shape[2] >= m * k > 0:
            X_tall = self.X.reshape(m * k, -1)
            self._eigen = eigh(np.diag(np.repeat(self.levels, k)) + X_tall @ X_tall.T)

    def coefficients(self, alphas: ArrayLike) -> Array:
        """Coefficients of every alpha, (number of alphas, m', k) in reduced coordinates."""
        alphas = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        return np.stack([self._apply_kernel(self._dual(float(alpha))) for alpha in alphas])

    def _dual(self, alpha: float) -> Array:
        """(Dw + alpha I)^-1 bw in the basis U, (m', k)."""
        if self._eigen is not None:
            values, vectors = self._eigen
            shrunk = (vectors.T @ self.b.reshape(-1)) / (np.maximum(values, 0.0) + alpha)
            return np.asarray(vectors @ shrunk).reshape(self.b.shape)
        delta = 1.0 / (self.levels + alpha)[:, None]
        if self.X.shape[2] == 0:
            return np.asarray(delta * self.b)
        factor = cho_factor(self.inner(alpha), lower=True)
        z = cho_solve(factor, np.tensordot(self.X, delta * self.b, axes=((0, 1), (0, 1))))  # (r,)
        return np.asarray(delta * (self.b - self.X @ z))

    def inner(self, alpha: float) -> Array:
        """P = I + X^T Delta X, (r, r)."""
        m, k, r = self.X.shape
        weighted = (self.X / np.sqrt(self.levels + alpha)[:, None, None]).reshape(m * k, r)
        P: Array = weighted.T @ weighted
        P[np.diag_indices(r)] += 1.0
        return P

    def _apply_kernel(self, dual: Array) -> Array:
        """D M^1/2 dual, (m', k)."""
        primal = self.root[:, None] * (self.U @ dual)
        coef = self.kernel.identity * primal
        if self.kernel.metric is not None:
            coef = coef + self.kernel.metric @ primal
        projected = np.tensordot(self.X, dual, axes=((0, 1), (0, 1)))  # (r,)
        return np.asarray(coef + self.kernel.Q @ projected)
