"""Multiple kernel learning from the cells of the targets that were measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..convex.measured_cells import INNER, fill_blanks
from ..linalg import Array
from .problem import KernelPart, KernelsProblem, reduce_kernels, retarget_kernels
from .result import KernelsResult

__all__ = ["MeasuredKernels", "learn_measured", "reduce_cells"]


@dataclass(frozen=True, eq=False)
class MeasuredKernels:
    """Several Gram matrices, and targets of which some cells were not measured, or weigh less than others.

    Attributes
    ----------
    complete : KernelsProblem
        With the largest weight of each row's cells, and zeros in blanks.
    Y : ndarray of shape (n, p)
    weights : ndarray of shape (n, p)
        Zero in blanks.
    centred : bool
    """

    complete: KernelsProblem
    Y: Array
    weights: Array
    centred: bool

    @property
    def scales(self) -> Array:
        """What the Gram matrices were divided by."""
        return self.complete.scales

    def squares(self, C: Array) -> Array:
        """C^T K_j C, (m, p, p), for dual coefficients of the rows, whose columns sum to zero if centred."""
        problem = self.complete
        inside = C / problem.root_weight[:, None]  # (n, p)
        if problem.vectors is not None:
            inside = problem.vectors.T @ inside  # (r, p)
        return np.asarray(inside.T @ problem.kernels @ inside)


def reduce_cells(
    parts: Sequence[KernelPart],
    Y: Array,
    weights: Array | None = None,
    *,
    centred: bool = False,
    normalized: bool = False,
) -> KernelsProblem | MeasuredKernels:
    """As `reduce_kernels`, with weights of rows (n,) or of cells (n, p), where zero is a blank.

    Every row and every target must have a cell of positive weight. Time and memory are those.
    """
    if weights is None or weights.ndim == 1:
        return reduce_kernels(parts, Y, weights, centred=centred, normalized=normalized)
    Y = np.where(weights > 0.0, Y, 0.0)
    complete = reduce_kernels(parts, Y, weights.max(axis=1), centred=centred, normalized=normalized)
    return MeasuredKernels(complete, Y, weights, centred)


def learn_measured(
    problem: MeasuredKernels,
    alpha: float,
    solve: Callable[[KernelsProblem, float], KernelsResult],
    conjugate: Callable[[Array, KernelsResult], tuple[float, float]],
    *,
    convex: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> KernelsResult:
    """Learn from measured cells, by a solver for complete targets; see `fill_blanks`.

    Parameters
    ----------
    problem : MeasuredKernels
    alpha : float
        The ridge.
    solve : callable
        From a complete problem and a tolerance to the result.
    conjugate : callable
        From the squares of coefficients c, (m, p, p), and the last result to a factor t of at most one and
        the conjugate of the penalty at t c.
    convex : bool, default=True
        Whether the problem is; if not, the slope ends the search as well.
    max_iter : int, default=1000
        Largest number of complete problems.
    tol : float, default=1e-3
        Stop when the duality gap over measured cells is at most tol^2 times the objective.

    Notes
    -----
    Time n p r + m r^2 p for every complete problem, beside what its solver takes. The witness that comes back
    is that of the last complete problem; the gap is that over measured cells.
    """
    latest: list[KernelsResult] = []
    # Where the slope ends the search, sharper complete problems would only take longer.
    inner = INNER * tol if convex else tol

    def complete(Z: Array, _: KernelsResult | None) -> KernelsResult:
        latest[:] = [solve(retarget_kernels(problem.complete, Z, centred=problem.centred), inner)]
        return latest[0]

    found = fill_blanks(
        complete,
        problem.Y,
        problem.weights,
        alpha,
        centred=problem.centred,
        conjugate=lambda C: conjugate(problem.squares(C), latest[0]),
        by_slope=not convex,
        max_iter=max_iter,
        tol=tol,
    )
    return replace(
        found.result,
        value=found.value,
        gap=found.gap,
        converged=found.converged,
        reason=found.reason,
        n_iter=found.n_iter,
    )
