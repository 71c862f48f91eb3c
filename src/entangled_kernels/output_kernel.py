"""Output kernel learning: a separable kernel k(x, z) L whose output part L is learned with the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, qr, svd

__all__ = [
    "OutputKernelProblem",
    "OutputKernelResult",
    "alpha_unit",
    "learn_output_kernel",
    "output_kernel_path",
    "reduce_problem",
    "solve_sylvester",
]

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
# A Gram matrix that was computed in single precision has negative eigenvalues of this relative size.
NEGATIVE = 1e-6
HALVINGS = 40
CG_STEPS = 10


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


@dataclass(frozen=True, eq=False)
class OutputKernelResult:
    """A learned output kernel, the dual coefficients that go with it, and how they were found.

    Attributes
    ----------
    C : ndarray of shape (n, p)
        Dual coefficients: the model is f(x) = sum_i k(x, x_i) L C[i] + intercept.
    L : ndarray of shape (p, p)
        Positive semi-definite output kernel.
    intercept : ndarray of shape (p,)
        Zero when the problem is not centred.
    value : float
        The objective.
    converged : bool
        Whether the tolerance was met.
    reason : str
        Why the iteration stopped: ``"tolerance"``, ``"max_iter"``, ``"stalled"`` when the objective can
        fall no further in double precision, or ``"zero"`` when K says nothing about Y, so that L = 0.
    n_iter : int
        Number of updates of L.
    history : ndarray of shape (n_iter + 1,)
        Objective at the start and after every update; it never rises.
    """

    C: Array
    L: Array
    intercept: Array
    value: float
    converged: bool
    reason: str
    n_iter: int
    history: Array


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
    rounding, mean_k, mean_y = 0.0, np.zeros(n), np.zeros(Y.shape[1])
    if centred:
        share = w / w.sum()
        rounding = 8 * n * EPS * float(np.abs(K).max()) * float(w.max())
        mean_k, mean_y = share @ K, share @ Y
        K += share @ mean_k - mean_k[:, None] - mean_k
        Y -= mean_y
        # What is left of a constant target is rounding, and no structure to learn.
        Y[:, np.abs(Y).max(axis=0) <= 4 * EPS * np.abs(mean_y)] = 0.0
    root = np.sqrt(w)
    K *= root[:, None] * root
    Y *= root[:, None]
    values, vectors = _positive_eigenpairs(K, rounding)
    inside = vectors.T @ Y  # (q, p)
    # NumPy's decomposition, unlike that of older SciPy, takes the empty matrix that K = 0 leaves.
    left, size, right = np.linalg.svd(inside, full_matrices=False)
    kept = size > max(Y.shape) * EPS * np.linalg.norm(Y)
    targets, outputs = left[:, kept] * size[kept], right[kept].T
    return OutputKernelProblem(
        values, vectors, targets, outputs, Y, Y - vectors @ inside, root, mean_y, mean_k
    )


def _positive_eigenpairs(K: Array, rounding: float) -> tuple[Array, Array]:
    """Eigenvalues above rounding, which centring may have left far above that of K as it now is."""
    values, vectors = eigh(K, overwrite_a=True, check_finite=False)
    rounding = max(rounding, len(values) * EPS * values[-1])
    if values[0] < -max(rounding, NEGATIVE * values[-1]):
        raise ValueError(
            f"K must be positive semi-definite, got an eigenvalue of {values[0]:.3g} beside the largest, "
            f"{values[-1]:.3g}; use a kernel that is positive semi-definite (linear, rbf, laplacian, ...)"
        )
    kept = values > rounding
    return values[kept], vectors[:, kept]


def alpha_unit(problem: OutputKernelProblem, *, rank: int | None = None) -> float:
    """Scale of alpha for the Gram matrix and the targets of a problem.

    In this unit alpha is free of scale: multiply kernel or targets by anything, and the same fit comes out in
    the units of the targets.

    Notes
    -----
    Put K = s K', Y = c Y', L = a L' and alpha = a s alpha'. The first two terms of the objective scale with
    c^2 / (a s), and ||L||^2 with a^2: with a = (c^2 / s)^1/3 all scale alike, and alpha' means the same for
    every s and c. For the trace a = (c^2 / s)^1/2. The unit is a s with s = tr(K) / n and c^2 = ||Y||^2 / p.
    Targets or a kernel that are zero leave nothing to choose, and the unit is one.

    Examples
    --------
    >>> import numpy as np
    >>> problem = reduce_problem(2 * np.eye(3), 4 * np.eye(3))
    >>> round(alpha_unit(problem), 12)
    4.0
    """
    mean_eigenvalue = float(problem.values.sum()) / float(np.sum(problem.root_weight**2))
    square = float(np.vdot(problem.Y, problem.Y)) / problem.Y.shape[1]
    if not (square > 0.0 and mean_eigenvalue > 0.0):
        return 1.0
    return mean_eigenvalue * _typical_level(square / mean_eigenvalue, rank is None)


def _typical_level(square: float, frobenius: bool) -> float:
    return float(np.cbrt(square) if frobenius else np.sqrt(square))


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


def learn_output_kernel(
    problem: OutputKernelProblem,
    alpha: float,
    *,
    rank: int | None = None,
    start: ArrayLike | None = None,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> OutputKernelResult:
    """Learn the output kernel L and the dual coefficients C together.

    Minimises, over positive semi-definite L (p, p) and C (n, p),

        ||Y - K C L||^2 / (2 alpha) + tr(C^T K C L) / 2 + ||L||^2 / 2

    and, when a rank is given, the same with tr(L) / 2 for the last term over L of no more than that rank.

    Parameters
    ----------
    problem : OutputKernelProblem
        From `reduce_problem`.
    alpha : float
        Positive.
    rank : int, optional
        Largest rank of L, at least 1.
    start : array-like of shape (p, p), optional
        Positive semi-definite L to start from, such as the solution for an alpha near by.
    max_iter : int, default=1000
        Largest number of updates of L.
    tol : float, default=1e-3
        Stop when the gradient is this small, see Notes.

    Returns
    -------
    OutputKernelResult

    Notes
    -----
    *Reduced objective.* For fixed L the best C solves the Sylvester equation K C L + alpha C = Y; see
    `solve_sylvester`. Putting it in leaves

        J(L) = vec(Y)^T (L kron K + alpha I)^-1 vec(Y) / 2 + ||L||^2 / 2

    which is convex, and strongly so by its last term. Its gradient is L - S / 2 with S = C^T K C: the partial
    derivative with respect to L of the published objective, once symmetrised. So there is one minimum, it is
    L = S / 2, which is positive semi-definite by itself, and with P = S / 2 - L

        ||L - L_opt|| <= ||P||,   J(L) - J_opt <= ||P||^2 / 2.

    The iteration stops at ||P|| <= tol ||L||: L is then known to a relative error of tol / (1 - tol).

    *Update of L.* For fixed C the objective is a quadratic in L whose Hessian takes a symmetric D to
    D + (M D + D M) / (2 alpha), with F = K C and M = F^T F. Its minimum is the update of Dinuzzo et al.
    It is a majoriser of J, and a poor one for small alpha: letting C follow L, the Hessian of J along D is

        ||D||^2 + sum_ij ((U^T F D V)_ij)^2 / (values_i levels_j + alpha)

    in the eigenbases U of K and V of L, whereas the fixed C has 1 / alpha for every quotient. In the basis
    V the columns of F are nearly orthogonal (at the minimum S is diagonal there), so the diagonal of that
    Hessian says nearly all of it, and one product gives it:

        1 + (A_jk + A_kj) / 2   for D_jk,   A_jk = sum_i F_ik^2 / (values_i levels_j + alpha)

    with F in these bases. The update is Newton's step D for J, found by a few steps of conjugate gradients
    with this diagonal as preconditioner; each applies the Hessian with two products. D is
    halved until the objective falls, eigenvalues of L + D below a hundredth of the smallest of L being
    raised to that. The objective must fall, since D is a descent direction and L, positive definite on the
    outputs that matter, stays so without any raising when D is short.

    *Low rank.* Write L = B B^T with B (p, r), and C L = Z B^T with Z (n, r). The objective is

        ||Y - K Z B^T||^2 / (2 alpha) + tr(Z^T K Z) / 2 + ||B||^2 / 2

    quadratic in Z for fixed B, where Z = C B, and in B for fixed Z, where B (F^T F + alpha I) = Y^T F with
    F = K Z. Of all factors of the same product Z B^T the last two terms are least for Z^T K Z = B^T B, that
    is for L = (B Z^T K Z B^T)^1/2: a step is both minimisations and this balance, and none can raise the
    objective or the rank. The gradient in B is (I - S) B, and the iteration stops when its norm times that
    of B is at most tol times the objective. The problem is not convex, but a stationary L with no
    eigenvalue of S above one is optimal among all ranks; for alpha from ||K^1/2 Y||_2 on, L is zero.

    *Cost.* A step takes q k^2 + k^3, with low rank q k r + (q + k) r^2, where q <= n is the rank of K and
    k <= min(q, p) that of the targets it reaches.

    References
    ----------
    F. Dinuzzo, C. S. Ong, P. Gehler and G. Pillonetto, "Learning output kernels with block coordinate
    descent", ICML 2011.

    F. Dinuzzo and K. Fukumizu, "Learning low-rank output kernels", ACML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20, 3))
    >>> Y = np.outer(X[:, 0], [1.0, -1.0, 0.0])
    >>> result = learn_output_kernel(reduce_problem(X @ X.T, Y), alpha=0.1, rank=1)
    >>> (result.L / result.L[0, 0]).round(2) + 0.0
    array([[ 1., -1.,  0.],
           [-1.,  1.,  0.],
           [ 0.,  0.,  0.]])
    """
    k = problem.targets.shape[1]
    if k == 0:
        return _zero_result(problem, alpha)
    rank = None if rank is None else min(rank, k)
    reduced = _Reduced.of(problem, alpha, rank)
    if start is None:
        point = reduced.first_point()
    else:
        point = reduced.point_from(problem.outputs.T @ np.asarray(start) @ problem.outputs)
    step, gap = (_newton_step, _newton_gap) if rank is None else (_factor_step, _factor_gap)
    point, history, reason = _descend(reduced, point, step, gap, max_iter, tol)
    return _expand(problem, reduced, point, history, reason)


def output_kernel_path(
    problem: OutputKernelProblem,
    alphas: Sequence[float],
    *,
    rank: int | None = None,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Iterator[OutputKernelResult]:
    """Results of `learn_output_kernel` for decreasing alphas, each started from the last.

    Parameters
    ----------
    problem : OutputKernelProblem
    alphas : sequence of float
        Positive; best in decreasing order, since the first starts cold and large alphas take few steps.
    rank, max_iter, tol
        As in `learn_output_kernel`.

    Yields
    ------
    OutputKernelResult
        One at a time, in the order of the alphas.
    """
    start: Array | None = None
    for alpha in alphas:
        result = learn_output_kernel(problem, alpha, rank=rank, start=start, max_iter=max_iter, tol=tol)
        yield result
        start = result.L if result.L.any() else None


@dataclass(frozen=True, eq=False)
class _Point:
    """L = V diag(levels) V^T in the reduced outputs, V (k, r); Z = U^T C V; the part of T that V misses."""

    levels: Array
    V: Array
    Z: Array  # (q, r)
    S: Array  # Z^T K Z in the eigenbasis of K, (r, r)
    missed: Array | None  # (q, k)
    value: float


@dataclass(frozen=True, eq=False)
class _Reduced:
    """The problem in reduced coordinates with an alpha; a rank makes the penalty the trace."""

    values: Array  # (q,)
    T: Array  # (q, k)
    alpha: float
    rank: int | None
    constant: float

    @classmethod
    def of(cls, problem: OutputKernelProblem, alpha: float, rank: int | None) -> _Reduced:
        constant = float(np.vdot(problem.rest, problem.rest)) / (2 * alpha)
        return cls(problem.values, problem.targets, alpha, rank, constant)

    def evaluate(self, levels: Array, V: Array) -> _Point:
        """Solve the Sylvester equation at L; its solution puts the objective in closed form."""
        rotated = self.T @ V  # (q, r)
        Z = rotated / (np.outer(self.values, levels) + self.alpha)
        root = np.sqrt(self.values)[:, None] * Z
        S = root.T @ root
        value = self.constant + float(np.vdot(rotated, Z)) / 2 + self.penalty(levels)
        if V.shape[1] == V.shape[0]:
            return _Point(levels, V, Z, S, None, value)
        missed = self.T - rotated @ V.T
        return _Point(levels, V, Z, S, missed, value + float(np.vdot(missed, missed)) / (2 * self.alpha))

    def penalty(self, levels: Array) -> float:
        return float(np.vdot(levels, levels) if self.rank is None else levels.sum()) / 2

    def best_levels(self, squares: Array) -> Array:
        """Eigenvalues of the best L for a fixed model, from those of A^T K A; see `first_point`."""
        squares = np.maximum(squares, 0.0)
        return np.asarray(np.cbrt(squares / 2) if self.rank is None else np.sqrt(squares))

    def first_point(self) -> _Point:
        """Start at the best L for the fit of kernel ridge.

        In terms of the model f = K A, with A = C L, the objective is

            ||Y - K A||^2 / (2 alpha) + tr(A^T K A L^-1) / 2

        plus the penalty, and its minimum over L is (A^T K A / 2)^1/3, for the trace (A^T K A)^1/2. Going to
        and fro on multiples of the identity, which costs next to nothing, gives A a ridge of the right size.
        """
        k = self.T.shape[1]
        squares = np.einsum("qk,qk->q", self.T, self.T)  # (q,)
        level = typical = self.typical_level()
        for _ in range(20):
            size = level**2 * float(np.sum(self.values * squares / (self.values * level + self.alpha) ** 2))
            level = max(float(self.best_levels(np.array(size / k))), 1e-3 * typical)
        A = level * self.T / (self.values * level + self.alpha)[:, None]
        _, sizes, right = svd(np.sqrt(self.values)[:, None] * A, full_matrices=False)
        return self.evaluate(self.best_levels(sizes[: self.rank] ** 2), right[: self.rank].T)

    def point_from(self, L: Array) -> _Point:
        """Start at a given L, for low rank with a trace of what would grow in the place of what is zero."""
        levels, V = eigh(L)
        if self.rank is not None:
            S = self.evaluate(np.maximum(levels, 0.0), V).S
            levels, V = eigh(L + (1e-3 * self.typical_level() / np.trace(S)) * (V @ S @ V.T))
        last = slice(None if self.rank is None else -self.rank, None)
        return self.evaluate(np.maximum(levels[last], EPS * self.typical_level()), V[:, last])

    def typical_level(self) -> float:
        square = float(np.vdot(self.T, self.T)) / (self.T.shape[1] * float(self.values.mean()))
        return _typical_level(square, self.rank is None)


Step = Callable[[_Reduced, _Point], _Point | None]
Gap = Callable[[_Reduced, _Point], float]


def _descend(
    reduced: _Reduced, point: _Point, step: Step, gap: Gap, max_iter: int, tol: float
) -> tuple[_Point, list[float], str]:
    history, last = [point.value], gap(reduced, point)
    for _ in range(max_iter):
        following = step(reduced, point)
        if following is None or following.value > history[-1] * (1 + 100 * EPS):
            return point, history, "tolerance" if last <= tol else "stalled"
        point, current = following, gap(reduced, following)
        # Steps this close to the minimum change the objective by rounding only, though they still improve L.
        history.append(min(point.value, history[-1]))
        if current <= tol:
            return point, history, "tolerance"
        if history[-1] == history[-2] and current >= last:
            return point, history, "stalled"
        last = current
    return point, history, "max_iter"


def _newton_gap(reduced: _Reduced, point: _Point) -> float:
    """||P|| / ||L||."""
    return float(np.linalg.norm(_descent(point))) / _size(point)


def _size(point: _Point) -> float:
    """||L||, kept from underflow to zero."""
    return max(float(np.linalg.norm(point.levels)), TINY)


def _descent(point: _Point) -> Array:
    """P = S / 2 - L in the eigenbasis of L, (k, k)."""
    return point.S / 2 - np.diag(point.levels)


def _newton_step(reduced: _Reduced, point: _Point) -> _Point | None:
    """Newton's step, shortened until it lowers the objective; None when none does."""
    P = _descent(point)
    D = _newton_direction(reduced, point, P)
    slope = float(np.vdot(P, D))
    for halving in range(HALVINGS):
        t = 0.5**halving
        levels, Q = eigh(np.diag(point.levels) + t * D, check_finite=False)
        following = reduced.evaluate(np.maximum(levels, 0.01 * point.levels.min()), point.V @ Q)
        if following.value <= point.value - 1e-4 * t * slope + 10 * EPS * point.value:
            return following
    return None


