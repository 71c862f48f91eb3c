"""Settings of kernels, each with several ridge penalties, that cross-validation tries."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from ..learning import SOLVERS, FitSettings, LearnedKernel, Problem, Progress
from ..learning.ridge import KernelRidgeFactor
from ..learning.solvers import solve
from ..linalg import Array

__all__ = [
    "GRID",
    "PATH_STEPS",
    "default_alphas",
    "grid_settings",
    "learn_kernels",
    "weighted_coefficients",
]

# In units of tr(C) / n, the mean eigenvalue of the Gram matrix of one output.
RELATIVE_ALPHAS = np.logspace(-8, 3, 34)
# Numbers of steps along the path of an iterative solver that are tried.
PATH_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

#: Values of the parameters of `EntangledKernelRidge` that are tried by default.
GRID: MappingProxyType[str, tuple[Any, ...]] = MappingProxyType(
    {
        "shrinkage": (0.25, 1.0),
        "alignment_mix": (0.0, 1.0),
        "target_alpha": (0.1, 1.0),
        "prediction": ("entangled", "partial_trace"),
        "rank": (None,),
        "solver": ("closed-form",),
    }
)


def grid_settings(grid: Mapping[str, Iterable[Any]], start: FitSettings) -> list[FitSettings]:
    """Settings of the distinct kernels of a grid, kernel ridge first.

    Parameters
    ----------
    grid : mapping
        Values to try of every parameter in `GRID`.
    start : FitSettings
        Settings that all kernels share. A solver with a path is tried with several numbers of
        steps, at most ``start.max_iter``.

    Notes
    -----
    ``shrinkage=1`` is kernel ridge whatever the other parameters are. For the closed form without a
    rank, the partial-trace prediction does not depend on the mix, and the entangled prediction with
    mix 0 is the same.
    """
    ranks = [int(rank) if isinstance(rank, Integral) else rank for rank in grid["rank"]]
    names = "solver", "rank", "target_alpha", "alignment_mix", "shrinkage", "prediction", "max_iter"
    kernels: dict[tuple[Any, ...], FitSettings] = {}
    for number, solver in enumerate(grid["solver"]):
        traits, steps = SOLVERS[solver], [start.max_iter]
        if traits.has_path:
            steps = [step for step in PATH_STEPS if step < start.max_iter] + steps
        tried: list[tuple[Any, ...]] = []
        if not kernels:
            # Kernel ridge uses no operators, so the smallest rank of the grid is enough.
            rank = min(ranks, key=_rank_size) if traits.iterative else None
            tried.append((rank, 0.0, 0.0, 1.0, "entangled", steps[0]))
        rows = itertools.product(ranks, *map(grid.__getitem__, names[2:6]), steps)
        for rank, target_alpha, mix, shrinkage, prediction, n_steps in rows:
            reduced = prediction == "reduced_rank" and rank is not None
            if shrinkage == 1.0:
                if reduced and number == 0:
                    tried.append((rank, 0.0, 0.0, 1.0, prediction, steps[0]))
                continue
            if prediction == "reduced_rank" and rank is None:
                prediction = "partial_trace"
            if traits.iterative:
                target_alpha = 0.0
            elif reduced:
                mix = 0.0
            elif rank is None and (prediction == "partial_trace" or mix == 0.0):
                mix, prediction = 0.0, "partial_trace"
            floats = float(target_alpha), float(mix), float(shrinkage)
            tried.append((rank, *floats, prediction, n_steps))
        for values in tried:
            key = (solver, *values)
            kernels[key] = start._replace(**dict(zip(names, key, strict=True)))
    return list(kernels.values())


def _rank_size(rank: int | float | None) -> tuple[int, float]:
    """Order of ranks: numbers of operators, then shares of the full rank, then the full rank."""
    return (2, 0.0) if rank is None else (1 if isinstance(rank, float) else 0, rank)


def default_alphas(scale: float, noise: float | None) -> Array:
    """Ridge penalties about the mean squared length of the features, and the noise of a map."""
    alphas = RELATIVE_ALPHAS * (scale if scale > 0.0 else 1.0)
    return alphas if noise is None else np.sort(np.append(alphas, noise))


def weighted_coefficients(
    problem: Problem, kernels: Sequence[FitSettings], alphas: Array, weights: Array
) -> Array:
    """Weighted sum of the coefficients of all candidates, (m', q) of the outputs of the problem.

    ``weights`` is (kernels, alphas, 1), or (kernels, alphas, q) if targets have separate weights.
    Kernels without any weight are not learned.
    """
    basis, by_target = problem.outputs, weights.shape[2] > 1
    total = np.zeros((len(problem.scale), len(basis) if by_target else basis.shape[1]))
    for number, factor in learn_kernels(problem, kernels, weights.any(axis=(1, 2))):
        used = np.flatnonzero(weights[number].any(axis=1))
        weight, coefs = weights[number, used], factor.coefficients(alphas[used])  # (a, m', k)
        if by_target:
            total += np.einsum("afo,ao->fo", coefs @ basis.T, weight)
        else:
            total += np.tensordot(weight[:, 0], coefs, axes=1)
    return total if by_target else total @ basis.T


def learn_kernels(
    problem: Problem, kernels: Sequence[FitSettings], wanted: Any = None
) -> Iterator[tuple[int, KernelRidgeFactor]]:
    """Number of every kernel, or of those that are wanted, and its factorised ridge problem.

    Kernels that differ only in shrinkage, prediction and number of steps are learned together.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, kernel in enumerate(kernels):
        if wanted is None or wanted[number]:
            # The closed form depends on whether anything regularises.
            regularised = kernel.target_alpha > 0.0 or kernel.shrinkage > 0.0
            key = (
                kernel.solver,
                kernel.alignment_mix,
                kernel.target_alpha,
                kernel.n_operators(problem),
                regularised,
            )
            groups.setdefault(key, []).append(number)
    for numbers in groups.values():
        learned = _learn_group(problem, [kernels[number] for number in numbers])
        for number in numbers:
            settings = kernels[number]
            D = problem.shrink_and_scale(learned[settings.max_iter], settings.shrinkage)
            yield number, KernelRidgeFactor(problem, settings.used_kernel(problem, D))


def _learn_group(problem: Problem, group: Sequence[FitSettings]) -> dict[int, LearnedKernel]:
    """The learned kernel after every number of steps in the group."""
    steps = dict.fromkeys(map(attrgetter("max_iter"), group))
    strongest = max(group, key=attrgetter("shrinkage"))
    if min(group, key=attrgetter("shrinkage")).shrinkage == 1.0:
        plain = LearnedKernel.from_operators(np.zeros((*problem.targets.shape, 0)))
        return dict.fromkeys(steps, plain)
    path: dict[int, LearnedKernel] = {}

    def keep(progress: Progress) -> None:
        if len(steps) > 1 and progress.n_iter in steps:
            path[progress.n_iter] = LearnedKernel.from_operators(progress.Q)

    last = solve(problem, strongest._replace(max_iter=max(steps)), keep).kernel
    # A solver that stops early would not move any more.
    return dict.fromkeys(steps, last) | path
