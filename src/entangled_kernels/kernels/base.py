"""The base class of operator-valued kernels, and their sums, products and multiples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import Array, BlockOperator

__all__ = ["OperatorValuedKernel", "as_points", "frozen_array"]


def as_points(X: ArrayLike, name: str = "X") -> Array:
    """Rows of points as a float matrix."""
    try:
        array = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a matrix of numbers, got {X!r:.80}") from None
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix with one point per row, got shape {array.shape}; "
            f"use {name}.reshape(-1, 1) for points on a line."
        )
    return array


def frozen_array(value: ArrayLike, name: str, ndim: int) -> Array:
    """Copy to a read-only float array: a kernel must not change after a model was fitted."""
    try:
        is_complex = np.iscomplexobj(value)
        array = np.array(np.real(value) if is_complex else value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {value!r:.80}") from None
    if is_complex:
        raise ValueError(
            f"{name} must be real: kernels are real-valued (linalg takes complex matrices)."
        )
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, but holds NaN or infinity.")
    array.setflags(write=False)
    return array


class OperatorValuedKernel(ABC):
    """A kernel K(x, z) with values in the p x p matrices.

    Kernels are immutable and store no training data. ``kernel(X, Z)`` gives the block Gram matrix
    as a lazy operator of shape (n*p, t*p), row index ``sample * p + output``. ``+`` adds kernels,
    ``*`` multiplies them blockwise, and ``2.0 * kernel`` is a multiple.

    A new kernel sets `n_outputs` and defines `__call__`. All other methods follow; override them
    if the structure of the kernel allows a cheaper computation.

    Attributes
    ----------
    n_outputs : int
        Number p of outputs.
    """

    n_outputs: int

    @property
    def guaranteed_psd(self) -> bool:
        """Whether theory promises a psd Gram matrix on every sample; False means unknown."""
        return False

    @abstractmethod
    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix between the rows of X and of Z (of X itself when Z is None)."""

    def blocks(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        """Values K(x_i, z_j), shape (n, t, p, p)."""
        return self(X, Z).blocks()

    def diag(self, X: ArrayLike) -> Array:
        """Values K(x_i, x_i), shape (n, p, p)."""
        return self(X).diagonal_blocks()

    def is_psd(self, X: ArrayLike, tol: float = 1e-9) -> bool:
        """Whether the Gram matrix on X has no eigenvalue below ``-tol`` times the largest in size.

        A negative eigenvalue on one sample proves that the kernel is indefinite (a kernel of a
        Krein space). No finite sample proves that a kernel is psd. Time O((n p)^3) unless the
        kernel has structure.
        """
        G = self(X).to_dense()
        eigenvalues = np.linalg.eigvalsh((G + G.T) / 2)
        return bool(eigenvalues[0] >= -tol * np.abs(eigenvalues).max())

    def __add__(self, other: Any) -> OperatorValuedKernel:
        from .algebra import SumKernel

        if not isinstance(other, OperatorValuedKernel):
            return NotImplemented
        return SumKernel([self, other])

    def __radd__(self, other: Any) -> OperatorValuedKernel:
        # The builtin sum starts from zero.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, other: Any) -> OperatorValuedKernel:
        from .algebra import HadamardKernel, SumKernel

        if isinstance(other, OperatorValuedKernel):
            return HadamardKernel(self, other)
        if isinstance(other, Real):
            return SumKernel([self], weights=[float(other)])
        return NotImplemented

    def __rmul__(self, other: Any) -> OperatorValuedKernel:
        return self.__mul__(other) if isinstance(other, Real) else NotImplemented
