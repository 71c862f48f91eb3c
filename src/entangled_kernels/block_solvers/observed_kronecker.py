"""Ridge systems of separable kernels on measured cells, by conjugate gradients in the complete eigenbasis."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, KroneckerOperator, LowRankKroneckerOperator
from .conjugate_gradient import inverse_blocks_by_solving, norms, solve_columns

__all__ = ["ObservedKroneckerFactor"]


class ObservedKroneckerFactor:
    """Solves with M kron(K, T) M + alpha I, M = diag(mask), for a psd Kronecker product.

    Parameters
    ----------
    operator : KroneckerOperator
        Square and psd.
    mask : array of shape (n, p)
        Not negative, zero in blanks and of the order of one elsewhere.
    tol : float
        Stops when ||r|| <= tol * ||y|| for every right-hand side, r being estimated by the preconditioner.
    max_iter : int
        Largest number of iterations of one solve.

    Attributes
    ----------
    n_iter : int
        Iterations of the last solve.
    residual : float
        Largest relative residual of the last solve, measured by one more product.

    Notes
    -----
    With kron(K, T) = L L^T the system is solved by z = (y - M L x) / alpha, where x solves

        (L^T M^2 L + alpha I) x = L^T M y,

    and the residual of z is M L g / alpha for the residual g of x. L is chosen so that L^T diag(q) L is
    diagonal, q being the mean of M^2 for each output: L = kron(F, B) with F^T F = diag(k) and
    B^T diag(q) B = diag(t). The preconditioner is then the diagonal k t + alpha, which is the system of
    complete data with these mean weights. It is exact where the weight of a cell depends on its output alone,
    and good where the leading eigenfunctions have many cells each. Restricting the inverse of the complete
    system to the measured cells is not: of a smooth function, blanks know nearly all.

    Time n^3 + p^3 once (m^2 n for m features), and n^2 p + n p^2 for each iteration and right-hand side;
    memory n^2 + n p.

    Examples
    --------
    >>> import numpy as np
    >>> operator = KroneckerOperator(np.eye(2), np.ones((2, 2)))
    >>> factor = ObservedKroneckerFactor(operator, np.array([[1.0, 1.0], [1.0, 0.0]]))
    >>> factor.solve(np.array([[3.0, 3.0], [2.0, 0.0]])[:, :, None], alpha=1.0)[:, :, 0].round(9)
    array([[1., 1.],
           [1., 0.]])
    """

    def __init__(
        self, operator: KroneckerOperator, mask: Array, tol: float = 1e-10, max_iter: int = 1000
    ) -> None:
        self.tol, self.max_iter = tol, max_iter
        self.n_iter, self.residual = 0, 0.0
        self.F, k = _diagonal_root(operator)  # (n, m), (m,)
        t, V = np.linalg.eigh(operator.output)
        B = V * np.sqrt(np.clip(t, 0.0, None))  # (p, p)
        t, V = np.linalg.eigh(B.T @ (np.mean(mask**2, axis=0)[:, None] * B))
        self.B = B @ V
        self.spectrum = np.multiply.outer(k, np.clip(t, 0.0, None))[:, None, :]  # (m, 1, p)
        self.mask = mask[:, None, :]  # (n, 1, p)

    # Arrays are (rows, right-hand sides, outputs) inside: both factors of L are then single matrix products.

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

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        y = R.swapaxes(1, 2)
        size = norms(y)
        size = np.where(size > 0, size, 1.0)
        x, self.n_iter = solve_columns(
            lambda v: self._collect(self._expand(v)) + alpha * v,
            lambda g: g / (self.spectrum + alpha),
            self._collect(y),
            # ||M L g||^2 = g^T L^T M^2 L g, and L^T M^2 L is about the spectrum.
            lambda g: norms(np.sqrt(self.spectrum) * g) > self.tol * alpha * size,
            self.max_iter,
        )
        solved = (y - self._expand(x)) / alpha
        error = y - self._expand(self._collect(solved)) - alpha * solved
        self.residual = float((norms(error) / size).max(initial=0.0))
        return solved.swapaxes(1, 2)

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p), by n*p solves in chunks."""
        return inverse_blocks_by_solving(self.solve, self.mask[:, 0].shape, alpha)


def _diagonal_root(operator: KroneckerOperator) -> tuple[Array, Array]:
    """F and k with K = F F^T and F^T F = diag(k)."""
    if isinstance(operator, LowRankKroneckerOperator) and operator.Phi.shape[1] < operator.n_rows:
        k, E = np.linalg.eigh(operator.Phi.T @ operator.Phi)
        return operator.Phi @ E, np.clip(k, 0.0, None)
    k, E = np.linalg.eigh(operator.gram)
    k = np.clip(k, 0.0, None)
    return E * np.sqrt(k), k