def _newton_direction(reduced: _Reduced, point: _Point, P: Array) -> Array:
    """Solve Hessian(D) = P by conjugate gradients.

    The residual asked for falls with P, so that the last steps converge faster than linearly.
    """
    F = reduced.values[:, None] * point.Z  # (q, k)
    quotients = 1.0 / (np.outer(reduced.values, point.levels) + reduced.alpha)  # (q, k)
    A = quotients.T @ F**2  # (k, k)
    diagonal = 1.0 + (A + A.T) / 2
    size = float(np.linalg.norm(P))
    enough = size * min(0.1, size / _size(point))
    D, residual = np.zeros_like(P), P.copy()
    search = P / diagonal
    squared = float(np.vdot(residual, search))
    for _ in range(CG_STEPS):
        if squared <= 0.0:
            break
        bent = F.T @ ((F @ search) * quotients)  # (k, k)
        image = search + (bent + bent.T) / 2
        length = squared / float(np.vdot(search, image))
        D += length * search
        residual -= length * image
        if np.linalg.norm(residual) <= enough:
            break
        scaled = residual / diagonal
        previous, squared = squared, float(np.vdot(residual, scaled))
        search = scaled + (squared / previous) * search
    return D


def _factor_gap(reduced: _Reduced, point: _Point) -> float:
    """||(I - S) B|| ||B|| over the objective."""
    SV = point.V @ point.S  # (k, r)
    if point.missed is not None:
        SV += point.missed.T @ (reduced.values[:, None] * point.Z) / reduced.alpha
    gradient = (point.V - SV) * np.sqrt(point.levels)
    return float(np.linalg.norm(gradient) * np.sqrt(point.levels.sum()) / point.value)


