"""Weighted sums of the coefficients of closed-form members, of which each is needed at few alphas."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..learning.problem import Problem
from ..linalg import Array
from .candidates import Member
from .stacked_members import StackedKernels, is_closed_form, without_metric

__all__ = ["needs_few_alphas", "sum_of_few_alphas"]

# Candidates are taken together in stacks of about this many numbers.
_STACK_NUMBERS = 2**18
# A decomposition of all axes takes as long as this many times m'^3 products.
_DECOMPOSITION = 20
# The largest condition of the small systems, which are then solved to nearly all digits.
_WELL_CONDITIONED = 1e5


def needs_few_alphas(problem: Problem, weights: Mapping[Member, Array]) -> list[Member]:
    """Members that `sum_of_few_alphas` takes: a system of k equations for each alpha costs them less.

    ``weights`` are (alphas, 1 or p), for every member.
    """
    m, k = problem.targets.shape
    most = _DECOMPOSITION * m**3 / max(1, 6 * m * k**2 + 4 * k**3)
    return [
        member
        for member, own in weights.items()
        if is_closed_form(problem, member)
        # An upper bound of metric / plain.
        and (1.0 - member.shrinkage) * problem.n_features <= _WELL_CONDITIONED * member.shrinkage
        and (without_metric(member) or np.count_nonzero(own.any(axis=1)) <= most)
    ]


def sum_of_few_alphas(
    problem: Problem, basis: Array, alphas: Array, weights: Mapping[Member, Array]
) -> Array:
    """Weighted sum of coefficients, (m', k), or (m', p) of targets with a basis where these weigh apart.

    Parameters
    ----------
    problem : Problem
    basis : ndarray of shape (p, k)
    alphas : ndarray of shape (a,)
    weights : dict of ndarray of shape (a, 1) or (a, p)
        Of every member at every alpha.

    Notes
    -----
    With whitened b, W and metric A = plain diag(scale) + metric W W^T, as `StackedKernels` has them, let
    Delta = (plain diag(scale) + alpha I)^-1 and P = I + metric W^T Delta W. The coefficients of an alpha are

        scale^-1/2 Delta (plain scale b + alpha W F),   F = P^-1 (metric W^T Delta b + c I)

    where c, the part of the operator, is operator tr(P^-1 W^T Delta b) / (1 + operator tr(P^-1 W^T Delta W)).
    There is no difference in it, and P is well conditioned unless plain is tiny: W has unit norm before it is
    whitened, so that P is at most 1 + metric / plain.

    Time m' k^2 + k^3 for every alpha of a member whose weight is not zero, m' k for those without a metric.
    """
    members = list(weights)
    kernels = StackedKernels(problem, members)
    root = np.sqrt(problem.scale)
    b = problem.targets / root[:, None]
    stacked = np.stack([weights[member] for member in members])  # (members, a, 1 or p)
    member, place = np.nonzero(stacked.any(axis=2))
    weight, alpha = stacked[member, place], alphas[place]  # (q, 1 or p) and (q,)
    apart = weight.shape[1] > 1
    plain, metric, operator = (own[member] for own in (kernels.plain, kernels.metric, kernels.operator))
    fit = kernels.fit[member]
    delta = 1.0 / (plain[:, None] * problem.scale + alpha[:, None])  # (q, m')
    level = plain[:, None] * problem.scale * delta
    total = (level.T @ weight) * (b @ basis.T if apart else b)
    for number, W in enumerate(kernels.fits):
        own = np.flatnonzero((fit == number) & (metric == 0.0) & (operator > 0.0))
        if len(own) > 0:
            inner, target = delta[own] @ np.sum(W * W, axis=1), delta[own] @ np.sum(W * b, axis=1)
            along = alpha[own] * operator[own] * target / (1.0 + operator[own] * inner)  # (q,)
            total += (delta[own].T @ (along[:, None] * weight[own])) * (W @ basis.T if apart else W)
        own = np.flatnonzero((fit == number) & (metric > 0.0))
        step = max(1, _STACK_NUMBERS // max(1, W.size))
        for start in range(0, len(own), step):
            some = own[start : start + step]
            scaled = _times_each(delta[some], W)  # (m', q * k)
            F = _inner_solutions(W, b, scaled, metric[some], operator[some])  # (q, k, k)
            F = (alpha[some, None] * weight[some])[:, None] * (F @ basis.T if apart else F)
            total += scaled @ F.reshape(-1, F.shape[2])  # (q * k, k or p)
    return np.asarray(total / root[:, None])


def _times_each(delta: Array, W: Array) -> Array:
    """Every one of the diagonals (q, m') times W (m', k), side by side, (m', q * k)."""
    return np.asarray(delta.T[:, :, None] * W[:, None, :]).reshape(len(W), -1)


def _inner_solutions(W: Array, b: Array, scaled: Array, metric: Array, operator: Array) -> Array:
    """F of `sum_of_few_alphas`, (q, k, k), with ``scaled`` as `_times_each` gives it."""
    q, k = len(metric), W.shape[1]
    products = (np.hstack([W, b]).T @ scaled).reshape(2 * k, q, k)
    J, target = products[:k].transpose(1, 0, 2), products[k:].transpose(1, 2, 0)  # (q, k, k) each
    P = metric[:, None, None] * J
    P[:, np.arange(k), np.arange(k)] += 1.0
    inverse = np.linalg.inv(P)
    solved = inverse @ target
    along = (
        operator * np.trace(solved, axis1=1, axis2=2) / (1.0 + operator * np.sum(inverse * J, axis=(1, 2)))
    )
    return np.asarray(metric[:, None, None] * solved + along[:, None, None] * inverse)
