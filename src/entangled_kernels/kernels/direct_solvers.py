"""Direct solvers of ridge systems (G + alpha I) x = r with a block Gram matrix G.

Each solver class takes a square block operator, factorises it once, and solves for any number of
alphas. Right-hand sides have shape (n, p, c). A solver that takes a `mask` (n, p) solves the system
M G M + alpha I with M = diag(mask); the mask is zero where a target is missing.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from ..linalg import (
    Array,
    BlockOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    kraus_from_choi,
    kraus_to_stacked,
    multiple_of_identity,
)
from ..linalg.structured_operators import mix_outputs

__all__ = [
    "DenseFactor",
    "DenseSpectrum",
    "KroneckerFactor",
    "KroneckerSpectrum",
    "LowRankFactor",
    "LowRankKroneckerFactor",
    "ShiftedSystem",
    "cholesky_limit",
    "krein_inverse",
]


def cholesky_limit(n: int) -> int:
    """Number of Cholesky factorisations (n x n) that take as long as one tridiagonal reduction.

    The reduction has the flops of four factorisations (4/3 n^3 against n^3 / 3). Half of them are
    matrix-vector products, which wait for memory when the matrix is larger than the caches. The
    measured numbers are five at n = 1000 and ten from n = 3000.

    Examples
    --------
    >>> cholesky_limit(1000), cholesky_limit(4000)
    (5, 10)
    """
    return min(max(n // 300, 5), 10)


class ShiftedSystem:
    """Solves (A + s_j I) x_j = r_j for a symmetric A (n, n), every A + s_j I positive definite.

    Only one triangle of A is read, so that rounding errors in the other one do no harm.

    Notes
    -----
    Each shift costs a Cholesky factorisation, n^3 / 3 flops, until `reduce` is called. It computes
    A = Q H Q^T with tridiagonal H once, 4/3 n^3 flops. A shift then costs O(n^2) per right-hand
    side, because A + shift I = Q (H + shift I) Q^T. A full eigendecomposition would cost about
    three times more.

    Examples
    --------
    >>> import numpy as np
    >>> system = ShiftedSystem(np.diag([1.0, 2.0, 3.0]))
    >>> system.solve(np.array([1.0, 0.0]), np.ones((3, 2))).round(4)
    array([[0.5   , 1.    ],
           [0.3333, 0.5   ],
           [0.25  , 0.3333]])
    """

    def __init__(self, A: Array) -> None:
        self.A = A
        self._reflectors: Array | None = None

    def reduce(self) -> None:
        """Reduce A to tridiagonal form, if not yet done."""
        n = len(self.A)
        if self._reflectors is not None or n < 3:
            return
        # The transpose of a symmetric C-ordered array is the same matrix in LAPACK's order.
        c, self._d, self._e, self._tau, info = lapack.dsytrd(self.A.T, lower=1, lwork=64 * n)
        if info != 0:
            raise LinAlgError(
                f"The tridiagonal reduction failed (LAPACK info {info}); is A finite?"
            )
        self._reflectors = np.asfortranarray(c[1:, :-1])

    def solve(self, shifts: Array, R: Array) -> Array:
        """Solve for R (n, c), column j with shifts[j]; equal shifts share a factorisation."""
        reduced = self._reflectors is not None
        # All columns are rotated together: the reflectors are read once instead of once per shift.
        R = self._rotate(R, "T") if reduced else R
        out = np.empty(R.shape, order="F")
        for shift in np.unique(shifts):
            columns = shifts == shift
            solve = self._solve_tridiagonal if reduced else self._solve_cholesky
            out[:, columns] = solve(float(shift), R[:, columns])
        return self._rotate(out, "N") if reduced else out

    def _solve_cholesky(self, shift: float, R: Array) -> Array:
        A = self.A.copy()
        A.flat[:: len(A) + 1] += shift
        try:
            factor = cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            raise _not_definite(shift) from error
        return np.asarray(cho_solve(factor, R, check_finite=False))

    def _solve_tridiagonal(self, shift: float, R: Array) -> Array:
        _, _, solved, info = lapack.dptsv(self._d + shift, self._e, R)
        if info != 0:
            raise _not_definite(shift)
        return np.asarray(solved)

    def _rotate(self, R: Array, trans: str) -> Array:
        out = np.array(R, dtype=np.float64, order="F")
        lwork = 64 * max(1, out.shape[1])
        out[1:], _, info = lapack.dormqr(
            "L", trans, self._reflectors, self._tau, out[1:], lwork=lwork
        )
        if info != 0:
            raise LinAlgError(f"Applying the reflectors failed (LAPACK info {info}).")
        return out


def _not_definite(shift: float) -> ValueError:
    return ValueError(
        f"the Gram matrix plus {shift:.3g} times the identity is not positive definite: the kernel is "
        "indefinite, or alpha is below rounding. Increase alpha, use sample_weight of similar sizes, or use "
        "indefinite='krein'."
    )


class _OutputBasis:
    """Eigenvectors V of T, with eigenvalues t in increasing order; no work when T = c I."""

    def __init__(self, T: Array) -> None:
        c = multiple_of_identity(T)
        self.V: Array | None = None
        if c is not None:
            self.t = np.full(len(T), float(c))
            return
        self.t, self.V = np.linalg.eigh(T)
        scale = np.abs(self.t).max(initial=0.0)
        self.t[np.abs(self.t) <= 1e-14 * scale] = 0.0
        # Eigenvalues equal up to rounding are made equal, so that they share a factorisation.
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
    With T = V diag(t) V^T the outputs separate: column j of the rotated problem solves
    (t_j K + alpha I) x = r_j, or (K + (alpha / t_j) I) x = r_j / t_j. Equal eigenvalues of T share
    a Cholesky factorisation of K + (alpha / t) I. More than `cholesky_limit` distinct eigenvalues
    or alphas share one tridiagonal reduction of K. Time O(n^3 + p^3), memory O(n^2).
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
        out = rotated / alpha  # the solution where the eigenvalue of T is zero
        if nonzero.any():
            part = (rotated[:, nonzero] / t[nonzero, None]).reshape(n, -1)
            out[:, nonzero] = self.system.solve(np.repeat(alpha / t[nonzero], c), part).reshape(
                n, -1, c
            )
        return self.basis.leave(out)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p); one eigendecomposition of K."""
        if self._spectrum is None:
            self._spectrum = KroneckerSpectrum(self.operator)
        return self._spectrum.inverse_diagonal_blocks(alpha)


