"""Gram matrices that are linear in learned parameters, with targets and a ridge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular

from ..linalg import Array, Index, rank_tolerance, related_targets
from .problem import Problem, Result, check_psd, compress, store_rows

__all__ = [
    "Gram",
    "KroneckerGram",
    "ListedGram",
    "MissingGram",
    "Preconditioner",
    "SummedGram",
    "WeightedGram",
    "eigh_by_groups",
    "missing_gram",
    "solve_psd",
]

# Largest number of steps of conjugate gradients.
STEPS = 5000
# Systems of up to this many unknowns are solved, or preconditioned, by a Cholesky factor.
DIRECT, DIRECT_MISSING = 800, 1500


class Preconditioner(NamedTuple):
    """A linear change of variables C = forward(X) of the coefficients, its inverse and adjoint."""

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    adjoint: Callable[[Array], Array]

    @classmethod
    def scaled(cls, scale: Array, U: Array | None = None, V: Array | None = None) -> Preconditioner:
        """The change of variables C = U (X * scale) V^T, with orthogonal U and V; None is the identity."""

        def outward(X: Array) -> Array:
            X = X if U is None else U @ X
            return np.asarray(X if V is None else X @ V.T)

        def inward(C: Array) -> Array:
            C = C if U is None else U.T @ C
            return np.asarray(C if V is None else C @ V)

        return cls(
            lambda X: outward(X * scale), lambda C: inward(C) / scale, lambda C: inward(C) * scale
        )


@dataclass(frozen=True, eq=False)
class Gram:
    """A Gram matrix G_L, linear in a stack L (m, k, k) of psd matrices, with targets and a ridge.

    A subclass writes `apply`, `inner_products` and `preconditioner`. It may replace `solve` by a
    direct method, and `curvature` by a better bound.

    Attributes
    ----------
    targets : ndarray
        y, of the shape of the coefficients c.
    alpha : float
        The ridge.
    constant : float
        Terms of the objective that do not depend on L, such as the targets outside the range of G.
    """

    targets: Array
    alpha: float
    constant: float = field(default=0.0, kw_only=True)
    #: Relative residual at which conjugate gradients stop.
    cg_tolerance: ClassVar[float] = 1e-11

    def apply(self, L: Array, C: Array) -> Array:
        """G_L c."""
        raise NotImplementedError

    def inner_products(self, C: Array) -> Array:
        """The stack S with <L, S> = c^T G_L c for all L."""
        raise NotImplementedError

    def preconditioner(self, L: Array) -> Preconditioner:
        """A change of variables in which G_L + alpha I is near the identity."""
        raise NotImplementedError

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients c of (G_L + alpha I) c = y, and ||e||^2 / (2 alpha) for the residual e.

        By preconditioned conjugate gradients. The residual is computed from the solution, since it
        enters the duality gap.
        """
        change = self.preconditioner(L)
        C = solve_psd(
            lambda search: self.apply(L, search) + self.alpha * search,
            lambda residual: change.forward(change.adjoint(residual)),
            self.targets,
            self.cg_tolerance * float(np.linalg.norm(self.targets)),
            STEPS,
        )
        left = self.targets - self.apply(L, C) - self.alpha * C
        return C, float(np.vdot(left, left)) / (2 * self.alpha)

    def curvature(self, L: Array, C: Array) -> Array:
        """Diagonal of the Hessian of y^T (G_L + alpha I)^-1 y / 2, (m, k, k), in eigenbases of L.

        For matrices of size one, k = 1, it may be the whole Hessian (m, m). Zero is allowed: it
        only makes the factor solver slower.
        """
        return np.zeros_like(L)


def solve_psd(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    tolerance: float,
    steps: int,
) -> Array:
    """Solve a positive definite system by preconditioned conjugate gradients.

    Stop when the norm of the residual is at most ``tolerance``. All arrays have the same shape.
    """
    solution, residual = np.zeros_like(right), right.copy()
    search = scaled = precondition(residual)
    square = float(np.vdot(residual, scaled))
    for _ in range(steps):
        if float(np.linalg.norm(residual)) <= tolerance or square <= 0.0:
            break
        image = apply(search)
        curvature = float(np.vdot(search, image))
        if curvature <= 0.0:
            break
        length = square / curvature
        solution += length * search
        residual -= length * image
        scaled = precondition(residual)
        previous, square = square, float(np.vdot(residual, scaled))
        search = scaled + (square / previous) * search
    return solution


