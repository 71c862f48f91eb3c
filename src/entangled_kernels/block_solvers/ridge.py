"""Ridge regression on measured cells with an intercept for each output, from a factorisation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ..linalg import Array
from .registry import Factor

__all__ = ["ObservedRidge"]

# Right-hand sides of the intercepts are solved some at a time, about this many numbers (32 MB) together.
CHUNK_NUMBERS = 2**22


class ObservedRidge:
    """Coefficients, variances and leave-one-out residuals of ridge regression on measured cells.

    Minimises sum w_io (y_io - f_o(x_i) - b_o)^2 + alpha ||f||^2 over f = sum_i K(., x_i) c_i and b, where the
    sum is over cells (i, o) of positive weight.

    Parameters
    ----------
    factor : Factor
        Of S G S with S = diag(sqrt(weights)), as `factorize_observed` makes it.
    weights : None or array of shape (n,) or (n, p)
        Not negative; zeros are blanks.
    shape : (int, int)
        n and p.
    intercept : bool
        Whether there is a b, which is not penalised; else it is zero.

    Attributes
    ----------
    residual : float
        Largest relative residual of the iterative solves since this was set to zero; 0.0 for direct ones.

    Notes
    -----
    With H = (S G S + alpha I)^-1 and O = S (1 kron I_p), the cells' membership in outputs, the optimum is

        b = (O^T H O)^-1 O^T H S y,    c = S H (S y - O b),

    so that the coefficients of each output sum to zero: O^T S^-1 c = 0. Seen as a Gaussian process with noise
    variance alpha / w and a flat prior on b, the posterior variance at a point with covariances k, and E that
    says which output it is, is

        K(x, x) - k^T S H S k + (E - O^T H S k)^T (O^T H O)^-1 (E - O^T H S k).

    Leaving out row i gives the residual s_i^-1 (P_ii)^-1 z_i with z = S^-1 c and P_ii the measured cells of
    row i of P = H - H O (O^T H O)^-1 O^T H: by the inverse of a partitioned matrix, as without an intercept.

    Cost: p more right-hand sides for the intercept. O is solved for some outputs at a time and not kept.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.block_solvers import factorize_observed
    >>> from entangled_kernels.linalg import KroneckerOperator
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> factor, _ = factorize_observed(KroneckerOperator(np.multiply.outer(x, x), np.eye(1)), None)
    >>> c, b = ObservedRidge(factor, None, (3, 1), intercept=True).coefficients(3.0 + x[:, None], alpha=2.0)
    >>> b
    array([3.])
    >>> float(x @ c[:, 0])  # the slope, 1 shrunk by 2 / (2 + alpha)
    0.5
    """

    def __init__(
        self, factor: Factor, weights: Array | None, shape: tuple[int, int], intercept: bool = False
    ) -> None:
        self.factor, self.shape, self.intercept = factor, shape, intercept
        self.residual = 0.0
        self._informations: dict[float, Array] = {}
        self.scale: Array | None = None
        if weights is not None:
            self.scale = np.broadcast_to(np.sqrt(weights).reshape(len(weights), -1), shape)

    def _solve(self, R: Array, alpha: float) -> Array:
        solved = self.factor.solve(R, alpha)
        self.residual = max(self.residual, float(getattr(self.factor, "residual", 0.0)))
        return solved

    def _scaled(self, A: Array) -> Array:
        """S A for A (n, p, c); blanks become zero, whatever they hold."""
        if self.scale is None:
            return A
        return np.where(self.scale[:, :, None] > 0.0, self.scale[:, :, None] * A, 0.0)

    def _memberships(self, columns: Array) -> Iterator[Array]:
        """O V, shape (n, p, c), for some columns of V (p, p) at a time."""
        n, p = self.shape
        scale = np.ones(self.shape) if self.scale is None else self.scale
        step = max(1, CHUNK_NUMBERS // (n * p))
        for start in range(0, p, step):
            yield scale[:, :, None] * columns[None, :, start : start + step]

    def _totals(self, A: Array) -> Array:
        """O^T A, shape (p, c), for A (n, p, c)."""
        return np.asarray((A if self.scale is None else self.scale[:, :, None] * A).sum(axis=0))

    def _information(self, alpha: float) -> Array:
        """O^T H O, shape (p, p); kept for every alpha, as it costs p solves."""
        if alpha not in self._informations:
            parts = self._memberships(np.eye(self.shape[1]))
            N = np.concatenate([self._totals(self._solve(part, alpha)) for part in parts], axis=1)
            self._informations[alpha] = (N + N.T) / 2
        return self._informations[alpha]

    def intercepts(self, Y: Array, alpha: float) -> Array:
        """Optimal b, shape (p,), for targets Y (n, p); zeros without an intercept."""
        if not self.intercept:
            return np.zeros(self.shape[1])
        total = self._totals(self._solve(self._scaled(Y[:, :, None]), alpha))[:, 0]
        return np.asarray(np.linalg.solve(self._information(alpha), total))

    def coefficients(self, Y: Array, alpha: float) -> tuple[Array, Array]:
        """Coefficients c (n, p), zero in blanks, and intercepts b (p,), for targets Y (n, p)."""
        b = self.intercepts(Y, alpha)
        return self._scaled(self._dual(Y, b, alpha))[:, :, 0], b

    def _dual(self, Y: Array, b: Array, alpha: float) -> Array:
        """z = S^-1 c, shape (n, p, 1)."""
        return self._solve(self._scaled((Y - b if self.intercept else Y)[:, :, None]), alpha)

    def variance_reduction(self, cross: Array, alpha: float) -> Array:
        """What the measured cells take from the prior variance at new points, shape (t, p).

        Parameters
        ----------
        cross : array of shape (n, p, t * p)
            Covariances with the training rows.
        alpha : float
        """
        p = self.shape[1]
        right = self._scaled(cross)
        solved = self._solve(right, alpha)
        explained: Array = np.einsum("noc,noc->c", right, solved).reshape(-1, p)
        if not self.intercept:
            return explained
        # E - O^T H S k, shape (p, t, p)
        open_ = np.eye(p)[:, None, :] - self._totals(solved).reshape(p, -1, p)
        factor = cho_factor(self._information(alpha))
        added = np.einsum("otq,otq->tq", open_, cho_solve(factor, open_.reshape(p, -1)).reshape(open_.shape))
        return np.asarray(explained - added)

    def loo_residuals(self, Y: Array, alpha: float) -> Array:
        """Residuals y_i - f_-i(x_i) - b_-i with row i left out, shape (n, p).

        NaN in blanks, and with an intercept also where no other row has the target measured.
        """
        b = self.intercepts(Y, alpha)
        dual = self._dual(Y, b, alpha)
        blocks = self.factor.inverse_diagonal_blocks(alpha)
        if self.intercept:
            # O^T H O = U^T U, and H O U^-1 (H O U^-1)^T is what the intercepts take from H.
            U = np.linalg.cholesky(self._information(alpha)).T
            for part in self._memberships(solve_triangular(U, np.eye(self.shape[1]))):
                solved = self._solve(part, alpha)
                blocks = blocks - solved @ solved.swapaxes(1, 2)
        known = self._known_without_their_row()
        if known.all():
            residuals = np.linalg.solve(blocks, dual)[:, :, 0]
        else:
            pairs = known[:, :, None] & known[:, None, :]
            blocks = np.where(pairs, blocks, np.eye(self.shape[1]))
            residuals = np.linalg.solve(blocks, np.where(known[:, :, None], dual, 0.0))[:, :, 0]
            residuals = np.where(known, residuals, np.nan)
        if self.scale is not None:
            residuals = residuals / np.where(known, self.scale, 1.0)
        return np.asarray(residuals, dtype=np.float64)

    def _known_without_their_row(self) -> NDArray[np.bool_]:
        """Measured cells whose output is known from other rows too, where it has an intercept."""
        measured = np.ones(self.shape, dtype=bool) if self.scale is None else self.scale > 0.0
        return measured & (measured.sum(axis=0) > 1) if self.intercept else measured
