"""Multiple kernel learning: sums of scalar kernels with learned weights and output kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array
from .grams import (
    KroneckerGram,
    ListedGram,
    SummedGram,
    WeightedGram,
    eigh_by_groups,
    missing_gram,
)
from .missing import INNER, far_apart, learn_missing, solve_missing
from .output_kernel import learn_output_kernel
from .penalties import Schatten
from .problem import KernelPart, Problem, Result, compress, expand, refuse_overflow
from .solvers import minimise, solve_convex

__all__ = [
    "embed_view",
    "learn_diagonal",
    "learn_multiview",
    "learn_separate",
    "learn_shared",
    "learn_weights",
    "view_coefficients",
]

TINY = float(np.finfo(np.float64).tiny)
# With more than MANY rows, the search starts from the weights of about FEW of them.
FEW, MANY = 200, 500


@refuse_overflow
def learn_weights(
    problem: Problem,
    alpha: float,
    *,
    norm: float = 1.0,
    output_kernel: Array | None = None,
    constraint: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Result:
    """Learn the weights of the kernel sum_j d_j k_j T_j, d in the unit ball of the l_r norm.

    Parameters
    ----------
    problem : Problem
    alpha : float
    norm : float, default=1.0
        r, at least 1: 1 chooses few kernels, a large r gives all similar weights.
    output_kernel : ndarray of shape (p, p) or (m, p, p), optional
        One T for all kernels, the identity unless given, or a T_j for each.
    constraint : bool, default=True
        If false, sum_j d_j^r / 2 is a term of the objective, and weights have no bound.
    max_iter : int, default=1000
        Evaluations of the objective; with missing targets, complete problems.
    tol : float, default=1e-3
        Stop when the duality gap is at most tol^2 times the objective.

    Notes
    -----
    Minimises y^T (G_d + alpha I)^-1 y / 2 over d >= 0, |d|_r <= 1: the same as

        ||y - sum_j f_j||^2 / (2 alpha) + sum_j |f_j|^2 / (2 d_j)

    over functions f_j with the kernels k_j T_j. With s_j = c^T G_j c the duality gap is
    (|s|_r* - d^T s) / 2, r* the conjugate exponent. With many rows, the search starts from the
    weights of some of them.

    Time of an evaluation n^3 / 3 + n^2 (m + p), with n the rank of all kernels together if these
    are inner products of few features; with a T_j for each kernel, that of `SummedGram`.

    References
    ----------
    H. Kadri, A. Rakotomamonjy, F. Bach and P. Preux, "Multiple operator-valued kernel learning",
    NIPS 2012.
    """
    T = np.eye(problem.Y.shape[1]) if output_kernel is None else np.asarray(output_kernel, float)
    penalty = Schatten(norm, 1.0 if constraint else None)
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol}
    if problem.missing is not None:
        inner: dict[str, Any] = {"norm": norm, "output_kernel": T, "constraint": constraint}
        result = learn_missing(
            problem,
            alpha,
            lambda full, _: learn_weights(full, alpha, **inner, **settings | {"tol": INNER * tol}),
            lambda S, _: penalty.shrunk_conjugate(np.sum(S * T, axis=(1, 2), keepdims=True)),
            **settings,
        )
        if not far_apart(problem, result.T):
            return result
        return solve_missing(problem, alpha, result, penalty.level_value(result.weights[:, None]))
    if T.ndim == 3:
        problem = compress(problem)
        constant = problem.rest / (2 * alpha)
        gram = ListedGram(problem.targets, alpha, problem.kernels, T, constant=constant)
        start = np.full((len(T), 1, 1), len(T) ** (-1.0 / norm))
        result = solve_convex(gram, penalty, start, max_iter=max_iter, tol=tol * tol)
        return expand(problem, alpha, result, result.T * T, result.T[:, 0, 0])
    levels, V = eigh_by_groups(T)
    constant = problem.rest / (2 * alpha)
    weighted = WeightedGram(problem.targets @ V, alpha, problem.kernels, levels, constant=constant)
    result = _solve_weights(weighted, penalty, **settings)
    return expand(problem, alpha, result, result.T * T, result.T[:, 0, 0], lambda C: C @ V.T)


def _solve_weights(gram: WeightedGram, penalty: Schatten, *, max_iter: int, tol: float) -> Result:
    """Minimise over weights of kernels; with many rows, start from the weights of some rows."""
    m, n, _ = gram.kernels.shape
    if penalty.radius is None:
        # The size at which a weight balances the targets.
        total = max(gram.kernels.trace(axis1=1, axis2=2).sum(), 1e-300)
        size = max(float(np.linalg.norm(gram.targets)) / np.sqrt(m * total), 1e-150)
    else:
        size = m ** (-1.0 / penalty.exponent)
    start = np.full((m, 1, 1), size)
    if n > MANY and penalty.radius is not None:
        some = np.arange(0, n, n // FEW)
        few = WeightedGram(
            gram.targets[some],
            # Eigenvalues grow with the rows, and so does a ridge of the same effect.
            gram.alpha * len(some) / n,
            np.ascontiguousarray(gram.kernels[:, some][:, :, some]),
            gram.levels,
        )
        first = solve_convex(few, penalty, start, max_iter=max_iter, tol=1e-3).T
        start = np.maximum(first, 1e-4 * first.max())
        start *= penalty.level_scale(start[:, :, 0])
    return solve_convex(gram, penalty, start, max_iter=max_iter, tol=tol * tol)


@refuse_overflow
def learn_diagonal(
    problem: Problem,
    alpha: float,
    *,
    norm: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Result:
    """Learn weights of the kernels for every output: T_j diagonal, sum_j T_j[s, s]^r <= 1.

    This is `learn_weights` for each output by itself; it has the same parameters, and p times the
    cost.

    References
    ----------
    M. Gregorova, A. Kalousis and S. Marchand-Maillet, "Forecasting and Granger modelling with
    non-linear dynamical dependencies", ECML PKDD 2017.
    """
    missing = None if problem.missing is None else missing_gram(problem, alpha)
    targets = problem.targets if missing is None else missing.targets
    # The objective outside the range of all kernels does not matter to a single output.
    constant = problem.rest / (2 * alpha) if missing is None else 0.0
    solutions = []
    for s in range(targets.shape[1]):
        kernels = problem.kernels if missing is None else missing.kernels_of(s)
        gram = WeightedGram(targets[:, [s]], alpha, kernels, np.ones(1))
        solutions.append(_solve_weights(gram, Schatten(norm, 1.0), max_iter=max_iter, tol=tol))
    weights = np.column_stack([solution.T[:, 0, 0] for solution in solutions])  # (m, p)
    C = np.hstack([solution.C for solution in solutions])
    T = np.asarray(weights[:, :, None] * np.eye(weights.shape[1]))  # (m, p, p)
    reasons = [solution.reason for solution in solutions]
    longest = max(len(solution.history) for solution in solutions)
    padded = [np.pad(s.history, (0, longest - len(s.history)), mode="edge") for s in solutions]
    joint = Result(
        T,
        C,
        sum(solution.value for solution in solutions) + constant,
        sum(solution.gap for solution in solutions),
        C,
        all(solution.converged for solution in solutions),
        next((reason for reason in reasons if reason != "tolerance"), "tolerance"),
        max(solution.n_iter for solution in solutions),
        np.sum(padded, axis=0) + constant,
    )
    if missing is not None:
        return missing.expand(joint, T, weights)
    return expand(problem, alpha, joint, T, weights)


@refuse_overflow
def learn_separate(
    problem: Problem,
    alpha: float,
    *,
    norm: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Result:
    """Learn a separate output kernel for every kernel: sum_j k_j T_j, all T_j in one Schatten ball.

    With ``norm`` r the sum of the r-th powers of all eigenvalues is at most p: for r = 1 the traces
    of T_j sum to p. With one kernel this is output kernel learning in the trace ball, with one
    output it is `learn_weights`. The duality gap is
    (p max_j lambda_max(S_j) - sum_j <T_j, S_j>) / 2 for r = 1, S_j = C^T K_j C, or less by the
    coefficients that the dual problem ended with, the witness.

    Parameters and returns are those of `learn_weights`. Rows are reduced to the rank of all kernels
    together, outputs to that of the targets; see `SummedGram` for the cost.
    """
    p, m = problem.Y.shape[1], len(problem.kernels)
    penalty = Schatten(norm, p ** (1.0 / norm))
    # Only for r = 1 is the conjugate not smooth.
    settings: dict[str, Any] = {"solver": "proximal" if norm == 1.0 else "dual"}
    settings |= {"max_iter": max_iter, "tol": tol * tol}
    if problem.missing is not None:
        missing = missing_gram(problem, alpha)
        start = np.tile(np.eye(p) * m ** (-1.0 / norm), (m, 1, 1))
        result = solve_convex(missing, penalty, start, **settings)
        return missing.expand(result, result.T, np.trace(result.T, axis1=1, axis2=2) / p)
    problem = compress(problem)
    # Directions of the outputs without targets add nothing to the fit: min(n, p) are left.
    V = np.linalg.svd(problem.targets, full_matrices=False)[2].T  # (p, q)
    q, constant = V.shape[1], problem.rest / (2 * alpha)
    gram = SummedGram(problem.targets @ V, alpha, problem.kernels, constant=constant)
    start = np.tile(np.eye(q) * (p / (q * m)) ** (1.0 / norm), (m, 1, 1))
    result = solve_convex(gram, penalty, start, **settings)
    T = V @ result.T @ V.T  # (m, p, p)
    weights = np.trace(T, axis1=1, axis2=2) / p
    return expand(problem, alpha, result, T, weights, lambda C: C @ V.T)


@refuse_overflow
def learn_shared(
    problem: Problem,
    alpha: float,
    *,
    norm: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Result:
    """Learn the weights and one output kernel of (sum_j d_j k_j) L, |d|_r <= 1 and tr(L) <= p.

    Parameters are those of `learn_weights`.

    Notes
    -----
    The objective is convex in d and in L, each with the other held fixed, and not in both. L-BFGS
    works on b and B with d = b^2 / |b^2|_r and L = p B B^T / |B|^2. The gap is the sum of the gaps
    of both blocks: zero if neither can be improved alone. Time n^3 for an evaluation, which takes
    an eigendecomposition.

    References
    ----------
    V. Sindhwani, H. Q. Minh and A. C. Lozano, "Scalable matrix-valued kernel learning for
    high-dimensional nonlinear multivariate regression and Granger causality", UAI 2013.
    """
    m, p = len(problem.kernels), problem.Y.shape[1]
    weight_ball, trace_ball = Schatten(norm, 1.0), Schatten(1.0, float(p))
    if problem.missing is not None:

        def conjugate(S: Array, last: Result) -> tuple[float, float]:
            """Conjugates of both blocks, less c^T G c / 2, which both contain."""
            d = last.weights
            L = last.T.sum(axis=0) / max(float(d.sum()), TINY)
            s = np.sum(S * L, axis=(1, 2), keepdims=True)  # (m, 1, 1)
            blocks = weight_ball.conjugate(s)
            blocks += trace_ball.conjugate(np.einsum("m,mpq->pq", d, S)[None])
            return 1.0, blocks - 0.5 * float(d @ s[:, 0, 0])

        return learn_missing(
            problem,
            alpha,
            # The slope stops the search, so that sharper complete problems would gain nothing.
            lambda full, _: learn_shared(full, alpha, norm=norm, max_iter=max_iter, tol=tol),
            conjugate,
            by_slope=True,
            max_iter=max_iter,
            tol=tol,
        )
    kernels, targets, constant = problem.kernels, problem.targets, problem.rest / (2 * alpha)
    latest = (np.inf, np.inf)

    def evaluate(d: Array, L: Array) -> tuple[float, float, Array, Array, Array]:
        """Objective, sum of the block gaps, coefficients, and the inner products of both blocks."""
        levels, V = np.linalg.eigh(L)
        gram = WeightedGram(targets @ V, alpha, kernels, np.maximum(levels, 0.0))
        C, _ = gram.solve(d)
        s = gram.inner_products(C)
        C = C @ V.T
        S = (C.T @ gram.combine(d) @ C)[None]
        gaps = weight_ball.gap(d, s) + trace_ball.gap(L[None], S)
        return 0.5 * float(np.vdot(C, targets)) + constant, gaps, C, s, S[0]

    def unpack(x: Array) -> tuple[Array, Array, float, float]:
        """Weights (m, 1, 1), output kernel (p, p), and the factors that scale both to the balls."""
        free = x[:m, None, None] ** 2
        t = weight_ball.level_scale(free[:, :, 0])
        B = x[m:].reshape(p, p)
        u = p / float(np.vdot(B, B))
        return t * free, u * (B @ B.T), t, u

    def value_and_slope(x: Array) -> tuple[float, Array]:
        nonlocal latest
        d, L, t, u = unpack(x)
        value, gap, _, s, S = evaluate(d, L)
        latest = value, gap
        slope = weight_ball.level_slope(d[:, :, 0])[:, 0]
        along = float(np.vdot(d, s)) / max(float(slope @ d[:, 0, 0]), TINY)
        b = t * (along * slope - s[:, 0, 0]) * x[:m]
        B = u * (float(np.vdot(L, S)) / p * np.eye(p) - S) @ x[m:].reshape(p, p)
        return value, np.concatenate([b, B.ravel()])

    def within() -> bool:
        return latest[1] <= tol * tol * latest[0]

    x, used = np.concatenate([np.full(m, m ** (-0.5 / norm)), np.eye(p).ravel()]), 0
    reason, history = "max_iter", [np.inf]
    while used < max_iter:
        steps = min(100, max_iter - used)
        x, evaluations = minimise(value_and_slope, x, steps, within)
        used += evaluations
        d, L, _, _ = unpack(x)
        value, gap, C, _, _ = evaluate(d, L)
        history.append(min(value, history[-1]))
        if gap <= tol * tol * value or value >= history[-2] * (1.0 - 1e-14):
            reason = "tolerance" if gap <= tol * tol * value else "stalled"
            break
        # Each block alone closes the rest of its gap.
        inner = 0.1 * tol * tol
        K, U = np.linalg.eigh(np.einsum("m,mnl->nl", d[:, 0, 0], kernels, optimize=True))
        fixed = KroneckerGram(U.T @ targets, alpha, np.maximum(K, 0.0), constant=constant)
        L = solve_convex(fixed, trace_ball, L[None], tol=inner).L
        levels, V = np.linalg.eigh(L)
        levels = np.maximum(levels, 0.0)
        gram = WeightedGram(targets @ V, alpha, kernels, levels, constant=constant)
        d = solve_convex(gram, weight_ball, d, max_iter=max_iter, tol=inner).T
        x = np.concatenate([np.sqrt(np.maximum(d.ravel(), 0.0)), (V * np.sqrt(levels)).ravel()])
    done = reason == "tolerance"
    result = Result(d * L, C, value, gap, C, done, reason, used, np.array(history[1:]))
    return expand(problem, alpha, result, result.T, d[:, 0, 0])


def learn_multiview(
    problem: Problem,
    alpha: float,
    eta: float,
    *,
    sparse: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> Result:
    """Learn from several views with a metric between them.

    Minimises, over coefficients g = (g_1, ..., g_m) of all views and a psd metric A between them,

        ||Y - sum_v U_v g_v||^2 + alpha tr(g^T A^-1 g) + eta N(A),    K_v = U_v U_v^T

    with N the squared Frobenius norm or, if ``sparse``, the sum of the Frobenius norms of the
    blocks of A.

    Parameters
    ----------
    problem : Problem
    alpha, eta : float
        lambda and eta of the paper, positive.
    sparse : bool, default=False
    max_iter : int, default=1000
    tol : float, default=1e-3

    Notes
    -----
    *Frobenius.* For given g the best metric is A = (alpha g g^T / (2 eta))^(1/3). Substituting it
    leaves ||Y - U g||^2 plus a multiple of the sum of the singular values of g to the power 4/3.
    Output kernel learning with the kernel sum_v k_v and ridge (eta alpha^2)^(1/3) gives the same,
    with L = A alpha^-1 (eta alpha^2)^(1/3) on the range of g. With one target it is ridge
    regression on all features side by side, with ridge alpha (2 eta / (alpha |g|^2))^(1/3): views
    have equal weights.

    *Sparse.* The best metric has A_vl along g_v g_l^T, and leaves 2 sqrt(alpha eta) sum_v |g_v|:
    multiple kernel learning with the l_1 norm, that is weights d with penalty sum(d) / 2 and ridge
    sqrt(alpha eta).

    Both are global minima of the published objective, which its alternation, started from the
    identity, need not reach. The value, gap and tolerance are those of the convex problems; the
    published objective is twice the value times the ridge.

    References
    ----------
    R. Huusari, H. Kadri and C. Capponi, "Multi-view metric learning in vector-valued kernel
    spaces", AISTATS 2018.
    """
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol}
    if not sparse:
        # A product of roots, since alpha^2 may underflow.
        ridge = float(np.cbrt(eta) * np.cbrt(alpha) ** 2)
        return learn_output_kernel(problem, ridge, **settings)
    ridge = float(np.sqrt(alpha) * np.sqrt(eta))
    return learn_weights(problem, ridge, constraint=False, **settings)


def embed_view(
    part: KernelPart, present: NDArray[np.bool_], weight: Array | None, *, centred: bool
) -> tuple[KernelPart, Array]:
    """The kernel of a view on all rows, zero between a row without the view and any other.

    Parameters
    ----------
    part : KernelPart
        On the rows that have the view.
    present : ndarray of bool of shape (n,)
        True for these rows.
    weight : ndarray of shape (n,), optional
    centred : bool
        True to centre features at their mean over the rows that have the view. A missing view then
        counts as the mean, and no direction of the features says whether it is missing.

    Returns
    -------
    part : KernelPart
        On all rows.
    share : ndarray of shape (number of present rows,)
        Weights of the mean, zero if nothing was centred.
    """
    w = np.ones(int(present.sum())) if weight is None else weight[present]
    share = w / w.sum() if centred and w.any() else np.zeros(len(w))
    if part.is_features:
        features = np.zeros((len(present), part.matrix.shape[1]))
        features[present] = part.matrix - share @ part.matrix
        return KernelPart(features, True), share
    K = np.zeros((len(present), len(present)))
    mean = share @ part.matrix
    K[np.ix_(present, present)] = part.matrix - mean - mean[:, None] + share @ mean
    return KernelPart(K), share


def view_coefficients(part: KernelPart, share: Array, C: Array) -> tuple[Array, Array]:
    """Coefficients and offset of a view for new rows, from dual coefficients C of its rows.

    The view adds its kernel with these rows (n, t), or its features, times the coefficients, plus
    the offset (p,).
    """
    if part.is_features:
        centre = share @ part.matrix
        coef = (part.matrix - centre).T @ C
        return np.asarray(coef), np.asarray(-centre @ coef)
    coef = C - np.outer(share, C.sum(axis=0))
    return coef, np.asarray(-(share @ part.matrix) @ coef)
