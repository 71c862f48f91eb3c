"""Ridge regression with a learned kernel over measured cells alone, each target about its own mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from ..linalg import Array, Index
from .cell_moments import CellMoments
from .kernel import LearnedKernel
from .problem import Problem

__all__ = ["CellPosterior", "CellRidge", "CellSolution"]

_CHUNK_NUMBERS = 2**22
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class _Group:
    """Targets measured on the same rows: their places, moments about their means, and these."""

    places: Index
    C: Array
    B: Array
    mean_phi: Array
    squares: Array
    weight: float
    n_samples: int


@dataclass(frozen=True, eq=False)
class CellSolution:
    """The solution, and what is known of every target.

    Attributes
    ----------
    coef : ndarray of shape (m', p)
    squared_norms : ndarray of shape (p,)
        Parts of the squared norm of the function.
    squared_residuals : ndarray of shape (p,)
        Weighted sums over measured cells.
    counts : ndarray of shape (p,)
        Numbers of measured cells.
    """

    coef: Array
    squared_norms: Array
    squared_residuals: Array
    counts: Array


class CellRidge:
    """The ridge problem over measured cells, sum w (y - f)^2 + alpha |f|^2.

    Parameters
    ----------
    problem : Problem
        Of the rows with blanks filled in, for its coordinates.
    kernel : LearnedKernel
        D = A kron I + Q Q^T with the metric A = identity I + L L^T.
    cells : CellMoments
        In the reduced coordinates of the problem.

    Notes
    -----
    The coefficients of target o are A_h u_o + Q_o z, with A = A_h A_h^T, u_o and z standard normal in the
    Gaussian-process view. With C_o, B_o the moments of the target's own rows about its own means and
    X_o = A (C_o A + alpha I)^-1,

        P = I + sum_o Q_o^T C_o E_o / alpha,   E_o = Q_o - X_o C_o Q_o
        z = P^-1 sum_o E_o^T B_o / alpha,      coef_o = X_o B_o + E_o z

    so one Cholesky factor of A_h^T C_o A_h + alpha I for every group of targets, and one system of the number
    r of operators. Time m'^3 for every group, m' p r (m' + r) + r^3.
    """

    def __init__(self, problem: Problem, kernel: LearnedKernel, cells: CellMoments) -> None:
        self.problem, self.kernel = problem, kernel
        self.Q = np.einsum("ok,fkr->ofr", problem.outputs, kernel.Q)  # (p, m', r)
        self.root, self.inverse = _root_and_inverse(kernel)
        self._factors = dict[tuple[int, float], Array]()
        self.groups = []
        for places, own in cells.groups:
            second = own.centred() if problem.centred else own.uncentred()
            self.groups.append(
                _Group(
                    places=places,
                    C=second.C,
                    B=second.B,
                    mean_phi=own.mean_phi if problem.centred else np.zeros(len(second.C)),
                    squares=np.diag(second.V),
                    weight=own.weight,
                    n_samples=own.n_samples,
                )
            )

    def solve(self, alpha: float) -> CellSolution:
        """The solution of the ridge problem."""
        p, m = self.problem.n_outputs, len(self.problem.scale)
        coef, norms, residuals, counts = np.zeros((m, p)), np.zeros(p), np.zeros(p), np.zeros(p)
        E, P = self._operators(alpha)
        z: Array = np.zeros(len(P))
        if len(z):
            right = sum(np.einsum("ofr,fo->r", E[group.places], group.B) for group in self.groups)
            z = np.asarray(np.linalg.solve(P, np.asarray(right) / alpha), dtype=np.float64)
        for group in self.groups:
            places = group.places
            theta = np.asarray((E[places] @ z).T + self._metric_part(group, alpha, group.B))
            explained = group.C @ theta
            gained = np.sum(theta * (2.0 * group.B - explained), axis=0)
            coef[:, places], counts[places] = theta, group.n_samples
            norms[places] = np.sum(theta * (group.B - explained), axis=0) / alpha
            residuals[places] = np.maximum(group.squares - gained, np.finfo(float).eps * group.squares)
        return CellSolution(coef, norms, residuals, counts)

    def posterior(self, alpha: float) -> CellPosterior:
        """Covariance of the fitted function for noise of variance alpha; see `CellPosterior`."""
        spread, P = self._operators(alpha)
        if len(P):
            lower, tall = cholesky(0.5 * (P + P.T), lower=True), spread.reshape(-1, len(P))
            spread = solve_triangular(lower, tall.T, lower=True).T.reshape(spread.shape)
        own = [(group.places, group, self._axes(group, alpha)) for group in self.groups]
        return CellPosterior(self.problem, alpha, self.kernel.identity, own, spread)

    def _metric_part(self, group: _Group, alpha: float, B: Array) -> Array:
        """A (C A + alpha I)^-1 B, the part of the metric in the solution."""
        if self.root.shape[1] == 0:
            return np.zeros_like(B)
        lower = (self._cholesky(group, alpha), True)
        if self.inverse is not None:
            return np.asarray(cho_solve(lower, B))
        return np.asarray(self.root @ cho_solve(lower, self.root.T @ B))

    def _axes(self, group: _Group, alpha: float) -> Array:
        """F (m', a) with F F^T = A (C A + alpha I)^-1."""
        if self.root.shape[1] == 0:
            return self.root
        lower = self._cholesky(group, alpha)
        root = np.eye(len(lower)) if self.inverse is not None else self.root.T
        return np.asarray(solve_triangular(lower, root, lower=True).T)

    def _cholesky(self, group: _Group, alpha: float) -> Array:
        """Factor of C + alpha A^-1, or of A_h^T C A_h + alpha I where A has no inverse."""
        key = (int(group.places[0]), alpha)
        if key not in self._factors:
            if self.inverse is not None:
                matrix = group.C + alpha * self.inverse
            else:
                matrix = self.root.T @ group.C @ self.root + alpha * np.eye(self.root.shape[1])
            self._factors[key] = cholesky(matrix, lower=True)
        return self._factors[key]

    def _operators(self, alpha: float) -> tuple[Array, Array]:
        """E (p, m', r) and P (r, r)."""
        E, P = np.array(self.Q), np.eye(self.Q.shape[2])
        for group in self.groups if len(P) else []:
            Q = self.Q[group.places]
            CQ = group.C @ Q  # (targets, m', r)
            wide = CQ.transpose(1, 0, 2).reshape(len(group.C), -1)  # (m', targets * r)
            part = self._metric_part(group, alpha, wide).reshape(len(group.C), *CQ.shape[::2])
            E[group.places] -= part.transpose(1, 0, 2)
            P += np.einsum("ofr,ofs->rs", CQ, E[group.places], optimize=True) / alpha
        return E, P


@dataclass(frozen=True, eq=False)
class CellPosterior:
    """Covariance of a function fitted to measured cells: as `UnitPosterior`, with a part for every target.

    Attributes
    ----------
    problem : Problem
    alpha : float
    identity : float
    groups : list of (places, moments, axes)
        Targets that are measured on the same rows.
    spread : ndarray of shape (p, m', r)
    """

    problem: Problem
    alpha: float
    identity: float
    groups: list[tuple[Index, _Group, Array]]
    spread: Array

    def relative_variance(self, Phi: Array) -> Array:
        """Variance of a new observation in units of the noise, mean over outputs, (n,)."""
        relative = np.empty(len(Phi))
        for rows, shared, spread in self.chunks(Phi):
            variance = shared + np.einsum("tor,tor->to", spread, spread)
            relative[rows] = np.mean(variance / self.alpha + self.mean_share, axis=1)
        return relative + 1.0

    @property
    def degrees_of_freedom(self) -> Array:
        """Trace of each target's block of the hat matrix, its mean included, (p,)."""
        own = np.zeros(self.problem.n_outputs)
        for places, group, axes in self.groups:
            S = self.spread[places]
            plain = float(np.sum((group.C @ axes) * axes))
            own[places] = plain + np.einsum("ofr,ofr->o", group.C @ S, S) / self.alpha
        return own + self.problem.centred

    @property
    def mean_share(self) -> Array:
        """Variance of each target's mean in units of the noise, (p,)."""
        share = np.zeros(self.problem.n_outputs)
        for places, group, _ in self.groups:
            share[places] = 1.0 / group.weight if self.problem.centred else 0.0
        return share

    def chunks(self, Phi: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Rows with the variance that each target has for itself (t, p), and the vectors (t, p, r)."""
        problem = self.problem
        p, r = problem.n_outputs, self.spread.shape[2]
        step = max(1, _CHUNK_NUMBERS // max(p * max(r, p), problem.n_features))
        for start in range(0, len(Phi), step):
            block = np.asarray(Phi[start : start + step], dtype=np.float64)
            shared, spread = np.zeros((len(block), p)), np.zeros((len(block), p, r))
            outside = self._outside(block)
            for places, group, axes in self.groups:
                inner = block @ problem.features - group.mean_phi
                own = self.alpha * np.sum((inner @ axes) ** 2, axis=1) + outside  # (t,)
                shared[:, places] = own[:, None]
                spread[:, places] = np.einsum("tf,ofr->tor", inner, self.spread[places])
            yield slice(start, start + len(block)), shared, spread

    def _outside(self, block: Array) -> Array:
        """Prior variance of what lies outside of the reduced features, (t,)."""
        problem = self.problem
        if self.identity == 0.0 or len(problem.scale) == problem.n_features:
            return np.zeros(len(block))
        rows = block - problem.mean_phi
        whole, inside = (np.einsum("tf,tf->t", part, part) for part in (rows, rows @ problem.features))
        return self.identity * np.where(whole - inside > _ROUNDING * whole, whole - inside, 0.0)


def _root_and_inverse(kernel: LearnedKernel) -> tuple[Array, Array | None]:
    """A_h with A_h A_h^T the metric, of no more columns than its rank, and the inverse where there is one."""
    metric = kernel.metric()
    if not metric.any():
        return np.zeros((len(metric), 0)), None
    values, vectors = eigh(metric)
    keep = values > 1e-15 * values[-1]
    root = vectors[:, keep] * np.sqrt(values[keep])
    # Where a metric is nearly singular, its inverse would lose what its root keeps.
    if values[0] > 1e-8 * values[-1]:
        return root, (vectors / values) @ vectors.T
    return root, None
