"""Learn an output kernel and the dual coefficients that go with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..convex import Point as CertifiedPoint
from ..convex import Schatten, certify
from ..convex.kronecker import KroneckerGram
from ..convex.penalties import compose
from ..linalg import Array
from .measured_cells import MeasuredProblem, learn_measured
from .penalised import learn_penalised
from .penalties import OutputPenalty
from .problem import OutputKernelProblem
from .reduced import Point, Reduced
from .result import OutputKernelResult
from .steps import descend, factor_gap, factor_step, newton_gap, newton_step

__all__ = ["learn_output_kernel", "output_kernel_path"]

FROBENIUS = OutputPenalty()


def learn_output_kernel(
    problem: OutputKernelProblem | MeasuredProblem,
    alpha: float,
    *,
    rank: int | None = None,
    penalty: OutputPenalty = FROBENIUS,
    start: ArrayLike | None = None,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> OutputKernelResult:
    """Learn the output kernel L and the dual coefficients C together.

    Minimises, over positive semi-definite L (p, p) and C (n, p),

        ||Y - K C L||^2 / (2 alpha) + tr(C^T K C L) / 2 + ||L||^2 / 2

    and, when a rank is given, the same with tr(L) / 2 for the last term over L of no more than that rank.
    Another penalty takes the place of ||L||^2 / 2, see `learn_penalised`.

    Parameters
    ----------
    problem : OutputKernelProblem or MeasuredProblem
        From `reduce_problem`, or `reduce_cells` where targets have blanks.
    alpha : float
        Positive.
    rank : int, optional
        Largest rank of L, at least 1. It goes with the trace; any other penalty is not looked at.
    penalty : OutputPenalty, optional
        On L; the squared Frobenius norm unless another is given.
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
    >>> from entangled_kernels.output_kernel import reduce_problem
    >>> result = learn_output_kernel(reduce_problem(X @ X.T, Y), alpha=0.1, rank=1)
    >>> (result.L / result.L[0, 0]).round(2) + 0.0
    array([[ 1., -1.,  0.],
           [-1.,  1.,  0.],
           [ 0.,  0.,  0.]])
    """
    if isinstance(problem, MeasuredProblem):

        def solve(complete: OutputKernelProblem, L: ArrayLike | None, tol: float) -> OutputKernelResult:
            return learn_output_kernel(
                complete,
                alpha,
                rank=rank,
                penalty=penalty,
                start=start if L is None else L,
                max_iter=max_iter,
                tol=tol,
            )

        return learn_measured(problem, alpha, solve, rank=rank, penalty=penalty, max_iter=max_iter, tol=tol)
    if rank is None and not penalty.is_plain:
        return learn_penalised(problem, alpha, penalty, start=start, max_iter=max_iter, tol=tol)
    k = problem.targets.shape[1]
    if k == 0:
        return _zero_result(problem, alpha)
    rank = None if rank is None else min(rank, k)
    reduced = Reduced.of(problem, alpha, rank)
    if start is None:
        point = reduced.first_point()
    else:
        point = reduced.point_from(problem.outputs.T @ np.asarray(start) @ problem.outputs)
    step, gap = (newton_step, newton_gap) if rank is None else (factor_step, factor_gap)
    point, history, reason = descend(reduced, point, step, gap, max_iter, tol)
    return _expand(problem, reduced, point, history, reason)


def output_kernel_path(
    problem: OutputKernelProblem | MeasuredProblem,
    alphas: Sequence[float],
    *,
    rank: int | None = None,
    penalty: OutputPenalty = FROBENIUS,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Iterator[OutputKernelResult]:
    """Results of `learn_output_kernel` for decreasing alphas, each started from the last.

    Parameters
    ----------
    problem : OutputKernelProblem or MeasuredProblem
    alphas : sequence of float
        Positive; best in decreasing order, since the first starts cold and large alphas take few steps.
    rank, penalty, max_iter, tol
        As in `learn_output_kernel`.

    Yields
    ------
    OutputKernelResult
        One at a time, in the order of the alphas.
    """
    start: Array | None = None
    for alpha in alphas:
        result = learn_output_kernel(
            problem, alpha, rank=rank, penalty=penalty, start=start, max_iter=max_iter, tol=tol
        )
        yield result
        start = result.L if result.L.any() else None


def _expand(
    problem: OutputKernelProblem, reduced: Reduced, point: Point, history: list[float], reason: str
) -> OutputKernelResult:
    V = problem.outputs @ point.V  # (p, r)
    B = V * np.sqrt(point.levels)
    L = B @ B.T
    inside = point.Z @ V.T  # (q, p)
    if point.missed is not None:
        inside += point.missed @ problem.outputs.T / reduced.alpha
    C = problem.vectors @ inside + problem.rest / reduced.alpha  # (n, p)
    certified = _certify(problem, reduced, point)
    witness = C + problem.vectors @ (certified.witness - certified.C) @ problem.outputs.T
    C = C * problem.root_weight[:, None]
    return OutputKernelResult(
        C=C,
        L=L,
        intercept=problem.mean_y - (problem.mean_k @ C) @ L,
        value=history[-1],
        gap=certified.gap,
        witness=witness,
        converged=reason == "tolerance",
        reason=reason,
        n_iter=len(history) - 1,
        history=np.array(history),
    )


def _certify(problem: OutputKernelProblem, reduced: Reduced, point: Point) -> CertifiedPoint:
    """The same point with its duality gap over all ranks."""
    gram = KroneckerGram(problem.values, problem.targets, reduced.alpha)
    penalty = Schatten(2.0 if reduced.rank is None else 1.0)
    return certify(gram, penalty, compose(point.levels[None], point.V[None]))


def _zero_result(problem: OutputKernelProblem, alpha: float) -> OutputKernelResult:
    p = problem.Y.shape[1]
    value = float(np.vdot(problem.Y, problem.Y)) / (2 * alpha)
    witness = problem.Y / alpha
    return OutputKernelResult(
        C=problem.root_weight[:, None] * witness,
        L=np.zeros((p, p)),
        intercept=problem.mean_y,
        value=value,
        gap=0.0,
        witness=witness,
        converged=True,
        reason="zero",
        n_iter=0,
        history=np.array([value]),
    )