@dataclass(frozen=True, eq=False)
class KroneckerGram(Gram):
    """K kron L for one L, a stack (1, k, k), with the rows rotated so that K is diagonal.

    Targets (q, k) are in the eigenbasis of K, and ``values`` (q,) are its positive eigenvalues.

    Notes
    -----
    With L = V diag(levels) V^T the ridge system is diagonal: entry (i, j) of C V is that of
    targets V over values_i levels_j + alpha. Every method takes time q k^2 + k^3.
    """

    values: Array

    def apply(self, L: Array, C: Array) -> Array:
        """K C L."""
        return np.asarray(self.values[:, None] * (C @ L[0]))

    def inner_products(self, C: Array) -> Array:
        """C^T K C."""
        root = np.sqrt(self.values)[:, None] * C
        return np.asarray(root.T @ root)[None]

    def solve(self, L: Array) -> tuple[Array, float]:
        """C with K C L + alpha C = targets, without a residual."""
        V, diagonal = self._eigen(L)
        return ((self.targets @ V) / diagonal) @ V.T, 0.0

    def preconditioner(self, L: Array) -> Preconditioner:
        """C = (X / sqrt(values_i levels_j + alpha)) V^T."""
        V, diagonal = self._eigen(L)
        return Preconditioner.scaled(1.0 / np.sqrt(diagonal), V=V)

    def curvature(self, L: Array, C: Array) -> Array:
        """(A_jk + A_kj) / 2 with A_jk = sum_i F_ik^2 / (values_i levels_j + alpha), F = K C V.

        `entangled_kernels.convex.learn_output_kernel` derives it.
        """
        V, diagonal = self._eigen(L)
        F = self.values[:, None] * (C @ V)  # (q, k)
        A = (1.0 / diagonal).T @ F**2  # (k, k)
        return np.asarray(0.5 * (A + A.T))[None]

    def _eigen(self, L: Array) -> tuple[Array, Array]:
        """Eigenvectors V of L, and values_i levels_j + alpha, (q, k)."""
        levels, V = np.linalg.eigh(L[0])
        return V, np.outer(self.values, np.maximum(levels, 0.0)) + self.alpha


