"""Ridge regression with a learned kernel: one factorisation, coefficients for every alpha."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, qr, svd

from ..linalg import Array
from .kernel import LearnedKernel
from .problem import Problem

__all__ = ["KernelRidgeFactor", "Spectral"]

# Alphas are solved together in chunks of this many numbers.
_CHUNK_NUMBERS = 2**22
_ROUNDING = 1e-13


class Spectral(NamedTuple):
    """Coefficients of many alphas that differ in two gains for each axis of the features.

    Those of alpha a are ``back @ (gains[a][:, None] * targets + operator_gains[a][:, None] * operator)``. A
    vector ``back`` is the diagonal of a matrix, and without an operator there are no gains of it. Forms of
    several kernels may be stacked along first axes.
    """

    back: Array
    gains: Array
    operator_gains: Array
    targets: Array
    operator: Array


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
    coordinates, make it part of the diagonal instead; so they do without an identity part, where the steps
    for L and for Q, which may span the same space, would cancel for small alpha. Then Theta is
    M^-1/2 U (levels * dual), plus Q's part, since the dual coefficients alone are large where levels are
    small. When Q has that many columns, the eigenvectors of all of Dw are used, which by then has no more
    entries than Q; one eigendecomposition then serves all alphas.
    """

    def __init__(self, problem: Problem, kernel: LearnedKernel) -> None:
        self.problem, self.kernel = problem, kernel
        m, k = problem.targets.shape
        self.root = np.sqrt(problem.scale)
        self.levels = kernel.identity * problem.scale
        self.Lw = self.root[:, None] * kernel.L
        self.U: Array | None = None
        columns = self.Lw.shape[1]
        if kernel.identity == 0.0 and columns > 0:
            self.U, triangle = qr(self.Lw)
            turn, roots, _ = svd(triangle[:columns], full_matrices=False)
            rank = len(roots)
            self.U[:, :rank] = self.U[:, :rank] @ turn
            self.levels = np.concatenate([roots**2, np.zeros(m - rank)])
            self.Lw = self.Lw[:, :0]
        elif 2 * columns > m:
            levels, self.U = eigh(np.diag(self.levels) + self.Lw @ self.Lw.T)
            self.levels, self.Lw = np.maximum(levels, 0.0), self.Lw[:, :0]
        self.X = self.rotate_in(problem.whiten(kernel.Q))  # (m', k, r)
        outside = self.X[self.levels == 0.0]
        # Where Q lies in the span of L, what is left outside is rounding, which a small alpha would blow up.
        if self.U is not None and np.linalg.norm(outside) <= _ROUNDING * np.linalg.norm(self.X):
            self.X[self.levels == 0.0] = 0.0
        self.b = self.rotate_in(problem.targets / self.root[:, None])  # (m', k)
        self._eigen: tuple[Array, Array] | None = None
        if 2 * self.X.shape[2] >= m * k > 0:
            X_tall = self.X.reshape(m * k, -1)
            metric = np.diag(self.levels) + self.Lw @ self.Lw.T
            self._eigen = eigh(np.kron(metric, np.eye(k)) + X_tall @ X_tall.T)

    def coefficients(self, alphas: ArrayLike) -> Array:
        """Coefficients of every alpha, (number of alphas, m', k) in reduced coordinates."""
        alphas = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        m, k, r = self.X.shape
        step = max(1, _CHUNK_NUMBERS // max(1, m * k * max(1, r)))
        return np.concatenate([self._coefficients(alphas[i : i + step]) for i in range(0, len(alphas), step)])

    def spectral(self, alphas: Array) -> Spectral | None:
        """The coefficients of all alphas in the form of `Spectral`, where there is one."""
        r = self.X.shape[2]
        if self._eigen is not None or self.Lw.shape[1] > 0 or r > 1:
            return None
        back = 1.0 / self.root if self.U is None else self.U / self.root[:, None]
        gains = self.levels / (self.levels + alphas[:, None])
        if r == 0:
            return Spectral(back, gains, gains[:, :0], self.b, self.b[:0])
        along = self._along_operators(alphas)  # (a, 1)
        return Spectral(
            back, gains, along * alphas[:, None] / (self.levels + alphas[:, None]), self.b, self.X[..., 0]
        )

    def _coefficients(self, alphas: Array) -> Array:
        m, k, r = self.X.shape
        X_tall, Q_tall = self.X.reshape(m * k, r), self.kernel.Q.reshape(m * k, r)
        shape = (len(alphas), m, k)
        if self._eigen is not None:
            values, vectors = self._eigen
            shrunk = (self.b.reshape(-1) @ vectors) / (np.maximum(values, 0.0) + alphas[:, None])
            dual = (shrunk @ vectors.T).reshape(shape)
            along_L = self.Lw.T @ dual
            along_Q = dual.reshape(len(alphas), m * k) @ X_tall  # (a, r)
        else:
            along_Q = self._along_operators(alphas)
            dual, along_L = self.solve_metric(alphas, self.b - (along_Q @ X_tall.T).reshape(shape))
        if self.U is None:
            coef = self.kernel.identity * (self.root[:, None] * dual) + self.kernel.L @ along_L
        else:
            # Not by way of the dual coefficients alone, which are large where levels are small.
            coef = self.U @ (self.levels[:, None] * dual) / self.root[:, None]
        return np.asarray(coef + (along_Q @ Q_tall.T).reshape(shape))

    def solve_metric(self, alphas: Array, rhs: Array) -> tuple[Array, Array]:
        """(Aw + alpha I)^-1 rhs and Lw^T times that, for each alpha; Aw is the metric's part of Dw.

        ``rhs`` is (m', columns) or (a, m', columns), the results are (a, m', columns) and (a, l, columns).
        """
        delta = 1.0 / (self.levels + alphas[:, None])[:, :, None]  # (a, m', 1)
        scaled = delta * rhs
        if self.Lw.shape[1] == 0:
            return scaled, np.zeros((len(alphas), 0, scaled.shape[2]))
        inner = self.Lw.T @ (delta * self.Lw)  # (a, l, l)
        inner += np.eye(self.Lw.shape[1])
        along = np.linalg.solve(inner, self.Lw.T @ scaled)
        return scaled - delta * (self.Lw @ along), np.asarray(along, dtype=np.float64)

    def inner(self, alphas: Array) -> tuple[Array, Array]:
        """P = I + X^T (Aw + alpha I)^-1 X, (a, r, r), and (Aw + alpha I)^-1 X, (a, m' * k, r)."""
        m, k, r = self.X.shape
        solved = self.solve_metric(alphas, self.X.reshape(m, k * r))[0].reshape(len(alphas), m * k, r)
        return self.X.reshape(m * k, r).T @ solved + np.eye(r), solved

    def _along_operators(self, alphas: Array) -> Array:
        """X^T dual, (a, r)."""
        if self.X.shape[2] == 0:
            return np.zeros((len(alphas), 0))
        P, solved = self.inner(alphas)
        target = self.b.reshape(-1) @ solved  # (a, r)
        return np.asarray(np.linalg.solve(P, target[:, :, None])[:, :, 0])

    def rotate_in(self, array: Array) -> Array:
        """From whitened coordinates to the basis U, along the first axis."""
        return array if self.U is None else np.tensordot(self.U.T, array, axes=1)