def krein_inverse(s: Array, alpha: float) -> Array:
    """Values sign(s) / (|s| + alpha); eigenvalues that are zero up to rounding count as positive.

    Examples
    --------
    >>> krein_inverse(np.array([-1.0, -1e-17, 1.0]), alpha=1.0)
    array([-0.5,  1. ,  0.5])
    """
    negative = s < -1e-12 * np.abs(s).max(initial=0.0)
    return np.where(negative, -1.0, 1.0) / (np.abs(s) + alpha)


class KroneckerSpectrum:
    """Solves with kron(K, T) + alpha I from the eigendecompositions of both factors.

    With ``krein=True`` it solves the stabilised problem min ||y - G c||^2 + alpha c^T |G| c of an
    indefinite G. The solution replaces 1 / (s + alpha) by sign(s) / (|s| + alpha) for each
    eigenvalue s of G.
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
    With Phi^T Phi = E diag(s) E^T and F = Phi E, Woodbury's identity gives the rotated column j
    x = (r - F diag(t_j / (t_j s + alpha)) F^T r) / alpha. Time O(m^3 + m^2 n + p^3); every further
    alpha costs O(n m p).
    """

    def __init__(self, operator: LowRankKroneckerOperator) -> None:
        self.basis = _OutputBasis(operator.output)
        s, E = np.linalg.eigh(operator.Phi.T @ operator.Phi)
        self.s = np.clip(s, 0.0, None)
        self.F = operator.Phi @ E  # (n, m)

    def _weights(self, alpha: float) -> Array:
        return np.asarray(
            self.basis.t / (np.multiply.outer(self.s, self.basis.t) + alpha)
        )  # (m, p)

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        n, p, c = R.shape
        rotated = self.basis.enter(R)
        H = (self.F.T @ rotated.reshape(n, p * c)).reshape(-1, p, c) * self._weights(alpha)[
            :, :, None
        ]
        return self.basis.leave(
            (rotated - (self.F @ H.reshape(-1, p * c)).reshape(n, p, c)) / alpha
        )

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p)."""
        return self.basis.diagonals((1.0 - self.F**2 @ self._weights(alpha)) / alpha)


class LowRankFactor:
    """Solves with Z Z^T + alpha I, Z = M kron(Phi, I_p) Q of shape (n*p, r), by Woodbury's identity.

    Parameters
    ----------
    operator : LowRankOperator or LowRankKroneckerOperator
        Square. For kron(Phi Phi^T, T) the factor is Q = kron(I, T^1/2).
    mask : array of shape (n, p), optional
        Diagonal of M, zero where a target is missing. None is the identity.

    Notes
    -----
    Z^T Z = Q^T kron(Phi^T Phi, I_p) Q needs Phi^T Phi only, so Z is never formed. With a mask it
    needs Phi^T diag(M_o)^2 Phi for every output o. Q is rotated so that Z^T Z = diag(s). Then
    c = (y - Z diag(1 / (s + alpha)) Z^T y) / alpha for every alpha.
    Time O(m^2 n + m^2 p r + m p r^2 + r^3), with a mask m^2 n p in place of m^2 n; a further alpha
    costs O((n + r) m p).
    """

    def __init__(
        self, operator: LowRankOperator | LowRankKroneckerOperator, mask: Array | None = None
    ) -> None:
        p, m = operator.n_outputs, operator.Phi.shape[1]
        Q = _stacked_kraus(operator)
        self.mask = None if mask is None else mask[:, :, None]  # (n, p, 1)
        if mask is None:
            # kron(C, I_p) Q with C = Phi^T Phi
            CQ = (operator.Phi.T @ operator.Phi @ Q.reshape(m, -1)).reshape(Q.shape)
        else:
            CQ = _masked_products(operator.Phi, mask, Q.reshape(m, p, -1)).reshape(Q.shape)
        s, W = np.linalg.eigh(Q.T @ CQ)
        self.s = np.clip(s, 0.0, None)
        self.Q = Q @ W
        self.Phi = operator.Phi

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        n, p, c = R.shape
        m = self.Phi.shape[1]
        F = (self.Phi.T @ self._masked(R).reshape(n, p * c)).reshape(m * p, c)
        H = self.Q @ ((self.Q.T @ F) / (self.s + alpha)[:, None])
        return (R - self._masked((self.Phi @ H.reshape(m, p * c)).reshape(n, p, c))) / alpha

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p); O(n m p r + n p^2 r)."""
        m, r = self.Phi.shape[1], len(self.s)
        p = len(self.Q) // m
        Z = self._masked((self.Phi @ self.Q.reshape(m, p * r)).reshape(len(self.Phi), p, r))
        return np.asarray(np.eye(p) - (Z / (self.s + alpha)) @ Z.swapaxes(1, 2)) / alpha

    def _masked(self, A: Array) -> Array:
        """M A for A (n, p, c)."""
        return A if self.mask is None else A * self.mask


