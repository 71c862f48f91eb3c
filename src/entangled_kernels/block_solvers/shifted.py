"""Solve (A + shift I) x = r for one symmetric A and many shifts."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from ..linalg import Array

__all__ = ["ShiftedSystem", "cholesky_limit"]


def cholesky_limit(n: int) -> int:
    """Return how many Cholesky factorisations (n x n) take about the time of a tridiagonal reduction.

    The reduction has the flops of four (4/3 n^3 against n^3 / 3), half of them in matrix-vector products that
    wait for memory once the matrix has outgrown the caches: measured, five at n = 1000 and ten from n = 3000.

    Examples
    --------
    >>> cholesky_limit(1000), cholesky_limit(4000)
    (5, 10)
    """
    return min(max(n // 300, 5), 10)


class ShiftedSystem:
    """Solver of (A + s_j I) x_j = r_j for a symmetric A (n, n), with every A + s_j I positive definite.

    Only one triangle of A is read, so that rounding in the other one does no harm.

    Notes
    -----
    Each shift costs a Cholesky factorisation, n^3/3 flops, until `reduce` is called. It writes
    A = Q H Q^T with tridiagonal H once, 4/3 n^3 flops; a shift then costs O(n^2) per right-hand side,
    because A + shift I = Q (H + shift I) Q^T. A full eigendecomposition would cost about three times more.

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
            raise LinAlgError(f"The tridiagonal reduction failed (LAPACK info {info}); is A finite?")
        self._reflectors = np.asfortranarray(c[1:, :-1])

    def solve(self, shifts: Array, R: Array) -> Array:
        """Solve for right-hand sides R (n, c), column j with shifts[j]; equal shifts share the work."""
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
        out[1:], _, info = lapack.dormqr("L", trans, self._reflectors, self._tau, out[1:], lwork=lwork)
        if info != 0:
            raise LinAlgError(f"Applying the reflectors failed (LAPACK info {info}).")
        return out


def _not_definite(shift: float) -> LinAlgError:
    return LinAlgError(
        f"The Gram matrix plus {shift:.3g} times the identity is not positive definite: the kernel is "
        "indefinite, or alpha is below rounding. Increase alpha, or use indefinite='krein'."
    )
