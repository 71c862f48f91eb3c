"""Lazy block Gram matrices: SciPy linear operators that keep the structure of a kernel.

A block operator represents the matrix of shape (n*p, t*p) whose p x p block (i, j) is K(x_i, z_j);
its row index is ``sample * p + output``. A subclass writes its products, its adjoint and
`block_rows`, the blocks of some rows; dense matrices, blocks and diagonals follow from these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.utils import gen_batches

from .layout import AnyArray

__all__ = [
    "BlockOperator",
    "DenseOperator",
    "FunctionOperator",
    "HadamardOperator",
    "SumOperator",
]

# Row chunks of unstructured operators have about this many numbers (32 MB in double precision).
CHUNK_NUMBERS = 2**22
# Points in a square piece of a diagonal.
DIAGONAL_CHUNK = 32


class BlockOperator(LinearOperator):
    """A matrix of shape (n*p, t*p) made of p x p blocks, given by its products.

    Parameters
    ----------
    n_rows, n_columns : int
        Numbers n and t of block rows and block columns.
    n_outputs : int
        Size p of a block.
    dtype : dtype
    """

    def __init__(self, n_rows: int, n_columns: int, n_outputs: int, dtype: Any) -> None:
        self.n_rows, self.n_columns, self.n_outputs = n_rows, n_columns, n_outputs
        super().__init__(np.dtype(dtype), (n_rows * n_outputs, n_columns * n_outputs))

    @abstractmethod
    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""

    def blocks(self) -> AnyArray:
        """All blocks, shape (n, t, p, p); this allocates n*t*p^2 numbers."""
        return self.block_rows(slice(0, self.n_rows))

    def to_dense(self) -> AnyArray:
        """Form the whole matrix, shape (n*p, t*p); this allocates n*t*p^2 numbers."""
        return self.blocks().swapaxes(1, 2).reshape(self.shape)  # (n, p, t, p)

    def diagonal_blocks(self) -> AnyArray:
        """Blocks (i, i), shape (min(n, t), p, p)."""
        chunks = self._chunks(min(self.n_rows, self.n_columns))
        return np.concatenate(
            [np.einsum("iiop->iop", self.block_rows(rows)[:, rows]) for rows in chunks]
        )

    def _chunks(self, n_rows: int) -> Iterator[slice]:
        step = CHUNK_NUMBERS // max(1, self.n_columns * self.n_outputs**2)
        yield from gen_batches(n_rows, max(1, step))

    def _matmat(self, V: AnyArray) -> AnyArray:
        p, c = self.n_outputs, V.shape[1]
        out = np.empty((self.n_rows, p, c), dtype=np.result_type(self.dtype, V.dtype))
        for rows in self._chunks(self.n_rows):
            blocks = self.block_rows(rows).swapaxes(1, 2)  # (b, p, t, p)
            out[rows] = (blocks.reshape(-1, self.n_columns * p) @ V).reshape(-1, p, c)
        return out.reshape(self.n_rows * p, c)

    @abstractmethod
    def _adjoint(self) -> BlockOperator: ...


class DenseOperator(BlockOperator):
    """A block matrix that is stored, from its blocks (n, t, p, p).

    Examples
    --------
    >>> import numpy as np
    >>> DenseOperator(np.ones((3, 4, 2, 2))).shape
    (6, 8)
    """

    def __init__(self, blocks: AnyArray) -> None:
        n, t, p, _ = blocks.shape
        super().__init__(n, t, p, blocks.dtype)
        self._matrix = np.ascontiguousarray(blocks.swapaxes(1, 2)).reshape(n * p, t * p)

    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""
        p = self.n_outputs
        return self._matrix.reshape(self.n_rows, p, self.n_columns, p)[rows].swapaxes(1, 2)

    def _matmat(self, V: AnyArray) -> AnyArray:
        return np.asarray(self._matrix @ V)

    def _adjoint(self) -> DenseOperator:
        return DenseOperator(self.blocks().transpose(1, 0, 3, 2).conj())


class FunctionOperator(BlockOperator):
    """A block matrix without structure, computed some rows at a time for each product.

    A matrix that fits into a single chunk is computed once.

    Parameters
    ----------
    between : callable
        ``between(A, B)`` gives the blocks of some points A of the rows and B of the columns, shape
        (len(A), len(B), p, p).
    rows, columns : arrays of n and of t points
    n_outputs : int
    dtype : dtype, default=float

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(3.0)
    >>> operator = FunctionOperator(lambda a, b: np.multiply.outer(a, b)[:, :, None, None], x, x, 1)
    >>> operator @ np.ones(3)
    array([0., 3., 6.])
    """

    def __init__(
        self,
        between: Callable[[AnyArray, AnyArray], AnyArray],
        rows: AnyArray,
        columns: AnyArray,
        n_outputs: int,
        dtype: Any = np.float64,
    ) -> None:
        super().__init__(len(rows), len(columns), n_outputs, dtype)
        self._between, self._rows, self._columns = between, rows, columns

    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""
        return self._between(self._rows[rows], self._columns)

    @cached_property
    def _matrix(self) -> AnyArray:
        return self.to_dense()

    def _matmat(self, V: AnyArray) -> AnyArray:
        if self.shape[0] * self.shape[1] > CHUNK_NUMBERS:
            return super()._matmat(V)
        return np.asarray(self._matrix @ V)

    def diagonal_blocks(self) -> AnyArray:
        """Blocks (i, i), shape (min(n, t), p, p), from square pieces along the diagonal."""
        n = min(self.n_rows, self.n_columns)
        pieces = gen_batches(n, DIAGONAL_CHUNK)
        squares = (self._between(self._rows[piece], self._columns[piece]) for piece in pieces)
        return np.concatenate([np.einsum("iiop->iop", square) for square in squares])

    def _adjoint(self) -> FunctionOperator:
        def flipped(B: AnyArray, A: AnyArray) -> AnyArray:
            return self._between(A, B).transpose(1, 0, 3, 2).conj()  # (t, n, p, p)

        return FunctionOperator(flipped, self._columns, self._rows, self.n_outputs, self.dtype)


class SumOperator(BlockOperator):
    """Behaves as ``sum(weight * operator.to_dense())`` over block operators of one shape.

    Examples
    --------
    >>> import numpy as np
    >>> term = DenseOperator(np.ones((2, 2, 1, 1)))
    >>> SumOperator([term, term], [1.0, 2.0]).to_dense()[0]
    array([3., 3.])
    """

    def __init__(self, terms: Sequence[BlockOperator], weights: Sequence[float]) -> None:
        first = terms[0]
        dtype = np.result_type(*(term.dtype for term in terms))
        super().__init__(first.n_rows, first.n_columns, first.n_outputs, dtype)
        self.terms, self.weights = tuple(terms), tuple(weights)

    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""
        return self._add(term.block_rows(rows) for term in self.terms)

    def diagonal_blocks(self) -> AnyArray:
        """Blocks (i, i), shape (min(n, t), p, p)."""
        return self._add(term.diagonal_blocks() for term in self.terms)

    def _add(self, arrays: Iterator[AnyArray]) -> AnyArray:
        return np.asarray(sum(w * array for w, array in zip(self.weights, arrays, strict=True)))

    def _matmat(self, V: AnyArray) -> AnyArray:
        return self._add(term._matmat(V) for term in self.terms)

    def _adjoint(self) -> SumOperator:
        return SumOperator([term._adjoint() for term in self.terms], np.conj(self.weights).tolist())


class HadamardOperator(BlockOperator):
    """Behaves as the entrywise product ``first.to_dense() * second.to_dense()``.

    Notes
    -----
    Products form some block rows at a time, so memory stays O(t p^2) times the chunk.

    Examples
    --------
    >>> import numpy as np
    >>> term = DenseOperator(2 * np.ones((2, 2, 1, 1)))
    >>> HadamardOperator(term, term).to_dense()[0]
    array([4., 4.])
    """

    def __init__(self, first: BlockOperator, second: BlockOperator) -> None:
        if first.shape != second.shape or first.n_outputs != second.n_outputs:
            raise ValueError(
                f"second has shape {second.shape} with {second.n_outputs} outputs, but must match "
                f"first: {first.shape} with {first.n_outputs} outputs."
            )
        dtype = np.result_type(first.dtype, second.dtype)
        super().__init__(first.n_rows, first.n_columns, first.n_outputs, dtype)
        self.first, self.second = first, second

    def block_rows(self, rows: slice) -> AnyArray:
        """Blocks of some rows, shape (len(rows), t, p, p)."""
        return self.first.block_rows(rows) * self.second.block_rows(rows)

    def diagonal_blocks(self) -> AnyArray:
        """Blocks (i, i), shape (min(n, t), p, p)."""
        return self.first.diagonal_blocks() * self.second.diagonal_blocks()

    def _adjoint(self) -> HadamardOperator:
        return HadamardOperator(self.first._adjoint(), self.second._adjoint())
