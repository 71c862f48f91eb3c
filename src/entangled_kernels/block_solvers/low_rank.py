"""Ridge systems of kernels in Kraus form, in as many dimensions as D has rank."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, LowRankOperator, kraus_from_choi, kraus_to_stacked

__all__ = ["LowRankFactor"]


class LowRankFactor:
    """Solves with Z Z^T + alpha I, Z = kron(Phi, I_p) Q of shape (n*p, r), by Woodbury's identity.

    Parameters
    ----------
    operator : LowRankOperator
        Square.
    mask : array of shape (n, p), optional
        Factors of the rows of Z, zero in blanks.

    Notes
    -----
    Z^T Z = Q^T kron(Phi^T Phi, I_p) Q needs Phi^T Phi only, so Z is never formed; with a mask M it needs
    Phi^T diag(M_o)^2 Phi for every output o. After Q is rotated to make Z^T Z = diag(s),
    c = (y - Z diag(1 / (s + alpha)) Z^T y) / alpha for every alpha.
    Time O(m^2 n + m^2 p r + m p r^2 + r^3), with a mask m^2 n p in the place of m^2 n; a further alpha costs
    O((n + r) m p).
    """

    def __init__(self, operator: LowRankOperator, mask: Array | None = None) -> None:
        p, m = operator.n_outputs, operator.Phi.shape[1]
        Q = operator.Q
        if operator.metric is not None:
            Q = kraus_to_stacked(kraus_from_choi(Q @ Q.T + np.kron(operator.metric, np.eye(p)), p))
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
        """Cells of A (n, p, c) times their factors."""
        return A if self.mask is None else A * self.mask


def _masked_products(Phi: Array, mask: Array, Q: Array) -> Array:
    """Phi^T diag(M_o)^2 Phi Q_o for every output o, shape (m, p, r), for Q (m, p, r)."""
    out = np.empty_like(Q)
    for o, column in enumerate(mask.T):
        masked = column[:, None] * Phi
        out[:, o] = (masked.T @ masked) @ Q[:, o]
    return out
