"""From a learning problem to a fitted model, as one pure function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..linalg import Array
from .posterior import Posterior, fit_function_posterior
from .problem import Problem
from .ridge import LearnedKernel, solve_ridge
from .solvers import Callback, FitSettings, solve

__all__ = ["Fit", "LinearModel", "fit_problem"]


class LinearModel(NamedTuple):
    """The function f(x) = coef @ phi(x) + intercept, by which every fitted model predicts.

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
class Fit:
    """A fitted model, and how the solver found its kernel.

    Attributes
    ----------
    problem : Problem
    kernel : LearnedKernel
        Shrunk and scaled, in the reduced coordinates of the problem.
    settings : FitSettings
    linear : LinearModel
        In the coordinates of the features.
    reduced_coef : ndarray of shape (m', k) or (m', p)
        Coefficients in the coordinates of the problem; those of all targets where some are missing.
    rkhs_norm : float
        Norm of the function, less its intercept, in the space of the kernel it predicts with.
    alignment_terms : pair of float
        Partial-trace and full alignment of the kernel, shrinkage included.
    alignment_history : ndarray
        Objective, before shrinkage, at the start of the solver and after every step.
    n_iter, converged, stop_reason
        Of the solver.
    """

    problem: Problem
    kernel: LearnedKernel
    settings: FitSettings
    linear: LinearModel
    reduced_coef: Array
    rkhs_norm: float
    alignment_terms: tuple[float, float]
    alignment_history: Array
    n_iter: int
    converged: bool
    stop_reason: str

    @cached_property
    def posterior(self) -> Posterior:
        """Predictive distribution in the Gaussian-process view; made when first asked for."""
        problem = self.problem
        used = self.settings.used_kernel(problem, self.kernel)
        unit = fit_function_posterior(problem, used, self.settings.alpha)
        squares, n_samples = problem.squared_residuals(self.reduced_coef)
        return Posterior.from_residuals(unit, squares, n_samples, problem.target_weight)

    def __getstate__(self) -> dict[str, Any]:
        # The posterior is larger than the model, and computed again when it is needed.
        return {name: value for name, value in vars(self).items() if name != "posterior"}

    def largest_alignment(self) -> float | None:
        """The largest alignment that any kernel has; known in closed form for models with an intercept."""
        if not self.problem.centred:
            return None
        mix = self.settings.alignment_mix
        settings = FitSettings(alignment_mix=mix, target_alpha=0.0, shrinkage=0.0)
        return float(solve(self.problem, settings).value)

    @property
    def alignment(self) -> float:
        """Objective of the kernel: the weighted mean of its two alignments."""
        traced, full = self.alignment_terms
        mix = self.settings.alignment_mix
        return (1.0 - mix) * traced + mix * full

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


def fit_problem(problem: Problem, settings: FitSettings, callback: Callback = None) -> Fit:
    """Learn the kernel, shrink and scale it, and solve the ridge problem with it.

    Parameters
    ----------
    problem : Problem
        Where targets are missing, the kernel is learned from targets that were filled in, and the
        ridge problem is that of the targets that are present.
    settings : FitSettings
    callback : callable, optional
        Called by iterative solvers with a `Progress` after every step; a true answer stops them.
    """
    learned = solve(problem, settings, callback)
    kernel = problem.shrink_and_scale(learned.kernel.canonical(problem.targets), settings.shrinkage)
    used = settings.used_kernel(problem, kernel)
    reduced, square = solve_ridge(problem, used, settings.alpha)
    if problem.missing is None:
        coef = problem.outputs @ reduced.T @ problem.features.T
        intercept = problem.mean_y - coef @ problem.mean_phi
    else:
        coef, intercept = reduced.T @ problem.features.T, np.zeros(problem.n_outputs)
        for columns, group in problem.missing.groups if problem.centred else []:
            intercept[columns] = group.mean_y - group.mean_phi @ reduced[:, columns]
    return Fit(
        problem=problem,
        kernel=kernel,
        settings=settings,
        linear=LinearModel(coef, intercept),
        reduced_coef=reduced,
        rkhs_norm=float(np.sqrt(max(square, 0.0))),
        alignment_terms=problem.alignment_terms(kernel),
        alignment_history=learned.history,
        n_iter=learned.n_iter,
        converged=learned.converged,
        stop_reason=learned.reason,
    )
