"""Learned kernels, and ridge regression with them: one factorisation, coefficients for every alpha."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, eigh, qr, svd

from ..linalg import Array, rank_tolerance
from .problem import Problem

__all__ = [
    "KernelRidgeFactor",
    "LearnedKernel",
    "MissingTargetsRidge",
    "lower_factor",
    "solve_ridge",
    "target_directions",
]

# Alphas are solved together in chunks of this many numbers.
_CHUNK_NUMBERS = 2**22
_ROUNDING = 1e-13
# Diagonals that are tried, each ten times the last, until a matrix has a Cholesky factor.
_MOST_TRIES = 8


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """D = (identity * I + L L^T) kron I_p + Q Q^T, in the reduced coordinates of a `Problem`.

    Attributes
    ----------
    identity : float
        Coefficient of the plain kernel phi(x)^T phi(z) I_p. It acts on all features, also on those
        that the reduction drops, and on all outputs.
    L : ndarray of shape (m, l)
        Factor of the learned metric; adds phi(x)^T L L^T phi(z) I_p.
    Q : ndarray of shape (m, k, r)
        Kraus operators, M_i = Q[:, :, i]^T.
    n_directions : int or None, default=None
        Predict in this many leading directions of the targets; for kernels without operators.
    """

    identity: float
    L: Array
    Q: Array
    n_directions: int | None = None

    @classmethod
    def from_operators(cls, Q: Array) -> LearnedKernel:
        """Kernel of Kraus operators alone."""
        return cls(0.0, np.zeros((len(Q), 0)), Q)

    def metric(self) -> Array:
        """identity * I + L L^T, (m, m)."""
        metric: Array = self.L @ self.L.T
        metric[np.diag_indices_from(metric)] += self.identity
        return metric

    def mixed(self, identity: float, share: float) -> LearnedKernel:
        """``share`` times this kernel plus ``identity`` times the plain kernel.

        With ``share=0`` the result has no operators, rather than operators that are zero.
        """
        if share == 0.0:
            return LearnedKernel(identity, self.L[:, :0], self.Q[:, :, :0])
        root = np.sqrt(share)
        return LearnedKernel(identity + share * self.identity, root * self.L, root * self.Q)

    def canonical(self, targets: Array) -> LearnedKernel:
        """The same kernel with orthogonal operators, strongest first, signs by covariance with the targets.

        D = Q Q^T does not change when Q is multiplied by an orthogonal matrix; this picks one Q for
        each D.
        """
        m, k, r = self.Q.shape
        Q = self.Q.reshape(m * k, r)
        if r > 1:
            Q = Q @ eigh(Q.T @ Q)[1][:, ::-1]
        Q = np.where(targets.reshape(-1) @ Q < 0.0, -Q, Q)
        return replace(self, Q=Q.reshape(m, k, r))

    def partial_trace(self, n_outputs: int) -> LearnedKernel:
        """The kernel (S / p) kron I_p, with S = p metric + sum_i M_i^T M_i the trace over the outputs."""
        m, _, r = self.Q.shape
        if r == 0:
            return self
        L = np.hstack([self.L, self.Q.reshape(m, -1) / np.sqrt(n_outputs)])  # (m, l + k * r)
        # A factor of L L^T with no more columns than its rank, from the smaller of two Gram
        # matrices.
        wide = L.shape[1] > m
        values, vectors = eigh(L @ L.T if wide else L.T @ L)
        keep = values > rank_tolerance(len(values)) * values[-1]
        L = vectors[:, keep] * np.sqrt(values[keep]) if wide else L @ vectors[:, keep]
        return LearnedKernel(self.identity, np.asarray(L), self.Q[:, :, :0])


def target_directions(problem: Problem, kernel: LearnedKernel, alpha: float) -> Array | None:
    """Orthonormal directions of the targets (p, r) that predictions are in; None for all."""
    if kernel.n_directions is None:
        return None
    coef = KernelRidgeFactor(problem, replace(kernel, n_directions=None)).coefficients(alpha)[0]
    V = _leading_directions(problem.targets, coef, kernel.n_directions)
    return np.asarray(problem.outputs @ V)


def _leading_directions(targets: Array, coefs: Array, count: int) -> Array:
    """Leading eigenvectors V (..., k, count) of B^T Theta, for ridge coefficients Theta (..., m', k).

    For a kernel A without operators Theta = A (C A + alpha I)^-1 B, so that B^T Theta is symmetric.
    Theta V V^T is the reduced-rank regression of Izenman (1975).
    """
    return np.asarray(np.linalg.eigh(targets.T @ coefs)[1][..., -count:])


def lower_factor(matrix: Array) -> Array:
    """Cholesky factor of a positive definite matrix.

    With a tiny alpha rounding may make the matrix indefinite; then its diagonal is increased.
    """
    size, added = float(np.trace(matrix)) / max(1, len(matrix)), 0.0
    for _ in range(_MOST_TRIES):
        try:
            return np.asarray(cholesky(matrix + added * np.eye(len(matrix)), lower=True))
        except np.linalg.LinAlgError:
            added = max(10.0 * added, rank_tolerance(len(matrix)) * size)
    raise ValueError(f"alpha is so small that rounding is {added:g} beside it; use a larger alpha")


class KernelRidgeFactor:
    """One factorisation of a ridge problem, serving every alpha.

    Finds the coefficients Theta = D (M D + alpha I)^-1 vec(B) of the linear model f(x) = Theta^T
    phi(x), where M = diag(scale) kron I and D = (identity * I + L L^T) kron I + Q Q^T is the
    kernel.

    Parameters
    ----------
    problem : Problem
    kernel : LearnedKernel

    Notes
    -----
    In whitened coordinates, Dw = M^1/2 D M^1/2 and b = M^-1/2 vec(B), the dual coefficients are (Dw
    + alpha I)^-1 b and Theta = D M^1/2 dual. Here Dw is a diagonal, plus (Lw Lw^T) kron I, plus X
    X^T with X = Qw; with Delta the inverse of the shifted diagonal, each low-rank part is one step
    of

        (Delta^-1 + Z Z^T)^-1 = Delta - Delta Z (I + Z^T Delta Z)^-1 Z^T Delta

    and the inner products Lw^T dual and X^T dual, which are all that Theta needs of dual beside the
    diagonal, come out of it without cancellation. An alpha costs m' l^2 + m' k r^2 and less.

    When L has more than half as many columns as rows, the eigenvectors U of the metric, in the
    whitened coordinates, make it part of the diagonal instead; so they do without an identity part,
    where the steps for L and for Q, which may span the same space, would cancel for small alpha.
    Then Theta is M^-1/2 U (levels * dual), plus Q's part, since the dual coefficients alone are
    large where levels are small. When Q has that many columns, the eigenvectors of all of Dw are
    used, which by then has no more entries than Q; one eigendecomposition then serves all alphas.
    """

    def __init__(self, problem: Problem, kernel: LearnedKernel) -> None:
        self.problem, self.kernel = problem, kernel
        m, k = problem.targets.shape
        self.root = np.sqrt(problem.scale)
        self.levels = kernel.identity * problem.scale
        self.Lw = self.root[:, None] * kernel.L
        self.U: Array | None = None
        columns = self.Lw.shape[1]
        if kernel.identity == 0.0 and columns > 0:
            self.U, triangle = qr(self.Lw)
            turn, roots, _ = svd(triangle[:columns], full_matrices=False)
            rank = len(roots)
            self.U[:, :rank] = self.U[:, :rank] @ turn
            self.levels = np.concatenate([roots**2, np.zeros(m - rank)])
            self.Lw = self.Lw[:, :0]
        elif 2 * columns > m:
            levels, self.U = eigh(np.diag(self.levels) + self.Lw @ self.Lw.T)
            self.levels, self.Lw = np.maximum(levels, 0.0), self.Lw[:, :0]
        X, b = self.root[:, None, None] * kernel.Q, problem.targets / self.root[:, None]
        if self.U is not None:
            X, b = np.tensordot(self.U.T, X, axes=1), self.U.T @ b
        self.X, self.b = X, b  # (m', k, r) and (m', k)
        outside = self.X[self.levels == 0.0]
        # Where Q lies in the span of L, the part outside is rounding, which a small alpha would
        # magnify.
        if self.U is not None and np.linalg.norm(outside) <= _ROUNDING * np.linalg.norm(self.X):
            self.X[self.levels == 0.0] = 0.0
        self._eigen: tuple[Array, Array] | None = None
        if 2 * self.X.shape[2] >= m * k > 0:
            X_tall = self.X.reshape(m * k, -1)
            metric = np.diag(self.levels) + self.Lw @ self.Lw.T
            self._eigen = eigh(np.kron(metric, np.eye(k)) + X_tall @ X_tall.T)

    def coefficients(self, alphas: ArrayLike) -> Array:
        """Coefficients of every alpha, (number of alphas, m', k) in reduced coordinates."""
        alphas = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        m, k, r = self.X.shape
        step = max(1, _CHUNK_NUMBERS // max(1, m * k * max(1, r)))
        if len(alphas) > step:
            return np.concatenate(
                [self.coefficients(alphas[i : i + step]) for i in range(0, len(alphas), step)]
            )
        X_tall, Q_tall = self.X.reshape(m * k, r), self.kernel.Q.reshape(m * k, r)
        b, shape = self.b.reshape(-1), (len(alphas), m, k)
        if self._eigen is not None:
            values, vectors = self._eigen
            dual = (
                (b @ vectors) / (np.maximum(values, 0.0) + alphas[:, None]) @ vectors.T
            ).reshape(shape)
            along_L, along_Q = self.Lw.T @ dual, dual.reshape(len(alphas), m * k) @ X_tall
        elif r == 0:
            along_Q = np.zeros((len(alphas), 0))
            dual, along_L = self.solve_metric(alphas, self.b)
        else:
            P, solved = self.inner(alphas)
            along_Q = np.linalg.solve(P, (b @ solved)[:, :, None])[:, :, 0]  # X^T dual, (a, r)
            dual, along_L = self.solve_metric(alphas, self.b - (along_Q @ X_tall.T).reshape(shape))
        if self.U is None:
            coef = self.kernel.identity * (self.root[:, None] * dual) + self.kernel.L @ along_L
        else:
            # Not from the dual coefficients alone, which are large where levels are small.
            coef = self.U @ (self.levels[:, None] * dual) / self.root[:, None]
        coef = np.asarray(coef + (along_Q @ Q_tall.T).reshape(shape))
        if self.kernel.n_directions is None:
            return coef
        V = _leading_directions(self.problem.targets, coef, self.kernel.n_directions)
        return np.asarray(coef @ V @ V.transpose(0, 2, 1))

    def solve_metric(self, alphas: Array, rhs: Array) -> tuple[Array, Array]:
        """(Aw + alpha I)^-1 rhs and Lw^T times that, for each alpha; Aw is the metric's part of Dw.

        ``rhs`` is (m', columns) or (a, m', columns), the results are (a, m', columns) and (a, l,
        columns).
        """
        delta = 1.0 / (self.levels + alphas[:, None])[:, :, None]  # (a, m', 1)
        scaled = delta * rhs
        if self.Lw.shape[1] == 0:
            return scaled, np.zeros((len(alphas), 0, scaled.shape[2]))
        inner = self.Lw.T @ (delta * self.Lw)  # (a, l, l)
        inner += np.eye(self.Lw.shape[1])
        along = np.linalg.solve(inner, self.Lw.T @ scaled)
        return scaled - delta * (self.Lw @ along), np.asarray(along, dtype=np.float64)

    def inner(self, alphas: Array) -> tuple[Array, Array]:
        """P = I + X^T (Aw + alpha I)^-1 X, (a, r, r), and (Aw + alpha I)^-1 X, (a, m' * k, r)."""
        m, k, r = self.X.shape
        solved = self.solve_metric(alphas, self.X.reshape(m, k * r))[0].reshape(
            len(alphas), m * k, r
        )
        return self.X.reshape(m * k, r).T @ solved + np.eye(r), solved


def solve_ridge(problem: Problem, kernel: LearnedKernel, alpha: float) -> tuple[Array, float]:
    """Coefficients (m', k) of the ridge problem, (m', p) with missing targets, and the squared norm.

    Notes
    -----
    With dual coefficients c and the Gram matrix G the squared norm of the function is c^T G c.
    Since alpha c = y - Phi theta for the coefficients theta, it is theta^T (B - C theta) / alpha.
    """
    if problem.missing is not None:
        coef, norms = MissingTargetsRidge(problem, kernel).solve(alpha)
        return coef, float(np.sum(norms))
    coef = KernelRidgeFactor(problem, kernel).coefficients(alpha)[0]
    return coef, float(np.sum(coef * (problem.targets - problem.scale[:, None] * coef)) / alpha)


class MissingTargetsRidge:
    """Ridge with missing targets: sum w (y - f)^2 + alpha |f|^2 over the targets that are present.

    Parameters
    ----------
    problem : Problem
        With ``missing`` targets.
    kernel : LearnedKernel
        D = A kron I + Q Q^T with the metric A = identity I + L L^T.

    Attributes
    ----------
    groups : list of (ndarray of int, SecondMoments)
        Columns of the targets that are present in the same rows, and second moments of these rows.

    Notes
    -----
    The coefficients of target o are A_h u_o + Q_o z, with A = A_h A_h^T, u_o and z standard normal
    in the Gaussian-process view. With C_o, B_o the moments of the target's rows about their means
    and X_o = A (C_o A + alpha I)^-1,

        P = I + sum_o Q_o^T C_o E_o / alpha,   E_o = Q_o - X_o C_o Q_o
        z = P^-1 sum_o E_o^T B_o / alpha,      coef_o = X_o B_o + E_o z

    so one Cholesky factor of A_h^T C_o A_h + alpha I for every group of targets, and one system of
    the number r of operators. Time m'^3 for every group, m' p r (m' + r) + r^3.
    """

    def __init__(self, problem: Problem, kernel: LearnedKernel) -> None:
        if problem.missing is None:
            raise ValueError("no targets of the problem are missing; use KernelRidgeFactor")
        self.problem, self.kernel = problem, kernel
        self.Q = np.einsum("ok,fkr->ofr", problem.outputs, kernel.Q)  # (p, m', r)
        self.groups = [
            (columns, group.second_moments(centred=problem.centred))
            for columns, group in problem.missing.groups
        ]
        # A_h with A_h A_h^T = A, of no more columns than the rank of A, and the inverse of A if it
        # has one.
        metric = kernel.metric()
        self.root, self.inverse = metric[:, :0], None
        if metric.any():
            values, vectors = eigh(metric)
            keep = values > 1e-15 * values[-1]
            self.root = vectors[:, keep] * np.sqrt(values[keep])
            # The inverse of a nearly singular metric would lose what its root keeps.
            if values[0] > 1e-8 * values[-1]:
                self.inverse = (vectors / values) @ vectors.T

    def factorise(self, alpha: float) -> tuple[list[Array], Array, Array]:
        """Cholesky factor of every group, E (p, m', r) and P (r, r) for one alpha.

        The factors are of C + alpha A^-1, or of A_h^T C A_h + alpha I where A has no inverse.
        """
        factors, E, P = list[Array](), np.array(self.Q), np.eye(self.Q.shape[2])
        for columns, second in self.groups:
            if self.inverse is not None:
                matrix = second.C + alpha * self.inverse
            else:
                matrix = self.root.T @ second.C @ self.root + alpha * np.eye(self.root.shape[1])
            # Older SciPy factorises no empty matrices.
            factors.append(lower_factor(matrix) if len(matrix) else matrix)
            if len(P) == 0:
                continue
            CQ = second.C @ self.Q[columns]  # (targets, m', r)
            wide = CQ.transpose(1, 0, 2).reshape(len(second.C), -1)  # (m', targets * r)
            part = self.apply_metric(factors[-1], wide).reshape(len(second.C), *CQ.shape[::2])
            E[columns] -= part.transpose(1, 0, 2)
            P += np.einsum("ofr,ofs->rs", CQ, E[columns], optimize=True) / alpha
        return factors, E, P

    def apply_metric(self, factor: Array, B: Array) -> Array:
        """A (C A + alpha I)^-1 B for a group of targets, from its Cholesky factor."""
        if self.root.shape[1] == 0:
            return np.zeros_like(B)
        if self.inverse is not None:
            return np.asarray(cho_solve((factor, True), B))
        return np.asarray(self.root @ cho_solve((factor, True), self.root.T @ B))

    def solve(self, alpha: float) -> tuple[Array, Array]:
        """Coefficients (m', p), and the squared norm of the function of each target (p,)."""
        factors, E, P = self.factorise(alpha)
        coef, dual = np.zeros((E.shape[1], len(E))), np.zeros((E.shape[1], len(E)))
        z: Array = np.zeros(len(P))
        if len(z):
            right = np.zeros(len(P))
            for columns, second in self.groups:
                right += np.einsum("ofr,fo->r", E[columns], second.B)
            z = np.asarray(np.linalg.solve(P, right / alpha), dtype=np.float64)
        for (columns, second), factor in zip(self.groups, factors, strict=True):
            theta = (E[columns] @ z).T + self.apply_metric(factor, second.B)
            coef[:, columns], dual[:, columns] = theta, second.B - second.C @ theta
        V = target_directions(self.problem, self.kernel, alpha)
        if V is not None:
            coef, dual = coef @ V @ V.T, dual @ V @ V.T
        return coef, np.sum(coef * dual, axis=0) / alpha
