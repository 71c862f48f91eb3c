"""Principal axes of second moments, small ones included when columns differ widely in scale."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dgejsv, dpstrf

from .layout import Array

__all__ = ["principal_axes", "rank_tolerance"]

# Eigenvalues below this many rounding errors of the largest count as zero.
_MIN_ROUNDING_ERRORS = 64
# If second moments of columns differ more than this, an eigendecomposition loses the small ones.
_GRADED = 1e6


def principal_axes(C: Array, g: Array | None = None) -> tuple[Array, Array]:
    """Positive eigenvalues, in no particular order, and orthonormal eigenvectors of C + g g^T.

    Parameters
    ----------
    C : ndarray of shape (m, m)
        Psd.
    g : ndarray of shape (m,), optional

    Returns
    -------
    scale : ndarray of shape (m',)
    axes : ndarray of shape (m, m')

    Notes
    -----
    The absolute error of the eigenvalues of an eigendecomposition is that of the largest one. This
    is accurate enough if all columns have similar scales. Otherwise C = S R S with S diagonal and R
    of unit diagonal. A pivoted Cholesky factorisation R = L L^T determines the rank. A Jacobi
    singular value decomposition of the factor S L, with g as one more column, gives all axes with
    high relative accuracy. The result then does not depend on the units of the columns.

    Time m^3, memory m^2.

    Examples
    --------
    >>> import numpy as np
    >>> scale, axes = principal_axes(np.diag([1e20, 1.0]) + 0.5)
    >>> bool(np.allclose(sorted(scale), [1.5, 1e20]))
    True
    """
    diagonal = np.diag(C) + (0.0 if g is None else g**2)
    positive = diagonal[diagonal > 0.0]
    if len(positive) == 0:
        return np.zeros(0), np.zeros((len(C), 0))
    graded = positive.max() > _GRADED * positive.min()
    if graded or (g is not None and float(g @ g) > _GRADED * float(np.trace(C))):
        return _graded_axes(C, g)
    scale, axes = eigh(C if g is None else C + np.outer(g, g))
    keep = scale > rank_tolerance(len(C)) * scale[-1]
    return scale[keep], np.ascontiguousarray(axes[:, keep])


def rank_tolerance(m: int) -> float:
    """Share of the largest of m eigenvalues or singular values below which values count as zero."""
    return float(np.finfo(float).eps) * max(_MIN_ROUNDING_ERRORS, m)


def _graded_axes(C: Array, g: Array | None) -> tuple[Array, Array]:
    m, spread = len(C), np.sqrt(np.diag(C))
    unit = np.where(spread > 0.0, spread, 1.0)
    triangle, pivots, rank, _ = dpstrf(C / unit / unit[:, None], lower=1, tol=rank_tolerance(m))
    L, order = np.tril(triangle)[:, :rank], np.argsort(pivots)
    factor = unit[:, None] * L[order]
    if g is not None:
        factor = np.column_stack([factor, g])
    if factor.shape[1] == 0:
        return np.zeros(0), np.zeros((m, 0))
    # High relative accuracy needs two-sided scaling (joba=2) and no range limits (jobr=0).
    tall = factor.shape[1] <= m
    values, left, right, work, _, _ = dgejsv(factor if tall else factor.T, joba=2, jobr=0)
    values = values * (work[0] / work[1])
    axes, others = (left[:, : len(values)], right) if tall else (right, left[:, : len(values)])
    if rank == m:
        # Entries of small axes in large columns need high relative accuracy, because they will be
        # multiplied by these columns. Computed from the factor, their error is small enough.
        accurate = solve_triangular(L, others[:m] * values, lower=True, trans=1)[order]
        axes = np.where(values < unit[:, None], accurate / unit[:, None], axes)
    keep = values > 0.0
    return values[keep] ** 2, np.ascontiguousarray(axes[:, keep])
