"""The Gaussian-process view of a ridge fit: how sure the model is of each prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..linalg import Array
from .cell_ridge import CellPosterior, CellSolution
from .problem import Problem
from .ridge import KernelRidgeFactor

__all__ = [
    "Posterior",
    "UnitPosterior",
    "fit_cell_posterior",
    "fit_posterior",
    "fit_unit_posterior",
]

# A result per row is larger than the row, so rows are handled in chunks of this many numbers.
_CHUNK_NUMBERS = 2**22
# What is left of a row outside the reduced features counts when it is more than rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class UnitPosterior:
    """Covariance of the fitted function, for noise of variance alpha.

    For a row with features phi, taken relative to their mean, that of the p outputs is

        phi^T (diag(plain) + L L^T) phi I + sum_i N_i phi phi^T N_i^T

    Attributes
    ----------
    problem : Problem
        For its bases and its mean.
    alpha : float
    identity : float
        Prior variance of the directions that the reduction dropped, about which the rows say nothing.
    plain : ndarray of shape (m',)
    L : ndarray of shape (m', l)
    Q : ndarray of shape (m', k, r)
        N_i = Q[:, :, i]^T in reduced coordinates.
    """

    problem: Problem
    alpha: float
    identity: float
    plain: Array
    L: Array
    Q: Array

    @property
    def energy(self) -> tuple[float, Array]:
        """Sums over the training rows of the variance that outputs share, and of their own parts, (k, k)."""
        scale = self.problem.scale
        shared = float(scale @ self.plain) + float(np.einsum("f,fl,fl->", scale, self.L, self.L))
        return shared, np.einsum("f,fkr,flr->kl", scale, self.Q, self.Q, optimize=True)

    def relative_variance(self, Phi: Array) -> Array:
        """Variance of a new observation in units of the noise, mean over outputs, (n,) for features (n, m).

        It depends on no residual, so it tells where a model knows less, not how much it errs.
        """
        relative = np.empty(len(Phi))
        for rows, shared, spread in self.chunks(Phi, reduced=True):
            own = np.einsum("tkr,tkr->t", spread, spread) / self.problem.n_outputs
            relative[rows] = (shared[:, 0] + own) / self.alpha
        return relative + 1.0 + self.mean_share

    @property
    def mean_share(self) -> float:
        """Variance of the mean in units of the noise; zero without an intercept."""
        return 1.0 / self.problem.weight if self.problem.centred else 0.0

    def chunks(self, Phi: Array, *, reduced: bool = False) -> Iterator[tuple[slice, Array, Array]]:
        """Rows with the variance that all outputs share (t, 1) and the vectors N_i phi (t, p, r).

        With ``reduced`` the vectors are in the coordinates of the problem, (t, k, r).
        """
        problem = self.problem
        p, r = problem.n_outputs, self.Q.shape[2]
        step = max(1, _CHUNK_NUMBERS // max(p * max(r, p), problem.n_features))
        for start in range(0, len(Phi), step):
            rows = np.asarray(Phi[start : start + step], dtype=np.float64) - problem.mean_phi
            inner = rows @ problem.features  # (t, m')
            shared = inner**2 @ self.plain + np.sum((inner @ self.L) ** 2, axis=1)
            if self.identity > 0.0 and len(self.plain) < problem.n_features:
                whole, inside = (np.einsum("tf,tf->t", part, part) for part in (rows, inner))
                shared += self.identity * np.where(whole - inside > _ROUNDING * whole, whole - inside, 0.0)
            spread = np.tensordot(inner, self.Q, axes=1)
            spread = spread if reduced else problem.outputs @ spread
            yield slice(start, start + len(rows)), shared[:, None], spread


@dataclass(frozen=True, eq=False)
class Posterior:
    """Predictive distribution of new observations: S times that of the function times S, plus noise.

    Attributes
    ----------
    unit : UnitPosterior or CellPosterior
    prior_scale, noise_variance : ndarray of shape (p,)
        S is diag(prior_scale).
    intercept_variance : ndarray of shape (p,)
        Zero without an intercept.
    """

    unit: UnitPosterior | CellPosterior
    prior_scale: Array
    noise_variance: Array
    intercept_variance: Array

    def variance(self, Phi: Array) -> Array:
        """Variance of a new observation, (n, p) for features (n, m)."""
        variance = np.empty((len(Phi), len(self.prior_scale)))
        for rows, shared, spread in self.unit.chunks(Phi):
            variance[rows] = shared + np.einsum("npr,npr->np", spread, spread)
        return np.asarray(variance * self.prior_scale**2 + self.noise_variance + self.intercept_variance)

    def covariance(self, Phi: Array) -> Array:
        """Covariance of a new observation of all outputs, (n, p, p) for features (n, m)."""
        p = len(self.prior_scale)
        covariance = np.empty((len(Phi), p, p))
        for rows, shared, spread in self.unit.chunks(Phi):
            covariance[rows] = spread @ spread.transpose(0, 2, 1) + shared[:, :, None] * np.eye(p)
        covariance *= np.outer(self.prior_scale, self.prior_scale)
        covariance[:, np.arange(p), np.arange(p)] += self.noise_variance + self.intercept_variance
        return covariance

    def relative_variance(self, Phi: Array) -> Array:
        """Variance of a new observation in units of the noise, mean over outputs, (n,)."""
        return self.unit.relative_variance(Phi)


def fit_unit_posterior(factor: KernelRidgeFactor, alpha: float) -> UnitPosterior:
    """Posterior of the function that a ridge problem fits, for noise of variance alpha.

    Notes
    -----
    Coefficients with prior covariance D = (identity * I + L L^T) kron I + Q Q^T are a plain part, plus L
    times standard normal variables for every output, plus Q z with z standard normal. With noise of variance
    alpha and h = alpha / (identity * scale + alpha), the plain part has posterior covariance identity * h.
    The variables of L have precision I + Lw^T (identity * scale + alpha)^-1 Lw, and a change of theirs moves
    the coefficients by h L; z has the precision P of `KernelRidgeFactor.inner`, and moves them by h Q less
    what the variables of L make up for. The variances are sums of squares, so they cannot cancel.

    Time m' (l^2 + k l r + k r^2) + l^3 + r^3.
    """
    problem, kernel = factor.problem, factor.kernel
    m, k, r = kernel.Q.shape
    total = kernel.identity * problem.scale + alpha
    h = alpha / total
    L, moved = h[:, None] * kernel.L, kernel.Q.reshape(m, k * r)
    # Older SciPy solves no empty systems.
    if L.shape[1] > 0:
        Lw = factor.root[:, None] * kernel.L
        lower = cholesky(Lw.T @ (Lw / total[:, None]) + np.eye(L.shape[1]), lower=True)
        L = solve_triangular(lower, L.T, lower=True).T
        made_up = cho_solve((lower, True), Lw.T @ ((factor.root / total)[:, None] * moved))  # (l, k * r)
        moved = moved - kernel.L @ made_up
    tall = (h[:, None] * moved).reshape(m * k, r)
    if r > 0:
        P = factor.inner(np.array([alpha]))[0][0]
        tall = solve_triangular(cholesky(P, lower=True), tall.T, lower=True).T
    return UnitPosterior(problem, alpha, kernel.identity, kernel.identity * h, L, tall.reshape(m, k, r))


def fit_posterior(factor: KernelRidgeFactor, alpha: float, coef: Array) -> Posterior:
    """Posterior of a ridge fit with coefficients ``coef`` (m', k), and the noise that its residuals show.

    The unit is found for each output from its residuals e, alpha * prior_scale^2 = sum e^2 / (n - df), where
    df is the trace of the output's block of the hat matrix, plus one with an intercept.
    """
    problem, unit = factor.problem, fit_unit_posterior(factor, alpha)
    shared, energy = unit.energy
    own = np.einsum("ok,kl,ol->o", problem.outputs, energy, problem.outputs, optimize=True)
    left = problem.n_samples - (shared + own) / alpha - problem.centred
    left = np.maximum(left, np.sqrt(np.finfo(float).eps) * problem.n_samples)
    unit_noise = problem.squared_residuals(coef) / left
    noise = unit_noise * (problem.n_samples / problem.weight)
    return Posterior(
        unit=unit,
        prior_scale=np.sqrt(unit_noise / alpha),
        noise_variance=noise,
        intercept_variance=noise / problem.n_samples if problem.centred else np.zeros_like(noise),
    )


def fit_cell_posterior(unit: CellPosterior, found: CellSolution, weight: Array) -> Posterior:
    """Posterior of a fit to measured cells; ``weight`` (p,) is the total weight of each target's cells."""
    left = found.counts - unit.degrees_of_freedom
    left = np.maximum(left, np.sqrt(np.finfo(float).eps) * found.counts)
    unit_noise = found.squared_residuals / left
    noise = unit_noise * (found.counts / weight)
    return Posterior(unit, np.sqrt(unit_noise / unit.alpha), noise, noise * unit.mean_share)
