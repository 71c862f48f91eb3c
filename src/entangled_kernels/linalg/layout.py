"""The index convention, and the types of arrays.

Every vector over (feature, output) pairs has row index ``feature * p + output``, and every vector
over (sample, output) pairs has row index ``sample * p + output``. In NumPy's row-major order both
are plain reshapes: an array of shape (m, p) or (n, p) flattens into such a vector with
``reshape(-1)``, and a block operator that acts on features alone is ``kron(A, eye(p))``.

The types are `Array` of real numbers, `AnyArray` of real or complex numbers, and `Index` of
positions in arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

__all__ = [
    "AnyArray",
    "Array",
    "Index",
    "kraus_to_stacked",
    "related_targets",
    "stacked_to_kraus",
    "unique_columns",
]

Array = NDArray[np.float64]
AnyArray = NDArray[Any]
Index = NDArray[np.intp]


def kraus_to_stacked(kraus: Array) -> Array:
    """Write Kraus operators M_i (..., r, p, m) as the columns vec(M_i) of Q (..., m * p, r).

    Examples
    --------
    >>> import numpy as np
    >>> kraus = np.arange(6.0).reshape(1, 2, 3)  # one operator, p = 2 outputs, m = 3 features
    >>> kraus_to_stacked(kraus).ravel()
    array([0., 3., 1., 4., 2., 5.])
    """
    *lead, r, p, m = kraus.shape
    stacked = np.moveaxis(kraus, -3, -1).swapaxes(-3, -2)  # (..., m, p, r)
    return stacked.reshape(*lead, m * p, r)


def stacked_to_kraus(Q: Array, n_outputs: int) -> Array:
    """Kraus operators (..., r, p, m) from Q (..., m * p, r), the inverse of `kraus_to_stacked`."""
    *lead, mp, r = Q.shape
    Q = Q.reshape(*lead, mp // max(1, n_outputs), n_outputs, r)  # (..., m, p, r)
    return np.moveaxis(Q, -1, -3).swapaxes(-1, -2)


def unique_columns(A: AnyArray) -> tuple[AnyArray, Index]:
    """The distinct columns (n, g) of A (n, p) in lexicographic order, and the index (p,) of each.

    Examples
    --------
    >>> import numpy as np
    >>> unique_columns(np.array([[2, 0, 2], [1, 5, 1]]))
    (array([[0, 2],
           [5, 1]]), array([1, 0, 1]))
    """
    n, p = A.shape
    if n == 0 or p == 0:
        return A[:, :1], np.zeros(p, dtype=np.intp)
    # Comparing the bytes of columns is far faster than comparing numbers; minus zero becomes zero.
    columns = np.ascontiguousarray(A.T if A.dtype.kind == "b" else A.T + 0)
    view = columns.view(f"V{n * columns.itemsize}")
    _, first, index = np.unique(view, return_index=True, return_inverse=True)
    distinct, height = columns[first], 32
    # Most columns differ in their first rows.
    while height < n and len(np.unique(distinct[:, :height], axis=0)) < len(distinct):
        height *= 8
    order = np.lexsort(distinct[:, :height].T[::-1])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.ascontiguousarray(distinct[order].T), rank[index.reshape(-1)]


def related_targets(T: AnyArray) -> list[Index]:
    """Groups of targets that a stack of output kernels (m, p, p) relates, directly or not.

    Ridge systems of different groups are independent. Solving them one by one keeps the rounding
    and the stopping rule of targets in large units away from targets in small units.

    Examples
    --------
    >>> import numpy as np
    >>> related_targets(np.array([[[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.5, 0.0, 1.0]]]))
    [array([0, 2]), array([1])]
    """
    count, labels = connected_components((T != 0.0).any(axis=0), directed=False)
    return [np.flatnonzero(labels == number) for number in range(count)]
