"""Multi-view metric learning as convex problems on the sum of the views' kernels, or on their weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..convex import Schatten, solve_convex
from ..convex.measured_cells import shrunk_conjugate
from ..linalg import Array
from ..output_kernel import learn_output_kernel, reduce_problem
from .measured_cells import MeasuredKernels, learn_measured
from .problem import KernelPart, KernelsProblem
from .result import KernelsResult, expand
from .weighted import WeightedGram

__all__ = ["embed_view", "learn_multiview", "view_coefficients"]


def learn_multiview(
    problem: KernelsProblem | MeasuredKernels,
    alpha: float,
    eta: float,
    *,
    sparse: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> KernelsResult:
    """Learn from several views with a metric between them.

    Minimises, over coefficients g = (g_1, ..., g_m) of all views and a psd metric A between them,

        ||Y - sum_v U_v g_v||^2 + alpha tr(g^T A^-1 g) + eta N(A),    K_v = U_v U_v^T

    with N the squared Frobenius norm or, if ``sparse``, the sum of the Frobenius norms of the blocks of A.

    Parameters
    ----------
    problem : KernelsProblem or MeasuredKernels
        With `MeasuredKernels` complete problems are solved until the gap over measured cells is closed.
    alpha, eta : float
        lambda and eta of the paper, positive.
    sparse : bool, default=False
    max_iter : int, default=1000
    tol : float, default=1e-3

    Notes
    -----
    *Frobenius.* For given g the best metric is A = (alpha g g^T / (2 eta))^(1/3). Putting it in leaves
    ||Y - U g||^2 plus a multiple of the sum of the singular values of g to the power 4/3, and the same
    comes of output kernel learning with the kernel sum_v k_v and ridge (eta alpha^2)^(1/3), with L = A
    alpha^-1 (eta alpha^2)^(1/3) on the range of g. With one target it is ridge regression on all features
    side by side, the ridge being alpha (2 eta / (alpha |g|^2))^(1/3): views are not weighed.

    *Sparse.* The best metric has A_vl along g_v g_l^T, and leaves 2 sqrt(alpha eta) sum_v |g_v|: multiple
    kernel learning with the l_1 norm, that is weights d with penalty sum(d) / 2 and ridge sqrt(alpha eta).

    Both are global minima of the published objective, which its alternation, started from the identity,
    need not reach. The value, gap and tolerance are those of the convex problems; the published objective
    is twice the value times the ridge.

    References
    ----------
    R. Huusari, H. Kadri and C. Capponi, "Multi-view metric learning in vector-valued kernel spaces", AISTATS
    2018.
    """
    ridge = float(np.sqrt(alpha * eta) if sparse else np.cbrt(eta * alpha**2))
    if isinstance(problem, MeasuredKernels):

        def conjugate(S: Array, _: KernelsResult) -> tuple[float, float]:
            """Of weights with the sum for a penalty, or of one output kernel for the sum of all kernels."""
            if sparse:
                return shrunk_conjugate(Schatten(1.0), np.trace(S, axis1=1, axis2=2)[:, None, None])
            return shrunk_conjugate(Schatten(2.0), S.sum(axis=0)[None])

        return learn_measured(
            problem,
            ridge,
            lambda full, tol: learn_multiview(full, alpha, eta, sparse=sparse, max_iter=max_iter, tol=tol),
            conjugate,
            max_iter=max_iter,
            tol=tol,
        )
    m, p = len(problem.kernels), problem.targets.shape[1]
    if sparse:
        gram = WeightedGram(problem.kernels, problem.targets, ridge, np.ones(p), problem.rest / (2 * ridge))
        # The size at which a weight balances the targets.
        start = float(np.linalg.norm(problem.targets)) / np.sqrt(
            m * max(gram.kernels.trace(axis1=1, axis2=2).sum(), 1e-300)
        )
        found = solve_convex(
            gram, Schatten(1.0), np.full((m, 1, 1), max(start, 1e-150)), max_iter=max_iter, tol=tol**2
        )
        d, point = found.point.L, found.point
        outcome = (point.value, point.gap, found.converged, found.reason, found.n_iter)
        return expand(problem, point.C, ridge, d[:, 0, 0], d * np.eye(p), outcome)
    summed = reduce_problem(problem.kernels.sum(axis=0), problem.targets)
    result = learn_output_kernel(summed, ridge, max_iter=max_iter, tol=tol)
    value = result.value + problem.rest / (2 * ridge)
    outcome = (value, result.gap, result.converged, result.reason, result.n_iter)
    return expand(problem, result.C, ridge, np.ones(m), np.tile(result.L, (m, 1, 1)), outcome)


def embed_view(
    part: KernelPart, present: NDArray[np.bool_], weight: Array | None, *, centred: bool
) -> tuple[KernelPart, Array]:
    """The kernel of a view on all rows, zero between a row that lacks it and any other.

    Parameters
    ----------
    part : KernelPart
        On the rows that have the view.
    present : ndarray of bool of shape (n,)
        Which rows these are.
    weight : ndarray of shape (n,), optional
    centred : bool
        Whether features are centred, at their mean over the rows that have the view: then a missing view says
        what its mean says, and no direction of the features is spent on whether it is missing.

    Returns
    -------
    part : KernelPart
        On all rows.
    share : ndarray of shape (number of present rows,)
        Weights of the mean, zero where nothing was centred.
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
    """Coefficients and offset of a view for new rows, from dual coefficients C of the rows that have it.

    What the view adds is its kernel with these rows (n, t), or its features, times the coefficients, plus the
    offset (p,).
    """
    if part.is_features:
        centre = share @ part.matrix
        coef = (part.matrix - centre).T @ C
        return np.asarray(coef), np.asarray(-centre @ coef)
    coef = C - np.outer(share, C.sum(axis=0))
    return coef, np.asarray(-(share @ part.matrix) @ coef)