def _stacked_kraus(operator: LowRankOperator | LowRankKroneckerOperator) -> Array:
    """Q (m*p, r) with G = kron(Phi, I_p) Q Q^T kron(Phi, I_p)^T."""
    p = operator.n_outputs
    if isinstance(operator, LowRankKroneckerOperator):
        t, V = np.linalg.eigh(operator.output)
        root = (V * np.sqrt(np.clip(t, 0.0, None)))[:, t > 1e-14 * np.abs(t).max()]
        return np.kron(np.eye(operator.Phi.shape[1]), root)
    if operator.metric is None:
        return operator.Q
    D = operator.Q @ operator.Q.T + np.kron(operator.metric, np.eye(p))
    return kraus_to_stacked(kraus_from_choi(D, p))


def _masked_products(Phi: Array, mask: Array, Q: Array) -> Array:
    """Phi^T diag(M_o)^2 Phi Q_o for every output o, shape (m, p, r), for Q (m, p, r)."""
    out = np.empty_like(Q)
    for o, column in enumerate(mask.T):
        masked = column[:, None] * Phi
        out[:, o] = (masked.T @ masked) @ Q[:, o]
    return out


class _DenseSolver:
    """Forms the matrix of the targets that are not missing; subclasses factorise and solve it.

    Parameters
    ----------
    operator : BlockOperator
        Square.
    mask : array of shape (n, p), optional
        Not negative, zero where a target is missing. None is the identity.

    Notes
    -----
    Time O(N^3) and memory O(N^2) for N targets that are not missing.
    """

    def __init__(self, operator: BlockOperator, mask: Array | None = None) -> None:
        self.n_outputs = operator.n_outputs
        self.present = None if mask is None else np.flatnonzero(mask > 0.0)
        self.size = operator.shape[0]
        self._factorize(_dense_matrix(operator, mask))

    def _factorize(self, A: Array) -> None:
        raise NotImplementedError

    def _solve(self, B: Array, alpha: float) -> Array:
        """Solve for right-hand sides B (N, c)."""
        raise NotImplementedError

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        B = R.reshape(-1, R.shape[2])
        if self.present is None:
            return self._solve(B, alpha).reshape(R.shape)
        out = B / alpha  # a missing target has a row of zeros in M G M
        out[self.present] = self._solve(B[self.present], alpha)
        return out.reshape(R.shape)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p)."""
        p = self.n_outputs
        if self.present is None:
            inverse = self._solve(np.eye(self.size), alpha).reshape(-1, p, self.size // p, p)
            return np.array(np.einsum("iaib->iab", inverse))
        inverse = self._solve(np.eye(len(self.present)), alpha)
        out = np.tile(np.eye(p) / alpha, (self.size // p, 1, 1))
        rows, outputs = np.divmod(self.present, p)
        a, b = np.nonzero(rows[:, None] == rows)  # pairs of targets of the same row
        out[rows[a], outputs[a], outputs[b]] = inverse[a, b]
        return out


def _dense_matrix(operator: BlockOperator, mask: Array | None) -> Array:
    """M G M for the targets that are not missing, formed some block rows at a time."""
    if mask is None:
        return np.ascontiguousarray(operator.to_dense(), dtype=np.float64)
    present = mask > 0.0
    columns = np.flatnonzero(present)
    parts = []
    for rows in operator._chunks(operator.n_rows):
        dense = operator.block_rows(rows).swapaxes(1, 2).reshape(-1, mask.size)  # (b * p, n * p)
        parts.append(dense[np.ix_(np.flatnonzero(present[rows]), columns)])
    scale = mask[present]
    return np.asarray(scale[:, None] * np.concatenate(parts) * scale)


class DenseFactor(_DenseSolver):
    """Solves with M G M + alpha I by Cholesky; several alphas share one tridiagonal reduction.

    Parameters
    ----------
    operator : BlockOperator
        G, square and psd.
    mask : array of shape (n, p), optional
        Diagonal of M, not negative, zero where a target is missing. None is the identity.

    Notes
    -----
    Time O(N^3) and memory O(N^2) for N targets that are not missing.

    Examples
    --------
    >>> import numpy as np
    >>> operator = KroneckerOperator(np.eye(2), np.ones((2, 2)))
    >>> factor = DenseFactor(operator, np.array([[1.0, 1.0], [1.0, 0.0]]))
    >>> factor.solve(np.array([[3.0, 3.0], [2.0, 0.0]])[:, :, None], alpha=1.0)[:, :, 0]
    array([[1., 1.],
           [1., 0.]])
    """

    def _factorize(self, A: Array) -> None:
        self.system = ShiftedSystem(A)
        self._alphas: set[float] = set()

    def _solve(self, B: Array, alpha: float) -> Array:
        self._alphas.add(alpha)
        if len(self._alphas) > cholesky_limit(len(self.system.A)):
            self.system.reduce()
        return self.system.solve(np.full(B.shape[1], alpha), B)


class DenseSpectrum(_DenseSolver):
    """Solves the stabilised problem of an indefinite G by an eigendecomposition.

    The problem is min ||y - G c||^2 + alpha c^T |G| c, where |G| has the absolute eigenvalues of G.
    The penalty is the norm of the Hilbert space associated with the Krein space. Each eigenvalue s
    gives sign(s) / (|s| + alpha). The parameters are those of `DenseFactor`.
    """

    def _factorize(self, A: Array) -> None:
        self.s, self.E = np.linalg.eigh(A)

    def _solve(self, B: Array, alpha: float) -> Array:
        return np.asarray(self.E @ ((self.E.T @ B) * krein_inverse(self.s, alpha)[:, None]))
