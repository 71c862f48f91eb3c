"""Block operators with structure: Kronecker products, sums of them, and low rank.

Each operator stores its factors only. `to_dense` and `blocks` form n*t*p^2 numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .layout import AnyArray
from .operators import BlockOperator

__all__ = [
    "KroneckerOperator",
    "LowRankKroneckerOperator",
    "LowRankOperator",
    "SumOfKroneckersOperator",
    "mix_outputs",
    "multiple_of_identity",
]


def multiple_of_identity(T: AnyArray) -> Any:
    """Return c if T = c I, and None otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> float(multiple_of_identity(2.0 * np.eye(3)))
    2.0
    """
    c = T[0, 0]
    return c if np.count_nonzero(T) <= len(T) and np.array_equal(T, c * np.eye(len(T))) else None


def is_identity(T: AnyArray) -> bool:
    """Whether a matrix of any shape is the identity."""
    return T.shape[0] == T.shape[1] == np.count_nonzero(T) and bool(np.all(np.diag(T) == 1.0))


def mix_outputs(T: AnyArray, V: AnyArray) -> AnyArray:
    """Product of T (p, p) with every one of n matrices V (n, p, c)."""
    if V.shape[2] == 1:  # one matrix product instead of n matrix-vector ones
        return np.asarray(V[:, :, 0] @ T.T)[:, :, None]
    return np.asarray(T @ V)


class KroneckerOperator(BlockOperator):
    """Behaves as ``numpy.kron(K, T)``: every block is a multiple of one matrix.

    Parameters
    ----------
    K : array of shape (n, t)
    T : array of shape (p, p)

    Notes
    -----
    A product with c columns costs O(n t p c + n p^2 c).

    Examples
    --------
    >>> import numpy as np
    >>> K, T = np.ones((2, 3)), np.diag([1.0, 2.0])
    >>> np.array_equal(KroneckerOperator(K, T).to_dense(), np.kron(K, T))
    True
    """

    def __init__(self, K: AnyArray, T: AnyArray) -> None:
        super().__init__(K.shape[0], K.shape[1], T.shape[0], np.result_type(K, T))
        self.gram, self.output = K, T

    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""
        return self.gram[rows, :, None, None] * self.output

    def diagonal_blocks(self) -> AnyArray:
        """Blocks (i, i), shape (min(n, t), p, p)."""
        return np.diagonal(self.gram)[:, None, None] * self.output

    def _matmat(self, V: AnyArray) -> AnyArray:
        p, c = self.n_outputs, V.shape[1]
        KV = self.gram @ V.reshape(self.n_columns, p * c)
        return self._mix_outputs(KV.reshape(self.n_rows, p, c)).reshape(self.n_rows * p, c)

    def _mix_outputs(self, V: AnyArray) -> AnyArray:
        """Apply T to the output axis of V (n, p, c)."""
        scale = multiple_of_identity(self.output)
        return mix_outputs(self.output, V) if scale is None else np.asarray(V * scale)

    def _adjoint(self) -> KroneckerOperator:
        return KroneckerOperator(self.gram.conj().T, self.output.conj().T)


class LowRankKroneckerOperator(KroneckerOperator):
    """Behaves as ``numpy.kron(Phi @ Psi.conj().T, T)`` with thin factors Phi (n, m) and Psi (t, m).

    Examples
    --------
    >>> import numpy as np
    >>> Phi, Psi = np.ones((4, 2)), np.ones((3, 2))
    >>> LowRankKroneckerOperator(Phi, Psi, np.eye(2)).to_dense().shape
    (8, 6)
    """

    def __init__(self, Phi: AnyArray, Psi: AnyArray, T: AnyArray) -> None:
        BlockOperator.__init__(self, len(Phi), len(Psi), len(T), np.result_type(Phi, Psi, T))
        self.Phi, self.Psi, self.output = Phi, Psi, T

    @property
    def gram(self) -> AnyArray:  # type: ignore[override]
        """The scalar Gram matrix Phi Psi^H, formed at each call."""
        return np.asarray(self.Phi @ self.Psi.conj().T)

    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""
        return np.asarray(self.Phi[rows] @ self.Psi.conj().T)[:, :, None, None] * self.output

    def diagonal_blocks(self) -> AnyArray:
        """Blocks (i, i), shape (min(n, t), p, p)."""
        n = min(self.n_rows, self.n_columns)
        k: AnyArray = np.einsum("im,im->i", self.Phi[:n], self.Psi[:n].conj())
        return k[:, None, None] * self.output

    def _matmat(self, V: AnyArray) -> AnyArray:
        p, c = self.n_outputs, V.shape[1]
        KV = self.Phi @ (self.Psi.conj().T @ V.reshape(self.n_columns, p * c))
        return self._mix_outputs(KV.reshape(self.n_rows, p, c)).reshape(self.n_rows * p, c)

    def _adjoint(self) -> LowRankKroneckerOperator:
        return LowRankKroneckerOperator(self.Psi, self.Phi, self.output.conj().T)


class SumOfKroneckersOperator(BlockOperator):
    """Behaves as ``sum(numpy.kron(K, T) for K, T in zip(Ks, Ts))``.

    Parameters
    ----------
    Ks : array of shape (L, n, t)
    Ts : array of shape (L, p, p)

    Examples
    --------
    >>> import numpy as np
    >>> Ts = np.stack([np.eye(2), np.ones((2, 2))])
    >>> operator = SumOfKroneckersOperator(np.ones((2, 3, 3)), Ts)
    >>> operator.diagonal_blocks()[0]
    array([[2., 1.],
           [1., 2.]])
    """

    def __init__(self, Ks: AnyArray, Ts: AnyArray) -> None:
        super().__init__(Ks.shape[1], Ks.shape[2], Ts.shape[1], np.result_type(Ks, Ts))
        self.Ks, self.Ts = Ks, Ts

    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""
        return np.asarray(np.tensordot(self.Ks[:, rows], self.Ts, axes=(0, 0)))

    def diagonal_blocks(self) -> AnyArray:
        """Blocks (i, i), shape (min(n, t), p, p)."""
        scalars = np.diagonal(self.Ks, axis1=1, axis2=2)  # (L, min(n, t))
        return np.asarray(np.tensordot(scalars, self.Ts, axes=(0, 0)))

    def _matmat(self, V: AnyArray) -> AnyArray:
        p, c = self.n_outputs, V.shape[1]
        KV = (self.Ks @ V.reshape(self.n_columns, p * c)).reshape(len(self.Ks), self.n_rows, p, c)
        return np.reshape(
            np.einsum("lop,lnpc->noc", self.Ts, KV, optimize=True), (self.n_rows * p, c)
        )

    def _adjoint(self) -> SumOfKroneckersOperator:
        return SumOfKroneckersOperator(self.Ks.conj().swapaxes(1, 2), self.Ts.conj().swapaxes(1, 2))


class LowRankOperator(BlockOperator):
    """Behaves as ``kron(Phi, I_p) @ (kron(A, I_p) + Q @ Q^H) @ kron(Psi, I_p)^H``.

    Parameters
    ----------
    Phi : array of shape (n, m)
        Features of the rows.
    Psi : array of shape (t, m)
        Features of the columns.
    Q : array of shape (m*p, r)
        Stacked Kraus operators, row index ``feature * p + output``.
    n_outputs : int
    metric : array of shape (m, m), optional
        The matrix A; left out when None.

    Notes
    -----
    A product with c columns costs O((n + t) m p c + m p r c). The rank is at most m*p.

    Examples
    --------
    >>> import numpy as np
    >>> Phi = np.eye(3)
    >>> np.array_equal(LowRankOperator(Phi, Phi, np.eye(6), 2).to_dense(), np.eye(6))
    True
    """

    def __init__(
        self,
        Phi: AnyArray,
        Psi: AnyArray,
        Q: AnyArray,
        n_outputs: int,
        metric: AnyArray | None = None,
    ) -> None:
        super().__init__(len(Phi), len(Psi), n_outputs, np.result_type(Phi, Psi, Q))
        self.Phi, self.Psi, self.Q, self.metric = Phi, Psi, Q, metric

    def factor_rows(self, Phi: AnyArray) -> AnyArray:
        """Rows kron(Phi, I_p) @ Q of the low-rank factor, shape (n, p, r)."""
        m, p, r = self.Phi.shape[1], self.n_outputs, self.Q.shape[1]
        return np.reshape(Phi @ self.Q.reshape(m, p * r), (len(Phi), p, r))

    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""
        p, Phi = self.n_outputs, self.Phi[rows]
        r = self.Q.shape[1]
        left = self.factor_rows(Phi).reshape(len(Phi) * p, r)
        right = self.factor_rows(self.Psi).reshape(self.n_columns * p, r)
        blocks = (left @ right.conj().T).reshape(len(Phi), p, self.n_columns, p).swapaxes(1, 2)
        if self.metric is not None:
            scalar = Phi @ self.metric @ self.Psi.conj().T  # (b, t)
            blocks = blocks + scalar[:, :, None, None] * np.eye(p)
        return blocks

    def diagonal_blocks(self) -> AnyArray:
        """Blocks (i, i), shape (min(n, t), p, p)."""
        n = min(self.n_rows, self.n_columns)
        Phi, Psi = self.Phi[:n], self.Psi[:n]
        blocks: AnyArray = self.factor_rows(Phi) @ self.factor_rows(Psi).conj().swapaxes(1, 2)
        if self.metric is not None:
            scalar = np.einsum("im,im->i", Phi @ self.metric, Psi.conj())
            blocks = blocks + scalar[:, None, None] * np.eye(self.n_outputs)
        return blocks

    def _matmat(self, V: AnyArray) -> AnyArray:
        p, c, m = self.n_outputs, V.shape[1], self.Phi.shape[1]
        F = self.Psi.conj().T @ V.reshape(self.n_columns, p * c)  # (m, p*c)
        DF = (self.Q @ (self.Q.conj().T @ F.reshape(m * p, c))).reshape(m, p * c)
        if self.metric is not None:
            DF = DF + self.metric @ F
        return np.reshape(self.Phi @ DF, (self.n_rows * p, c))

    def _adjoint(self) -> LowRankOperator:
        metric = None if self.metric is None else self.metric.conj().T
        return LowRankOperator(self.Psi, self.Phi, self.Q, self.n_outputs, metric)
