"""The Gram matrix of a sum of separable kernels, each with an output kernel of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve

from ..convex.certificate import Preconditioner
from ..convex.conjugate_gradients import conjugate_gradients
from ..linalg import Array

__all__ = ["ListedGram", "SummedGram"]

# Systems of up to this many unknowns are solved by their Cholesky factor: sooner, and to the last digit.
DIRECT = 800


@dataclass(frozen=True, eq=False)
class SummedGram:
    """sum_j K_j kron T_j, linear in the stack T (m, p, p).

    Attributes
    ----------
    kernels : ndarray of shape (m, n, n)
    targets : ndarray of shape (n, p)
    alpha : float
    constant : float
    rough : float
        Relative residual at which the ridge system counts as solved.

    Notes
    -----
    The ridge system has n p unknowns and no common eigenbasis: conjugate gradients solve it, but for small
    systems. The preconditioner is the system of the Kronecker product of the partial traces of the Gram
    matrix, sum_j tr(T_j) K_j and sum_j tr(K_j) T_j, over its trace. An iteration takes m n p (n + p), the
    preconditioner n^3 + p^3, a small system (n p)^3 / 3.
    """

    kernels: Array
    targets: Array
    alpha: float
    constant: float = 0.0
    rough: float = 1e-11

    def apply(self, L: Array, C: Array) -> Array:
        """sum_j K_j C T_j."""
        return np.asarray(np.einsum("mnp,mpq->nq", self._images(C), L, optimize=True))

    def squares(self, C: Array) -> Array:
        """S_j = C^T K_j C."""
        return np.asarray(C.T @ self._images(C))

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients of the ridge system, and what conjugate gradients leave."""
        if self.targets.size <= DIRECT:
            return self._solve_direct(L), 0.0
        return conjugate_gradients(self, L, self.rough)

    def _solve_direct(self, L: Array) -> Array:
        n, p = self.targets.shape
        G = np.einsum("mnl,mpq->nplq", self.kernels, L, optimize=True).reshape(n * p, n * p)
        G[np.diag_indices(n * p)] += self.alpha
        solved = solve(G, self.targets.reshape(-1), assume_a="pos", overwrite_a=True, check_finite=False)
        return np.asarray(solved).reshape(n, p)

    def preconditioner(self, L: Array) -> Preconditioner:
        """The inverse root of the system of the nearest Kronecker product, by partial traces."""
        (values, U), (levels, V) = self.nearest(L)
        scale = 1.0 / np.sqrt(np.outer(values, levels) + self.alpha)  # (n, p)
        return Preconditioner(
            lambda X: np.asarray(U @ (X * scale) @ V.T),
            lambda C: np.asarray((U.T @ C @ V) / scale),
            lambda C: np.asarray((U.T @ C @ V) * scale),
        )

    def curvature(self, L: Array, C: Array) -> Array:
        """Diagonal of the Hessian by matrix, with the nearest Kronecker product for the Gram matrix."""
        (values, U), (levels, V) = self.nearest(L)
        quotients = 1.0 / (np.outer(values, levels) + self.alpha)  # (n, p)
        curvature = np.empty_like(L)
        images = self._images(C)
        for j, own in enumerate(np.linalg.eigh(L)[1]):
            F = U.T @ images[j] @ own  # (n, p)
            # Weights of the common levels in the basis of T_j.
            mixed = quotients @ ((V.T @ own) ** 2)  # (n, p)
            A = mixed.T @ F**2  # (p, p)
            curvature[j] = 0.5 * (A + A.T)
        return curvature

    def _images(self, C: Array) -> Array:
        m, n, _ = self.kernels.shape
        return np.asarray(self.kernels.reshape(m * n, n) @ C).reshape(m, n, -1)  # (m n, p) -> (m, n, p)

    def nearest(self, L: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Eigenvalues and eigenvectors of both sides of the Kronecker product by partial traces."""
        inner, outer = np.trace(self.kernels, axis1=1, axis2=2), np.trace(L, axis1=1, axis2=2)
        total = max(float(inner @ outer), np.finfo(float).tiny)
        values, U = eigh(np.einsum("m,mnl->nl", outer, self.kernels, optimize=True) / total)
        levels, V = eigh(np.einsum("m,mpq->pq", inner, L))
        return (np.maximum(values, 0.0), U), (np.maximum(levels, 0.0), V)


@dataclass(frozen=True, eq=False)
class ListedGram:
    """sum_j d_j K_j kron T_j for given T_j, linear in the weights d, a stack (m, 1, 1).

    Attributes
    ----------
    summed : SummedGram
    output_kernels : ndarray of shape (m, p, p)
    """

    summed: SummedGram
    output_kernels: Array

    @property
    def alpha(self) -> float:
        """The ridge."""
        return self.summed.alpha

    @property
    def targets(self) -> Array:
        """Targets."""
        return self.summed.targets

    @property
    def constant(self) -> float:
        """What the objective has beyond its parameters."""
        return self.summed.constant

    def stack(self, L: Array) -> Array:
        """d_j T_j, (m, p, p)."""
        return np.asarray(L * self.output_kernels)

    def apply(self, L: Array, C: Array) -> Array:
        """sum_j d_j K_j C T_j."""
        return self.summed.apply(self.stack(L), C)

    def squares(self, C: Array) -> Array:
        """s_j = <C^T K_j C, T_j>."""
        found = np.einsum("mpq,mpq->m", self.summed.squares(C), self.output_kernels)  # (m,)
        return np.asarray(found)[:, None, None]

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients of the ridge system, and what conjugate gradients leave."""
        return self.summed.solve(self.stack(L))

    def preconditioner(self, L: Array) -> Preconditioner:
        """That of the sum."""
        return self.summed.preconditioner(self.stack(L))

    def curvature(self, L: Array, C: Array) -> Array:
        """Hessian by weights, (m, m), bounded by that of a fixed C: nothing better is cheap."""
        return np.zeros((len(L), len(L)))
