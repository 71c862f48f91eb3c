"""Partial traces and partial transposes of matrices on a product of two spaces.

A matrix on the product of a space of dimension ``d0`` with one of dimension ``d1`` has row index
``i0 * d1 + i1``, the order of ``numpy.kron``. Every function takes real or complex matrices and
stacks of them in the leading axes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .layout import AnyArray

__all__ = ["as_bipartite", "partial_trace", "partial_transpose"]


def as_bipartite(A: ArrayLike, dims: tuple[int, int]) -> AnyArray:
    """View A of shape (..., d0*d1, d0*d1) with one axis per index: (..., d0, d1, d0, d1).

    Examples
    --------
    >>> import numpy as np
    >>> as_bipartite(np.eye(6), (2, 3)).shape
    (2, 3, 2, 3)
    """
    array = np.asarray(A)
    d0, d1 = dims
    size = d0 * d1
    if array.ndim < 2 or array.shape[-2:] != (size, size):
        raise ValueError(
            f"A has shape {array.shape}, but dims={tuple(dims)} needs (..., {size}, {size}); "
            "give the dimensions of the two spaces in the order of numpy.kron."
        )
    return array.reshape(*array.shape[:-2], d0, d1, d0, d1)


def _check_system(name: str, value: int) -> None:
    if value not in (0, 1):
        raise ValueError(f"{name} must be 0 (first space) or 1 (second space), got {value!r}.")


def partial_trace(A: ArrayLike, dims: tuple[int, int], keep: int = 0) -> AnyArray:
    """Trace out one of two spaces.

    ``keep=0`` replaces every d1 x d1 block of A by its trace and ``keep=1`` sums the diagonal
    blocks, so that the partial trace of kron(B, C) is ``trace(C) * B`` or ``trace(B) * C``.

    Parameters
    ----------
    A : array of shape (..., d0*d1, d0*d1)
        Matrix or stack of matrices.
    dims : (d0, d1)
        Dimensions of the two spaces.
    keep : {0, 1}, default=0
        The space that stays.

    Returns
    -------
    array of shape (..., d0, d0) or (..., d1, d1)

    Notes
    -----
    Time O(d0^2 d1) or O(d0 d1^2): only the entries that are summed are read.

    Examples
    --------
    >>> import numpy as np
    >>> B, C = np.diag([1.0, 2.0]), np.diag([1.0, 2.0, 3.0])
    >>> partial_trace(np.kron(B, C), (2, 3))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    _check_system("keep", keep)
    subscripts = "...ibjb->...ij" if keep == 0 else "...aiaj->...ij"
    return np.asarray(np.einsum(subscripts, as_bipartite(A, dims)))  # (..., d_keep, d_keep)


def partial_transpose(A: ArrayLike, dims: tuple[int, int], system: int = 1) -> AnyArray:
    """Transpose one of two spaces; ``system=1`` transposes every d1 x d1 block.

    The eigenvalues are the same for both systems of a Hermitian matrix, up to conjugation.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.arange(16.0).reshape(4, 4)
    >>> partial_transpose(A, (2, 2))
    array([[ 0.,  4.,  2.,  6.],
           [ 1.,  5.,  3.,  7.],
           [ 8., 12., 10., 14.],
           [ 9., 13., 11., 15.]])
    """
    _check_system("system", system)
    axes = (-3, -1) if system == 1 else (-4, -2)
    return as_bipartite(A, dims).swapaxes(*axes).reshape(np.asarray(A).shape)
