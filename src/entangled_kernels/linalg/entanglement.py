"""Tests whether a psd matrix on a product of two spaces is entangled.

A psd matrix is *separable* when it is a sum of kron(B_l, C_l) with psd factors (complex factors
allowed), and *entangled* otherwise. Deciding this is NP-hard in general; the tests here are
one-sided:

- a partial transpose with a negative eigenvalue proves entanglement (PPT fails);
- a realignment value above the trace proves entanglement (CCNR fails);
- PPT holding proves separability in dimensions 2 x 2 and 2 x 3 only;
- one nonzero operator-Schmidt value proves that A is a single Kronecker product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .layout import AnyArray
from .partial import as_bipartite, partial_trace, partial_transpose

__all__ = [
    "OperatorSchmidt",
    "is_ppt",
    "nearest_kronecker",
    "negativity",
    "operator_schmidt",
    "partial_transpose_eigenvalues",
    "realignment",
]


class OperatorSchmidt(NamedTuple):
    """A = sum_k values[k] * kron(left[k], right[k]), with orthonormal factors.

    Attributes
    ----------
    values : array of shape (..., k)
        Nonnegative, in decreasing order, k = min(d0^2, d1^2).
    left : array of shape (..., k, d0, d0)
    right : array of shape (..., k, d1, d1)
    """

    values: AnyArray
    left: AnyArray
    right: AnyArray


def partial_transpose_eigenvalues(A: ArrayLike, dims: tuple[int, int]) -> AnyArray:
    """Eigenvalues of the partial transpose of a Hermitian A, in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> bell = np.array([1.0, 0.0, 0.0, 1.0]) / np.sqrt(2)
    >>> partial_transpose_eigenvalues(np.outer(bell, bell), (2, 2)).round(12)
    array([-0.5,  0.5,  0.5,  0.5])
    """
    array = np.asarray(A)
    adjoint = array.conj().swapaxes(-1, -2)
    if not np.allclose(array, adjoint, rtol=0.0, atol=1e-8 * np.abs(array).max(initial=0.0)):
        raise ValueError(
            "A must be Hermitian (symmetric when real); A and its adjoint differ by "
            f"{np.abs(array - adjoint).max():.3g}. Pass (A + A.conj().T) / 2 if that is rounding."
        )
    return np.linalg.eigvalsh(partial_transpose(array, dims))


def is_ppt(A: ArrayLike, dims: tuple[int, int], tol: float = 1e-10) -> bool | NDArray[np.bool_]:
    """Whether the partial transpose of a psd matrix has no negative eigenvalue.

    False proves entanglement. True proves nothing, except in dimensions 2 x 2 and 2 x 3.

    Parameters
    ----------
    A : array of shape (..., d0*d1, d0*d1)
        Hermitian psd matrix or stack of them.
    dims : (d0, d1)
        Dimensions of the two spaces.
    tol : float, default=1e-10
        An eigenvalue counts as negative below ``-tol`` times the largest absolute one.

    Returns
    -------
    bool, or an array of bool for a stack

    Examples
    --------
    >>> import numpy as np
    >>> bell = np.array([1.0, 0.0, 0.0, 1.0]) / np.sqrt(2)
    >>> is_ppt(np.outer(bell, bell), (2, 2))
    False
    """
    eigenvalues = partial_transpose_eigenvalues(A, dims)
    holds = eigenvalues[..., 0] >= -tol * np.abs(eigenvalues).max(axis=-1)
    return bool(holds) if holds.ndim == 0 else holds


def negativity(A: ArrayLike, dims: tuple[int, int]) -> Any:
    """Sum of the absolute negative eigenvalues of the partial transpose.

    For a state (trace one) it is 0 if PPT holds and 1/2 for two maximally entangled qubits. It
    scales with A: divide A by its trace to compare matrices.

    Examples
    --------
    >>> import numpy as np
    >>> bell = np.array([1.0, 0.0, 0.0, 1.0]) / np.sqrt(2)
    >>> round(float(negativity(np.outer(bell, bell), (2, 2))), 12)
    0.5
    """
    return -np.minimum(partial_transpose_eigenvalues(A, dims), 0.0).sum(axis=-1)


def _rearranged(A: ArrayLike, dims: tuple[int, int]) -> AnyArray:
    """Rearrange A to (..., d0*d0, d1*d1), so that kron(B, C) becomes vec(B) vec(C)^T."""
    A4 = as_bipartite(A, dims)  # (..., d0, d1, d0, d1)
    d0, d1 = dims
    return A4.swapaxes(-3, -2).reshape(*A4.shape[:-4], d0 * d0, d1 * d1)


def realignment(A: ArrayLike, dims: tuple[int, int]) -> Any:
    """Sum of the operator-Schmidt values: the computable cross norm (CCNR) value.

    A value above the trace of A (above 1 for a state) proves entanglement, also for some matrices
    whose partial transpose is psd. The value scales with A.

    Examples
    --------
    >>> import numpy as np
    >>> bell = np.array([1.0, 0.0, 0.0, 1.0]) / np.sqrt(2)
    >>> round(float(realignment(np.outer(bell, bell), (2, 2))), 12)
    2.0
    """
    return np.linalg.svd(_rearranged(A, dims), compute_uv=False).sum(axis=-1)


def operator_schmidt(A: ArrayLike, dims: tuple[int, int]) -> OperatorSchmidt:
    """Write A as a sum of Kronecker products with orthonormal factors.

    Parameters
    ----------
    A : array of shape (..., d0*d1, d0*d1)
        Any matrix or stack of matrices.
    dims : (d0, d1)
        Dimensions of the two spaces.

    Returns
    -------
    OperatorSchmidt
        ``values`` in decreasing order and the factors ``left`` and ``right``.

    Notes
    -----
    The values are the singular values of A rearranged to shape (d0^2, d1^2), because that
    rearrangement maps kron(B, C) to vec(B) vec(C)^T. Time O(d0^2 d1^2 min(d0, d1)^2).

    Examples
    --------
    >>> import numpy as np
    >>> result = operator_schmidt(np.kron(np.eye(2), np.ones((2, 2))), (2, 2))
    >>> int((result.values > 1e-12).sum())
    1
    """
    d0, d1 = dims
    left, values, right = np.linalg.svd(_rearranged(A, dims), full_matrices=False)
    lead, k = values.shape[:-1], values.shape[-1]
    return OperatorSchmidt(
        values,
        left.swapaxes(-1, -2).reshape(*lead, k, d0, d0),
        right.reshape(*lead, k, d1, d1),
    )


def nearest_kronecker(A: ArrayLike, dims: tuple[int, int]) -> tuple[AnyArray, AnyArray]:
    """Factors B, C that minimise ||A - kron(B, C)||_F; both psd when A is, with equal norms.

    Parameters
    ----------
    A : array of shape (..., d0*d1, d0*d1)
        Any matrix or stack of matrices.
    dims : (d0, d1)
        Dimensions of the two spaces.

    Returns
    -------
    B : array of shape (..., d0, d0)
    C : array of shape (..., d1, d1)

    Notes
    -----
    kron(B, C) is the leading operator-Schmidt term. When the leading value is repeated, the SVD may
    return any combination of the tied factors, psd or not. The power method started at the partial
    trace of A stays in the psd cone. Its limit is the projection of the start on the tied factors,
    and this projection is computed here.

    Examples
    --------
    >>> import numpy as np
    >>> B, C = nearest_kronecker(np.kron(np.diag([1.0, 2.0]), np.ones((2, 2))), (2, 2))
    >>> np.allclose(np.kron(B, C), np.kron(np.diag([1.0, 2.0]), np.ones((2, 2))))
    True
    """
    d0, d1 = dims
    R = _rearranged(A, dims)  # (..., d0*d0, d1*d1)
    left, values, _ = np.linalg.svd(R, full_matrices=False)
    start = partial_trace(A, dims, keep=0).reshape(*R.shape[:-2], d0 * d0, 1)
    weights = left.conj().swapaxes(-1, -2) @ start  # (..., k, 1)
    tied = values >= (1 - 1e-9) * values[..., :1]
    weights = np.where(tied[..., None], weights, 0.0)
    size = np.linalg.norm(weights, axis=-2, keepdims=True)
    silent = size <= 1e-9 * np.linalg.norm(start, axis=-2, keepdims=True)
    leading = np.zeros_like(weights)
    leading[..., 0, :] = 1.0
    weights = np.where(silent, leading, weights / np.where(silent, 1.0, size))
    b = left @ weights  # (..., d0*d0, 1), unit norm
    c = R.swapaxes(-1, -2) @ b.conj()  # (..., d1*d1, 1), norm values[0]
    root = np.sqrt(values[..., 0])[..., None, None]
    B = (b * root).reshape(*values.shape[:-1], d0, d0)
    C = (c / np.where(root > 0, root, 1.0)).reshape(*values.shape[:-1], d1, d1)
    return B, C
