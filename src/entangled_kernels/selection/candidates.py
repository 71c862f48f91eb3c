"""What cross-validation tries: ways to learn a kernel, each with several ridge penalties."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learning.solvers import SOLVERS
from ..linalg import Array

__all__ = ["GRID", "PATH_STEPS", "Grid", "Member", "default_alphas", "grid_members"]

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
            settings = (float(mix), float(shrinkage), float(target_alpha), rank, prediction, n_steps)
            members[Member(solver, *settings)] = None
    return list(members)


def _size(rank: int | float | None) -> tuple[int, float]:
    """Order of ranks: numbers of operators, then shares of the full rank, then the full rank."""
    return (2, 0.0) if rank is None else (1 if isinstance(rank, float) else 0, rank)


def default_alphas(scale: float, noise: float | None) -> Array:
    """Ridge penalties about the mean squared length of the features, and the noise that they came with."""
    alphas = RELATIVE_ALPHAS * (scale if scale > 0.0 else 1.0)
    return alphas if noise is None else np.sort(np.append(alphas, noise))
