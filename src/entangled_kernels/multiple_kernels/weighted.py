"""The Gram matrix of a weighted sum of scalar kernels, with a given kernel between outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular

from ..convex.certificate import Preconditioner
from ..linalg import Array

__all__ = ["WeightedGram"]


@dataclass(frozen=True, eq=False)
class WeightedGram:
    """(sum_j d_j K_j) kron diag(levels), linear in the weights d, a stack (m, 1, 1).

    Attributes
    ----------
    kernels : ndarray of shape (m, n, n)
        Gram matrices K_j.
    targets : ndarray of shape (n, p)
        Targets, with the outputs in the eigenbasis of their kernel.
    alpha : float
    levels : ndarray of shape (p,)
        Eigenvalues of the kernel between outputs.
    constant : float

    Notes
    -----
    Time n^3 / 3 for a Cholesky factor where all levels are alike, about ten times that for an
    eigendecomposition where they are not, and m n^2 + n^2 p for the squares. The last weights that were
    solved for are kept with what came of them, since a certificate asks for those that a search ended with.
    """

    kernels: Array
    targets: Array
    alpha: float
    levels: Array
    constant: float = 0.0
    _alike: bool = field(init=False)
    _last: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        alike = bool(np.ptp(self.levels) <= 1e-14 * np.abs(self.levels).max(initial=0.0))
        object.__setattr__(self, "_alike", alike)

    def images(self, C: Array) -> Array:
        """K_j C, (m, n, p)."""
        m, n, _ = self.kernels.shape
        return np.asarray(self.kernels.reshape(m * n, n) @ C).reshape(m, n, -1)  # (m n, p) -> (m, n, p)

    def apply(self, L: Array, C: Array) -> Array:
        """sum_j d_j K_j C diag(levels)."""
        return np.asarray(self.combine(L) @ (C * self.levels))

    def squares(self, C: Array) -> Array:
        """s_j = tr(C^T K_j C diag(levels)), as <K_j, C diag(levels) C^T>: one pass over the Gram matrices."""
        if C is self._last.get("C") and "S" in self._last:
            return np.asarray(self._last["S"])
        m, n, _ = self.kernels.shape
        outer = C @ (C * self.levels).T  # (n, n)
        S = np.asarray(self.kernels.reshape(m, n * n) @ outer.reshape(n * n))[:, None, None]
        if C is self._last.get("C"):
            self._last["S"] = S
        return S

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients of the ridge system; nothing is left."""
        if np.array_equal(L, self._last.get("L", ())):
            return self._last["C"], 0.0
        K = self.combine(L)
        if self._alike:
            factor = self._factor(K)
            C = np.asarray(cho_solve(factor, self.targets, check_finite=False))
            self._keep(L=L.copy(), C=C, factor=factor)
            return C, 0.0
        values, U = eigh(K, check_finite=False)
        inside = (U.T @ self.targets) / (np.outer(np.maximum(values, 0.0), self.levels) + self.alpha)
        C = np.asarray(U @ inside)
        self._keep(L=L.copy(), C=C)
        return C, 0.0

    def preconditioner(self, L: Array) -> Preconditioner:
        """Coefficients in the eigenbasis of sum_j d_j K_j, over the roots of the eigenvalues."""
        values, U = eigh(self.combine(L))
        scale = 1.0 / np.sqrt(np.outer(np.maximum(values, 0.0), self.levels) + self.alpha)  # (n, p)
        return Preconditioner(
            lambda X: np.asarray(U @ (X * scale)),
            lambda C: np.asarray((U.T @ C) / scale),
            lambda C: np.asarray((U.T @ C) * scale),
        )

    def curvature(self, L: Array, C: Array) -> Array:
        """Hessian by weights, (m, m): tr(F_j^T (G + alpha I)^-1 F_l) with F_j = K_j C diag(levels)."""
        F = self.images(C * self.levels)  # (m, n, p)
        m, n, p = F.shape
        columns = F.transpose(1, 0, 2).reshape(n, m * p)  # (n, m p)
        if self._alike:
            self.solve(L)
            lower = np.tril(self._last["factor"][0])
            half = solve_triangular(lower, columns, lower=True, check_finite=False)
        else:
            values, U = eigh(self.combine(L))
            scale = 1.0 / np.sqrt(np.outer(np.maximum(values, 0.0), self.levels) + self.alpha)  # (n, p)
            half = (U.T @ columns) * np.tile(scale, m)
        parts = half.reshape(n, m, p).transpose(1, 0, 2).reshape(m, n * p)  # (m, n p)
        return np.asarray(parts @ parts.T)

    def combine(self, L: Array) -> Array:
        """sum_j d_j K_j, (n, n)."""
        m, n, _ = self.kernels.shape
        return np.asarray(L.reshape(m) @ self.kernels.reshape(m, n * n)).reshape(n, n)  # (n n,) -> (n, n)

    def _keep(self, **found: Any) -> None:
        self._last.clear()
        self._last.update(found)

    def _factor(self, K: Array) -> tuple[Array, bool]:
        system = K * self.levels[0]
        system[np.diag_indices(len(K))] += self.alpha
        factor: tuple[Array, bool] = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return factor
