"""The objective of output kernel learning as a function of L alone, in reduced coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, svd

from ..linalg import Array
from .problem import EPS, OutputKernelProblem, typical_level

__all__ = ["Point", "Reduced"]


@dataclass(frozen=True, eq=False)
class Point:
    """L = V diag(levels) V^T in the reduced outputs, V (k, r); Z = U^T C V; the part of T that V misses."""

    levels: Array
    V: Array
    Z: Array  # (q, r)
    S: Array  # Z^T K Z in the eigenbasis of K, (r, r)
    missed: Array | None  # (q, k)
    value: float


@dataclass(frozen=True, eq=False)
class Reduced:
    """The problem in reduced coordinates with an alpha; a rank makes the penalty the trace."""

    values: Array  # (q,)
    T: Array  # (q, k)
    alpha: float
    rank: int | None
    constant: float

    @classmethod
    def of(cls, problem: OutputKernelProblem, alpha: float, rank: int | None) -> Reduced:
        """The problem with the part of the objective that does not depend on L."""
        constant = float(np.vdot(problem.rest, problem.rest)) / (2 * alpha)
        return cls(problem.values, problem.targets, alpha, rank, constant)

    def evaluate(self, levels: Array, V: Array) -> Point:
        """Solve the Sylvester equation at L; its solution puts the objective in closed form."""
        rotated = self.T @ V  # (q, r)
        Z = rotated / (np.outer(self.values, levels) + self.alpha)
        root = np.sqrt(self.values)[:, None] * Z
        S = root.T @ root
        value = self.constant + float(np.vdot(rotated, Z)) / 2 + self.penalty(levels)
        if V.shape[1] == V.shape[0]:
            return Point(levels, V, Z, S, None, value)
        missed = self.T - rotated @ V.T
        return Point(levels, V, Z, S, missed, value + float(np.vdot(missed, missed)) / (2 * self.alpha))

    def penalty(self, levels: Array) -> float:
        """||L||^2 / 2, or tr(L) / 2 with a rank."""
        return float(np.vdot(levels, levels) if self.rank is None else levels.sum()) / 2

    def best_levels(self, squares: Array) -> Array:
        """Eigenvalues of the best L for a fixed model, from those of A^T K A; see `first_point`."""
        squares = np.maximum(squares, 0.0)
        return np.asarray(np.cbrt(squares / 2) if self.rank is None else np.sqrt(squares))

    def first_point(self) -> Point:
        """Start at the best L for the fit of kernel ridge.

        In terms of the model f = K A, with A = C L, the objective is

            ||Y - K A||^2 / (2 alpha) + tr(A^T K A L^-1) / 2

        plus the penalty, and its minimum over L is (A^T K A / 2)^1/3, for the trace (A^T K A)^1/2. Going to
        and fro on multiples of the identity, which costs next to nothing, gives A a ridge of the right size.
        """
        k = self.T.shape[1]
        squares = np.einsum("qk,qk->q", self.T, self.T)  # (q,)
        level = typical = self.typical_level()
        for _ in range(20):
            size = level**2 * float(np.sum(self.values * squares / (self.values * level + self.alpha) ** 2))
            level = max(float(self.best_levels(np.array(size / k))), 1e-3 * typical)
        A = level * self.T / (self.values * level + self.alpha)[:, None]
        _, sizes, right = svd(np.sqrt(self.values)[:, None] * A, full_matrices=False)
        return self.evaluate(self.best_levels(sizes[: self.rank] ** 2), right[: self.rank].T)

    def point_from(self, L: Array) -> Point:
        """Start at a given L, for low rank with a trace of what would grow in the place of what is zero."""
        levels, V = eigh(L)
        if self.rank is not None:
            S = self.evaluate(np.maximum(levels, 0.0), V).S
            levels, V = eigh(L + (1e-3 * self.typical_level() / np.trace(S)) * (V @ S @ V.T))
        last = slice(None if self.rank is None else -self.rank, None)
        return self.evaluate(np.maximum(levels[last], EPS * self.typical_level()), V[:, last])

    def typical_level(self) -> float:
        """Typical eigenvalue of L, from the sizes of targets and Gram matrix."""
        square = float(np.vdot(self.T, self.T)) / (self.T.shape[1] * float(self.values.mean()))
        return typical_level(square, 2.0 if self.rank is None else 1.0)
