"""What every solver takes and gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...linalg import Array
from ..kernel import LearnedKernel

__all__ = ["Progress", "SolverOptions", "SolverResult"]


@dataclass(frozen=True, eq=False)
class Progress:
    """What a callback is told after every step: Q (m', k, r) has unit norm and must not be changed."""

    n_iter: int
    value: float
    gradient_norm: float
    Q: Array


@dataclass(frozen=True, eq=False)
class SolverOptions:
    """Settings of a solver; each one reads those that it knows.

    Attributes
    ----------
    rank : int or None
        Largest number of Kraus operators; None for as many as the solver has use for.
    target_alpha : float
        Ridge of the least-squares fit behind the closed form, in units of the mean eigenvalue tr(C) / m.
    shrinkage : float
        Share of the plain kernel that will be mixed in afterwards. The closed form gives the optimum itself
        when neither this nor ``target_alpha`` regularises.
    init : {"identity", "random"} or ndarray of shape (m', k, r)
        Start of an iterative solver.
    max_iter : int
        Number of steps asked for.
    tol : float
        An iterative solver has converged when the gradient on the unit sphere is no longer than this.
    rng : numpy.random.Generator
        For ``init="random"``.
    callback : callable, optional
        Called with a `Progress` after every step; a true answer stops the solver there.
    """

    rank: int | None = None
    target_alpha: float = 0.0
    shrinkage: float = 0.0
    init: str | Array = "identity"
    max_iter: int = 200
    tol: float = 1e-6
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    callback: Callable[[Progress], bool | None] | None = None


@dataclass(frozen=True, eq=False)
class SolverResult:
    """A learned kernel of trace one and how it was found.

    Attributes
    ----------
    kernel : LearnedKernel
        In the reduced coordinates of the problem, tr D = 1.
    value : float
        Its alignment with the targets.
    converged : bool
        Whether the tolerance was met; always true of a closed form.
    reason : str
        Why the solver stopped: ``"closed form"``, ``"tolerance"``, ``"max_iter"``, ``"callback"``,
        ``"nothing to learn"`` from features that tell nothing of the targets, or ``"stalled"`` when no step
        raises the alignment although the gradient is not small.
    n_iter, n_evaluations : int
    history : ndarray
        Alignment at the start and after every step.
    """

    kernel: LearnedKernel
    value: float
    converged: bool
    reason: str
    n_iter: int
    n_evaluations: int
    history: Array
