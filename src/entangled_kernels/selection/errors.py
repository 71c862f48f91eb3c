"""Held-out errors of many candidates on one fold: one learned kernel and one factorisation serve most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np

from ..learning.problem import Problem
from ..learning.ridge import KernelRidgeFactor, LearnedKernel, Spectral
from ..learning.solvers import Progress, SolverOptions, solve
from ..linalg import Array, is_identity
from ..threads import SMALL_MATRIX, one_thread
from .candidates import Grid, Member
from .fold import Fold
from .stacked_members import in_two, stacked_forms
from .weighted_sums import needs_few_alphas, sum_of_few_alphas

__all__ = ["candidate_errors", "member_factors", "weighted_coefficients"]

# With so many times more outputs times alphas than features, errors of all alphas are found together.
_ALPHAS_TOGETHER = 4


def candidate_errors(fold: Fold, grid: Grid, options: SolverOptions, *, by_target: bool = False) -> Array:
    """Mean held-out errors of all candidates on one fold, (members, alphas, 1 or p).

    Parameters
    ----------
    fold : Fold
    grid : Grid
    options : SolverOptions
    by_target : bool, default=False
        Whether to give the squared error of every target instead of the weighted mean over targets.
    """
    with one_thread(max(fold.problem.targets.shape) <= SMALL_MATRIX):
        of_form, of_coef = fold.spectral_error, fold.error
        if by_target:
            of_form, of_coef = fold.spectral_target_errors, fold.target_errors
        errors: dict[Member, Array] = {}
        stacked, others = in_two(fold.problem, grid.members, len(grid.alphas))
        for places, form in stacked_forms(fold.problem, stacked, grid.alphas):
            errors |= zip((stacked[place] for place in places), of_form(form), strict=True)
        for member, factor in member_factors(fold.problem, others, options):
            one = _shared_form(factor, grid.alphas)
            if one is None:
                errors[member] = of_coef(factor.coefficients(grid.alphas))
            else:
                errors[member] = of_form(one)
        found = np.stack([errors[member] for member in grid.members]) / fold.weight
        return found if by_target else found[..., None]


def weighted_coefficients(
    problem: Problem,
    basis: Array,
    grid: Grid,
    weights: Array,
    options: SolverOptions,
) -> Array:
    """Weighted sum of the coefficients of all candidates, (m', p) of targets with a basis (p, k).

    ``weights`` is (members, alphas, 1), or (members, alphas, p) where targets have weights of
    their own. Members without any weight cost nothing.
    """
    used = {member: own for member, own in zip(grid.members, weights, strict=True) if own.any()}
    apart = weights.shape[2] > 1
    total = np.zeros((len(problem.scale), len(basis) if apart else basis.shape[1]))
    few = {member: used[member] for member in needs_few_alphas(problem, used)}
    if few:
        total += sum_of_few_alphas(problem, basis, grid.alphas, few)
    left = [member for member in used if member not in few]
    weighed = np.array([used[member].any(axis=1) for member in left]).reshape(-1, len(grid.alphas))
    alphas = np.flatnonzero(weighed.any(axis=0))
    stacked, others = in_two(problem, left, int(weighed.sum(axis=1).max(initial=0)))
    for places, form in stacked_forms(problem, stacked, grid.alphas[alphas]):
        own = np.stack([used[stacked[place]][alphas] for place in places])  # (members, alphas, 1 or p)
        parts = [(form.gains, form.targets), (form.operator_gains, form.operator)]
        for axes, rows in parts if form.operator.size else parts[:1]:
            # (members, m', k or p)
            turned = (axes.swapaxes(1, 2) @ own) * (rows @ basis.T if apart else rows)
            if form.back.ndim == 1:
                total += form.back[:, None] * turned.sum(axis=0)
            else:
                total += np.tensordot(form.back, turned, ([0, 2], [0, 1]))
    for member, factor in member_factors(problem, others, options):
        own = used[member]
        places = np.flatnonzero(own.any(axis=1))
        for weight, coef in zip(own[places], factor.coefficients(grid.alphas[places]), strict=True):
            targets = np.flatnonzero(weight) if apart else slice(None)
            total[:, targets] += weight[targets] * (coef @ basis[targets].T) if apart else weight * coef
    return total if apart or is_identity(basis) else total @ basis.T


def member_factors(
    problem: Problem, members: Iterable[Member], options: SolverOptions
) -> Iterator[tuple[Member, KernelRidgeFactor]]:
    """Every member with the ridge problem of its kernel, factorised.

    Members that differ only in shrinkage and prediction share one learned kernel.
    """
    groups: dict[tuple[object, ...], list[Member]] = {}
    for member in members:
        # Whether anything regularises matters to the closed form.
        regularised = member.target_alpha > 0.0 or member.shrinkage > 0.0
        key = (member.solver, member.alignment_mix, member.target_alpha, member.rank, regularised)
        groups.setdefault(key, []).append(member)
    for group in groups.values():
        kernels = _learn_kernels(problem.with_mix(group[0].alignment_mix), group, options)
        for member in group:
            kernel = problem.finished(kernels[member.n_steps], member.shrinkage)
            if member.prediction == "partial_trace":
                kernel = kernel.partial_trace(problem.n_outputs)
            yield member, KernelRidgeFactor(problem, kernel)


def _learn_kernels(
    problem: Problem, group: Sequence[Member], options: SolverOptions
) -> dict[int | None, LearnedKernel]:
    """The learned kernel after every number of steps that the group asks for."""
    first = group[0]
    if all(member.shrinkage == 1.0 for member in group):
        plain = LearnedKernel.from_operators(np.zeros((*problem.targets.shape, 0)))
        return {member.n_steps: plain for member in group}
    wanted = {member.n_steps for member in group if member.n_steps is not None}
    kernels: dict[int | None, LearnedKernel] = {}

    def keep(progress: Progress) -> None:
        if progress.n_iter in wanted:
            kernels[progress.n_iter] = LearnedKernel.from_operators(progress.Q)

    own = replace(
        options,
        rank=problem.resolve_rank(first.rank),
        target_alpha=first.target_alpha,
        shrinkage=max(member.shrinkage for member in group),
        max_iter=max(wanted, default=options.max_iter),
        # Every group and fold starts alike, whatever was done before.
        rng=deepcopy(options.rng),
        callback=keep,
    )
    result = solve(first.solver, problem, own)
    # A solver that stops early would have stayed where it is.
    return {member.n_steps: kernels.get(member.n_steps, result.kernel) for member in group}


def _shared_form(factor: KernelRidgeFactor, alphas: Array) -> Spectral | None:
    """What the coefficients of all alphas share, where there is such a form and it is worth while.

    Coefficients take m k numbers for each alpha; the shared form takes m^2 for all of them.
    """
    m, k = factor.problem.targets.shape
    return factor.spectral(alphas) if k * len(alphas) >= _ALPHAS_TOGETHER * m else None
