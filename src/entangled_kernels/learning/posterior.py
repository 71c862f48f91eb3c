"""The Gaussian-process view of a ridge fit: variances of predictions, and leave-one-out residuals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ..linalg import Array, Index
from ..uncertainty import Residuals, without_rounding
from .moments import RowSample
from .problem import Problem
from .ridge import (
    KernelRidgeFactor,
    LearnedKernel,
    MissingTargetsRidge,
    lower_factor,
    target_directions,
)

if TYPE_CHECKING:
    from .fit import Fit

__all__ = [
    "FunctionPosterior",
    "Posterior",
    "fit_function_posterior",
    "leave_one_out",
]

# A result per row is larger than the row, so rows are handled in chunks of this many numbers.
_CHUNK_NUMBERS = 2**22
# The part of a row outside the reduced features counts when it is more than rounding.
_ROUNDING = 1e-13
# A row that alone determines its prediction has leverage one; its leave-one-out residual is
# unknown.
_LARGEST_LEVERAGE = 1.0 - 1e-9


class GroupVariance(NamedTuple):
    """Variance that all targets of a group have, phi^T (diag(plain) + L L^T) phi.

    Attributes
    ----------
    columns : ndarray of int
    centre : ndarray of shape (m',)
        Mean of the features of the group, relative to the mean of all rows.
    plain : ndarray of shape (m',)
    L : ndarray of shape (m', l)
    """

    columns: Index
    centre: Array
    plain: Array
    L: Array


@dataclass(frozen=True, eq=False)
class FunctionPosterior:
    """Covariance of the fitted function, for noise of variance alpha.

    For a row with features phi, taken relative to their mean, the covariance of the p outputs is

        phi^T (diag(plain) + L L^T) phi I + sum_i N_i phi phi^T N_i^T

    Without missing targets there is one group of targets.

    Attributes
    ----------
    problem : Problem
        For its bases and its mean.
    alpha : float
    identity : float
        Prior variance along features that the reduction dropped, since they are constant in the
        training rows.
    groups : list of GroupVariance
    Q : ndarray of shape (m', k, r), or (m', p, r) with missing targets
        N_i = Q[:, :, i]^T in reduced coordinates.
    mean_share : ndarray of shape (p,)
        Variance of the mean of each target in units of the noise; zero without an intercept.
    degrees_of_freedom : ndarray of shape (p,)
        Trace of each target's block of the hat matrix, its mean included.
    directions : ndarray of shape (p, r) or None
        Orthonormal directions V of the targets that predictions of reduced rank are in: the
        covariance is V V^T (...) V V^T, the one above in the brackets.
    """

    problem: Problem
    alpha: float
    identity: float
    groups: list[GroupVariance]
    Q: Array
    mean_share: Array
    degrees_of_freedom: Array
    directions: Array | None = None

    def relative_variance(self, Phi: Array) -> Array:
        """Variance of a new observation in units of the noise, mean over outputs, (n,) for features (n, m).

        It depends on no residual: it tells rows that are far from the training rows, not how large
        errors are.
        """
        relative = np.empty(len(Phi))
        for rows, shared, spread in self.chunks(Phi, reduced=True):
            operators = np.einsum("tkr,tkr->t", spread, spread) / self.problem.n_outputs
            relative[rows] = (shared.mean(axis=1) + operators) / self.alpha
        return relative + 1.0 + float(np.mean(self.mean_share))

    def chunks(self, Phi: Array, *, reduced: bool = False) -> Iterator[tuple[slice, Array, Array]]:
        """Rows, the variance of the first part (t, 1) or (t, p), and the vectors N_i phi (t, p, r).

        With ``reduced`` the vectors are in the coordinates of the problem, (t, k, r).
        """
        problem = self.problem
        p, r = problem.n_outputs, self.Q.shape[2]
        step = max(1, _CHUNK_NUMBERS // max(p * max(r, p), problem.n_features))
        for start in range(0, len(Phi), step):
            rows = np.asarray(Phi[start : start + step], dtype=np.float64) - problem.mean_phi
            inner = rows @ problem.features  # (t, m')
            outside = np.zeros(len(rows))
            if self.identity > 0.0 and len(problem.scale) < problem.n_features:
                whole, inside = (
                    np.einsum("tf,tf->t", rows, rows),
                    np.einsum("tf,tf->t", inner, inner),
                )
                outside = self.identity * np.where(
                    whole - inside > _ROUNDING * whole, whole - inside, 0.0
                )
            missing = problem.missing is not None
            shared = np.empty((len(rows), p if missing else 1))
            spread = np.empty((len(rows), self.Q.shape[1], r))
            for columns, centre, plain, L in self.groups:
                features = inner - centre
                variance = features**2 @ plain + np.sum((features @ L) ** 2, axis=1) + outside
                targets = columns if missing else slice(None)
                shared[:, targets] = variance[:, None]
                spread[:, targets] = np.tensordot(features, self.Q[:, targets], axes=1)
            if self.directions is not None:
                # Without operators; V V^T diag(shared) V V^T = spread spread^T.
                V, root = self.directions, np.sqrt(shared)[:, :, None]
                spread = V @ (V.T * root.transpose(0, 2, 1)) if missing else V * root
                shared = np.zeros_like(shared)
            elif not (reduced or missing):
                spread = problem.outputs @ spread
            yield slice(start, start + len(rows)), shared, spread


@dataclass(frozen=True, eq=False)
class Posterior:
    """Predictive distribution of new observations: S times that of the function times S, plus noise.

    Attributes
    ----------
    unit : FunctionPosterior
    prior_scale, noise_variance : ndarray of shape (p,)
        S is diag(prior_scale).
    intercept_variance : ndarray of shape (p,)
        Zero without an intercept.
    """

    unit: FunctionPosterior
    prior_scale: Array
    noise_variance: Array
    intercept_variance: Array

    @classmethod
    def from_residuals(
        cls, unit: FunctionPosterior, squares: Array, n_samples: Array, weight: Array
    ) -> Posterior:
        """Posterior with the noise that the residuals of each target show.

        Parameters
        ----------
        unit : FunctionPosterior
        squares : ndarray of shape (p,)
            Weighted sums of squared training residuals e.
        n_samples, weight : ndarray of shape (p,)
            Number and total weight of the rows that have each target.

        Notes
        -----
        alpha * prior_scale^2 = sum e^2 / (n - df), where df is the trace of the target's block of
        the hat matrix, plus one with an intercept.
        """
        free = np.maximum(
            n_samples - unit.degrees_of_freedom, np.sqrt(np.finfo(float).eps) * n_samples
        )
        unit_noise = squares / free
        return cls(
            unit=unit,
            prior_scale=np.sqrt(unit_noise / unit.alpha),
            noise_variance=unit_noise * (n_samples / weight),
            intercept_variance=unit_noise * unit.mean_share,
        )

    def variance(self, Phi: Array) -> Array:
        """Variance of a new observation, (n, p) for features (n, m)."""
        variance = np.empty((len(Phi), len(self.prior_scale)))
        for rows, shared, spread in self.unit.chunks(Phi):
            variance[rows] = shared + np.einsum("npr,npr->np", spread, spread)
        return np.asarray(
            variance * self.prior_scale**2 + self.noise_variance + self.intercept_variance
        )

    def covariance(self, Phi: Array) -> Array:
        """Covariance of a new observation of all outputs, (n, p, p) for features (n, m)."""
        p = len(self.prior_scale)
        covariance = np.empty((len(Phi), p, p))
        for rows, shared, spread in self.unit.chunks(Phi):
            covariance[rows] = spread @ spread.transpose(0, 2, 1) + shared[:, :, None] * np.eye(p)
        covariance *= np.outer(self.prior_scale, self.prior_scale)
        covariance[:, np.arange(p), np.arange(p)] += self.noise_variance + self.intercept_variance
        return covariance


def fit_function_posterior(
    problem: Problem, kernel: LearnedKernel, alpha: float
) -> FunctionPosterior:
    """Posterior of the function that a ridge problem fits, for noise of variance alpha.

    Notes
    -----
    Coefficients with prior covariance D = (identity * I + L L^T) kron I + Q Q^T are a plain part,
    plus L times standard normal variables for every output, plus Q z with z standard normal. With
    noise of variance alpha and h = alpha / (identity * scale + alpha), the plain part has posterior
    covariance identity * h. The variables of L have precision I + Lw^T (identity * scale +
    alpha)^-1 Lw, and a change of theirs moves the coefficients by h L; z has the precision P of
    `KernelRidgeFactor.inner`, and moves them by h Q less what the variables of L make up for. The
    variances are sums of squares, so they cannot cancel.

    Time m' (l^2 + k l r + k r^2) + l^3 + r^3.
    """
    if problem.missing is not None:
        return _fit_missing(MissingTargetsRidge(problem, kernel), alpha)
    factor = KernelRidgeFactor(problem, kernel)
    m, k, r = kernel.Q.shape
    total = kernel.identity * problem.scale + alpha
    h = alpha / total
    L, moved = h[:, None] * kernel.L, kernel.Q.reshape(m, k * r)
    # Older SciPy solves no empty systems.
    if L.shape[1] > 0:
        Lw = factor.root[:, None] * kernel.L
        lower = lower_factor(Lw.T @ (Lw / total[:, None]) + np.eye(L.shape[1]))
        L = solve_triangular(lower, L.T, lower=True).T
        made_up = cho_solve(
            (lower, True), Lw.T @ ((factor.root / total)[:, None] * moved)
        )  # (l, k * r)
        moved = moved - kernel.L @ made_up
    tall = (h[:, None] * moved).reshape(m * k, r)
    if r > 0:
        P = factor.inner(np.array([alpha]))[0][0]
        tall = solve_triangular(lower_factor(P), tall.T, lower=True).T
    plain, Q = kernel.identity * h, tall.reshape(m, k, r)
    # Sums over the training rows of the variance of the plain part, which outputs share, and of that
    # of the operators.
    shared = float(problem.scale @ plain) + float(np.einsum("f,fl,fl->", problem.scale, L, L))
    energy = np.einsum("f,fkr,flr->kl", problem.scale, Q, Q, optimize=True)
    separate = np.einsum("ok,kl,ol->o", problem.outputs, energy, problem.outputs, optimize=True)
    directions = target_directions(problem, kernel, alpha)
    return FunctionPosterior(
        problem=problem,
        alpha=alpha,
        identity=kernel.identity,
        groups=[GroupVariance(np.arange(problem.n_outputs), np.zeros(m), plain, L)],
        Q=Q,
        mean_share=np.full(problem.n_outputs, 1.0 / problem.weight if problem.centred else 0.0),
        degrees_of_freedom=(shared * _shares(directions) + separate) / alpha + problem.centred,
        directions=directions,
    )


def _shares(directions: Array | None) -> Array | float:
    """How much of each target is in the directions, (p,): the diagonal of V V^T."""
    return 1.0 if directions is None else np.asarray(np.sum(directions**2, axis=1))


def _fit_missing(ridge: MissingTargetsRidge, alpha: float) -> FunctionPosterior:
    """`fit_function_posterior` with missing targets; see `MissingTargetsRidge` for the symbols."""
    problem, missing = ridge.problem, ridge.problem.missing
    assert missing is not None
    factors, E, P = ridge.factorise(alpha)
    if len(P):
        lower, tall = lower_factor(0.5 * (P + P.T)), E.reshape(-1, len(P))
        E = solve_triangular(lower, tall.T, lower=True).T.reshape(E.shape)
    centre, m = problem.mean_phi @ problem.features, len(problem.scale)
    groups, freedom = list[GroupVariance](), np.full(len(E), float(problem.centred))
    for (columns, second), factor, (_, group) in zip(
        ridge.groups, factors, missing.groups, strict=True
    ):
        axes = ridge.root  # axes axes^T = A (C A + alpha I)^-1
        if axes.shape[1] > 0:
            root = np.eye(m) if ridge.inverse is not None else ridge.root.T
            axes = np.asarray(solve_triangular(factor, root, lower=True).T)
        freedom[columns] += float(np.sum((second.C @ axes) * axes))
        freedom[columns] += np.einsum("ofr,ofr->o", second.C @ E[columns], E[columns]) / alpha
        shift = group.mean_phi - centre if problem.centred else -centre
        groups.append(GroupVariance(columns, shift, np.zeros(m), np.sqrt(alpha) * axes))
    directions = target_directions(problem, ridge.kernel, alpha)
    if directions is not None:
        freedom = (freedom - problem.centred) * _shares(directions) + problem.centred
    return FunctionPosterior(
        problem=problem,
        alpha=alpha,
        identity=ridge.kernel.identity,
        groups=groups,
        Q=np.ascontiguousarray(E.transpose(1, 0, 2)),
        mean_share=1.0 / missing.target_weight if problem.centred else np.zeros(len(E)),
        degrees_of_freedom=freedom,
        directions=directions,
    )


def leave_one_out(fit: Fit, sample: RowSample) -> Residuals:
    """Residual of every row of the sample from the model of all other rows, with the same kernel.

    Notes
    -----
    For a row whose targets have weights w, with C the posterior covariance (p, p) of the function
    at the row for noise of variance alpha and W the total weight of each target, the row's block of
    the hat matrix is H = (C / alpha + diag(1 / W)) diag(w), and the residual without the row is (I
    - H)^-1 times the residual with it. Rows and columns of H that belong to missing targets are
    left out.

    The kernel and the feature map were fitted with the row, so the residuals are somewhat too
    small; `EntangledKernelRidgeCV` fits both again in every fold. Predictions of reduced rank keep
    their directions; with missing targets their residuals are approximate.

    Time m' r p + min(p, r)^3 for every row.
    """
    unit, errors = fit.posterior.unit, sample.Y - fit.linear.predict(sample.Phi)
    relative = unit.relative_variance(sample.Phi)
    left = np.full_like(errors, np.nan)
    for rows, shared, spread in unit.chunks(sample.Phi):
        weight, present = sample.weight[rows], np.isfinite(errors[rows])
        free = np.maximum(
            1.0 - weight * (shared / unit.alpha + unit.mean_share), 1.0 - _LARGEST_LEVERAGE
        )
        scaled = np.where(present, errors[rows], 0.0) / free
        if spread.shape[2] > 0:
            # I - H = diag(free) - spread S^T with S (t, p, r), zero for missing targets.
            S = (spread * (weight / unit.alpha)[:, :, None]).transpose(0, 2, 1)  # (t, r, p)
            over = spread / free[:, :, None]
            along = np.linalg.solve(np.eye(S.shape[1]) - S @ over, S @ scaled[:, :, None])
            scaled = scaled + (over @ along)[:, :, 0]
        left[rows] = np.where(present, scaled, np.nan)
    # Leverage and variance are means over targets, so the weight of a row is that of its present
    # targets.
    weight = sample.weight.sum(axis=1) / np.count_nonzero(sample.weight, axis=1)
    leverage = np.minimum((relative - 1.0) * weight, _LARGEST_LEVERAGE)
    # The relative variance in the model without the row.
    relative = 1.0 + leverage / (1.0 - leverage) / weight
    left = without_rounding(left, sample.Y)
    return Residuals(left, sample.row_weight, np.arange(len(left)), relative)
