"""The regularised optimum of the alignment, written down instead of searched for."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, svd

from ...linalg import Array, rank_tolerance
from ..kernel import LearnedKernel
from ..problem import Problem
from .result import SolverOptions, SolverResult

__all__ = ["solve_closed_form"]


def solve_closed_form(problem: Problem, options: SolverOptions) -> SolverResult:
    """Kernel aligned with the ridge fit of the targets, D of trace one.

    Notes
    -----
    With an intercept both alignment terms peak together, at the kernel f(x) f(z)^T of the least-squares fit
    f. With the ridge fit W = (C + target_alpha tr(C)/m I)^-1 B in its place, and the two optima mixed as
    the objective mixes its terms,

        D = (1 - mix) W W^T kron I_p / (p ||W||^2) + mix vec(W^T) vec(W^T)^T / ||W||^2

    With neither ``target_alpha`` nor ``shrinkage`` nothing is regularised, and D is the maximiser of the
    alignment itself: vec(W^T) vec(W^T)^T / ||W||^2, for every mix but 0, where the metric alone maximises.

    A ``rank`` asks for the best approximation of D by that many Kraus operators, within the outputs that
    the features reach; without it the first part stays a metric and the second is one operator.

    Time m' k, or m' k (m' + k) + r m' k with a rank.
    """
    mean_eigenvalue = problem.scale.sum() / problem.n_features
    W = problem.targets / (problem.scale + options.target_alpha * mean_eigenvalue)[:, None]
    W = W / np.linalg.norm(W)
    mix = problem.whitened.mix
    share = 1.0 if mix > 0.0 and options.target_alpha == options.shrinkage == 0.0 else mix
    if options.rank is None:
        kernel = _metric_and_operator(W, share, problem.n_outputs)
    else:
        kernel = LearnedKernel.from_operators(_leading_operators(W, share, problem.n_outputs, options.rank))
    terms = problem.alignment_terms(kernel)
    value = (1.0 - mix) * terms[0] + mix * terms[1]
    return SolverResult(kernel, value, True, "closed form", 1, 1, np.array([value]))


def _metric_and_operator(W: Array, mix: float, n_outputs: int) -> LearnedKernel:
    L = np.sqrt((1.0 - mix) / n_outputs) * W
    Q = np.sqrt(mix) * W[:, :, None]
    return LearnedKernel(0.0, L if mix < 1.0 else L[:, :0], Q if mix > 0.0 else Q[:, :, :0])


def _leading_operators(W: Array, mix: float, n_outputs: int, rank: int) -> Array:
    """Scaled leading eigenvectors of D as Q (m', k, r), of unit norm.

    With W = sum_j s_j u_j v_j^T of unit norm, D maps u_j kron v_l to a multiple of itself for j != l, and
    the span of the u_j kron v_j to itself. So its eigenvectors are those of one small matrix,
    (1 - mix) / p diag(s^2) + mix s s^T, and the pairs j != l with eigenvalue (1 - mix) / p s_j^2.
    """
    U, s, Vt = svd(W, full_matrices=False)
    U, s, Vt = U[:, s > 0], s[s > 0], Vt[s > 0]
    spread = (1.0 - mix) / n_outputs
    values, vectors = eigh(spread * np.diag(s**2) + mix * np.outer(s, s))
    paired = np.einsum("fj,ji,jo->foi", U, vectors, Vt)  # (m', k, number of s)
    first, second = np.nonzero(~np.eye(len(s), dtype=bool))
    all_values = np.concatenate([values, spread * s[first] ** 2])
    order = np.argsort(-all_values, kind="stable")[:rank]
    order = order[all_values[order] > rank_tolerance(len(s)) * all_values[order[0]]]
    chosen = np.empty((*W.shape, len(order)))
    for column, index in enumerate(order):
        if index < len(s):
            chosen[:, :, column] = paired[:, :, index]
        else:
            pair = index - len(s)
            chosen[:, :, column] = np.outer(U[:, first[pair]], Vt[second[pair]])
    scaled = chosen * np.sqrt(all_values[order])
    return np.asarray(scaled / np.linalg.norm(scaled))
