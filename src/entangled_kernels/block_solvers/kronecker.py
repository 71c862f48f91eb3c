"""Ridge systems (kron(K, T) + alpha I) c = y of separable kernels, without the n*p x n*p matrix.

With T = V diag(t) V^T the outputs decouple: column j of the rotated problem solves
(t_j K + alpha I) x = r_j, or (K + (alpha / t_j) I) x = r_j / t_j. Right-hand sides have shape (n, p, c).
"""

from __future__ import annotations

import numpy as np

from ..linalg import Array, KroneckerOperator, LowRankKroneckerOperator, multiple_of_identity
from ..linalg.structured_operators import mix_outputs
from .shifted import ShiftedSystem, cholesky_limit

__all__ = ["KroneckerFactor", "KroneckerSpectrum", "LowRankKroneckerFactor", "krein_inverse"]


class _OutputBasis:
    """Eigenbasis of T, with eigenvalues t in increasing order; free of charge when T = c I."""

    def __init__(self, T: Array) -> None:
        c = multiple_of_identity(T)
        self.V: Array | None = None
        if c is not None:
            self.t = np.full(len(T), float(c))
            return
        self.t, self.V = np.linalg.eigh(T)
        scale = np.abs(self.t).max(initial=0.0)
        self.t[np.abs(self.t) <= 1e-14 * scale] = 0.0
        # Eigenvalues that agree to rounding are made equal, so that they share a factorisation.
        starts = np.concatenate([[True], np.diff(self.t) > 1e-13 * scale])
        self.t = self.t[starts][np.cumsum(starts) - 1]

    def enter(self, R: Array) -> Array:
        """Apply V^T to the output axis of R (n, p, c)."""
        return R if self.V is None else mix_outputs(self.V.T, R)

    def leave(self, R: Array) -> Array:
        """Apply V to the output axis of R (n, p, c)."""
        return R if self.V is None else mix_outputs(self.V, R)

    def diagonals(self, w: Array) -> Array:
        """Blocks V diag(w_i) V^T for w (n, p), shape (n, p, p)."""
        V = np.eye(len(self.t)) if self.V is None else self.V
        return np.asarray((V * w[:, None, :]) @ V.T)


class KroneckerFactor:
    """Solves with kron(K, T) + alpha I for a psd Kronecker product.

    Notes
    -----
    Time O(n^3 + p^3), memory O(n^2): equal eigenvalues of T share a Cholesky factorisation of
    K + (alpha / t) I, and more than `cholesky_limit` distinct ones, or alphas, share one tridiagonal
    reduction of K.
    """

    def __init__(self, operator: KroneckerOperator) -> None:
        self.basis = _OutputBasis(operator.output)
        self.operator = operator
        self.system = ShiftedSystem(operator.gram)
        self._n_solved = 0
        self._spectrum: KroneckerSpectrum | None = None

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        n, _, c = R.shape
        t = self.basis.t
        nonzero = t != 0
        self._n_solved += len(np.unique(t[nonzero]))
        if self._n_solved > cholesky_limit(n):
            self.system.reduce()
        rotated = self.basis.enter(R)
        out = rotated / alpha  # what a zero eigenvalue leaves
        if nonzero.any():
            part = (rotated[:, nonzero] / t[nonzero, None]).reshape(n, -1)
            out[:, nonzero] = self.system.solve(np.repeat(alpha / t[nonzero], c), part).reshape(n, -1, c)
        return self.basis.leave(out)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p); one eigendecomposition of K."""
        if self._spectrum is None:
            self._spectrum = KroneckerSpectrum(self.operator)
        return self._spectrum.inverse_diagonal_blocks(alpha)


def krein_inverse(s: Array, alpha: float) -> Array:
    """Values sign(s) / (|s| + alpha), where eigenvalues that are zero up to rounding count as positive.

    Examples
    --------
    >>> krein_inverse(np.array([-1.0, -1e-17, 1.0]), alpha=1.0)
    array([-0.5,  1. ,  0.5])
    """
    negative = s < -1e-12 * np.abs(s).max(initial=0.0)
    return np.where(negative, -1.0, 1.0) / (np.abs(s) + alpha)


class KroneckerSpectrum:
    """Solves with kron(K, T) + alpha I from the eigendecompositions of both factors.

    With ``krein=True`` it solves the stabilised problem min ||y - G c||^2 + alpha c^T |G| c of an indefinite
    G, whose solution replaces 1 / (s + alpha) by sign(s) / (|s| + alpha) for each eigenvalue s of G.
    """

    def __init__(self, operator: KroneckerOperator, krein: bool = False) -> None:
        self.basis = _OutputBasis(operator.output)
        self.k, self.E = np.linalg.eigh(operator.gram)
        self.krein = krein

    def _inverse(self, alpha: float) -> Array:
        s = np.multiply.outer(self.k, self.basis.t)  # (n, p)
        return np.asarray(krein_inverse(s, alpha) if self.krein else 1.0 / (s + alpha))

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        n, p, c = R.shape
        F = (self.E.T @ self.basis.enter(R).reshape(n, p * c)).reshape(n, p, c)
        F *= self._inverse(alpha)[:, :, None]
        return self.basis.leave((self.E @ F.reshape(n, p * c)).reshape(n, p, c))

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p)."""
        return self.basis.diagonals(self.E**2 @ self._inverse(alpha))


class LowRankKroneckerFactor:
    """Solves with kron(Phi Phi^T, T) + alpha I by the m x m matrix Phi^T Phi.

    Notes
    -----
    With Phi^T Phi = E diag(s) E^T and F = Phi E, the rotated column j solves by Woodbury's identity
    x = (r - F diag(t_j / (t_j s + alpha)) F^T r) / alpha. Time O(m^3 + m^2 n + p^3), and every further alpha
    costs O(n m p).
    """

    def __init__(self, operator: LowRankKroneckerOperator) -> None:
        self.basis = _OutputBasis(operator.output)
        s, E = np.linalg.eigh(operator.Phi.T @ operator.Phi)
        self.s = np.clip(s, 0.0, None)
        self.F = operator.Phi @ E  # (n, m)

    def _weights(self, alpha: float) -> Array:
        return np.asarray(self.basis.t / (np.multiply.outer(self.s, self.basis.t) + alpha))  # (m, p)

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        n, p, c = R.shape
        rotated = self.basis.enter(R)
        H = (self.F.T @ rotated.reshape(n, p * c)).reshape(-1, p, c) * self._weights(alpha)[:, :, None]
        return self.basis.leave((rotated - (self.F @ H.reshape(-1, p * c)).reshape(n, p, c)) / alpha)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p)."""
        return self.basis.diagonals((1.0 - self.F**2 @ self._weights(alpha)) / alpha)
