"""Conjugate gradients for ridge systems (G + alpha I) x = r, all right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ..linalg import (
    Array,
    BlockOperator,
    Index,
    KroneckerOperator,
    LowRankKroneckerOperator,
    SumOfKroneckersOperator,
    related_targets,
)
from .direct_solvers import KroneckerSpectrum

__all__ = [
    "ConjugateGradientFactor",
    "MaskedKroneckerFactor",
    "NystroemPreconditioner",
    "ScaledOperator",
    "nearest_kronecker_of_sum",
    "solve_columns",
]

COLUMN_CHUNK = 64
# Unrelated targets whose norms differ by more than this factor are solved one group at a time.
FAR = 1e3
NYSTROEM_RANK = 300


def nearest_kronecker_of_sum(operator: SumOfKroneckersOperator) -> KroneckerOperator:
    """Kronecker product nearest to a sum of Kronecker products in Frobenius norm.

    Notes
    -----
    The optimum is kron(sum_l b_l K_l, sum_l a_l T_l), so only the L x L inner products of the
    factors are needed. The alternating updates are a power method. The weights of psd factors stay
    nonnegative.
    """
    inner_K, inner_T = (
        np.tensordot(A, A, ([1, 2], [1, 2])) for A in (operator.Ks, operator.Ts)
    )  # (L, L)
    a = b = np.ones(len(inner_K))
    for _ in range(50):
        a = inner_K @ b / (b @ inner_K @ b)
        b = inner_T @ a / (a @ inner_T @ a)
    return KroneckerOperator(np.tensordot(b, operator.Ks, 1), np.tensordot(a, operator.Ts, 1))


class NystroemPreconditioner:
    """Approximates (G + alpha I)^-1, up to scale, by a randomised low-rank approximation of G.

    Notes
    -----
    U diag(s) U^T approximates a psd G from one product with `NYSTROEM_RANK` random vectors. The
    rest of the spectrum is treated as the smallest eigenvalue s[-1]: with mu = s[-1] + alpha, the
    preconditioner is U diag(mu / (s + alpha)) U^T + (I - U U^T). Time O(N l^2) and memory O(N l)
    for N = n p, l the rank.

    References
    ----------
    Z. Frangella, J. Tropp and M. Udell, "Randomized Nystroem preconditioning", SIAM J. Matrix
    Anal. 2023.
    """

    def __init__(self, operator: BlockOperator) -> None:
        size = operator.shape[0]
        rank = max(1, min(NYSTROEM_RANK, size // 3))
        Omega, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(size, rank)))
        sketch = operator @ Omega
        # A tiny multiple of the identity makes the root of a rank-deficient sketch exist.
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


class _IterativeFactor:
    """Stops when ||r|| <= tol * ||y|| for every right-hand side, or after `max_iter` iterations.

    Attributes
    ----------
    n_iter : int
        Iterations of the last solve.
    residual : float
        Largest relative residual of the last solve, computed by one more product with G.
    """

    def __init__(self, operator: BlockOperator, tol: float, max_iter: int) -> None:
        self.shape, self.tol, self.max_iter = (operator.n_rows, operator.n_outputs), tol, max_iter
        self.n_iter, self.residual = 0, 0.0
        self._groups = _related_targets(operator)

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c).

        Systems of unrelated targets are independent. They are solved group by group if the sizes of
        the groups are far apart: solved together, the stopping rule is that of the largest targets,
        and their rounding hides the small ones.
        """
        groups = self._groups
        norms = np.array([np.linalg.norm(R[:, group], axis=(0, 1)) for group in groups])
        least = np.where(norms > 0.0, norms, np.inf).min(axis=0)  # (c,)
        if len(groups) == 1 or (norms.max(axis=0) <= FAR * least).all():
            return self._solve(R, alpha)
        solved, n_iter, residual = np.empty_like(R), 0, 0.0
        for group in groups:
            alone = np.zeros_like(R)
            alone[:, group] = R[:, group]
            solved[:, group] = self._solve(alone, alpha)[:, group]
            n_iter, residual = max(n_iter, self.n_iter), max(residual, self.residual)
        self.n_iter, self.residual = n_iter, residual
        return solved

    def _solve(self, R: Array, alpha: float) -> Array:
        """Solve for all targets together, and set `n_iter` and `residual`."""
        raise NotImplementedError

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p), by n*p solves."""
        n, p = self.shape
        out = np.empty((n, p, p))
        for chunk in gen_batches(n, max(1, COLUMN_CHUNK // p)):
            rows = np.arange(chunk.start, chunk.stop)
            E = np.zeros((n, p, len(rows), p))
            E[rows, :, rows - chunk.start] = np.eye(p)
            solved = self.solve(E.reshape(n, p, -1), alpha).reshape(E.shape)
            out[rows] = solved[rows, :, rows - chunk.start]
        return out


class ConjugateGradientFactor(_IterativeFactor):
    """Solves with G + alpha I by products with G only.

    Notes
    -----
    The preconditioner of a sum of separable kernels is the nearest Kronecker product. Otherwise it
    is a randomised Nystroem approximation of G. Memory O(n p) per right-hand side.
    """

    def __init__(self, operator: BlockOperator, tol: float = 1e-10, max_iter: int = 1000) -> None:
        super().__init__(operator, tol, max_iter)
        self.operator = operator
        self._preconditioner = _make_preconditioner(operator)

    def _solve(self, R: Array, alpha: float) -> Array:
        B = R.reshape(-1, R.shape[2], 1)  # (n * p, c, 1)
        size = _positive_norms(B)

        def apply(V: Array) -> Array:
            return np.asarray(self.operator @ V[:, :, 0])[:, :, None] + alpha * V

        def precondition(V: Array) -> Array:
            return self._preconditioner.solve(V.reshape(R.shape), alpha).reshape(V.shape)

        def unfinished(residual: Array) -> NDArray[np.bool_]:
            return _norms(residual) > self.tol * size

        X, self.n_iter = solve_columns(apply, precondition, B, unfinished, self.max_iter)
        self.residual = float((_norms(B - apply(X)) / size).max(initial=0.0))
        return X.reshape(R.shape)


def _related_targets(operator: BlockOperator) -> list[Index]:
    """Groups of targets that the operator relates; one group if its structure does not show them."""
    if isinstance(operator, ScaledOperator):
        return _related_targets(operator.operator)
    if isinstance(operator, KroneckerOperator):
        return related_targets(operator.output[None])
    if isinstance(operator, SumOfKroneckersOperator):
        return related_targets(operator.Ts)
    return [np.arange(operator.n_outputs)]


def solve_columns(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    B: Array,
    unfinished: Callable[[Array], NDArray[np.bool_]],
    max_iter: int,
) -> tuple[Array, int]:
    """Preconditioned conjugate gradients for c right-hand sides at once.

    Parameters
    ----------
    apply, precondition : callable
        Product of the psd matrix, and of an approximate inverse, with arrays like B.
    B : ndarray of shape (rows, c, outputs)
    unfinished : callable
        Function of the residuals; True (c,) for right-hand sides that have not converged.
    max_iter : int

    Returns
    -------
    X : ndarray like B
    n_iter : int
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
        growth = np.where(previous > 0, rho / np.where(previous > 0, previous, 1.0), 0.0)
        P = Z + growth[:, None] * P
        n_iter += 1
        active = unfinished(residual) & usable
    return X, n_iter


