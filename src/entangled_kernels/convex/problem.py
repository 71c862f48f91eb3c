"""Kernels and targets in common coordinates, and the result of learning from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, qr

from ..linalg import Array, rank_tolerance
from ..parameters import weight_unit
from .penalties import OutputPenalty, typical_level

__all__ = [
    "KernelPart",
    "MissingTargets",
    "Problem",
    "Result",
    "alpha_unit",
    "check_finite",
    "check_psd",
    "compress",
    "diagonalise",
    "expand",
    "reduce_problem",
    "refuse_overflow",
    "retarget",
    "store_rows",
]

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")
EPS = float(np.finfo(np.float64).eps)
# A Gram matrix that was computed in single precision has negative eigenvalues of this size.
NEGATIVE = 1e-6
# Rows of a Gram matrix in a block, so that passes over it stay in the cache.
BLOCK = 64
# Coefficients of this size and more overflow in predictions.
LARGEST = 1e150
OVERFLOW = (
    "the fit overflows: alpha, sample_weight, inputs and targets are of too different sizes; scale "
    "inputs and targets, divide sample_weight by its mean, or use an alpha nearer to 1"
)


def refuse_overflow(learn: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """The function with a ValueError that names the arguments in place of NumPy's LinAlgError."""

    @wraps(learn)
    def learn_or_refuse(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        try:
            return learn(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            raise ValueError(OVERFLOW) from error

    return learn_or_refuse


class KernelPart(NamedTuple):
    """A kernel on the training rows: its Gram matrix (n, n), or features (n, d)."""

    matrix: Array
    is_features: bool = False


class MissingTargets(NamedTuple):
    """Targets (n, p), of any value where they are missing, and weights (n, p), zero there."""

    Y: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """Gram matrices and targets, after weighting, centring and scaling; see `reduce_problem`.

    Attributes
    ----------
    kernels : ndarray of shape (m, r, r) or (1, r)
        Centred, weighted and scaled Gram matrices in the coordinates of ``vectors``; positive
        eigenvalues of their sum after `diagonalise`.
    targets : ndarray of shape (r, p)
        Centred and weighted targets in these coordinates.
    vectors : ndarray of shape (n, r) or None
        Orthonormal columns that span the range of all kernels; None is the identity.
    Y : ndarray of shape (n, p)
        Centred and weighted targets.
    root_weight : ndarray of shape (n,)
        Square roots of the weights of rows.
    mean_y : ndarray of shape (p,)
        Weighted means of the targets, zero if they were not centred.
    mean_k : ndarray of shape (m, n)
        Weighted means of the rows of the Gram matrices as given, zero if not centred.
    scales : ndarray of shape (m,)
        Divisors of the Gram matrices.
    rounding : float
        Rounding error of the eigenvalues of the sum of all kernels.
    centred : bool
        True if the model has an intercept.
    missing : MissingTargets or None
        If targets are missing. ``root_weight`` then holds the largest weight of each row, and
        ``Y`` and ``targets`` have the mean squares of the targets that are not missing.
    """

    kernels: Array
    targets: Array
    vectors: Array | None
    Y: Array
    root_weight: Array
    mean_y: Array
    mean_k: Array
    scales: Array
    rounding: float
    centred: bool
    missing: MissingTargets | None = None

    @property
    def rest(self) -> float:
        """Squared norm of the targets outside the range of all kernels."""
        if self.vectors is None:
            return 0.0
        outside = self.Y - self.vectors @ self.targets
        return float(np.vdot(outside, outside))

    def to_coordinates(self, C: Array) -> Array:
        """Coordinates (r, p) of an array (n, p) over the rows."""
        return C if self.vectors is None else np.asarray(self.vectors.T @ C)

    def from_coordinates(self, C: Array) -> Array:
        """Array (n, p) over the rows from coordinates (r, p)."""
        return C if self.vectors is None else np.asarray(self.vectors @ C)

    def rows(self, C: Array, alpha: float) -> Array:
        """Dual coefficients (n, p) of the rows as given, from coordinates (r, p)."""
        if self.vectors is not None:
            C = self.vectors @ C + (self.Y - self.vectors @ self.targets) / alpha
        return np.asarray(self.root_weight[:, None] * C)

    def inner_products(self, C: Array) -> Array:
        """C^T K_j C, (m, p, p), for dual coefficients of the rows.

        The columns of C sum to zero if the problem is centred.
        """
        inside = self.to_coordinates(C / self.root_weight[:, None])  # (r, p)
        if self.kernels.ndim == 2:
            return np.asarray(inside.T @ (self.kernels[0][:, None] * inside))[None]
        return np.asarray(inside.T @ self.kernels @ inside)


@dataclass(frozen=True, eq=False)
class Result:
    """Learned parameters, their dual coefficients, and a certificate.

    Attributes
    ----------
    T : ndarray of shape (m, p, p)
        Output kernels, psd, with the weights of the kernels in them: the model is
        f(x) = sum_ij k_j(x, x_i) T_j C[i] / scale_j + intercept. Of `solve_convex`, the
        parameters (m, k, k).
    C : ndarray of shape (n, p)
        Dual coefficients.
    value : float
        The objective.
    gap : float
        The objective is at most this much above its minimum over all ranks; for weights and one
        shared output kernel, above the minima over each with the other held fixed.
    witness : ndarray of shape (n, p)
        Dual coefficients that prove the gap: their dual value is the objective less the gap. With
        missing targets they belong to the last complete problem, and `learn_missing` proves the
        gap.
    converged : bool
        True if the tolerance was met.
    reason : str
        Why the search stopped: ``"tolerance"``, ``"max_iter"``, ``"stalled"`` if the objective can
        fall no further in double precision, ``"zero"`` if the kernel cannot reach the targets, so
        that there is nothing to learn, or ``"fixed"`` if the output kernel was given.
    n_iter : int
        Updates of L, or evaluations of the objective or its dual; with missing targets, complete
        problems solved.
    history : ndarray
        Objective at the start and after every update or round of updates; it never rises.
    weights : ndarray of shape (m,), or (m, p) for weights by output
        Weights of the kernels.
    intercept : ndarray of shape (p,)
        Zero if the problem is not centred.
    """

    T: Array
    C: Array
    value: float
    gap: float
    witness: Array
    converged: bool
    reason: str
    n_iter: int
    history: Array
    weights: Array = field(default_factory=lambda: np.ones(1))
    intercept: Array = field(default_factory=lambda: np.zeros(1))

    @property
    def L(self) -> Array:
        """The output kernel (p, p) if all kernels share one."""
        return np.asarray(self.T[0])


def reduce_problem(
    kernels: ArrayLike | list[KernelPart],
    Y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    centred: bool = False,
    normalized: bool = False,
) -> Problem:
    """Prepare kernels and targets, once for all ridges, penalties and starts.

    Parameters
    ----------
    kernels : array-like of shape (n, n), or list of KernelPart
        One Gram matrix, or several kernels.
    Y : array-like of shape (n, p)
    weights : array-like of shape (n,) or (n, p), optional
        Non-negative weights of the squared errors, of rows or of single targets. A zero in a
        matrix is a missing target; every row and every column has a positive weight.
    centred : bool, default=False
        True if the model has an intercept, which is not penalised.
    normalized : bool, default=False
        True to divide every centred Gram matrix by the mean of its diagonal, so that weights of
        kernels can be compared.

    Notes
    -----
    The residual at row i has weight w_i, and its gradient gives w_i (Y - f)_i = alpha C_i. In
    terms of C / w^1/2 that is the plain problem for w^1/2 K w^1/2 and w^1/2 Y. An intercept makes
    the columns of C sum to zero; then K may be replaced by the Gram matrix of features centred at
    their weighted mean, and Y by Y - mean_y, and the intercept is mean_y - mean_k C L.

    If all kernels are inner products of features, with fewer columns in all than rows, a QR
    decomposition of the features gives coordinates in which all Gram matrices are small.

    Time m n^2 for Gram matrices, n d^2 for d features in all.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(4)[:, :2], np.ones((4, 3))
    >>> reduce_problem([KernelPart(X, is_features=True)], Y).kernels.shape
    (1, 2, 2)
    >>> diagonalise(reduce_problem(X @ X.T, Y)).kernels
    array([[1., 1.]])
    """
    Y = np.array(Y, dtype=np.float64)
    n = len(Y)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            raise ValueError("sample_weight must have a finite sum; divide it by its largest value")
    if w.ndim == 2:
        Y = np.where(w > 0.0, Y, 0.0)
    parts = _check_parts(kernels, Y)
    missing = None
    if w.ndim == 2:
        missing = MissingTargets(Y, w)
        Y, w = _complete_targets(missing, centred), w.max(axis=1)
    share, root = w / w.sum(), np.sqrt(w)
    Y, mean_y = _centre_targets(Y, w, centred)
    m, width = len(parts), sum(part.matrix.shape[1] for part in parts)
    mean_k, vectors = np.zeros((m, n)), None
    features: list[Array | None] = [None] * m
    for j, (matrix, is_features) in enumerate(parts):
        if is_features:
            centre = share @ matrix if centred else np.zeros(matrix.shape[1])
            features[j], mean_k[j] = (matrix - centre) * root[:, None], matrix @ centre
    if all(part.is_features for part in parts) and width < n:
        stacked = np.hstack([Phi for Phi in features if Phi is not None])
        vectors, R = qr(stacked, mode="economic", check_finite=False)
        ends = np.cumsum([part.matrix.shape[1] for part in parts])
        features = list(np.split(R, ends[:-1], axis=1))
    r = n if vectors is None else vectors.shape[1]
    grams, scales, rounding = np.empty((m, r, r)), np.ones(m), 0.0
    for j, (part, Phi) in enumerate(zip(parts, features, strict=True)):
        K = part.matrix
        if Phi is not None:
            trace = float(np.vdot(Phi, Phi))
            constant = trace <= (8 * EPS) ** 2 * float(w @ np.sum(K**2, axis=1))
        else:
            mean_k[j] = share @ K if centred else np.zeros(n)
            shift = mean_k[j] - share @ mean_k[j]
            trace = float(w @ (K.diagonal() - mean_k[j] - shift))
            constant = abs(trace) < 8 * EPS * float(w @ np.abs(K.diagonal()))
        if constant:
            grams[j] = 0.0  # a constant kernel minus its mean is rounding
            continue
        if normalized and trace > 0.0:
            scales[j] = trace / (float(w.sum()) or 1.0)
        if Phi is not None:
            np.matmul(Phi / scales[j], Phi.T, out=grams[j])
            continue
        for first in range(0, n, BLOCK):
            rows = slice(first, first + BLOCK)
            block = grams[j][rows]
            np.subtract(K[rows], mean_k[j, rows, None], out=block)
            block -= shift
            if weights is not None:
                block *= root[rows, None]
                block *= root
            block *= 1.0 / scales[j]
        if centred:
            rounding += 8 * n * EPS * float(np.abs(K).max()) * float(w.max()) / scales[j]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.vdot(grams, grams), np.vdot(Y, Y)
        if weights is not None and not np.isfinite(sizes).all():
            raise ValueError(
                "sample_weight has values so large that weighted squares overflow; divide it by "
                "its mean"
            )
    targets = Y if vectors is None else vectors.T @ Y
    return Problem(
        grams, targets, vectors, Y, root, mean_y, mean_k, scales, rounding, centred, missing
    )


def retarget(problem: Problem, Y: ArrayLike) -> Problem:
    """The problem with other complete targets (n, p), in time n p r."""
    w = problem.root_weight**2
    Y, mean_y = _centre_targets(np.array(Y, dtype=np.float64), w, problem.centred)
    check_finite(Y)
    return replace(problem, targets=problem.to_coordinates(Y), Y=Y, mean_y=mean_y, missing=None)


def check_psd(values: Array, rounding: float = 0.0) -> None:
    """Raise unless increasing eigenvalues of a Gram matrix are non-negative up to rounding."""
    if values[0] < -max(rounding, rank_tolerance(len(values)) * values[-1], NEGATIVE * values[-1]):
        raise ValueError(
            f"kernel must be positive semi-definite, got a Gram matrix with the eigenvalues "
            f"{values[0]:.3g} and {values[-1]:.3g}; use a kernel that is (linear, rbf, ...)"
        )


def check_finite(*arrays: Array) -> None:
    """Raise if arrays of a fit have overflowed, or would if they were multiplied."""
    if not all(np.isfinite(A).all() and np.abs(A).max(initial=0.0) < LARGEST for A in arrays):
        raise ValueError(OVERFLOW)


def diagonalise(problem: Problem) -> Problem:
    """The problem of the sum of all kernels, in the coordinates of its eigenvectors.

    A problem that was diagonalised before is returned as it is. Time n^3.
    """
    if problem.kernels.ndim == 2:
        return problem
    K = problem.kernels.sum(axis=0) if len(problem.kernels) > 1 else problem.kernels[0]
    values, U = eigh(K, check_finite=False)
    check_psd(values, problem.rounding)
    kept = values > max(problem.rounding, rank_tolerance(len(values)) * values[-1])
    return _rotate(problem, values[kept][None], U[:, kept])


def compress(problem: Problem) -> Problem:
    """The same problem in coordinates of the range of the sum of all Gram matrices.

    It helps solvers that iterate on coefficients: targets outside the range have coefficients of
    their size over alpha, and all others are small. Time n^3 + m n^2 r for rank r.
    """
    values, U = eigh(problem.kernels.sum(axis=0), check_finite=False)
    check_psd(values, problem.rounding)
    U = U[:, values > len(values) * EPS * values[-1]]
    if U.shape[1] in (0, len(U)):
        return problem
    return _rotate(problem, np.asarray(U.T @ problem.kernels @ U), U)


def alpha_unit(
    problem: Problem, penalty: OutputPenalty | None = None, *, fixed: bool = False
) -> float:
    """Scale of alpha for the Gram matrix and the targets of a problem.

    With alpha in this unit the fit does not depend on the scales of kernel and targets: if either
    is multiplied by a constant, predictions only change to the new units of the targets.

    Parameters
    ----------
    problem : Problem
    penalty : OutputPenalty, optional
        The squared Frobenius norm unless another is given.
    fixed : bool, default=False
        True if the size of L is given rather than learned, as by a constraint.

    Notes
    -----
    Put K = s K', Y = c Y', L = a L' and alpha = a s alpha'. The first two terms of the objective
    scale with c^2 / (a s), and a penalty of power q with a^q: with a = (c^2 / s)^(1/(q+1)) all
    scale alike, and alpha' means the same for every s and c. The unit is a s with s = tr(K) / n
    and c^2 = ||Y||^2 / p, and s if L keeps its size. A mixture of two powers has no such unit, and
    the higher power is used. If the targets or the kernel are zero, the unit is one. Weights are
    divided by that of one row (`entangled_kernels.parameters.weight_unit`), and the unit multiplied
    by it: a constant factor of all weights changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> problem = reduce_problem(2 * np.eye(3), 4 * np.eye(3))
    >>> round(alpha_unit(problem), 12)
    4.0
    >>> alpha_unit(problem, fixed=True)
    2.0
    """
    kernels = problem.kernels
    trace = kernels.sum() if kernels.ndim == 2 else np.trace(kernels, axis1=1, axis2=2).sum()
    w = problem.root_weight**2
    row_unit = weight_unit(w)
    mean_eigenvalue = float(trace) / float(w.sum())
    square = float(np.vdot(problem.Y, problem.Y)) / (problem.Y.shape[1] * row_unit)
    if not (square > 0.0 and mean_eigenvalue > 0.0):
        return row_unit
    unit = row_unit * mean_eigenvalue
    penalty = OutputPenalty() if penalty is None else penalty
    if fixed or penalty.is_ball:
        return unit
    return unit * typical_level(square / mean_eigenvalue, penalty.power)


def expand(
    problem: Problem,
    alpha: float,
    result: Result,
    T: Array,
    weights: Array,
    outward: Callable[[Array], Array] = lambda C: C,
) -> Result:
    """A result in the coordinates of the rows as given, with its intercept.

    Parameters
    ----------
    problem : Problem
    alpha : float
    result : Result
        In the coordinates of a Gram matrix.
    T : ndarray of shape (m, p, p)
    weights : ndarray of shape (m,) or (m, p)
    outward : callable, optional
        From coefficients of ``result`` to coordinates (r, p) of the problem.
    """
    C, witness = (problem.rows(outward(A), alpha) for A in (result.C, result.witness))
    return store_rows(problem, result, C, witness, T, weights, problem.mean_y)


def store_rows(
    problem: Problem,
    result: Result,
    C: Array,
    witness: Array,
    T: Array,
    weights: Array,
    mean: Array,
) -> Result:
    """The result with these dual coefficients (n, p), and its intercept for kernels as given.

    ``mean`` (p,) is the intercept for centred kernels.
    """
    shift = np.einsum("mn,np,mpq->q", problem.mean_k / problem.scales[:, None], C, T)  # (p,)
    check_finite(C, T, shift)
    intercept = np.asarray(mean - shift)
    return replace(result, C=C, witness=witness, T=T, weights=weights, intercept=intercept)


def _check_parts(kernels: ArrayLike | list[KernelPart], Y: Array) -> list[KernelPart]:
    """Kernels as a list, with the rows of the targets, and values whose squares are finite."""
    if isinstance(kernels, list) and isinstance(kernels[0], KernelPart):
        parts = [KernelPart(np.asarray(K, dtype=np.float64), flag) for K, flag in kernels]
    else:
        parts = [KernelPart(np.asarray(kernels, dtype=np.float64))]
    for K, is_features in parts:
        if Y.ndim != 2 or len(K) != len(Y) or not (is_features or K.shape == (len(Y), len(Y))):
            raise ValueError(
                f"K must be square and Y have its rows, got shapes {K.shape} and {Y.shape}"
            )
    with np.errstate(over="ignore", invalid="ignore"):
        if not all(np.isfinite(np.vdot(A, A)) for A in (Y, *(part.matrix for part in parts))):
            raise ValueError(
                "K or Y has values whose squares overflow; scale inputs and targets before fitting"
            )
    return parts


def _complete_targets(missing: MissingTargets, centred: bool) -> Array:
    """Complete targets with the sums of squares, by the weights of rows, of those not missing."""
    Y, weights = missing
    sums, row_weight = weights.sum(axis=0), weights.max(axis=1)
    mean = np.sum(weights * Y, axis=0) / sums if centred else np.zeros(Y.shape[1])
    share = np.sqrt(weights * (row_weight.sum() / sums) / row_weight[:, None])  # (n, p)
    return np.asarray(mean + share * (Y - mean))


def _rotate(problem: Problem, kernels: Array, U: Array) -> Problem:
    """The problem with these kernels, in coordinates given by the columns of U."""
    vectors = U if problem.vectors is None else problem.vectors @ U
    return replace(problem, kernels=kernels, targets=U.T @ problem.targets, vectors=vectors)


def _centre_targets(Y: Array, w: Array, centred: bool) -> tuple[Array, Array]:
    """Centred and weighted targets, and their means."""
    mean = (w / w.sum()) @ Y if centred else np.zeros(Y.shape[1])
    Y = Y - mean
    if centred:
        # A constant target minus its mean is rounding, not structure to learn.
        Y[:, np.abs(Y).max(axis=0) <= 4 * EPS * np.abs(mean)] = 0.0
    return Y * np.sqrt(w)[:, None], mean
