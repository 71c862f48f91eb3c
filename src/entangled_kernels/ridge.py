"""Ridge regression with a learned kernel: coefficients for a path of alphas, and the posterior of a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh, solve_triangular

from .learned import LearnedKernel
from .reduction import Problem

__all__ = ["KernelRidgeFactor", "Posterior"]

Array = NDArray[np.float64]


class KernelRidgeFactor:
    """One factorisation of a ridge problem, serving every alpha.

    Finds the coefficients Theta = D (M D + alpha I)^-1 vec(B) of the linear model f(x) = Theta^T phi(x),
    where M = diag(scale) kron I and D = A kron I + Q Q^T is the kernel.

    Parameters
    ----------
    problem : Problem
    kernel : LearnedKernel

    Notes
    -----
    In whitened coordinates, Dw = M^1/2 D M^1/2 and bw = M^-1/2 vec(B), the dual coefficients are
    (Dw + alpha I)^-1 bw and Theta = D M^1/2 dual. With Aw = U diag(levels) U^T and X = U^T Qw,

        (diag(levels) kron I + alpha I + X X^T)^-1 = Delta - Delta X P^-1 X^T Delta,
        Delta = 1 / (levels + alpha),   P = I + X^T Delta X  (r, r)

    so an alpha costs m' k r^2 + r^3. When r is at least half of m' k that is more than the eigenvalues of
    Dw, which has no more entries than Q by then; these serve all alphas instead.
    """

    def __init__(self, problem: Problem, kernel: LearnedKernel) -> None:
        self.problem, self.kernel = problem, kernel
        self.root = np.sqrt(problem.scale)
        metric = kernel.total_metric()
        m, k = problem.targets.shape
        whitened_targets = problem.targets / self.root[:, None]
        if kernel.metric is not None:
            assert metric is not None
            self.levels, self.U = eigh(self.root[:, None] * metric * self.root)
            self.levels = np.maximum(self.levels, 0.0)
        else:
            self.levels, self.U = kernel.identity * problem.scale, np.eye(m)
        self.X = np.tensordot(self.U.T, problem.whiten(kernel.Q), axes=1)  # (m', k, r)
        self.b = self.U.T @ whitened_targets  # (m', k)
        self._eigen: tuple[Array, Array] | None = None
        if 2 * self.X.shape[2] >= m * k > 0:
            X_tall = self.X.reshape(m * k, -1)
            self._eigen = eigh(np.diag(np.repeat(self.levels, k)) + X_tall @ X_tall.T)

    def coefficients(self, alphas: ArrayLike) -> Array:
        """Coefficients of every alpha, (number of alphas, m', k) in reduced coordinates."""
        alphas = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        return np.stack([self._apply_kernel(self._dual(float(alpha))) for alpha in alphas])

    def _dual(self, alpha: float) -> Array:
        """(Dw + alpha I)^-1 bw in the basis U, (m', k)."""
        if self._eigen is not None:
            values, vectors = self._eigen
            shrunk = (vectors.T @ self.b.reshape(-1)) / (np.maximum(values, 0.0) + alpha)
            return np.asarray(vectors @ shrunk).reshape(self.b.shape)
        delta = 1.0 / (self.levels + alpha)[:, None]
        if self.X.shape[2] == 0:
            return np.asarray(delta * self.b)
        factor = cho_factor(self._inner(alpha), lower=True)
        z = cho_solve(factor, np.tensordot(self.X, delta * self.b, axes=((0, 1), (0, 1))))  # (r,)
        return np.asarray(delta * (self.b - self.X @ z))

    def _inner(self, alpha: float) -> Array:
        """P = I + X^T Delta X, (r, r)."""
        m, k, r = self.X.shape
        weighted = (self.X / np.sqrt(self.levels + alpha)[:, None, None]).reshape(m * k, r)
        P: Array = weighted.T @ weighted
        P[np.diag_indices(r)] += 1.0
        return P

    def _apply_kernel(self, dual: Array) -> Array:
        """D M^1/2 dual, (m', k)."""
        primal = self.root[:, None] * (self.U @ dual)
        coef = self.kernel.identity * primal
        if self.kernel.metric is not None:
            coef = coef + self.kernel.metric @ primal
        projected = np.tensordot(self.X, dual, axes=((0, 1), (0, 1)))  # (r,)
        return np.asarray(coef + self.kernel.Q @ projected)

    def posterior(self, alpha: float) -> Posterior:
        """Posterior of the coefficients for noise of variance ``alpha``, up to a common factor.

        Notes
        -----
        Writing the model as (A kron I)-part plus Q z with z standard normal, the first part given z has
        covariance A - A C^1/2 (Aw + alpha I)^-1 C^1/2 A, z has precision P, and a change of z moves the
        coefficients by (H kron I) Q with H = I - A C^1/2 (Aw + alpha I)^-1 C^1/2. So the posterior is again a
        metric and Kraus operators, in r dimensions.
        """
        m, k, r = self.X.shape
        A = self.kernel.total_metric()
        A = np.zeros((m, m)) if A is None else A
        delta = 1.0 / (self.levels + alpha)
        reach = A @ (self.root[:, None] * self.U)  # A C^1/2 U
        metric = A - (reach * delta) @ reach.T
        moved = self.kernel.Q - np.tensordot(reach * delta, self.X, axes=1)  # (m', k, r)
        lower = cholesky(self._inner(alpha), lower=True) if r else np.zeros((0, 0))
        Q = solve_triangular(lower, moved.reshape(m * k, r).T, lower=True).T if r else moved
        return Posterior(self.kernel.identity, metric, np.ascontiguousarray(Q).reshape(m, k, r))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Covariance of f(x), up to a factor: phi^T metric phi I_p + sum_i N_i phi phi^T N_i^T.

    ``metric`` (m', m') and N_i = Q[:, :, i]^T act on the reduced features; directions that the reduction
    dropped, about which the rows say nothing, keep their prior variance ``identity``.
    """

    identity: float
    metric: Array
    Q: Array

    def degrees_of_freedom(self, scale: Array, outputs: Array, alpha: float) -> Array:
        """Trace of the block of the hat matrix that belongs to each output, (p,)."""
        shared = float(scale @ np.diag(self.metric))
        energy = np.einsum("f,fkr,flr->kl", scale, self.Q, self.Q, optimize=True)  # (k, k)
        own = np.einsum("ok,kl,ol->o", outputs, energy, outputs, optimize=True)
        return np.asarray((shared + own) / alpha)

    def shared_variance(self, reduced: Array, squared_norms: Array) -> Array:
        """phi^T metric phi and the prior variance of dropped directions, (n,).

        ``reduced`` (n, m') are the features in reduced coordinates, ``squared_norms`` (n,) those of the
        original ones.
        """
        inside = np.einsum("nf,nf->n", reduced @ self.metric, reduced)
        if self.identity == 0.0:
            return np.asarray(inside)
        dropped = np.maximum(squared_norms - np.einsum("nf,nf->n", reduced, reduced), 0.0)
        return np.asarray(inside + self.identity * dropped)

    def spread(self, reduced: Array, outputs: Array) -> Array:
        """Vectors N_i phi(x) in the original outputs, (n, p, r)."""
        return np.asarray(outputs @ np.tensordot(reduced, self.Q, axes=1))
