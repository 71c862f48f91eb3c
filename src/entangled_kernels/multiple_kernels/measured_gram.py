"""The Gram matrix of a sum of separable kernels between the cells of the targets that were measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..convex.certificate import Preconditioner
from ..convex.conjugate_gradients import conjugate_gradients
from ..linalg import Array
from .measured_cells import MeasuredKernels
from .problem import KernelsProblem, compress_kernels
from .result import KernelsResult, intercept
from .summed import SummedGram

__all__ = ["MeasuredGram", "expand_measured", "measured_gram"]

# Systems of up to this many unknowns are preconditioned by their Cholesky factor.
DIRECT = 1500


@dataclass(frozen=True, eq=False)
class MeasuredGram:
    """B^T (sum_j K_j kron T_j) B, linear in the stack T (m, p, p), with zeros for blanks.

    Attributes
    ----------
    problem : KernelsProblem
        Kernels in the coordinates of few vectors; its targets are not used.
    summed : SummedGram
        The sum of all kernels in these coordinates.
    share : ndarray of shape (n, p)
        Roots of the weights of cells over those of rows, zero in blanks.
    units : ndarray of shape (n, p) or None
        What coefficients are kept orthogonal to, by target, where there are intercepts: roots of the weights,
        of length one.
    targets : ndarray of shape (n, p)
        Weighted by roots, and orthogonal to the units.
    alpha : float

    Notes
    -----
    With weights W of the measured cells the objective y^T (G + alpha W^-1)^-1 y / 2 is that of the Gram
    matrix W^1/2 G W^1/2 and the targets W^1/2 y. An intercept takes the direction of the roots out of both.
    Blanks have weight zero, and coefficients zero. The preconditioner is a Cholesky factor of the system up
    to some n p, (n p)^3 / 3 once a round, and beyond that the one of complete targets. An application takes
    n p r + m r p (r + p) with r coordinates.
    """

    problem: KernelsProblem
    summed: SummedGram
    share: Array
    units: Array | None
    targets: Array
    alpha: float
    constant: float = 0.0

    def apply(self, L: Array, C: Array) -> Array:
        """G c."""
        return self._outside(self.summed.apply(L, self.inside(C)))

    def squares(self, C: Array) -> Array:
        """S_j = B(C)^T K_j B(C)."""
        return self.summed.squares(self.inside(C))

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients of the ridge system, and what conjugate gradients leave."""
        return conjugate_gradients(self, L, self.summed.rough)

    def preconditioner(self, L: Array) -> Preconditioner:
        """The inverse of a factor of the system, or the inverse root of that of complete targets."""
        if self.targets.size <= DIRECT:
            return self._factored(L)
        (values, U), (levels, V) = self.summed.nearest(L)
        vectors = self.problem.vectors
        U = U if vectors is None else vectors @ U  # (n, r)
        roots, rest = np.sqrt(np.outer(values, levels) + self.alpha), np.sqrt(self.alpha)  # (r, p)

        def times(A: Array, inside: Array, outside: float) -> Array:
            return np.asarray(outside * A + U @ ((U.T @ A @ V) * (inside - outside)) @ V.T)

        def forward(X: Array) -> Array:
            return times(X, 1.0 / roots, 1.0 / rest)

        return Preconditioner(forward, lambda C: times(C, roots, rest), forward)

    def _factored(self, L: Array) -> Preconditioner:
        """C = R^-T X for the Cholesky factor R of the system."""
        F = np.stack([self._features(o) for o in range(self.targets.shape[1])])  # (p, n, r)
        images = np.einsum("mrs,mpq->rpsq", self.summed.kernels, L, optimize=True)
        G = np.einsum("pnr,rpsq,qls->nplq", F, images, F, optimize=True)
        N = self.targets.size
        R = cholesky(G.reshape(N, N) + self.alpha * np.eye(N), lower=True, check_finite=False)

        def solved(A: Array, transposed: bool) -> Array:
            found = solve_triangular(R, A.reshape(-1), lower=True, trans=int(transposed), check_finite=False)
            return np.asarray(found).reshape(A.shape)

        return Preconditioner(
            lambda X: solved(X, True),
            lambda C: np.asarray(R.T @ C.reshape(-1)).reshape(C.shape),
            lambda C: solved(C, False),
        )

    def own_kernels(self, output: int) -> Array:
        """Gram matrices (m, n, n) of one output alone."""
        F = self._features(output)
        return np.asarray(F @ self.summed.kernels @ F.T)

    def _features(self, output: int) -> Array:
        """B of one output, transposed, (n, r)."""
        vectors, share = self.problem.vectors, self.share[:, output]
        F = np.diag(share) if vectors is None else share[:, None] * vectors
        return F if self.units is None else _across(self.units[:, [output]], F)

    def curvature(self, L: Array, C: Array) -> Array:
        """None that is cheap."""
        return np.zeros_like(L)

    def inside(self, C: Array) -> Array:
        """B(c), (r, p)."""
        inside = self.share * _across(self.units, C)
        vectors = self.problem.vectors
        return inside if vectors is None else np.asarray(vectors.T @ inside)

    def _outside(self, F: Array) -> Array:
        """B^T f, (n, p)."""
        vectors = self.problem.vectors
        return _across(self.units, self.share * (F if vectors is None else vectors @ F))


def measured_gram(measured: MeasuredKernels, alpha: float) -> MeasuredGram:
    """The Gram matrix of measured cells, from kernels with the weights of rows."""
    problem = compress_kernels(measured.complete)
    roots = np.sqrt(measured.weights)  # (n, p)
    units = roots / np.linalg.norm(roots, axis=0) if measured.centred else None
    return MeasuredGram(
        problem,
        SummedGram(problem.kernels, problem.targets, alpha),
        roots / problem.root_weight[:, None],
        units,
        _across(units, roots * measured.Y),
        alpha,
    )


def expand_measured(
    gram: MeasuredGram,
    measured: MeasuredKernels,
    solved: Array,
    witness: Array,
    weights: Array,
    T: Array,
    outcome: tuple[float, float, bool, str, int],
) -> KernelsResult:
    """The result in the coordinates of the rows: coefficients that are zero in blanks, and intercepts."""
    problem, w = gram.problem, measured.weights
    root = problem.root_weight[:, None]
    C, witness = (root * gram.share * _across(gram.units, A) for A in (solved, witness))
    mean = np.zeros(len(T[0]))
    if measured.centred:
        fit = gram.summed.apply(T, gram.inside(solved))  # (r, p)
        fit = (fit if problem.vectors is None else problem.vectors @ fit) / root
        mean = np.sum(w * (measured.Y - fit), axis=0) / w.sum(axis=0)
    return KernelsResult(C, weights, T, intercept(problem, C, T, mean), *outcome, witness)


def _across(units: Array | None, C: Array) -> Array:
    """The part of every column that is orthogonal to its unit."""
    return C if units is None else np.asarray(C - units * np.sum(units * C, axis=0))
