"""Correlation of the errors of several targets, and what some of them say of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ..linalg import Array
from .patterns import group_patterns

__all__ = ["Conditional", "Correlation"]

Mask = NDArray[np.bool_]

# No target is known to more digits than this because others are measured.
_SMALLEST_VARIANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Conditional:
    """What is known of some rows once some of their targets are measured.

    Attributes
    ----------
    mean : ndarray of shape (n, p)
        The measured values, and expectations of the others.
    variance : ndarray of shape (n, p)
        Zero where measured.
    covariance : ndarray of shape (n, p, p) or None
        Where it was asked for.
    """

    mean: Array
    variance: Array
    covariance: Array | None = None


@dataclass(frozen=True, eq=False)
class Correlation:
    """R = factor^T factor + diag(own).

    Attributes
    ----------
    factor : ndarray of shape (r, p)
        No more rows than targets or residuals, so that nothing p x p is needed where targets are many.
    own : ndarray of shape (p,)
        What each target shares with no other, positive.
    """

    factor: Array
    own: Array

    @classmethod
    def identity(cls, n_outputs: int) -> Correlation:
        """Targets that tell nothing of each other."""
        return cls(np.zeros((0, n_outputs)), np.ones(n_outputs))

    @property
    def n_outputs(self) -> int:
        """Number of targets, p."""
        return len(self.own)

    def diagonal(self) -> Array:
        """Variances, (p,)."""
        return np.asarray(np.einsum("ro,ro->o", self.factor, self.factor) + self.own)

    def dense(self) -> Array:
        """R as a matrix (p, p)."""
        return np.asarray(self.factor.T @ self.factor + np.diag(self.own))

    def condition(self, Z: Array, *, with_covariance: bool = False) -> Conditional:
        """Condition rows on their finite entries.

        Parameters
        ----------
        Z : ndarray of shape (n, p)
            Errors in units of their deviations, NaN where they are not known.
        with_covariance : bool, default=False

        Notes
        -----
        With O the known and U the other targets, the mean is R_UO R_OO^-1 z_O and the covariance
        R_UU - R_UO R_OO^-1 R_OU. Rows with the same known targets share one factorisation. Where more
        targets are known than twice the rows of the factor, systems of its size are solved instead
        (Woodbury).

        Time q^3 + q^2 p for every pattern of q known targets, and q p for every row.
        """
        n, p = Z.shape
        mean, variance = np.array(Z), np.zeros((n, p))
        covariance = np.zeros((n, p, p)) if with_covariance else None
        for rows, known in group_patterns(np.isfinite(Z)):
            F, others = self.factor[:, known], self.factor[:, ~known]
            cross = F.T @ others  # (q, u)
            weights = _inverse(F, self.own[known])(cross)  # (q, u)
            explained = np.einsum("qu,qu->u", cross, weights)
            left = np.maximum(self.diagonal()[~known] - explained, _SMALLEST_VARIANCE)
            other = np.flatnonzero(~known)
            mean[np.ix_(rows, other)] = Z[np.ix_(rows, np.flatnonzero(known))] @ weights
            variance[np.ix_(rows, other)] = left
            if covariance is not None:
                remaining = others.T @ others - cross.T @ weights
                remaining[np.diag_indices(len(other))] = left
                covariance[np.ix_(rows, other, other)] = remaining
        return Conditional(mean, variance, covariance)


def _inverse(F: Array, own: Array) -> Callable[[Array], Array]:
    """A function that multiplies by (F^T F + diag(own))^-1, by the smaller of two systems."""
    r, q = F.shape
    if q == 0 or r == 0:
        return lambda B: B / own[:, None]
    if 2 * r >= q:
        whole = cho_factor(F.T @ F + np.diag(own), lower=True)
        return lambda B: np.asarray(cho_solve(whole, B))
    small = cho_factor(np.eye(r) + (F / own) @ F.T, lower=True)

    def multiply(B: Array) -> Array:
        scaled = B / own[:, None]
        return np.asarray(scaled - F.T @ cho_solve(small, F @ scaled) / own[:, None])

    return multiply
