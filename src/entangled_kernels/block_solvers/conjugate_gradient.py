"""Preconditioned conjugate gradients on a lazy block operator, all right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array, BlockOperator, KroneckerOperator, SumOfKroneckersOperator
from .kronecker import KroneckerSpectrum

__all__ = [
    "ConjugateGradientFactor",
    "NystroemPreconditioner",
    "inverse_blocks_by_solving",
    "nearest_kronecker_of_sum",
    "norms",
    "solve_columns",
]

COLUMN_CHUNK = 64
NYSTROEM_RANK = 300


def nearest_kronecker_of_sum(operator: SumOfKroneckersOperator) -> KroneckerOperator:
    """Kronecker product nearest to a sum of them in Frobenius norm, found among the spans of its factors.

    Notes
    -----
    The optimum is kron(sum_l b_l K_l, sum_l a_l T_l), so only the L x L inner products of the factors are
    needed. The alternating updates are a power method; from psd factors the weights stay nonnegative.
    """
    inner_K, inner_T = (np.tensordot(A, A, ([1, 2], [1, 2])) for A in (operator.Ks, operator.Ts))  # (L, L)
    a = b = np.ones(len(inner_K))
    for _ in range(50):
        a = inner_K @ b / (b @ inner_K @ b)
        b = inner_T @ a / (a @ inner_T @ a)
    return KroneckerOperator(np.tensordot(b, operator.Ks, 1), np.tensordot(a, operator.Ts, 1))


class NystroemPreconditioner:
    """Approximates (G + alpha I)^-1, up to scale, by a randomised low-rank approximation of a psd G.

    Notes
    -----
    G is approximated by U diag(s) U^T from one product with `NYSTROEM_RANK` random vectors. The part of the
    spectrum that it misses is treated as its smallest eigenvalue: with mu = s[-1] + alpha, it applies
    U diag(mu / (s + alpha)) U^T + (I - U U^T). Time O(N l^2) and memory O(N l) for N = n p, l the rank.

    References
    ----------
    Z. Frangella, J. Tropp and M. Udell, "Randomized Nystroem preconditioning", SIAM J. Matrix Anal. 2023.
    """

    def __init__(self, operator: BlockOperator) -> None:
        size = operator.shape[0]
        rank = max(1, min(NYSTROEM_RANK, size // 3))
        Omega, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(size, rank)))
        sketch = operator @ Omega
        # A tiny multiple of the identity keeps the Cholesky factor of a rank-deficient sketch defined.
        nudge = 1e-12 * np.linalg.norm(sketch)
        sketch = sketch + nudge * Omega
        inner = Omega.T @ sketch
        eigenvalues, W = np.linalg.eigh((inner + inner.T) / 2)
        root = W / np.sqrt(np.maximum(eigenvalues, nudge))
        self.U, singular, _ = np.linalg.svd(sketch @ root, full_matrices=False)
        self.s = np.maximum(singular**2 - nudge, 0.0)

    def solve(self, R: Array, alpha: float) -> Array:
        """Apply to right-hand sides R of shape (n, p, c)."""
        B = R.reshape(-1, R.shape[2])
        weights = (self.s[-1] + alpha) / (self.s + alpha) - 1.0
        return np.reshape(B + self.U @ (weights[:, None] * (self.U.T @ B)), R.shape)


def _make_preconditioner(operator: BlockOperator) -> KroneckerSpectrum | NystroemPreconditioner:
    if isinstance(operator, SumOfKroneckersOperator):
        spectrum = KroneckerSpectrum(nearest_kronecker_of_sum(operator))
        k, t = spectrum.k, spectrum.basis.t
        if np.multiply.outer(k, t).min() >= -1e-12 * np.abs(k).max() * np.abs(t).max():
            # Negative by rounding, or both factors negative.
            spectrum.k, spectrum.basis.t = np.abs(k), np.abs(t)
            return spectrum
    return NystroemPreconditioner(operator)


class ConjugateGradientFactor:
    """Solves with G + alpha I by products with G alone.

    Parameters
    ----------
    operator : BlockOperator
    tol : float
        Stops when ||r|| <= tol * ||y|| for every right-hand side.
    max_iter : int
        Largest number of iterations of one solve.

    Attributes
    ----------
    n_iter : int
        Iterations of the last solve.
    residual : float
        Largest relative residual of the last solve, measured by one more product with G.

    Notes
    -----
    Preconditioned by the nearest Kronecker product for a sum of separable kernels, and by a randomised
    Nystroem approximation of G otherwise. Memory O(n p) per right-hand side.
    """

    def __init__(self, operator: BlockOperator, tol: float = 1e-10, max_iter: int = 1000) -> None:
        self.operator, self.tol, self.max_iter = operator, tol, max_iter
        self.n_iter, self.residual = 0, 0.0
        self._preconditioner = _make_preconditioner(operator)

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        B = R.reshape(-1, R.shape[2], 1)  # (n * p, c, 1)
        size = norms(B)
        size = np.where(size > 0, size, 1.0)

        def apply(V: Array) -> Array:
            return np.asarray(self.operator @ V[:, :, 0])[:, :, None] + alpha * V

        def precondition(V: Array) -> Array:
            return self._preconditioner.solve(V.reshape(R.shape), alpha).reshape(V.shape)

        X, self.n_iter = solve_columns(
            apply, precondition, B, lambda residual: norms(residual) > self.tol * size, self.max_iter
        )
        self.residual = float((norms(B - apply(X)) / size).max(initial=0.0))
        return X.reshape(R.shape)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p), by n*p solves in chunks."""
        return inverse_blocks_by_solving(self.solve, (self.operator.n_rows, self.operator.n_outputs), alpha)


