"""Ridge systems without structure: the block Gram matrix is formed."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, BlockOperator
from .kronecker import krein_inverse
from .shifted import ShiftedSystem, cholesky_limit

__all__ = ["DenseFactor", "DenseSpectrum"]


def _diagonal_blocks(A: Array, p: int) -> Array:
    n = len(A) // p
    return np.array(np.einsum("iaib->iab", A.reshape(n, p, n, p)))


class DenseFactor:
    """Solves with G + alpha I by Cholesky; several alphas share one tridiagonal reduction.

    Notes
    -----
    Time O(n^3 p^3), memory O(n^2 p^2).
    """

    def __init__(self, operator: BlockOperator) -> None:
        self.system = ShiftedSystem(np.ascontiguousarray(operator.to_dense(), dtype=np.float64))
        self.n_outputs = operator.n_outputs
        self._alphas: set[float] = set()

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        self._alphas.add(alpha)
        if len(self._alphas) > cholesky_limit(len(self.system.A)):
            self.system.reduce()
        B = R.reshape(-1, R.shape[2])
        return self.system.solve(np.full(B.shape[1], alpha), B).reshape(R.shape)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p)."""
        size = len(self.system.A)
        return _diagonal_blocks(self.system.solve(np.full(size, alpha), np.eye(size)), self.n_outputs)


class DenseSpectrum:
    """Solves the stabilised problem of an indefinite G from its eigendecomposition.

    min ||y - G c||^2 + alpha c^T |G| c, where |G| has the absolute eigenvalues of G: the penalty is the norm
    of the Hilbert space associated with the Krein space. Each eigenvalue s gives sign(s) / (|s| + alpha).
    """

    def __init__(self, operator: BlockOperator) -> None:
        self.s, self.E = np.linalg.eigh(operator.to_dense())
        self.n_outputs = operator.n_outputs

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        F = self.E.T @ R.reshape(-1, R.shape[2])
        return np.reshape(self.E @ (F * krein_inverse(self.s, alpha)[:, None]), R.shape)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the stabilised inverse, shape (n, p, p)."""
        return _diagonal_blocks((self.E * krein_inverse(self.s, alpha)) @ self.E.T, self.n_outputs)
