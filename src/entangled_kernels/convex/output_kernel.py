"""Output kernel learning: a separable kernel k(x, z) L with L learned together with the fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import svd

from ..linalg import Array, rank_tolerance
from .grams import KroneckerGram, eigh_by_groups
from .missing import INNER, far_apart, learn_missing, solve_missing
from .penalties import (
    Elastic,
    OutputPenalty,
    Penalty,
    Schatten,
    SpectralPenalty,
    compose,
    typical_level,
)
from .problem import Problem, Result, alpha_unit, diagonalise, expand, refuse_overflow
from .solvers import solve_convex

__all__ = ["fixed_output_kernel", "learn_output_kernel", "output_kernel_path"]

FROBENIUS = OutputPenalty()
# Levels of a start are at least this share of the largest, so that all directions can grow.
FLOOR = 1e-2
# The same for a given start, as a share of the size of L.
WARM_FLOOR = 1e-6


@refuse_overflow
def learn_output_kernel(
    problem: Problem,
    alpha: float,
    *,
    penalty: OutputPenalty = FROBENIUS,
    start: ArrayLike | None = None,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Result:
    """Learn the output kernel L and the dual coefficients C together.

    Minimises, over positive semi-definite L (p, p) and C (n, p),

        ||Y - K C L||^2 / (2 alpha) + tr(C^T K C L) / 2 + P(L)

    with P(L) = ||L||^2 / 2 unless another penalty is given. With a constraint, P(L) is no term of
    the objective, and at most that of the identity.

    Parameters
    ----------
    problem : Problem
        From `reduce_problem`. K is the sum of its kernels; `diagonalise` it first if it serves
        more than one call.
    alpha : float
        Positive.
    penalty : OutputPenalty, optional
        A rank makes it tr(L) / 2 over L of at most that rank.
    start : array-like of shape (p, p), optional
        Positive semi-definite L to start from, such as the solution for a similar alpha.
    max_iter : int, default=1000
        Largest number of updates of L, or of evaluations of the objective or its dual.
    tol : float, default=1e-3
        With the Frobenius penalty, relative error of L; with a rank, relative size of the
        gradient. Otherwise stop when the duality gap is at most tol^2 times the objective.

    Returns
    -------
    Result
        With ``L``.

    Notes
    -----
    *Reduced objective.* For fixed L the best C solves the Sylvester equation K C L + alpha C = Y,
    which is diagonal in the eigenbases of K and L: entry (i, j) of U^T C V is that of U^T Y V over
    values_i levels_j + alpha. Substituting it leaves

        J(L) = vec(Y)^T (L kron K + alpha I)^-1 vec(Y) / 2 + P(L)

    which is convex. For P = ||L||^2 / 2 it is strongly convex, with the gradient L - S / 2 and
    S = C^T K C: the partial derivative with respect to L of the published objective, once
    symmetrised. So there is one minimum, L = S / 2, which is positive semi-definite by itself, and
    with P = S / 2 - L

        ||L - L_opt|| <= ||P||,   J(L) - J_opt <= ||P||^2 / 2.

    The solver ``"newton"`` stops at ||P|| <= tol ||L||: L is then known to a relative error of
    tol / (1 - tol).

    *Newton step.* For fixed C the objective is a quadratic in L whose Hessian takes a symmetric D
    to D + (M D + D M) / (2 alpha), with F = K C and M = F^T F. Its minimum is the update of Dinuzzo
    et al. It is a majoriser of J, and a poor one for small alpha: letting C follow L, the Hessian
    of J along D is

        ||D||^2 + sum_ij ((U^T F D V)_ij)^2 / (values_i levels_j + alpha)

    in the eigenbases U of K and V of L, whereas the fixed C has 1 / alpha for every quotient. In
    the basis V the columns of F are nearly orthogonal (at the minimum S is diagonal there), so the
    diagonal of the Hessian dominates, and one product gives it:

        1 + (A_jk + A_kj) / 2   for D_jk,   A_jk = sum_i F_ik^2 / (values_i levels_j + alpha)

    with F in these bases. The update is Newton's step D for J, by a few steps of conjugate
    gradients with this diagonal as preconditioner; each applies the Hessian with two products. D
    is halved until the objective falls, eigenvalues of L + D below a hundredth of the smallest of
    L being raised to that. The objective must fall, since D is a descent direction and L, positive
    definite on the outputs that matter, stays so without any raising when D is short.

    *Low rank.* Write L = B B^T with B (p, r), and C L = Z B^T with Z (n, r). The objective is

        ||Y - K Z B^T||^2 / (2 alpha) + tr(Z^T K Z) / 2 + ||B||^2 / 2

    quadratic in Z for fixed B, where Z = C B, and in B for fixed Z, where
    B (F^T F + alpha I) = Y^T F with F = K Z. Among all factors of the same product Z B^T the last
    two terms are least for Z^T K Z = B^T B, that is for L = (B Z^T K Z B^T)^1/2: a step of the
    solver ``"balanced"`` is both minimisations and this balance, and none can raise the objective
    or the rank. The gradient in B is (I - S) B. The problem is not convex, but a stationary L with
    no eigenvalue of S above one is optimal among all ranks; for alpha of at least ||K^1/2 Y||_2, L
    is zero.

    *Outputs.* A penalty on eigenvalues does not rise when L is compressed to the directions of the
    outputs that K can reach, and only these are learned on; for clusters, to those of the outputs
    without their mean. Penalties on entries need all outputs.

    *Cost.* A step takes q k^2 + k^3, with low rank q k r + (q + k) r^2, where q <= n is the rank of
    K and k <= min(q, p) that of the targets it reaches. With missing targets every complete problem
    takes n p q more.

    References
    ----------
    F. Dinuzzo, C. S. Ong, P. Gehler and G. Pillonetto, "Learning output kernels with block
    coordinate descent", ICML 2011.

    F. Dinuzzo and K. Fukumizu, "Learning low-rank output kernels", ACML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.convex import OutputPenalty, reduce_problem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20, 3))
    >>> Y = np.outer(X[:, 0], [1.0, -1.0, 0.0])
    >>> problem = reduce_problem(X @ X.T, Y)
    >>> result = learn_output_kernel(problem, alpha=0.1, penalty=OutputPenalty(rank=1))
    >>> (result.L / result.L[0, 0]).round(2) + 0.0
    array([[ 1., -1.,  0.],
           [-1.,  1.,  0.],
           [ 0.,  0.,  0.]])
    """
    problem = diagonalise(problem)
    if problem.missing is not None:
        # With a rank, tol bounds the gradient norm; otherwise its square bounds the duality gap.
        inner = INNER * (tol if penalty.rank is None else tol * tol)

        def solve(complete: Problem, last: Result | None) -> Result:
            warm = start if last is None or not last.L.any() else last.L
            return learn_output_kernel(
                complete, alpha, penalty=penalty, start=warm, max_iter=max_iter, tol=inner
            )

        return learn_missing(
            problem,
            alpha,
            solve,
            lambda S, _: penalty.shrunk_conjugate(S[0]),
            by_slope=penalty.rank is not None,
            max_iter=max_iter,
            tol=tol,
        )
    basis, targets, fixed = _directions(problem, penalty)
    p, k = basis.shape
    if k == 0:
        return _ridge(problem, np.eye(p) if penalty.is_ball else np.zeros((p, p)), alpha, "zero")
    values = problem.kernels[0]
    # Outside the directions, which is the mean of clusters, the level is one.
    left = problem.targets - targets @ basis.T  # (q, p)
    elsewhere = left / (values + alpha)[:, None]
    constant = problem.rest / (2 * alpha) + 0.5 * float(np.vdot(left, elsewhere))
    gram = KroneckerGram(targets, alpha, values, constant=constant)
    built = penalty.build(p, k)
    given = None if start is None else basis.T @ np.asarray(start) @ basis
    result = solve_convex(
        gram,
        built,
        _start(problem, gram, penalty, built, given),
        solver=penalty.solver,
        max_iter=max_iter,
        tol=tol * tol,
    )
    L = basis @ result.L @ basis.T + fixed
    L, m = 0.5 * (L + L.T), len(problem.scales)
    T = np.tile(L, (m, 1, 1))
    return expand(problem, alpha, result, T, np.ones(m), lambda C: C @ basis.T + elsewhere)


def output_kernel_path(
    problem: Problem,
    alphas: Sequence[float],
    *,
    penalty: OutputPenalty = FROBENIUS,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Iterator[Result]:
    """Results of `learn_output_kernel` for decreasing alphas, each started from the last.

    Parameters
    ----------
    problem : Problem
    alphas : sequence of float
        Positive; best in decreasing order, since large alphas take few steps from a cold start.
    penalty, max_iter, tol
        As in `learn_output_kernel`.

    Yields
    ------
    Result
        One at a time, in the order of the alphas.
    """
    problem = diagonalise(problem)
    start: Array | None = None
    for alpha in alphas:
        result = learn_output_kernel(
            problem, alpha, penalty=penalty, start=start, max_iter=max_iter, tol=tol
        )
        yield result
        start = result.L if result.L.any() else None


@refuse_overflow
def fixed_output_kernel(
    problem: Problem, alpha: float, L: ArrayLike, *, max_iter: int = 1000, tol: float = 1e-3
) -> Result:
    """Ridge regression with the kernel k(x, z) L for a given psd L (p, p).

    Complete targets have a closed form. With missing targets it takes at most ``max_iter`` steps,
    until the duality gap is at most tol^2 times the objective; unrelated targets whose sizes are
    far apart are solved exactly instead, one group after the other.
    """
    L = np.array(L, dtype=np.float64)
    if problem.missing is None:
        return _ridge(diagonalise(problem), L, alpha, "fixed")
    if far_apart(problem, L[None]):
        m = len(problem.scales)
        T, none = np.tile(L, (m, 1, 1)), np.zeros(0)
        result = Result(T, none, 0.0, 0.0, none, True, "fixed", 1, none, np.ones(m))
        result = solve_missing(problem, alpha, result)
        return replace(result, history=np.array([result.value]))
    result = learn_missing(
        diagonalise(problem),
        alpha,
        lambda complete, _: _ridge(complete, L, alpha, "fixed"),
        lambda S, _: (1.0, 0.5 * float(np.vdot(L, S[0]))),
        max_iter=max_iter,
        tol=tol,
    )
    return replace(result, reason="fixed" if result.converged else result.reason)


def _directions(problem: Problem, penalty: OutputPenalty) -> tuple[Array, Array, Array]:
    """Orthonormal directions (p, k) of outputs to learn on, targets (q, k) there, L elsewhere."""
    T = problem.targets
    p = T.shape[1]
    zero = np.zeros((p, p))
    if penalty.rank is None and penalty.name == "entrywise":
        return np.eye(p), T, zero
    clusters = penalty.rank is None and penalty.name == "cluster"
    if clusters:
        T = T - T.mean(axis=1, keepdims=True)
    # NumPy's decomposition, unlike that of older SciPy, takes the empty matrix of K = 0.
    left, size, right = np.linalg.svd(T, full_matrices=False)
    kept = size > rank_tolerance(max(problem.Y.shape)) * np.linalg.norm(problem.Y)
    basis, targets = right[kept].T, left[:, kept] * size[kept]
    if not clusters:
        return basis, targets, zero
    rest = np.eye(p) - 1.0 / p - basis @ basis.T
    return basis, targets, 1.0 / p + penalty.level_bounds[0] * rest


def _start(
    problem: Problem,
    gram: KroneckerGram,
    penalty: OutputPenalty,
    built: Penalty,
    given: Array | None,
) -> Array:
    """A given start, or the best L for the fit of kernel ridge regression, (1, k, k)."""
    if isinstance(built, Schatten) and penalty.solver is not None:
        return _newton_start(gram, built, given)
    level = 1.0
    if not penalty.is_ball:
        level = alpha_unit(problem, penalty) / alpha_unit(problem, fixed=True)
    if given is not None:
        levels, V = np.linalg.eigh(given)
        floor = WARM_FLOOR * level
    elif isinstance(built, SpectralPenalty):
        # K^1/2 C L of kernel ridge, whose squares the best levels follow.
        shrinkage = np.sqrt(gram.values) * level / (gram.values * level + gram.alpha)
        G = shrinkage[:, None] * gram.targets
        squares, V = np.linalg.eigh(G.T @ G)
        levels = built.level_best(np.maximum(squares, 0.0)[None])[0]
        floor = FLOOR * float(levels.max())
    else:
        return level * np.eye(gram.targets.shape[1])[None]
    levels = np.maximum(levels, max(floor, np.finfo(float).tiny))
    if isinstance(built, Schatten | Elastic):
        levels = levels * built.level_scale(levels)
    return compose(levels[None], V[None])


def _newton_start(gram: KroneckerGram, penalty: Schatten, given: Array | None) -> Array:
    """Start of the solvers ``"newton"`` and ``"balanced"``.

    In terms of the model f = K A, with A = C L, the objective is

        ||Y - K A||^2 / (2 alpha) + tr(A^T K A L^-1) / 2

    plus the penalty, and its minimum over L is (A^T K A / 2)^1/3, for the trace (A^T K A)^1/2.
    Alternating on multiples of the identity, at almost no cost, gives A a ridge of the right size.
    """
    values, T = gram.values, gram.targets
    k = T.shape[1]
    squares = np.einsum("qk,qk->q", T, T)  # (q,)
    typical = typical_level(float(squares.sum()) / (k * float(values.mean())), penalty.exponent)
    if given is not None:
        if penalty.rank is None:
            return given[None]
        # A trace of the gradient, so that directions at zero can grow.
        S = gram.inner_products(gram.solve(given[None])[0])
        return np.asarray(given + (1e-3 * typical / np.trace(S[0])) * S)
    level = typical
    for _ in range(20):
        size = level**2 * float(np.sum(values * squares / (values * level + gram.alpha) ** 2))
        level = max(float(penalty.level_best(np.array(size / k))), 1e-3 * typical)
    A = level * T / (values * level + gram.alpha)[:, None]
    _, sizes, right = svd(np.sqrt(values)[:, None] * A, full_matrices=False)
    levels = penalty.level_best(sizes[: penalty.rank] ** 2)
    return compose(levels[None], right[: penalty.rank].T[None])


def _ridge(problem: Problem, L: Array, alpha: float, reason: str) -> Result:
    """The result for an L that is not learned."""
    levels, V = eigh_by_groups(L)
    C = ((problem.targets @ V) / (np.outer(problem.kernels[0], levels) + alpha)) @ V.T
    value = 0.5 * (float(np.vdot(C, problem.targets)) + problem.rest / alpha)
    T, n_iter = np.tile(L, (len(problem.scales), 1, 1)), int(reason == "fixed")
    result = Result(T, C, value, 0.0, C, True, reason, n_iter, np.array([value]))
    return expand(problem, alpha, result, T, np.ones(len(T)))