def _factor_step(reduced: _Reduced, point: _Point) -> _Point:
    """Best B for Z, then the balanced factors of their product; Z for the new B comes with the point."""
    Z = point.Z * np.sqrt(point.levels)  # (q, r)
    F = reduced.values[:, None] * Z
    squares, Q = eigh(F.T @ F)
    B = ((reduced.T.T @ F) @ Q / (np.maximum(squares, 0.0) + reduced.alpha)) @ Q.T  # (k, r)
    R_Z = qr(np.sqrt(reduced.values)[:, None] * Z, mode="r")[0]
    Q_B, R_B = qr(B, mode="economic")
    _, levels, right = svd(R_Z[: len(R_B)] @ R_B.T)
    return reduced.evaluate(levels, Q_B @ right.T)


def _expand(
    problem: OutputKernelProblem, reduced: _Reduced, point: _Point, history: list[float], reason: str
) -> OutputKernelResult:
    V = problem.outputs @ point.V  # (p, r)
    B = V * np.sqrt(point.levels)
    L = B @ B.T
    inside = point.Z @ V.T  # (q, p)
    if point.missed is not None:
        inside += point.missed @ problem.outputs.T / reduced.alpha
    C = problem.vectors @ inside + problem.rest / reduced.alpha  # (n, p)
    C *= problem.root_weight[:, None]
    return OutputKernelResult(
        C=C,
        L=L,
        intercept=problem.mean_y - (problem.mean_k @ C) @ L,
        value=history[-1],
        converged=reason == "tolerance",
        reason=reason,
        n_iter=len(history) - 1,
        history=np.array(history),
    )


def _zero_result(problem: OutputKernelProblem, alpha: float) -> OutputKernelResult:
    p = problem.Y.shape[1]
    value = float(np.vdot(problem.Y, problem.Y)) / (2 * alpha)
    C = problem.root_weight[:, None] * problem.Y / alpha
    return OutputKernelResult(C, np.zeros((p, p)), problem.mean_y, value, True, "zero", 0, np.array([value]))