def _dots(A: Array, B: Array) -> Array:
    """Inner products of right-hand sides, (c,)."""
    return np.asarray(np.einsum("ick,ick->c", A, B))


def _norms(A: Array) -> Array:
    """Norms of right-hand sides, (c,)."""
    return np.sqrt(_dots(A, A))


def _positive_norms(A: Array) -> Array:
    """Norms of right-hand sides, with zeros replaced by one, (c,)."""
    norms = _norms(A)
    return np.where(norms > 0, norms, 1.0)


class ScaledOperator(BlockOperator):
    """Behaves as ``numpy.diag(s) @ operator.to_dense() @ numpy.diag(s)`` for a square operator.

    `scale` is s, shape (n, p).
    """

    def __init__(self, operator: BlockOperator, scale: Array) -> None:
        super().__init__(operator.n_rows, operator.n_columns, operator.n_outputs, operator.dtype)
        self.operator, self.scale = operator, scale

    def block_rows(self, rows: slice) -> Array:
        """Blocks of some rows, shape (len(rows), n, p, p)."""
        left = self.scale[rows, None, :, None]  # (b, 1, p, 1)
        return np.asarray(left * self.operator.block_rows(rows) * self.scale[None, :, None, :])

    def _matmat(self, V: Array) -> Array:
        s = self.scale.reshape(-1, 1)
        return np.asarray(s * self.operator._matmat(s * V))

    def _adjoint(self) -> ScaledOperator:
        return ScaledOperator(self.operator._adjoint(), self.scale)


