"""Learn weights of kernels, and kernels between outputs beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..convex import Schatten, Solution, solve_convex
from ..convex.descent import minimise
from ..convex.kronecker import KroneckerGram
from ..convex.measured_cells import shrunk_conjugate
from ..linalg import Array
from .measured_cells import MeasuredKernels, learn_measured
from .measured_gram import expand_measured, measured_gram
from .problem import KernelsProblem, compress_kernels
from .result import KernelsResult, expand
from .summed import ListedGram, SummedGram
from .weighted import WeightedGram

__all__ = ["learn_diagonal", "learn_listed", "learn_own", "learn_shared", "learn_weights"]

# Rows that a first look at the weights is taken on, and above how many rows that is worth it.
FEW, MANY = 200, 500


def learn_weights(
    problem: KernelsProblem | MeasuredKernels,
    alpha: float,
    *,
    norm: float = 1.0,
    output_kernel: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> KernelsResult:
    """Learn the weights of the kernel (sum_j d_j k_j) T, d in the unit ball of the l_r norm.

    Parameters
    ----------
    problem : KernelsProblem or MeasuredKernels
        With `MeasuredKernels` complete problems are solved until the gap over measured cells is closed.
    alpha : float
    norm : float, default=1.0
        r, at least 1: 1 chooses few kernels, a large one all alike.
    output_kernel : ndarray of shape (p, p), optional
        T, the identity unless given.
    max_iter : int, default=1000
        Evaluations of the objective.
    tol : float, default=1e-3
        Stop when the duality gap is at most tol^2 times the objective.

    Notes
    -----
    Minimises y^T (G_d + alpha I)^-1 y / 2 over d >= 0, |d|_r <= 1: the same as

        ||y - sum_j f_j||^2 / (2 alpha) + sum_j |f_j|^2 / (2 d_j)

    over functions f_j with the kernels k_j T. With s_j = c^T G_j c the duality gap is (|s|_r* - d^T s) / 2,
    r* the conjugate exponent. Where there are many rows, the search starts from the weights of some of
    them.

    Time of an evaluation n^3 / 3 + n^2 (m + p), with n the rank of all kernels together where these come
    from few features.

    References
    ----------
    H. Kadri, A. Rakotomamonjy, F. Bach and P. Preux, "Multiple operator-valued kernel learning", NIPS 2012.
    """
    p = _outputs(problem)
    T = np.eye(p) if output_kernel is None else np.asarray(output_kernel, dtype=np.float64)
    if isinstance(problem, MeasuredKernels):
        return learn_measured(
            problem,
            alpha,
            lambda full, tol: learn_weights(
                full, alpha, norm=norm, output_kernel=output_kernel, max_iter=max_iter, tol=tol
            ),
            lambda S, _: shrunk_conjugate(Schatten(norm, 1.0), np.sum(S * T, axis=(1, 2), keepdims=True)),
            max_iter=max_iter,
            tol=tol,
        )
    levels, V = np.linalg.eigh(T)
    levels = np.maximum(levels, 0.0)
    solution = _weigh(
        problem.kernels,
        problem.targets @ V,
        levels,
        alpha,
        norm,
        max_iter,
        tol,
        problem.rest / (2 * alpha),
    )
    d = solution.point.L[:, 0, 0]
    stack = d[:, None, None] * T
    return expand(problem, solution.point.C @ V.T, alpha, d, stack, _outcome(solution))


def learn_diagonal(
    problem: KernelsProblem | MeasuredKernels,
    alpha: float,
    *,
    norm: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> KernelsResult:
    """Learn weights of the kernels for every output apart: T_j diagonal, sum_j T_j[s, s]^r <= 1.

    The same as `learn_weights` for every output alone. Parameters and cost are those, p times.

    References
    ----------
    M. Gregorova, A. Kalousis and S. Marchand-Maillet, "Forecasting and Granger modelling with non-linear
    dynamical dependencies", ECML PKDD 2017.
    """
    settings = (alpha, norm, max_iter, tol)
    if isinstance(problem, MeasuredKernels):
        gram = measured_gram(problem, alpha)
        weights, C, outcome = _by_output(gram.own_kernels, gram.targets, *settings)
        return expand_measured(gram, problem, C, C, weights, _diagonal_stack(weights), outcome)
    kernels = problem.kernels
    weights, C, outcome = _by_output(lambda _: kernels, problem.targets, *settings)
    outcome = (outcome[0] + problem.rest / (2 * alpha), *outcome[1:])
    return expand(problem, C, alpha, weights, _diagonal_stack(weights), outcome)


def learn_listed(
    problem: KernelsProblem | MeasuredKernels,
    alpha: float,
    output_kernels: Array,
    *,
    norm: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> KernelsResult:
    """Learn the weights of sum_j d_j k_j T_j for given output kernels T_j (m, p, p).

    As `learn_weights`, with conjugate gradients for the ridge system: see `SummedGram` for the cost.
    """
    T = np.asarray(output_kernels, dtype=np.float64)
    if isinstance(problem, MeasuredKernels):
        return learn_measured(
            problem,
            alpha,
            lambda full, tol: learn_listed(full, alpha, T, norm=norm, max_iter=max_iter, tol=tol),
            lambda S, _: shrunk_conjugate(Schatten(norm, 1.0), np.sum(S * T, axis=(1, 2), keepdims=True)),
            max_iter=max_iter,
            tol=tol,
        )
    problem = compress_kernels(problem)
    gram = ListedGram(SummedGram(problem.kernels, problem.targets, alpha, problem.rest / (2 * alpha)), T)
    m = len(output_kernels)
    start = np.full((m, 1, 1), m ** (-1.0 / norm))
    solution = solve_convex(gram, Schatten(norm, 1.0), start, max_iter=max_iter, tol=tol**2)
    d = solution.point.L
    return expand(problem, solution.point.C, alpha, d[:, 0, 0], gram.stack(d), _outcome(solution))


def learn_own(
    problem: KernelsProblem | MeasuredKernels,
    alpha: float,
    *,
    norm: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> KernelsResult:
    """Learn an output kernel for every kernel: sum_j k_j T_j, psd T_j in one Schatten ball.

    With ``norm`` r the sum of the r-th powers of all eigenvalues is at most p: for r = 1 the traces of T_j
    sum to p. With one kernel this is output kernel learning in the trace ball, with one output it is
    `learn_weights`. The duality gap is (p max_j lambda_max(S_j) - sum_j <T_j, S_j>) / 2 for r = 1, S_j =
    C^T K_j C, or less by the coefficients that the dual problem ended with, the witness.

    Parameters and returns are those of `learn_weights`. Rows are reduced to the rank of all kernels together,
    outputs to that of the targets; see `SummedGram` for the cost.
    """
    p = _outputs(problem)
    settings: dict[str, Any] = {
        # Only for r = 1 is the conjugate not smooth.
        "solver": "proximal" if norm == 1.0 else "dual",
        "max_iter": max_iter,
        "tol": tol**2,
    }
    penalty = Schatten(norm, p ** (1.0 / norm))
    if isinstance(problem, MeasuredKernels):
        gram = measured_gram(problem, alpha)
        m = len(gram.summed.kernels)
        solution = solve_convex(gram, penalty, _even(m, p, 1.0 / m, norm), **settings)
        point = solution.point
        weights = np.trace(point.L, axis1=1, axis2=2) / p
        return expand_measured(gram, problem, point.C, point.witness, weights, point.L, _outcome(solution))
    problem = compress_kernels(problem)
    m = len(problem.kernels)
    # No direction of the outputs that the targets leave out adds to the fit: min(n, p) are left.
    V = np.linalg.svd(problem.targets, full_matrices=False)[2].T  # (p, q)
    q = V.shape[1]
    summed = SummedGram(problem.kernels, problem.targets @ V, alpha, problem.rest / (2 * alpha))
    solution = solve_convex(summed, penalty, _even(m, q, p / (q * m), norm), **settings)
    T = V @ solution.point.L @ V.T  # (m, p, p)
    weights = np.trace(T, axis1=1, axis2=2) / p
    point = solution.point
    return expand(problem, point.C @ V.T, alpha, weights, T, _outcome(solution), point.witness @ V.T)


def learn_shared(
    problem: KernelsProblem | MeasuredKernels,
    alpha: float,
    *,
    norm: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> KernelsResult:
    """Learn the weights and one output kernel of (sum_j d_j k_j) L, |d|_r <= 1 and tr(L) <= p.

    Parameters are those of `learn_weights`.

    Notes
    -----
    The objective is convex in d and in L, each with the other held fixed, and not in both. L-BFGS works
    on b and B with d = b^2 / |b^2|_r and L = p B B^T / |B|^2. The gap is the sum of the gaps of both
    blocks: zero where neither can be bettered alone. Time n^3 for an evaluation, which takes an
    eigendecomposition.

    References
    ----------
    V. Sindhwani, H. Q. Minh and A. C. Lozano, "Scalable matrix-valued kernel learning for high-dimensional
    nonlinear multivariate regression and Granger causality", UAI 2013.
    """
    p = _outputs(problem)
    weight_ball, trace_ball = Schatten(norm, 1.0), Schatten(1.0, float(p))
    if isinstance(problem, MeasuredKernels):

        def either(S: Array, last: KernelsResult) -> tuple[float, float]:
            """Conjugates of both blocks at the last result, less c^T G c / 2, which both contain."""
            d = last.weights
            L = last.output_kernels.sum(axis=0) / max(float(d.sum()), np.finfo(float).tiny)
            s = np.sum(S * L, axis=(1, 2), keepdims=True)  # (m, 1, 1)
            now = 0.5 * float(d @ s[:, 0, 0])
            both = weight_ball.conjugate(s) + trace_ball.conjugate(np.einsum("m,mpq->pq", d, S)[None])
            return 1.0, both - now

        return learn_measured(
            problem,
            alpha,
            lambda full, tol: learn_shared(full, alpha, norm=norm, max_iter=max_iter, tol=tol),
            either,
            convex=False,
            max_iter=max_iter,
            tol=tol,
        )
    m = len(problem.kernels)
    constant = problem.rest / (2 * alpha)
    latest: dict[str, float] = {"value": np.inf, "gap": np.inf}

    def evaluate(d: Array, L: Array) -> tuple[float, float, Array, Array, Array]:
        """Objective, sum of the block gaps, coefficients, and the squares of both blocks."""
        levels, V = np.linalg.eigh(L)
        gram = WeightedGram(problem.kernels, problem.targets @ V, alpha, np.maximum(levels, 0.0))
        C, _ = gram.solve(d)
        s = gram.squares(C)
        C = C @ V.T
        S = (C.T @ gram.combine(d) @ C)[None]
        value = 0.5 * float(np.vdot(C, problem.targets)) + constant
        gap = weight_ball.conjugate(s) - 0.5 * float(np.vdot(d, s))
        gap += trace_ball.conjugate(S) - 0.5 * float(np.vdot(L, S[0]))
        return value, gap, C, s, S[0]

    def unpack(x: Array) -> tuple[Array, Array, float, float]:
        """Weights (m, 1, 1), output kernel (p, p), and the factors that bring b^2 and B B^T to the balls."""
        free = x[:m, None, None] ** 2
        t = weight_ball.level_scale(free[:, :, 0])
        B = x[m:].reshape(p, p)
        u = p / float(np.vdot(B, B))
        return t * free, u * (B @ B.T), t, u

    def value_and_slope(x: Array) -> tuple[float, Array]:
        d, L, t, u = unpack(x)
        value, gap, _, s, S = evaluate(d, L)
        latest["value"], latest["gap"] = value, gap
        slope = weight_ball.level_slope(d[:, :, 0])[:, 0]
        along = float(np.vdot(d, s)) / max(float(slope @ d[:, 0, 0]), np.finfo(float).tiny)
        b = t * (along * slope - s[:, 0, 0]) * x[:m]
        B = u * (float(np.vdot(L, S)) / p * np.eye(p) - S) @ x[m:].reshape(p, p)
        return value, np.concatenate([b, B.ravel()])

    x, used = np.concatenate([np.full(m, m ** (-0.5 / norm)), np.eye(p).ravel()]), 0
    reason, before = "max_iter", np.inf
    while used < max_iter:
        x, evaluations = minimise(
            value_and_slope,
            x,
            min(100, max_iter - used),
            lambda: latest["gap"] <= tol**2 * latest["value"],
        )
        used += evaluations
        d, L, _, _ = unpack(x)
        value, gap, C, _, _ = evaluate(d, L)
        if gap <= tol**2 * value or value >= before * (1.0 - 1e-14):
            reason = "tolerance" if gap <= tol**2 * value else "stalled"
            break
        before = value
        # What the two together leave, each closes alone.
        L = _one_block(problem, alpha, d, L, trace_ball, tol)
        levels, V = np.linalg.eigh(L)
        levels = np.maximum(levels, 0.0)
        gram = WeightedGram(problem.kernels, problem.targets @ V, alpha, levels, constant)
        d = solve_convex(gram, weight_ball, d, max_iter=max_iter, tol=0.1 * tol**2).point.L
        x = np.concatenate([np.sqrt(np.maximum(d.ravel(), 0.0)), (V * np.sqrt(levels)).ravel()])
    outcome = (value, gap, reason == "tolerance", reason, used)
    return expand(problem, C, alpha, d[:, 0, 0], d * L, outcome)


def _one_block(
    problem: KernelsProblem, alpha: float, d: Array, L: Array, penalty: Schatten, tol: float
) -> Array:
    """The best output kernel for given weights, from one near by."""
    values, U = np.linalg.eigh(np.einsum("m,mnl->nl", d[:, 0, 0], problem.kernels, optimize=True))
    gram = KroneckerGram(np.maximum(values, 0.0), U.T @ problem.targets, alpha, problem.rest / (2 * alpha))
    return np.asarray(solve_convex(gram, penalty, L[None], tol=0.1 * tol**2).point.L[0])


def _weigh(
    kernels: Array,
    targets: Array,
    levels: Array,
    alpha: float,
    norm: float,
    max_iter: int,
    tol: float,
    constant: float,
) -> Solution:
    """Weights of kernels, from a start on some of the rows where there are many."""
    m, n, _ = kernels.shape
    start = np.full((m, 1, 1), m ** (-1.0 / norm))
    penalty = Schatten(norm, 1.0)
    if n > MANY:
        some = np.arange(0, n, n // FEW)
        # Eigenvalues grow with the rows, and a ridge with them means the same.
        ridge = alpha * len(some) / n
        few = WeightedGram(np.ascontiguousarray(kernels[:, some][:, :, some]), targets[some], ridge, levels)
        first = solve_convex(few, penalty, start, max_iter=max_iter, tol=1e-3).point.L
        start = np.maximum(first, 1e-4 * first.max())
        start *= penalty.level_scale(start[:, :, 0])
    gram = WeightedGram(kernels, targets, alpha, levels, constant)
    return solve_convex(gram, penalty, start, max_iter=max_iter, tol=tol**2)


def _outputs(problem: KernelsProblem | MeasuredKernels) -> int:
    return int(problem.Y.shape[1])


def _even(m: int, k: int, power: float, norm: float) -> Array:
    """Multiples of the identity (m, k, k) whose levels have this norm-th power."""
    return np.tile(np.eye(k) * power ** (1.0 / norm), (m, 1, 1))


def _by_output(
    kernels: Callable[[int], Array], targets: Array, alpha: float, norm: float, max_iter: int, tol: float
) -> tuple[Array, Array, tuple[float, float, bool, str, int]]:
    """Weights (m, p) and coefficients (r, p) of every output, from its own Gram matrices, and the outcome."""
    found = [
        # What no kernel can reach of an output does not matter to the choice, only to the tolerance.
        _weigh(kernels(s), targets[:, [s]], np.ones(1), alpha, norm, max_iter, tol, 0.0)
        for s in range(targets.shape[1])
    ]
    weights = np.column_stack([solution.point.L[:, 0, 0] for solution in found])
    C = np.hstack([solution.point.C for solution in found])
    values, gaps, converged, reasons, n_iter = zip(*map(_outcome, found), strict=True)
    worst = next((reason for reason in reasons if reason != "tolerance"), "tolerance")
    return weights, C, (sum(values), sum(gaps), all(converged), worst, max(n_iter))


def _diagonal_stack(weights: Array) -> Array:
    """Diagonal matrices (m, p, p)."""
    return np.asarray(weights[:, :, None] * np.eye(weights.shape[1]))


def _outcome(solution: Solution) -> tuple[float, float, bool, str, int]:
    point = solution.point
    return point.value, point.gap, solution.converged, solution.reason, solution.n_iter
