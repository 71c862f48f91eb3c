"""What comes of output kernel learning."""

from __future__ import annotations

from dataclasses import dataclass

from ..linalg import Array

__all__ = ["OutputKernelResult"]


@dataclass(frozen=True, eq=False)
class OutputKernelResult:
    """A learned output kernel, the dual coefficients that go with it, and how they were found.

    Attributes
    ----------
    C : ndarray of shape (n, p)
        Dual coefficients: the model is f(x) = sum_i k(x, x_i) L C[i] + intercept.
    L : ndarray of shape (p, p)
        Positive semi-definite output kernel.
    intercept : ndarray of shape (p,)
        Zero when the problem is not centred.
    value : float
        The objective.
    gap : float
        Duality gap: the objective is at most this much above its minimum over all L. With a rank, which makes
        the problem non-convex, above the minimum over all ranks.
    witness : ndarray of shape (n, p)
        Coefficients that prove the gap, for the centred and weighted K and Y of the problem: their dual
        value, <Y, C> - alpha |C|^2 / 2 - P*(C^T K C / 2), is the objective less the gap. Where targets have
        blanks, those of the complete problem with the blanks filled in; `fill_blanks` proves the gap.
    converged : bool
        Whether the tolerance was met.
    reason : str
        Why the iteration stopped: ``"tolerance"``, ``"max_iter"``, ``"stalled"`` when the objective can
        fall no further in double precision, ``"zero"`` when K says nothing about Y, so that there is nothing
        to learn, or ``"fixed"`` when L was given.
    n_iter : int
        Number of updates of L, or of evaluations of the objective or its dual; where targets have blanks, of
        complete problems solved.
    history : ndarray
        Objective at the start and after every update, or after every round of updates; it never rises.
    """

    C: Array
    L: Array
    intercept: Array
    value: float
    gap: float
    witness: Array
    converged: bool
    reason: str
    n_iter: int
    history: Array
