"""The Gram matrix and the targets of output kernel learning, decomposed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from ..linalg import Array, rank_tolerance
from .penalties import OutputPenalty

__all__ = [
    "OutputKernelProblem",
    "alpha_unit",
    "reduce_problem",
    "retarget",
    "solve_sylvester",
    "typical_level",
]

EPS = float(np.finfo(np.float64).eps)
# A Gram matrix that was computed in single precision has negative eigenvalues of this relative size.
NEGATIVE = 1e-6


@dataclass(frozen=True, eq=False)
class OutputKernelProblem:
    """Gram matrix and targets in the eigenbasis of the Gram matrix, with what cannot matter left out.

    Made by `reduce_problem`; K and Y are the centred and weighted ones from there on.

    Attributes
    ----------
    values : ndarray of shape (q,)
        Positive eigenvalues of K.
    vectors : ndarray of shape (n, q)
        Their eigenvectors, so K = vectors diag(values) vectors^T.
    targets : ndarray of shape (q, k)
        T with vectors^T Y = T outputs^T.
    outputs : ndarray of shape (p, k)
        Orthonormal basis of the directions of the outputs that K can reach; L lives in it.
    Y : ndarray of shape (n, p)
    rest : ndarray of shape (n, p)
        The part of Y outside the range of K.
    root_weight : ndarray of shape (n,)
        Square roots of the weights.
    mean_y : ndarray of shape (p,)
        Weighted mean of the targets, zero when they were not centred.
    mean_k : ndarray of shape (n,)
        Weighted mean of the rows of the Gram matrix as it was given, zero when it was not centred.
    """

    values: Array
    vectors: Array
    targets: Array
    outputs: Array
    Y: Array
    rest: Array
    root_weight: Array
    mean_y: Array
    mean_k: Array


def reduce_problem(
    K: ArrayLike, Y: ArrayLike, weight: ArrayLike | None = None, *, centred: bool = False
) -> OutputKernelProblem:
    """Decompose the Gram matrix, once for all alphas, ranks and starts.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Positive semi-definite Gram matrix of the input kernel.
    Y : array-like of shape (n, p)
    weight : array-like of shape (n,), optional
        Non-negative weights of the squared errors, not all zero.
    centred : bool, default=False
        Whether the model has an intercept, which is not penalised.

    Notes
    -----
    The residual at row i has weight w_i, and its gradient gives w_i (Y - f)_i = alpha C_i. In
    terms of C / w^1/2 that is the plain problem for w^1/2 K w^1/2 and w^1/2 Y. An intercept makes the
    columns of C sum to zero; then K may be replaced by the Gram matrix of features centred at their
    weighted mean, and Y by Y - mean_y, and the intercept is mean_y - mean_k C L.

    Compressing L to the directions of the outputs in which vectors^T Y is not zero lowers every term of the
    objective, so L lives there. The thin singular value decomposition of vectors^T Y finds these
    k <= min(q, p) directions.

    Time n^3 + q p min(q, p), memory n^2.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(4)[:, :2], np.ones((4, 3))
    >>> problem = reduce_problem(X @ X.T, Y)
    >>> problem.vectors.shape, problem.targets.shape
    ((4, 2), (2, 1))
    """
    K, Y = np.array(K, dtype=np.float64), np.array(Y, dtype=np.float64)
    n = len(K)
    if K.shape != (n, n) or Y.ndim != 2 or len(Y) != n:
        raise ValueError(f"K must be square and Y have its rows, got shapes {K.shape} and {Y.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        if not (np.isfinite(np.vdot(K, K)) and np.isfinite(np.vdot(Y, Y))):
            raise ValueError(
                "K or Y has values whose squares overflow; scale inputs and targets before fitting"
            )
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    rounding, mean_k = 0.0, np.zeros(n)
    if centred:
        share = w / w.sum()
        rounding = 8 * n * EPS * float(np.abs(K).max()) * float(w.max())
        mean_k = share @ K
        K += share @ mean_k - mean_k[:, None] - mean_k
    root = np.sqrt(w)
    K *= root[:, None] * root
    values, vectors = _positive_eigenpairs(K, rounding)
    return _with_targets(values, vectors, w, mean_k, Y, centred)


def retarget(problem: OutputKernelProblem, Y: ArrayLike, *, centred: bool) -> OutputKernelProblem:
    """The problem with other targets (n, p) for the same Gram matrix and weights, in time n p q."""
    Y = np.array(Y, dtype=np.float64)
    return _with_targets(problem.values, problem.vectors, problem.root_weight**2, problem.mean_k, Y, centred)


def _with_targets(
    values: Array, vectors: Array, w: Array, mean_k: Array, Y: Array, centred: bool
) -> OutputKernelProblem:
    """Centre, weigh and reduce the targets, which are written over."""
    root, mean_y = np.sqrt(w), np.zeros(Y.shape[1])
    if centred:
        mean_y = (w / w.sum()) @ Y
        Y -= mean_y
        # What is left of a constant target is rounding, and no structure to learn.
        Y[:, np.abs(Y).max(axis=0) <= 4 * EPS * np.abs(mean_y)] = 0.0
    Y *= root[:, None]
    inside = vectors.T @ Y  # (q, p)
    # NumPy's decomposition, unlike that of older SciPy, takes the empty matrix that K = 0 leaves.
    left, size, right = np.linalg.svd(inside, full_matrices=False)
    kept = size > rank_tolerance(max(Y.shape)) * np.linalg.norm(Y)
    targets, outputs = left[:, kept] * size[kept], right[kept].T
    return OutputKernelProblem(
        values, vectors, targets, outputs, Y, Y - vectors @ inside, root, mean_y, mean_k
    )


def _positive_eigenpairs(K: Array, rounding: float) -> tuple[Array, Array]:
    """Eigenvalues above rounding, which centring may have left far above that of K as it now is."""
    values, vectors = eigh(K, overwrite_a=True, check_finite=False)
    rounding = max(rounding, rank_tolerance(len(values)) * values[-1])
    if values[0] < -max(rounding, NEGATIVE * values[-1]):
        raise ValueError(
            f"K must be positive semi-definite, got an eigenvalue of {values[0]:.3g} beside the largest, "
            f"{values[-1]:.3g}; use a kernel that is positive semi-definite (linear, rbf, laplacian, ...)"
        )
    kept = values > rounding
    return values[kept], vectors[:, kept]


def alpha_unit(
    problem: OutputKernelProblem,
    *,
    rank: int | None = None,
    penalty: OutputPenalty | None = None,
    fixed: bool = False,
) -> float:
    """Scale of alpha for the Gram matrix and the targets of a problem.

    In this unit alpha is free of scale: multiply kernel or targets by anything, and the same fit comes out in
    the units of the targets.

    Parameters
    ----------
    problem : OutputKernelProblem
    rank : int, optional
        A rank makes the penalty the trace.
    penalty : OutputPenalty, optional
        The squared Frobenius norm unless another is given.
    fixed : bool, default=False
        Whether the size of L is given rather than learned, as by a constraint.

    Notes
    -----
    Put K = s K', Y = c Y', L = a L' and alpha = a s alpha'. The first two terms of the objective scale with
    c^2 / (a s), and a penalty of power q with a^q: with a = (c^2 / s)^(1/(q+1)) all scale alike, and alpha'
    means the same for every s and c. The unit is a s with s = tr(K) / n and c^2 = ||Y||^2 / p, and s where L
    keeps its size. A mixture of penalties of two powers has no such unit: there it is that of the higher one.
    Targets or a kernel that are zero leave nothing to choose, and the unit is one.

    Examples
    --------
    >>> import numpy as np
    >>> problem = reduce_problem(2 * np.eye(3), 4 * np.eye(3))
    >>> round(alpha_unit(problem), 12)
    4.0
    >>> alpha_unit(problem, fixed=True)
    2.0
    """
    mean_eigenvalue = float(problem.values.sum()) / float(np.sum(problem.root_weight**2))
    square = float(np.vdot(problem.Y, problem.Y)) / problem.Y.shape[1]
    if not (square > 0.0 and mean_eigenvalue > 0.0):
        return 1.0
    if fixed or (penalty is not None and penalty.is_ball and rank is None):
        return mean_eigenvalue
    power = 1.0 if rank is not None else 2.0 if penalty is None else penalty.power
    return mean_eigenvalue * typical_level(square / mean_eigenvalue, power)


def typical_level(square: float, power: float) -> float:
    """Size of L at which a penalty of this power balances a squared norm."""
    return float(np.cbrt(square) if power == 2.0 else square ** (1.0 / (power + 1.0)))


def solve_sylvester(problem: OutputKernelProblem, L: ArrayLike, alpha: float) -> Array:
    """Dual coefficients of kernel ridge regression with the kernel k(x, z) L: K C L + alpha C = Y.

    Parameters
    ----------
    problem : OutputKernelProblem
    L : array-like of shape (p, p)
        Any positive semi-definite matrix.
    alpha : float
        Positive.

    Returns
    -------
    C : ndarray of shape (n, p)
        For the centred and weighted K and Y of the problem.

    Notes
    -----
    With K = U diag(values) U^T and L = V diag(levels) V^T the equation is diagonal: entry (i,
    j) of U^T C V is that of U^T Y V over values_i levels_j + alpha. Where K is zero, C = Y / alpha.

    Time n p (q + p) + p^3: no Kronecker product, no decomposition of K.
    """
    levels, V = eigh(np.asarray(L, dtype=np.float64))
    inside = problem.vectors.T @ problem.Y  # (q, p)
    Z = (inside @ V) / (np.outer(problem.values, np.maximum(levels, 0.0)) + alpha)  # (q, p)
    return np.asarray(problem.vectors @ (Z @ V.T) + problem.rest / alpha)