def solve_columns(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    B: Array,
    unfinished: Callable[[Array], NDArray[np.bool_]],
    max_iter: int,
) -> tuple[Array, int]:
    """Preconditioned conjugate gradients for c right-hand sides at once, and the number of iterations.

    Parameters
    ----------
    apply, precondition : callable
        The psd matrix, and about its inverse, times arrays like B.
    B : ndarray of shape (rows, c, outputs)
    unfinished : callable
        Which right-hand sides, (c,), have not converged with these residuals.
    max_iter : int
    """
    X, residual, n_iter = np.zeros_like(B), B.copy(), 0
    Z = precondition(residual)
    P, rho = Z.copy(), _dots(residual, Z)
    active = unfinished(residual)
    while active.any() and n_iter < max_iter:
        AP = apply(P)
        curvature = _dots(P, AP)
        usable = curvature > 0
        step = np.where(active & usable, rho / np.where(usable, curvature, 1.0), 0.0)[:, None]
        X += step * P
        residual -= step * AP
        Z = precondition(residual)
        rho, previous = _dots(residual, Z), rho
        P = Z + np.where(previous > 0, rho / np.where(previous > 0, previous, 1.0), 0.0)[:, None] * P
        n_iter += 1
        active = unfinished(residual) & usable
    return X, n_iter


def _dots(A: Array, B: Array) -> Array:
    """Inner products of right-hand sides, (c,)."""
    return np.asarray(np.einsum("ick,ick->c", A, B))


def norms(A: Array) -> Array:
    """Norms of right-hand sides, (c,)."""
    return np.sqrt(_dots(A, A))


def inverse_blocks_by_solving(
    solve: Callable[[Array, float], Array], shape: tuple[int, ...], alpha: float
) -> Array:
    """Diagonal p x p blocks of an inverse, shape (n, p, p), by n*p solves in chunks; `shape` is (n, p)."""
    n, p = shape
    out = np.empty((n, p, p))
    step = max(1, COLUMN_CHUNK // p)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        E = np.zeros((n, p, len(rows), p))
        E[rows, :, rows - start] = np.eye(p)
        solved = solve(E.reshape(n, p, -1), alpha).reshape(n, p, len(rows), p)
        out[rows] = solved[rows, :, rows - start]
    return out
