"""Output kernel learning from the cells of the targets that were measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..convex import Schatten
from ..convex.measured_cells import INNER, fill_blanks, shrunk_conjugate
from ..linalg import Array
from .penalties import OutputPenalty
from .problem import OutputKernelProblem, reduce_problem, retarget
from .result import OutputKernelResult

__all__ = ["MeasuredProblem", "learn_measured", "reduce_cells"]

Solve = Callable[[OutputKernelProblem, Array | None, float], OutputKernelResult]


@dataclass(frozen=True, eq=False)
class MeasuredProblem:
    """A Gram matrix, and targets of which some cells were not measured, or weigh less than others.

    Attributes
    ----------
    complete : OutputKernelProblem
        With the largest weight of each row's cells, and targets of the sizes of the measured ones: what
        `alpha_unit` needs.
    Y : ndarray of shape (n, p)
    weights : ndarray of shape (n, p)
        Zero in blanks.
    centred : bool
    """

    complete: OutputKernelProblem
    Y: Array
    weights: Array
    centred: bool

    def squares(self, C: Array) -> Array:
        """C^T K C for dual coefficients of the rows, whose columns sum to zero where K is centred."""
        problem = self.complete
        inside = problem.vectors.T @ (C / problem.root_weight[:, None])  # (q, p)
        return np.asarray(inside.T @ (problem.values[:, None] * inside))


def reduce_cells(
    K: ArrayLike, Y: Array, weights: Array | None = None, *, centred: bool = False
) -> OutputKernelProblem | MeasuredProblem:
    """As `reduce_problem`, with weights of rows (n,) or of cells (n, p), where zero is a blank.

    Every row and every target must have a cell of positive weight. Time and memory are those.
    """
    if weights is None or weights.ndim == 1:
        return reduce_problem(K, Y, weights, centred=centred)
    known, sums = weights > 0.0, weights.sum(axis=0)
    row_weight = weights.max(axis=1)
    Y = np.where(known, Y, 0.0)
    mean = np.sum(weights * Y, axis=0) / sums if centred else np.zeros(Y.shape[1])
    # Rooted so that each target has, with the weights of the rows, the sum of squares of its measured cells.
    share = np.sqrt(weights * (row_weight.sum() / sums) / row_weight[:, None])  # (n, p)
    complete = reduce_problem(K, mean + share * (Y - mean), row_weight, centred=centred)
    return MeasuredProblem(complete, Y, weights, centred)


def learn_measured(
    problem: MeasuredProblem,
    alpha: float,
    solve: Solve,
    *,
    rank: int | None = None,
    penalty: OutputPenalty | None = None,
    fixed: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-3,
) -> OutputKernelResult:
    """Learn from measured cells, by a solver for complete targets; see `fill_blanks`.

    Parameters
    ----------
    problem : MeasuredProblem
    alpha : float
    solve : callable
        From a complete problem, an L to start from or None, and a tolerance to the result.
    rank, penalty, max_iter, tol
        As in `learn_output_kernel`.
    fixed : ndarray of shape (p, p), optional
        L where it is given.

    Notes
    -----
    Time n p q + q k^2 + k^3 for every complete problem, beside what its solver takes.
    """
    # With a rank the tolerance is of the slope, and not of its square as that of the gap.
    inner = INNER * (tol if rank is None else tol**2)

    def complete(Z: Array, last: OutputKernelResult | None) -> OutputKernelResult:
        start = None if last is None or not last.L.any() else last.L
        return solve(retarget(problem.complete, Z, centred=problem.centred), start, inner)

    def conjugate(C: Array) -> tuple[float, float]:
        S = problem.squares(C)
        if fixed is not None:
            return 1.0, 0.5 * float(np.vdot(fixed, S))
        if rank is not None:
            return shrunk_conjugate(Schatten(1.0), S[None])
        return _conjugate(penalty or OutputPenalty(), S)

    found = fill_blanks(
        complete,
        problem.Y,
        problem.weights,
        alpha,
        centred=problem.centred,
        conjugate=conjugate,
        by_slope=rank is not None,
        max_iter=max_iter,
        tol=tol,
    )
    reason = "fixed" if fixed is not None and found.converged else found.reason
    return replace(
        found.result,
        value=found.value,
        gap=found.gap,
        converged=found.converged,
        reason=reason,
        n_iter=found.n_iter,
        history=found.history,
    )


def _conjugate(penalty: OutputPenalty, S: Array) -> tuple[float, float]:
    """P*(t^2 S / 2) over all outputs, and t."""
    p = len(S)
    if penalty.name != "cluster":
        return shrunk_conjugate(penalty.build(p, p), S[None])
    # The mean of the outputs has level one; the penalty is on the others.
    basis = np.linalg.svd(np.ones((1, p)))[2][1:].T  # (p, p - 1)
    t, others = shrunk_conjugate(penalty.build(p, p - 1), (basis.T @ S @ basis)[None])
    return t, others + 0.5 * float(S.sum()) / p