@dataclass(frozen=True, eq=False)
class WeightedGram(Gram):
    """(sum_j d_j K_j) kron diag(levels), linear in the weights d, a stack (m, 1, 1).

    Targets (n, p) are in the eigenbasis of the kernel between outputs, of eigenvalues ``levels``
    (p,), and ``kernels`` (m, n, n) are the K_j.

    Notes
    -----
    Time n^3 / 3 for a Cholesky factor if all levels are equal, about ten times that for an
    eigendecomposition if not, and m n^2 + n^2 p for the inner products. The last solution is kept,
    because the certificate needs the solution at the weights where a search ended.
    """

    kernels: Array
    levels: Array
    _last: dict[str, Any] = field(init=False, default_factory=dict)

    def apply(self, L: Array, C: Array) -> Array:
        """sum_j d_j K_j C diag(levels)."""
        return np.asarray(self.combine(L) @ (C * self.levels))

    def inner_products(self, C: Array) -> Array:
        """s_j = tr(C^T K_j C diag(levels)) = <K_j, C diag(levels) C^T>: one pass over kernels."""
        if C is self._last.get("C") and "S" in self._last:
            return np.asarray(self._last["S"])
        m, n, _ = self.kernels.shape
        outer = C @ (C * self.levels).T  # (n, n)
        S = np.asarray(self.kernels.reshape(m, n * n) @ outer.reshape(n * n))[:, None, None]
        if C is self._last.get("C"):
            self._last["S"] = S
        return S

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients of the ridge system, without a residual."""
        if np.array_equal(L, self._last.get("L", ())):
            return self._last["C"], 0.0
        factor, levels = None, self.levels
        if np.ptp(levels) <= 1e-14 * np.abs(levels).max(initial=0.0):
            factor = _ridge_factor(self.combine(L) * levels[0], self.alpha)
        if factor is not None:
            C = np.asarray(cho_solve(factor, self.targets, check_finite=False))
        else:
            U, scale = self._eigen(L)
            C = np.asarray(U @ ((U.T @ self.targets) * scale**2))
        self._last.clear()
        self._last.update(L=L.copy(), factor=factor, C=C)
        return C, 0.0

    def preconditioner(self, L: Array) -> Preconditioner:
        """Coefficients in the eigenbasis of sum_j d_j K_j, over the roots of the eigenvalues."""
        U, scale = self._eigen(L)
        return Preconditioner.scaled(scale, U)

    def curvature(self, L: Array, C: Array) -> Array:
        """Hessian (m, m): tr(F_j^T (G + alpha I)^-1 F_l) with F_j = K_j C diag(levels)."""
        F = _images(self.kernels, C * self.levels)  # (m, n, p)
        m, n, p = F.shape
        columns = F.transpose(1, 0, 2).reshape(n, m * p)  # (n, m p)
        self.solve(L)
        if self._last["factor"] is not None:
            lower = np.tril(self._last["factor"][0])
            half = solve_triangular(lower, columns, lower=True, check_finite=False)
        else:
            U, scale = self._eigen(L)
            half = (U.T @ columns) * np.tile(scale, m)
        parts = half.reshape(n, m, p).transpose(1, 0, 2).reshape(m, n * p)  # (m, n p)
        return np.asarray(parts @ parts.T)

    def combine(self, L: Array) -> Array:
        """sum_j d_j K_j, (n, n)."""
        m, n, _ = self.kernels.shape
        return np.asarray(L.reshape(m) @ self.kernels.reshape(m, n * n)).reshape(n, n)

    def _eigen(self, L: Array) -> tuple[Array, Array]:
        """Eigenvectors of sum_j d_j K_j, and (values_i levels_j + alpha)^-1/2, (n, p)."""
        values, U = eigh(self.combine(L), check_finite=False)
        check_psd(values)
        return U, 1.0 / np.sqrt(np.outer(np.maximum(values, 0.0), self.levels) + self.alpha)


@dataclass(frozen=True, eq=False)
class SummedGram(Gram):
    """sum_j K_j kron T_j, linear in the stack T (m, p, p), with ``kernels`` K (m, n, n).

    Notes
    -----
    The ridge system has n p unknowns and no common eigenbasis. Small systems are solved directly,
    large ones by conjugate gradients, one group of related targets at a time. The preconditioner is
    the system of the Kronecker product of the partial traces of the Gram matrix, sum_j tr(T_j) K_j
    and sum_j tr(K_j) T_j, over its trace. An iteration takes m n p (n + p), the preconditioner
    n^3 + p^3, a small system (n p)^3 / 3.
    """

    kernels: Array

    def apply(self, L: Array, C: Array) -> Array:
        """sum_j K_j C T_j."""
        return np.asarray(np.einsum("mnp,mpq->nq", _images(self.kernels, C), L, optimize=True))

    def inner_products(self, C: Array) -> Array:
        """S_j = C^T K_j C."""
        return np.asarray(C.T @ _images(self.kernels, C))

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients of the ridge system, and the residual of conjugate gradients."""
        if self.targets.size > DIRECT:
            return _solve_groups(self, L)
        n, p = self.targets.shape
        G = np.einsum("mnl,mpq->nplq", self.kernels, L, optimize=True).reshape(n * p, n * p)
        right, factor = self.targets.reshape(-1), _ridge_factor(G, self.alpha)
        if factor is not None:
            return np.asarray(cho_solve(factor, right, check_finite=False)).reshape(n, p), 0.0
        values, U = eigh(G, check_finite=False)
        check_psd(values)
        C = U @ ((U.T @ right) / (np.maximum(values, 0.0) + self.alpha))
        return np.asarray(C).reshape(n, p), 0.0

    def restrict(self, group: Index) -> Self:
        """The Gram matrix of some of the targets."""
        return replace(self, targets=self.targets[:, group])

    def preconditioner(self, L: Array) -> Preconditioner:
        """The inverse root of the system of the nearest Kronecker product, by partial traces."""
        (values, U), (levels, V) = self.nearest(L)
        return Preconditioner.scaled(1.0 / np.sqrt(np.outer(values, levels) + self.alpha), U, V)

    def nearest(self, L: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Eigenvalues and eigenvectors of both sides of the Kronecker product by partial traces."""
        inner, outer = np.trace(self.kernels, axis1=1, axis2=2), np.trace(L, axis1=1, axis2=2)
        total = max(float(inner @ outer), np.finfo(float).tiny)
        values, U = eigh(np.einsum("m,mnl->nl", outer, self.kernels, optimize=True) / total)
        levels, V = eigh(np.einsum("m,mpq->pq", inner, L))
        return (np.maximum(values, 0.0), U), (np.maximum(levels, 0.0), V)


@dataclass(frozen=True, eq=False)
class ListedGram(SummedGram):
    """sum_j d_j K_j kron T_j for given ``output_kernels`` T, linear in the weights d, (m, 1, 1)."""

    output_kernels: Array

    def apply(self, L: Array, C: Array) -> Array:
        """sum_j d_j K_j C T_j."""
        return super().apply(L * self.output_kernels, C)

    def inner_products(self, C: Array) -> Array:
        """s_j = <C^T K_j C, T_j>."""
        S = super().inner_products(C)
        return np.asarray(np.sum(S * self.output_kernels, axis=(1, 2), keepdims=True))

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients of the ridge system, and the residual of conjugate gradients."""
        return SummedGram(self.targets, self.alpha, self.kernels).solve(L * self.output_kernels)

    def preconditioner(self, L: Array) -> Preconditioner:
        """The preconditioner of the sum."""
        return super().preconditioner(L * self.output_kernels)

    def curvature(self, L: Array, C: Array) -> Array:
        """Zero, (m, m)."""
        return np.zeros((len(L), len(L)))


@dataclass(frozen=True, eq=False)
class MissingGram(Gram):
    """B^T (sum_j K_j kron T_j) B, linear in the stack T (m, p, p), if targets are missing.

    Attributes
    ----------
    targets : ndarray of shape (n, p)
        Times the roots of their weights, and orthogonal to the units.
    problem : Problem
        Kernels in the coordinates of few vectors; its targets are not used.
    summed : SummedGram
        The sum of all kernels in these coordinates.
    share : ndarray of shape (n, p)
        Roots of the weights of targets over those of rows, zero where a target is missing.
    units : ndarray of shape (n, p) or None
        With intercepts: a unit vector for every output, to which its coefficients are orthogonal.

    Notes
    -----
    With weights W of the targets the objective y^T (G + alpha W^-1)^-1 y / 2 is that of the Gram
    matrix W^1/2 G W^1/2 and the targets W^1/2 y. An intercept projects out the direction of the
    roots from both. Missing targets have weight zero, and coefficients zero. Groups of related
    targets are solved one by one. The preconditioner is a Cholesky factor of the system up to some
    n p, time (n p)^3 / 3 in every round, and beyond that the system of complete targets. A product
    takes n p r + m r p (r + p) with r coordinates.
    """

    problem: Problem
    summed: SummedGram
    share: Array
    units: Array | None

    def apply(self, L: Array, C: Array) -> Array:
        """G c."""
        images = self.problem.from_coordinates(self.summed.apply(L, self.to_coordinates(C)))
        return self.project(self.share * images)

    def inner_products(self, C: Array) -> Array:
        """S_j = B(C)^T K_j B(C)."""
        return self.summed.inner_products(self.to_coordinates(C))

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients of the ridge system, and the residual of conjugate gradients."""
        return _solve_groups(self, L)

    def restrict(self, group: Index) -> MissingGram:
        """The Gram matrix of some of the targets."""
        units = None if self.units is None else self.units[:, group]
        targets, share = self.targets[:, group], self.share[:, group]
        return replace(self, targets=targets, share=share, units=units)

    def preconditioner(self, L: Array) -> Preconditioner:
        """By a Cholesky factor of the system, or by the system of complete targets."""
        if self.targets.size <= DIRECT_MISSING:
            return self._factored(L)
        (values, U), (levels, V) = self.summed.nearest(L)
        U = self.problem.from_coordinates(U)  # (n, r)
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
        G = G.reshape(N, N)
        # If alpha is below rounding, a larger ridge is good enough for a preconditioner.
        ridges = (self.alpha, self.alpha + rank_tolerance(N) * float(np.trace(G)))
        factors = (_ridge_factor(G, ridge) for ridge in ridges)
        factor = next((factor for factor in factors if factor is not None), None)
        if factor is None:
            raise ValueError(
                "kernel must be positive semi-definite; use one that is, or a larger alpha"
            )
        R = np.tril(factor[0])

        def solved(A: Array, transposed: bool) -> Array:
            x = solve_triangular(
                R, A.reshape(-1), lower=True, trans=int(transposed), check_finite=False
            )
            return np.asarray(x).reshape(A.shape)

        return Preconditioner(
            lambda X: solved(X, True),
            lambda C: np.asarray(R.T @ C.reshape(-1)).reshape(C.shape),
            lambda C: solved(C, False),
        )

    def kernels_of(self, output: int) -> Array:
        """Gram matrices (m, n, n) of one output alone."""
        F = self._features(output)
        return np.asarray(F @ self.summed.kernels @ F.T)

    def _features(self, output: int) -> Array:
        """B of one output, transposed, (n, r)."""
        vectors, share = self.problem.vectors, self.share[:, output]
        F = np.diag(share) if vectors is None else share[:, None] * vectors
        return F if self.units is None else _project(self.units[:, [output]], F)

    def to_coordinates(self, C: Array) -> Array:
        """B(c), (r, p)."""
        return self.problem.to_coordinates(self.share * self.project(C))

    def project(self, C: Array) -> Array:
        """The part of every column that is orthogonal to its unit."""
        return C if self.units is None else _project(self.units, C)

    def expand(self, result: Result, T: Array, weights: Array) -> Result:
        """A result in the coordinates of the rows: zero coefficients for missing targets."""
        problem = self.problem
        assert problem.missing is not None
        Y, w = problem.missing
        root, mean = problem.root_weight[:, None], np.zeros(Y.shape[1])
        if self.units is not None:
            images = self.summed.apply(T[: len(self.summed.kernels)], self.to_coordinates(result.C))
            fit = problem.from_coordinates(images) / root
            mean = np.sum(w * (Y - fit), axis=0) / w.sum(axis=0)
        C, witness = (root * self.share * self.project(A) for A in (result.C, result.witness))
        return store_rows(problem, result, C, witness, T, weights, mean)


def missing_gram(problem: Problem, alpha: float) -> MissingGram:
    """The Gram matrix of a problem with missing targets."""
    assert problem.missing is not None
    Y, weights = problem.missing
    if problem.kernels.ndim == 2:
        problem = replace(problem, kernels=np.diag(problem.kernels[0])[None])
    else:
        problem = compress(problem)
    roots = np.sqrt(weights)  # (n, p)
    units = roots / np.linalg.norm(roots, axis=0) if problem.centred else None
    return MissingGram(
        roots * Y if units is None else _project(units, roots * Y),
        alpha,
        problem,
        SummedGram(problem.targets, alpha, problem.kernels),
        roots / problem.root_weight[:, None],
        units,
    )


def eigh_by_groups(T: Array) -> tuple[Array, Array]:
    """Non-negative eigenvalues (p,) and eigenvectors (p, p) of T, group by group of targets.

    Entries of eigenvectors outside their group are exactly zero.
    """
    levels, V = np.zeros(len(T)), np.zeros(T.shape)
    for group in related_targets(T[None]):
        block = np.ix_(group, group)
        levels[group], V[block] = np.linalg.eigh(T[block])
    return np.maximum(levels, 0.0), V


def _solve_groups(gram: SummedGram | MissingGram, T: Array) -> tuple[Array, float]:
    """Conjugate gradients for each group of related targets, and the sum of their residuals."""
    C, slack = np.empty_like(gram.targets), 0.0
    for group in related_targets(T):
        C[:, group], left = Gram.solve(gram.restrict(group), T[:, group[:, None], group])
        slack += left
    return C, slack


def _ridge_factor(G: Array, alpha: float) -> tuple[Array, bool] | None:
    """Cholesky factor of G + alpha I; None if alpha is below the rounding of G."""
    system = G.copy()
    system[np.diag_indices(len(G))] += alpha
    try:
        factor: tuple[Array, bool] = cho_factor(
            system, lower=True, overwrite_a=True, check_finite=False
        )
    except LinAlgError:
        return None
    return factor


def _project(units: Array, C: Array) -> Array:
    return np.asarray(C - units * np.sum(units * C, axis=0))


def _images(kernels: Array, C: Array) -> Array:
    """K_j C, (m, n, p)."""
    m, n, _ = kernels.shape
    return np.asarray(kernels.reshape(m * n, n) @ C).reshape(m, n, -1)  # (m n, p) -> (m, n, p)
