"""Block Gram matrices of scaled cells: diag(s) G diag(s), with the structure kept where rows are scaled."""

from __future__ import annotations

import numpy as np

from ..linalg import (
    Array,
    BlockOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    SumOfKroneckersOperator,
)

__all__ = ["ScaledOperator", "scale_rows"]


class ScaledOperator(BlockOperator):
    """Behaves as ``numpy.diag(s) @ operator.to_dense() @ numpy.diag(s)`` for a square operator.

    Parameters
    ----------
    operator : BlockOperator
        Square.
    scale : array of shape (n, p)
        s, one number for each row and output.

    Examples
    --------
    >>> import numpy as np
    >>> operator = KroneckerOperator(np.ones((2, 2)), np.ones((1, 1)))
    >>> ScaledOperator(operator, np.array([[2.0], [0.0]])).to_dense()
    array([[4., 0.],
           [0., 0.]])
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


def scale_rows(operator: BlockOperator, s: Array) -> BlockOperator:
    """Multiply block (i, j) of a square operator by s_i s_j; the result has the structure of the operator.

    Examples
    --------
    >>> import numpy as np
    >>> operator = KroneckerOperator(np.ones((2, 2)), np.ones((1, 1)))
    >>> scale_rows(operator, np.array([1.0, 2.0])).gram
    array([[1., 2.],
           [2., 4.]])
    """
    if isinstance(operator, LowRankKroneckerOperator):
        return LowRankKroneckerOperator(s[:, None] * operator.Phi, s[:, None] * operator.Psi, operator.output)
    if isinstance(operator, KroneckerOperator):
        return KroneckerOperator(s[:, None] * operator.gram * s, operator.output)
    if isinstance(operator, SumOfKroneckersOperator):
        return SumOfKroneckersOperator(s[:, None] * operator.Ks * s, operator.Ts)
    if isinstance(operator, LowRankOperator):
        Phi, Psi = s[:, None] * operator.Phi, s[:, None] * operator.Psi
        return LowRankOperator(Phi, Psi, operator.Q, operator.n_outputs, operator.metric)
    return ScaledOperator(operator, np.repeat(s[:, None], operator.n_outputs, axis=1))
