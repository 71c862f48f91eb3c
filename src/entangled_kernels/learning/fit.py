"""From a learning problem to a fitted model, as one pure function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..conditioning import Calibration, Residuals, calibrate
from ..linalg import Array
from .cell_moments import CellMoments
from .cell_ridge import CellRidge
from .input_range import InputRange
from .kernel import LearnedKernel
from .leave_one_out import leave_one_out
from .posterior import (
    Posterior,
    fit_cell_posterior,
    fit_posterior,
)
from .problem import Problem
from .ridge import KernelRidgeFactor
from .row_sample import RowSample
from .solvers import Progress, SolverOptions, solve

__all__ = ["Fit", "FitSettings", "LinearModel", "fit_problem"]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The function f(x) = coef @ phi(x) + intercept, which every fitted model is in the end.

    Attributes
    ----------
    coef : ndarray of shape (p, m)
    intercept : ndarray of shape (p,)
    """

    coef: Array
    intercept: Array

    def predict(self, Phi: Array) -> Array:
        """Values (n, p) for features (n, m); not finite where a feature is not."""
        with np.errstate(invalid="ignore", over="ignore"):
            values = Phi @ self.coef.T
            values += self.intercept
        return np.asarray(values)


@dataclass(frozen=True, eq=False)
class FitSettings:
    """How to learn a kernel and solve the ridge problem with it; `EntangledKernelRidge` explains each one.

    Attributes
    ----------
    solver, alignment_mix, shrinkage, target_alpha, prediction, init, max_iter, tol
    rank : int, float or None
        A count, a share of the full rank, or what the solver has use for.
    alpha : float
    seed : int
        Of a random start.
    """

    solver: str = "closed-form"
    rank: int | float | None = None
    alignment_mix: float = 0.5
    shrinkage: float = 0.25
    target_alpha: float = 0.1
    alpha: float = 1.0
    prediction: str = "entangled"
    init: str = "identity"
    max_iter: int = 200
    tol: float = 1e-6
    seed: int = 0

    def used_kernel(self, problem: Problem, kernel: LearnedKernel) -> LearnedKernel:
        """The kernel to predict with, the learned one or its partial trace."""
        return kernel.partial_trace(problem.n_outputs) if self.prediction == "partial_trace" else kernel

    def solver_options(self, problem: Problem, callback: Any = None) -> SolverOptions:
        """The part that solvers read."""
        return SolverOptions(
            rank=problem.resolve_rank(self.rank),
            target_alpha=self.target_alpha,
            shrinkage=self.shrinkage,
            init=self.init,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=np.random.default_rng(self.seed),
            callback=callback,
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and how it was found.

    Attributes
    ----------
    problem : Problem
    kernel : LearnedKernel
        Shrunk and scaled, in the reduced coordinates of the problem.
    settings : FitSettings
    linear : LinearModel
        In the coordinates of the features.
    reduced_coef : ndarray of shape (m', k) or (m', p)
        Coefficients in the coordinates of the problem; of every target where some are missing.
    rkhs_norm : float
        Norm of the function, less its intercept, in the space of the kernel it predicts with.
    alignment : float
        Objective of the kernel as used, shrinkage included.
    alignment_terms : pair of float
        Its partial-trace and full terms.
    alignment_history : ndarray
        Objective, before shrinkage, at the start of the solver and after every step.
    n_iter, converged, stop_reason
        Of the solver.
    cells : CellMoments or None
        Moments of the measured cells of each target, in the coordinates of the problem, where some are
        blank or weigh less than others of their row; None where all are alike.
    sample : RowSample or None
        Some of the rows, from which residuals are found.
    residuals : Residuals or None
        Of the rows of the sample in other units, those of targets before a transform that mixes them; None
        where the leave-one-out residuals of the model are calibrated on.
    inputs : InputRange or None
        Of the rows before the feature map.
    """

    problem: Problem
    kernel: LearnedKernel
    settings: FitSettings
    linear: LinearModel
    reduced_coef: Array
    rkhs_norm: float
    alignment: float
    alignment_terms: tuple[float, float]
    alignment_history: Array
    n_iter: int
    converged: bool
    stop_reason: str
    cells: CellMoments | None = None
    sample: RowSample | None = None
    residuals: Residuals | None = None
    inputs: InputRange | None = None

    @cached_property
    def posterior(self) -> Posterior:
        """Predictive distribution in the Gaussian-process view; made when first asked for."""
        used = self.settings.used_kernel(self.problem, self.kernel)
        alpha = self.settings.alpha
        if self.cells is not None:
            ridge = CellRidge(self.problem, used, self.cells)
            return fit_cell_posterior(ridge.posterior(alpha), ridge.solve(alpha), self.centre()[1])
        return fit_posterior(KernelRidgeFactor(self.problem, used), alpha, self.reduced_coef)

    @cached_property
    def calibration(self) -> Calibration:
        """What leave-one-out residuals say of errors; made when first asked for."""
        if self.sample is None:
            raise ValueError("no rows were kept to calibrate on")
        residuals = leave_one_out(self, self.sample) if self.residuals is None else self.residuals
        return calibrate(residuals, np.random.default_rng(0))

    @property
    def noise_variance(self) -> Array:
        """Variance of each target about the model, (p,)."""
        return self.posterior.noise_variance

    def centre(self) -> tuple[Array, Array]:
        """Mean of every target (p,) and its total weight, (1,) or (p,); with blanks those of its own rows."""
        if self.cells is None:
            return self.problem.mean_y, np.array([self.problem.weight])
        mean_y, weight = np.zeros(self.problem.n_outputs), np.zeros(self.problem.n_outputs)
        for places, own in self.cells.groups:
            mean_y[places], weight[places] = own.mean_y if self.problem.centred else 0.0, own.weight
        return mean_y, weight

    def relative_variance(self, Phi: Array) -> Array:
        """Variance of a new observation in units of the noise, mean over outputs, (n,)."""
        return self.posterior.relative_variance(Phi)

    def __getstate__(self) -> dict[str, Any]:
        # They are larger than the model, and made again when they are asked for.
        return {name: value for name, value in vars(self).items() if name not in ("posterior", "calibration")}

    def largest_alignment(self) -> float | None:
        """The largest alignment that any kernel has; known in closed form for models with an intercept."""
        if not self.problem.centred:
            return None
        return float(solve("closed-form", self.problem, SolverOptions()).value)

    @property
    def n_operators(self) -> int:
        """Number r of Kraus operators."""
        return int(self.kernel.Q.shape[2])

    def kraus(self) -> Array:
        """Kraus operators (r, p, m) in the coordinates of the features."""
        return self.problem.expand_kraus(self.kernel.Q)

    def metric(self) -> Array | None:
        """The matrix A (m, m) of the plain part in the coordinates of the features, None when it is zero."""
        return self.problem.expand_metric(self.kernel)

    def project(self, Phi: Array) -> Array:
        """M_i phi(x) for every row, output and Kraus operator, (n, p, r)."""
        reduced = Phi @ self.problem.features  # (n, m')
        return np.asarray(self.problem.outputs @ np.tensordot(reduced, self.kernel.Q, axes=1))


def fit_problem(
    problem: Problem,
    settings: FitSettings,
    callback: Callable[[Progress], bool | None] | None = None,
    *,
    cells: CellMoments | None = None,
) -> Fit:
    """Learn the kernel, shrink and scale it, and solve the ridge problem with it.

    Parameters
    ----------
    problem : Problem
    settings : FitSettings
        Their ``alignment_mix`` counts, whatever that of the problem is.
    callback : callable, optional
        Called by iterative solvers with a `Progress` after every step; a true answer stops them.
    cells : CellMoments, optional
        Where targets have blanks: the ridge problem is that of the measured cells, with the kernel learned
        from ``problem``, in which blanks are filled in (`complete_moments`).
    """
    problem = problem.with_mix(settings.alignment_mix)
    found = solve(settings.solver, problem, settings.solver_options(problem, callback))
    kernel = problem.finished(found.kernel.canonical(problem.targets), settings.shrinkage)
    terms = problem.alignment_terms(kernel)
    used = settings.used_kernel(problem, kernel)
    if cells is None:
        coef, reduced_coef, rkhs_norm = _solve_ridge(KernelRidgeFactor(problem, used), settings.alpha)
        intercept = problem.mean_y - coef @ problem.mean_phi
    else:
        ridge = CellRidge(problem, used, cells)
        coef, intercept, reduced_coef, rkhs_norm = _solve_cells(ridge, cells, settings.alpha)
    return Fit(
        problem=problem,
        kernel=kernel,
        settings=settings,
        linear=LinearModel(coef, intercept),
        reduced_coef=reduced_coef,
        rkhs_norm=rkhs_norm,
        alignment=float((1.0 - settings.alignment_mix) * terms[0] + settings.alignment_mix * terms[1]),
        alignment_terms=terms,
        alignment_history=found.history,
        n_iter=found.n_iter,
        converged=found.converged,
        stop_reason=found.reason,
        cells=cells,
    )


def _solve_cells(ridge: CellRidge, cells: CellMoments, alpha: float) -> tuple[Array, Array, Array, float]:
    """Coefficients (p, m), intercept (p,), reduced coefficients (m', p), and the norm of the function."""
    problem, found = ridge.problem, ridge.solve(alpha)
    intercept = np.zeros(problem.n_outputs)
    for places, own in cells.groups if problem.centred else []:
        intercept[places] = own.mean_y - own.mean_phi @ found.coef[:, places]
    norm = np.sqrt(max(float(np.sum(found.squared_norms)), 0.0))
    return found.coef.T @ problem.features.T, intercept, found.coef, float(norm)


def _solve_ridge(factor: KernelRidgeFactor, alpha: float) -> tuple[Array, Array, float]:
    """Coefficients (p, m) of the features, those of the reduced problem, and the norm of the function.

    With dual coefficients c the squared norm is c^T G c. In reduced coordinates, where the coefficients
    theta solve the ridge problem, alpha c = y - Phi theta, so that it is theta^T (B - C theta) / alpha.
    """
    problem = factor.problem
    reduced = factor.coefficients(alpha)[0]
    square = np.sum(reduced * (problem.targets - problem.scale[:, None] * reduced)) / alpha
    return problem.expand_coef(reduced), reduced, float(np.sqrt(max(square, 0.0)))
