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
    where M = diag(scale) kron I and D = (identity * I + L L^T) kron I + Q Q^T is the kernel.

    Parameters
    ----------
    problem : Problem
    kernel : LearnedKernel

    Notes
    -----
    In whitened coordinates, Dw = M^1/2 D M^1/2 and b = M^-1/2 vec(B), the dual coefficients are
    (Dw + alpha I)^-1 b and Theta = D M^1/2 dual. Here Dw is a diagonal, plus (Lw Lw^T) kron I, plus X X^T
    with X = Qw; with Delta the inverse of the shifted diagonal, each low-rank part is one step of

        (Delta^-1 + Z Z^T)^-1 = Delta - Delta Z (I + Z^T Delta Z)^-1 Z^T Delta

    and the inner products Lw^T dual and X^T dual, which are all that Theta needs of dual beside the
    diagonal, come out of it without cancellation. An alpha costs m' l^2 + m' k r^2 and less.

    When L has more than half as many columns as rows, the eigenvectors U of the metric, in the whitened
    coordinates, make it part of the diagonal instead. When Q has, the eigenvectors of all of Dw do, which
    by then has no more entries than Q; one eigendecomposition then serves all alphas.
    """

    def __init__(self, problem: Problem, kernel: LearnedKernel) -> None:
        self.problem, self.kernel = problem, kernel
        m, k = problem.targets.shape
        self.root = np.sqrt(problem.scale)
        self.levels = kernel.identity * problem.scale
        self.Lw = self.root[:, None] * kernel.L
        self.U: Array | None = None
        if 2 * self.Lw.shape[1] > m:
            levels, self.U = eigh(np.diag(self.levels) + self.Lw @ self.Lw.T)
            self.levels, self.Lw = np.maximum(levels, 0.0), self.Lw[:, :0]
        self.X = self.rotate_in(problem.whiten(kernel.Q))  # (m', k, r)
        self.b = self.rotate_in(problem.targets / self.root[:, None])  # (m', k)
        self._eigen: tuple[Array, Array] | None = None
        if 2 * self.X.shape[2] >= m * k > 0:
            X_tall = self.X.reshape(m * k, -1)
            metric = np.diag(self.levels) + self.Lw @ self.Lw.T
            self._eigen = eigh(np.kron(metric, np.eye(k)) + X_tall @ X_tall.T)

    def coefficients(self, alphas: ArrayLike) -> Array:
        """Coefficients of every alpha, (number of alphas, m', k) in reduced coordinates."""
        alphas = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        return np.stack([self._coefficients(float(alpha)) for alpha in alphas])

    def _coefficients(self, alpha: float) -> Array:
        if self._eigen is not None:
            values, vectors = self._eigen
            shrunk = (vectors.T @ self.b.reshape(-1)) / (np.maximum(values, 0.0) + alpha)
            dual = (vectors @ shrunk).reshape(self.b.shape)
            along_L = self.Lw.T @ dual
            along_Q = np.tensordot(self.X, dual, axes=((0, 1), (0, 1)))  # (r,)
        else:
            along_Q = self._along_operators(alpha)
            dual, along_L = self.solve_metric(alpha, self.b - self.X @ along_Q)
        plain = self.root[:, None] * self.rotate_back(dual)
        if self.U is not None:
            along_L = self.kernel.L.T @ plain
        return np.asarray(self.kernel.identity * plain + self.kernel.L @ along_L + self.kernel.Q @ along_Q)

    def solve_metric(self, alpha: float, rhs: Array) -> tuple[Array, Array]:
        """(Aw + alpha I)^-1 rhs and Lw^T times that, for rhs (m', columns) and Aw the metric's part of Dw."""
        delta = 1.0 / (self.levels + alpha)[:, None]
        scaled = delta * rhs
        if self.Lw.shape[1] == 0:
            return scaled, np.zeros((0, rhs.shape[1]))
        inner = self.Lw.T @ (delta * self.Lw)
        inner[np.diag_indices_from(inner)] += 1.0
        along = cho_solve(cho_factor(inner, lower=True), self.Lw.T @ scaled)  # (l, columns)
        return scaled - delta * (self.Lw @ along), along

    def inner(self, alpha: float) -> tuple[Array, Array]:
        """P = I + X^T (Aw + alpha I)^-1 X (r, r), and (Aw + alpha I)^-1 X (m', k, r)."""
        m, k, r = self.X.shape
        solved = self.solve_metric(alpha, self.X.reshape(m, k * r))[0].reshape(m, k, r)
        P = np.tensordot(self.X, solved, axes=((0, 1), (0, 1)))
        P[np.diag_indices(r)] += 1.0
        return P, solved

    def _along_operators(self, alpha: float) -> Array:
        """X^T dual, (r,)."""
        if self.X.shape[2] == 0:
            return np.zeros(0)
        P, solved = self.inner(alpha)
        target = np.tensordot(solved, self.b, axes=((0, 1), (0, 1)))
        return np.asarray(cho_solve(cho_factor(P, lower=True), target))

    def rotate_in(self, array: Array) -> Array:
        """From whitened coordinates to the basis U, along the first axis."""
        return array if self.U is None else np.tensordot(self.U.T, array, axes=1)

    def rotate_back(self, array: Array) -> Array:
        """From the basis U back to the whitened coordinates, along the first axis."""
        return array if self.U is None else np.tensordot(self.U, array, axes=1)
