"""Direct solvers of ridge systems (G + alpha I) x = r with a block Gram matrix G.

Each factor takes a square block operator, factorises it once, and solves for any number of alphas.
Right-hand sides have shape (n, p, c). A factor that takes a `mask` (n, p) solves the system
M G M + alpha I with M = diag(mask); the mask is zero where a target is missing. None is the
identity.
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

    Only one triangle of A is read: A need not be symmetric to rounding.

    Notes
    -----
    Each shift costs a Cholesky factorisation, n^3 / 3 flops. After `cholesky_limit` shifts A is
    reduced once to A = Q H Q^T with tridiagonal H, 4/3 n^3 flops. A shift then costs O(n^2) per
    right-hand side, because A + shift I = Q (H + shift I) Q^T. A full eigendecomposition would cost
    about three times more.
    """

    def __init__(self, A: Array) -> None:
        self.A = A
        self.seen: set[float] = set()
        self._reflectors: Array | None = None

    def solve(self, shifts: Array, R: Array) -> Array:
        """Solve for R (n, c), column j with shifts[j]; equal shifts share a factorisation."""
        distinct = np.unique(shifts)
        self.seen.update(distinct.tolist())
        if len(self.seen) > cholesky_limit(len(self.A)):
            self._reduce()
        reduced = self._reflectors is not None
        # All columns are rotated together: the reflectors are read once instead of once per shift.
        R = self._rotate(R, "T") if reduced else R
        out = np.empty(R.shape, order="F")
        for shift in distinct:
            columns = shifts == shift
            solve = self._solve_tridiagonal if reduced else self._solve_cholesky
            out[:, columns] = solve(float(shift), R[:, columns])
        return self._rotate(out, "N") if reduced else out

    def _reduce(self) -> None:
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


class _KreinSystem:
    """Solves the stabilised problem of a symmetric indefinite matrix, see `krein_inverse`."""

    def __init__(self, A: Array) -> None:
        self.s, self.E = np.linalg.eigh(A)

    def solve(self, alphas: Array, R: Array) -> Array:
        return np.asarray(self.E @ (krein_inverse(self.s[:, None], alphas) * (self.E.T @ R)))


def _not_definite(shift: float) -> ValueError:
    return ValueError(
        f"the Gram matrix plus {shift:.3g} times the identity is not positive definite: the kernel "
        "is indefinite, or alpha is below rounding. Increase alpha, use sample_weight of similar "
        "sizes, or use indefinite='krein'."
    )


class _OutputBasis:
    """Eigenvectors V of T and eigenvalues t in increasing order; V is None if T = c I."""

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
    a factorisation. Time O(n^3 + p^3), memory O(n^2).
    """

    def __init__(self, operator: KroneckerOperator) -> None:
        self.basis = _OutputBasis(operator.output)
        self.operator = operator
        self.system = ShiftedSystem(operator.gram)
        self._spectrum: KroneckerSpectrum | None = None

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        n, _, c = R.shape
        rotated = self.basis.enter(R)
        out = rotated / alpha  # the solution where the eigenvalue of T is zero
        nonzero = self.basis.t != 0
        if nonzero.any():
            t = self.basis.t[nonzero]
            part = (rotated[:, nonzero] / t[:, None]).reshape(n, -1)
            solved = self.system.solve(np.repeat(alpha / t, c), part)
            out[:, nonzero] = solved.reshape(n, -1, c)
        return self.basis.leave(out)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p); one eigendecomposition of K."""
        if self._spectrum is None:
            self._spectrum = KroneckerSpectrum(self.operator)
        return self._spectrum.inverse_diagonal_blocks(alpha)


def krein_inverse(s: Array, alpha: float | Array) -> Array:
    """Values sign(s) / (|s| + alpha); eigenvalues that are zero up to rounding count as positive.

    With the eigenvalues s of an indefinite G they solve the stabilised problem
    min ||y - G c||^2 + alpha c^T |G| c, where |G| has the absolute eigenvalues of G. The penalty is
    the norm of the Hilbert space associated with the Krein space.
    """
    negative = s < -1e-12 * np.abs(s).max(initial=0.0)
    return np.where(negative, -1.0, 1.0) / (np.abs(s) + alpha)


class KroneckerSpectrum:
    """Solves with kron(K, T) + alpha I from the eigendecompositions of both factors.

    With ``krein=True`` it solves the stabilised problem of `krein_inverse`.
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
        t = self.basis.t
        return np.asarray(t / (np.multiply.outer(self.s, t) + alpha))  # (m, p)

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        n, p, c = R.shape
        rotated = self.basis.enter(R)
        H = (self.F.T @ rotated.reshape(n, p * c)).reshape(-1, p, c)
        H *= self._weights(alpha)[:, :, None]
        explained = (self.F @ H.reshape(-1, p * c)).reshape(n, p, c)
        return self.basis.leave((rotated - explained) / alpha)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p)."""
        return self.basis.diagonals((1.0 - self.F**2 @ self._weights(alpha)) / alpha)


class LowRankFactor:
    """Solves with Z Z^T + alpha I, Z = M kron(Phi, I_p) Q (n*p, r), by Woodbury's identity.

    For a separable kernel, kron(Phi Phi^T, T), Q = kron(I, T^1/2).

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
            CQ = operator.Phi.T @ operator.Phi @ Q.reshape(m, -1)
        else:  # Phi^T diag(M_o)^2 Phi Q_o for every output o
            masked = (column[:, None] * operator.Phi for column in mask.T)
            parts = Q.reshape(m, p, -1).swapaxes(0, 1)
            CQ = np.stack([(A.T @ A) @ Q_o for A, Q_o in zip(masked, parts, strict=True)], axis=1)
        s, W = np.linalg.eigh(Q.T @ CQ.reshape(Q.shape))
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


class DenseFactor:
    """Solves with M G M + alpha I, formed for the targets that are not missing.

    With ``krein=True`` it solves the stabilised problem of `krein_inverse`. Time O(N^3) and memory
    O(N^2) for N targets.
    """

    def __init__(
        self, operator: BlockOperator, mask: Array | None = None, *, krein: bool = False
    ) -> None:
        self.n_rows, self.n_outputs = operator.n_rows, operator.n_outputs
        present = np.ones(operator.shape[0], dtype=bool) if mask is None else mask.reshape(-1) > 0.0
        self.present = np.flatnonzero(present)
        A = _dense_matrix(operator, mask)
        self.system = _KreinSystem(A) if krein else ShiftedSystem(A)

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        out = R.reshape(-1, R.shape[2]) / alpha  # a missing target has a row of zeros in M G M
        out[self.present] = self.system.solve(
            np.full(R.shape[2], alpha), R.reshape(out.shape)[self.present]
        )
        return out.reshape(R.shape)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p)."""
        N, p = len(self.present), self.n_outputs
        inverse = self.system.solve(np.full(N, alpha), np.eye(N))
        out = np.tile(np.eye(p) / alpha, (self.n_rows, 1, 1))
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
