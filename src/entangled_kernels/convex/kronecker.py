"""The Gram matrix of a separable kernel k(x, z) L, in the eigenbasis of the Gram matrix of k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array
from .certificate import Preconditioner

__all__ = ["KroneckerGram"]


@dataclass(frozen=True, eq=False)
class KroneckerGram:
    """K kron L for one L, a stack (1, k, k), with the rows rotated so that K is diagonal.

    Attributes
    ----------
    values : ndarray of shape (q,)
        Positive eigenvalues of K.
    targets : ndarray of shape (q, k)
        Targets in the eigenbasis.
    alpha : float
    constant : float

    Notes
    -----
    With L = V diag(levels) V^T the ridge system is diagonal: entry (i, j) of C V is that of targets V over
    values_i levels_j + alpha. All methods take q k^2 + k^3.
    """

    values: Array
    targets: Array
    alpha: float
    constant: float = 0.0

    def apply(self, L: Array, C: Array) -> Array:
        """K C L."""
        return np.asarray(self.values[:, None] * (C @ L[0]))

    def squares(self, C: Array) -> Array:
        """C^T K C."""
        root = np.sqrt(self.values)[:, None] * C
        return np.asarray(root.T @ root)[None]

    def solve(self, L: Array) -> tuple[Array, float]:
        """C with K C L + alpha C = targets; nothing is left."""
        levels, V = self._eigen(L)
        return ((self.targets @ V) / self._diagonal(levels)) @ V.T, 0.0

    def preconditioner(self, L: Array) -> Preconditioner:
        """C = (X / sqrt(values_i levels_j + alpha)) V^T."""
        levels, V = self._eigen(L)
        scale = 1.0 / np.sqrt(self._diagonal(levels))  # (q, k)
        return Preconditioner(
            lambda X: np.asarray((X * scale) @ V.T),
            lambda C: np.asarray((C @ V) / scale),
            lambda C: np.asarray((C @ V) * scale),
        )

    def curvature(self, L: Array, C: Array) -> Array:
        """Diagonal of the Hessian: (A_jk + A_kj) / 2 with A_jk = sum_i F_ik^2 / (values_i levels_j + alpha).

        F = K C V. `entangled_kernels.output_kernel.learn_output_kernel` derives it.
        """
        levels, V = self._eigen(L)
        F = self.values[:, None] * (C @ V)  # (q, k)
        A = (1.0 / self._diagonal(levels)).T @ F**2  # (k, k)
        return np.asarray(0.5 * (A + A.T))[None]

    def _eigen(self, L: Array) -> tuple[Array, Array]:
        levels, V = np.linalg.eigh(L[0])
        return np.maximum(levels, 0.0), V

    def _diagonal(self, levels: Array) -> Array:
        return np.asarray(np.outer(self.values, levels) + self.alpha)