class MaskedKroneckerFactor(_IterativeFactor):
    """Solves with M kron(K, T) M + alpha I, M = diag(mask), for a psd Kronecker product.

    The mask (n, p) is not negative, zero where a target is missing and about one elsewhere.

    Notes
    -----
    With kron(K, T) = L L^T the solution is z = (y - M L x) / alpha, where x solves

        (L^T M^2 L + alpha I) x = L^T M y.

    The residual of z is M L g / alpha for the residual g of x. L is chosen so that L^T diag(q) L is
    diagonal, where q is the mean of M^2 for each output: L = kron(F, B) with F^T F = diag(k) and
    B^T diag(q) B = diag(t). The preconditioner is the diagonal k t + alpha: the system of complete
    data with the mean weights q. It is exact if the weight depends on the output only. It is good
    if many targets determine each leading eigenfunction. The complete inverse restricted to the
    targets that are not missing is a bad preconditioner: for a smooth function it treats the
    missing targets as if y held them.

    Time n^3 + p^3 once (m^2 n for m features), and n^2 p + n p^2 for each iteration and right-hand
    side; memory n^2 + n p.
    """

    def __init__(
        self, operator: KroneckerOperator, mask: Array, tol: float = 1e-10, max_iter: int = 1000
    ) -> None:
        super().__init__(operator, tol, max_iter)
        self.F, k = _diagonal_root(operator)  # (n, m), (m,)
        t, V = np.linalg.eigh(operator.output)
        B = V * np.sqrt(np.clip(t, 0.0, None))  # (p, p)
        t, V = np.linalg.eigh(B.T @ (np.mean(mask**2, axis=0)[:, None] * B))
        self.B = B @ V
        self.spectrum = np.multiply.outer(k, np.clip(t, 0.0, None))[:, None, :]  # (m, 1, p)
        self.mask = mask[:, None, :]  # (n, 1, p)

    # Arrays are (rows, right-hand sides, outputs), so that each factor of L is one matrix product.

    def _expand(self, x: Array) -> Array:
        """M L x, shape (n, c, p), for x (m, c, p)."""
        m, c, p = x.shape
        values = (self.F @ x.reshape(m, c * p)).reshape(-1, c, p) @ self.B.T
        return np.asarray(self.mask * values)

    def _collect(self, y: Array) -> Array:
        """L^T M y, shape (m, c, p), for y (n, c, p)."""
        n, c, p = y.shape
        values = (self.mask * y) @ self.B
        return np.asarray((self.F.T @ values.reshape(n, c * p)).reshape(-1, c, p))

    def _solve(self, R: Array, alpha: float) -> Array:
        y = R.swapaxes(1, 2)
        size = _positive_norms(y)

        def unfinished(g: Array) -> NDArray[np.bool_]:
            # ||M L g||^2 = g^T L^T M^2 L g, and L^T M^2 L is about the spectrum.
            return _norms(np.sqrt(self.spectrum) * g) > self.tol * alpha * size

        x, self.n_iter = solve_columns(
            lambda v: self._collect(self._expand(v)) + alpha * v,
            lambda g: g / (self.spectrum + alpha),
            self._collect(y),
            unfinished,
            self.max_iter,
        )
        solved = (y - self._expand(x)) / alpha
        error = y - self._expand(self._collect(solved)) - alpha * solved
        self.residual = float((_norms(error) / size).max(initial=0.0))
        return solved.swapaxes(1, 2)


def _diagonal_root(operator: KroneckerOperator) -> tuple[Array, Array]:
    """F and k with K = F F^T and F^T F = diag(k)."""
    if isinstance(operator, LowRankKroneckerOperator) and operator.Phi.shape[1] < operator.n_rows:
        k, E = np.linalg.eigh(operator.Phi.T @ operator.Phi)
        return operator.Phi @ E, np.clip(k, 0.0, None)
    k, E = np.linalg.eigh(operator.gram)
    k = np.clip(k, 0.0, None)
    return E * np.sqrt(k), k
