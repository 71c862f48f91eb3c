"""What cross-validation tries: ways to learn a kernel, each with several ridge penalties."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learning import SOLVERS, FitSettings, LearnedKernel, Problem, Progress
from ..learning.ridge import KernelRidgeFactor
from ..learning.solvers import solve
from ..linalg import Array

__all__ = [
    "GRID",
    "PATH_STEPS",
    "Grid",
    "Member",
    "default_alphas",
    "grid_members",
    "learn_members",
    "weighted_coefficients",
]

# In units of tr(C) / n, the mean eigenvalue of the Gram matrix of one output.
RELATIVE_ALPHAS = np.logspace(-8, 3, 34)
# Steps along the path of an iterative solver that are candidates of their own.
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


@dataclass(frozen=True)
class Member:
    """One way to learn the kernel and predict with it; a candidate is a member and an alpha.

    ``n_steps`` is the number of steps taken along the path of a solver that has one, else None.
    """

    solver: str
    alignment_mix: float
    shrinkage: float
    target_alpha: float
    rank: int | float | None
    prediction: str
    n_steps: int | None = None

    @property
    def entangled(self) -> bool:
        """Whether it predicts with a learned kernel that ties outputs together."""
        return self.shrinkage < 1.0 and self.prediction == "entangled"

    def parameters(self) -> dict[str, Any]:
        """Parameters of `EntangledKernelRidge` that make it this member, without those of the solver."""
        return {name: getattr(self, name) for name in GRID}

    def settings(self, start: FitSettings, alpha: float) -> FitSettings:
        """Settings of a fit with this member; what members do not say is that of ``start``."""
        steps = start.max_iter if self.n_steps is None else self.n_steps
        return replace(start, **self.parameters(), max_iter=steps, alpha=alpha)


@dataclass(frozen=True, eq=False)
class Grid:
    """All candidates: every member with every alpha.

    Attributes
    ----------
    members : list of Member
    alphas : ndarray
    """

    members: list[Member]
    alphas: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of members and alphas."""
        return len(self.members), len(self.alphas)

    def preference(self) -> NDArray[np.intp]:
        """Places of all candidates, the largest shrinkage, then the largest alpha first."""
        shrinkages = [member.shrinkage for member in self.members]
        shrinkage, alpha = np.meshgrid(shrinkages, self.alphas, indexing="ij")
        # The last key counts first; equals stay in their order.
        return np.lexsort((-alpha.ravel(), -shrinkage.ravel()))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Parameters of all candidates in their order, column by column."""
        member, alpha = np.unravel_index(np.arange(np.prod(self.shape)), self.shape)
        settings = [own.parameters() for own in self.members]
        columns: dict[str, NDArray[Any]] = {}
        if any(own.n_steps is not None for own in self.members):
            columns["param_n_steps"] = np.array([own.n_steps for own in self.members])[member]
        for name in settings[0]:
            kind = object if name == "rank" else None
            columns[f"param_{name}"] = np.array([own[name] for own in settings], dtype=kind)[member]
        return columns | {"param_alpha": self.alphas[alpha]}


def grid_members(grid: Mapping[str, Iterable[Any]], *, max_iter: int) -> list[Member]:
    """Distinct ways to learn and predict, kernel ridge first; the others in the order of the grid.

    Parameters
    ----------
    grid : mapping
        Values to try of every parameter in `GRID`.
    max_iter : int
        Steps of solvers whose path has candidates.

    Notes
    -----
    ``shrinkage=1`` is kernel ridge whatever the rest, and for the closed form without a rank the
    partial-trace prediction does not depend on the mix and is the entangled one of mix 0.
    """
    values = {name: list(grid[name]) for name in GRID}
    ranks = [int(rank) if isinstance(rank, Integral) else rank for rank in values["rank"]]
    members: dict[Member, None] = {}
    for solver in values["solver"]:
        traits = SOLVERS[solver]
        steps: list[int | None] = [None]
        if traits.has_path:
            steps = [*(step for step in PATH_STEPS if step < max_iter), max_iter]
        if not members:
            # Nothing is left of the operators of kernel ridge, so as few as the grid has will do.
            rank = min(ranks, key=_size) if traits.iterative else None
            members[Member(solver, 0.0, 1.0, 0.0, rank, "entangled", steps[0])] = None
        names = ("target_alpha", "alignment_mix", "shrinkage", "prediction")
        product = itertools.product(ranks, *(values[name] for name in names), steps)
        for rank, target_alpha, mix, shrinkage, prediction, n_steps in product:
            if shrinkage == 1.0:
                continue
            if traits.iterative:
                target_alpha = 0.0
            elif rank is None and (prediction == "partial_trace" or mix == 0.0):
                mix, prediction = 0.0, "partial_trace"
            settings = (
                float(mix),
                float(shrinkage),
                float(target_alpha),
                rank,
                prediction,
                n_steps,
            )
            members[Member(solver, *settings)] = None
    return list(members)


def _size(rank: int | float | None) -> tuple[int, float]:
    """Order of ranks: numbers of operators, then shares of the full rank, then the full rank."""
    return (2, 0.0) if rank is None else (1 if isinstance(rank, float) else 0, rank)


def default_alphas(scale: float, noise: float | None) -> Array:
    """Ridge penalties about the mean squared length of the features, and the noise that they came with."""
    alphas = RELATIVE_ALPHAS * (scale if scale > 0.0 else 1.0)
    return alphas if noise is None else np.sort(np.append(alphas, noise))


def weighted_coefficients(
    problem: Problem, grid: Grid, weights: Array, start: FitSettings
) -> Array:
    """Weighted sum of the coefficients of all candidates, (m', q) of the outputs of the problem.

    ``weights`` is (members, alphas, 1), or (members, alphas, q) where targets have weights of their
    own. Members without any weight cost nothing.
    """
    basis = problem.outputs
    used = np.flatnonzero(weights.any(axis=(1, 2)))
    shared, apart = np.zeros((len(problem.scale), basis.shape[1])), weights.shape[2] > 1
    total = np.zeros((len(problem.scale), len(basis) if apart else 0))
    for place, factor in learn_members(problem, [grid.members[own] for own in used], start):
        own = weights[used[place]]
        alphas = np.flatnonzero(own.any(axis=1))
        coefs = factor.coefficients(grid.alphas[alphas])  # (a, m', k)
        if apart:
            total += np.einsum("afo,ao->fo", coefs @ basis.T, own[alphas])
        else:
            shared += np.tensordot(own[alphas, 0], coefs, axes=1)
    return total if apart else shared @ basis.T


def learn_members(
    problem: Problem, members: Sequence[Member], start: FitSettings
) -> Iterator[tuple[int, KernelRidgeFactor]]:
    """Place of every member, and the ridge problem with its kernel, factorised.

    Members that differ only in shrinkage and prediction share one learned kernel.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, member in enumerate(members):
        # Whether anything regularises matters to the closed form.
        regularised = member.target_alpha > 0.0 or member.shrinkage > 0.0
        key = (member.solver, member.alignment_mix, member.target_alpha, member.rank, regularised)
        groups.setdefault(key, []).append(place)
    for places in groups.values():
        group = [members[place] for place in places]
        kernels = _learn_kernels(problem.with_mix(group[0].alignment_mix), group, start)
        for place, member in zip(places, group, strict=True):
            kernel = problem.finished(kernels[member.n_steps], member.shrinkage)
            if member.prediction == "partial_trace":
                kernel = kernel.partial_trace(problem.n_outputs)
            yield place, KernelRidgeFactor(problem, kernel)


def _learn_kernels(
    problem: Problem, group: Sequence[Member], start: FitSettings
) -> dict[int | None, LearnedKernel]:
    """The learned kernel after every number of steps that the group asks for."""
    if all(member.shrinkage == 1.0 for member in group):
        plain = LearnedKernel.from_operators(np.zeros((*problem.targets.shape, 0)))
        return {member.n_steps: plain for member in group}
    wanted = {member.n_steps for member in group if member.n_steps is not None}
    kernels: dict[int | None, LearnedKernel] = {}

    def keep(progress: Progress) -> None:
        if progress.n_iter in wanted:
            kernels[progress.n_iter] = LearnedKernel.from_operators(progress.Q)

    # Every group and fold starts alike, whatever was done before.
    settings = group[0].settings(start, 1.0)
    settings = replace(
        settings,
        shrinkage=max(member.shrinkage for member in group),
        max_iter=max(wanted, default=start.max_iter),
    )
    found = solve(problem, settings, keep)
    # A solver that stops early would have stayed where it is.
    return {member.n_steps: kernels.get(member.n_steps, found.kernel) for member in group}
