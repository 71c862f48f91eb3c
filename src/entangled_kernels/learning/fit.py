"""From a learning problem to a fitted model, as one pure function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..linalg import Array
from .posterior import Posterior, fit_missing_posterior, fit_unit_posterior
from .problem import Problem
from .ridge import KernelRidgeFactor, LearnedKernel, MissingTargetsRidge
from .solvers import Callback, FitSettings, solve

__all__ = ["Fit", "LinearModel", "fit_problem"]


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

    @cached_property
    def posterior(self) -> Posterior:
        """Predictive distribution in the Gaussian-process view; made when first asked for."""
        problem, alpha, coef = self.problem, self.settings.alpha, self.reduced_coef
        used = self.settings.used_kernel(problem, self.kernel)
        if problem.missing is None:
            unit = fit_unit_posterior(KernelRidgeFactor(problem, used), alpha)
            n_samples = np.full(problem.n_outputs, problem.n_samples)
            squares = problem.squared_residuals(coef)
            return Posterior.from_residuals(unit, squares, n_samples, self.centre()[1])
        unit = fit_missing_posterior(MissingTargetsRidge(problem, used), alpha)
        squares, n_samples = np.empty(problem.n_outputs), np.empty(problem.n_outputs)
        for columns, own in problem.missing.groups:
            C, B, V = own.second_moments(centred=problem.centred)
            theta, total = coef[:, columns], np.diag(V)
            gained = np.sum(theta * (2.0 * B - C @ theta), axis=0)
            squares[columns] = np.maximum(total - gained, np.finfo(float).eps * total)
            n_samples[columns] = own.n_samples
        return Posterior.from_residuals(unit, squares, n_samples, self.centre()[1])

    def centre(self) -> tuple[Array, Array]:
        """Mean of every target (p,), and total weight, (1,) or (p,), of the rows that have it."""
        problem = self.problem
        if problem.missing is None:
            return problem.mean_y, np.array([problem.weight])
        mean_y = problem.missing.mean_y
        return mean_y if problem.centred else np.zeros(len(mean_y)), problem.missing.target_weight

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

    Notes
    -----
    With dual coefficients c the squared norm of the function is c^T G c. In reduced coordinates,
    where the coefficients theta solve the ridge problem, alpha c = y - Phi theta, so the squared
    norm is theta^T (B - C theta) / alpha.
    """
    mix, alpha = settings.alignment_mix, settings.alpha
    learned = solve(problem, settings, callback)
    kernel = problem.finished(learned.kernel.canonical(problem.targets), settings.shrinkage)
    terms = problem.alignment_terms(kernel)
    used = settings.used_kernel(problem, kernel)
    if problem.missing is None:
        reduced = KernelRidgeFactor(problem, used).coefficients(alpha)[0]
        square = np.sum(reduced * (problem.targets - problem.scale[:, None] * reduced)) / alpha
        coef = problem.outputs @ reduced.T @ problem.features.T
        intercept = problem.mean_y - coef @ problem.mean_phi
    else:
        reduced, norms = MissingTargetsRidge(problem, used).solve(alpha)
        coef, square, intercept = (
            reduced.T @ problem.features.T,
            np.sum(norms),
            np.zeros(len(norms)),
        )
        for columns, own in problem.missing.groups if problem.centred else []:
            intercept[columns] = own.mean_y - own.mean_phi @ reduced[:, columns]
    return Fit(
        problem=problem,
        kernel=kernel,
        settings=settings,
        linear=LinearModel(coef, intercept),
        reduced_coef=reduced,
        rkhs_norm=float(np.sqrt(max(float(square), 0.0))),
        alignment=float((1.0 - mix) * terms[0] + mix * terms[1]),
        alignment_terms=terms,
        alignment_history=learned.history,
        n_iter=learned.n_iter,
        converged=learned.converged,
        stop_reason=learned.reason,
    )
