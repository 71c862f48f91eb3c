"""Gaussian likelihood of rows whose covariance is a shared part plus a few vectors of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array, Index

__all__ = ["RowLikelihood", "RowsWithBlanks", "row_likelihood"]


@dataclass(frozen=True, eq=False)
class RowsWithBlanks:
    """Residuals and features of rows, with what is the same for rows that lack the same cells."""

    Z: Array  # (n, p), zero where nothing was observed
    F: Array  # (n, k)
    weight: Array  # (n,), adding up to one
    patterns: Array  # (patterns, p), one where a cell is observed and zero elsewhere
    pattern: Index  # (n,)

    @classmethod
    def of(cls, Z: Array, F: Array, weight: Array) -> RowsWithBlanks:
        """Rows of residuals Z (n, p), NaN where a cell was not observed, with features F (n, k)."""
        observed = ~np.isnan(Z)
        patterns, pattern = np.unique(observed, axis=0, return_inverse=True)
        return cls(
            Z=np.where(observed, Z, 0.0),
            F=F,
            weight=weight / weight.sum(),
            patterns=patterns.astype(np.float64),
            pattern=pattern.reshape(-1),
        )

    def precisions(self, psi: Array) -> tuple[Array, Array]:
        """Inverse of psi on the observed cells, zero elsewhere, and log determinant of psi, by pattern."""
        both = self.patterns[:, :, None] * self.patterns[:, None, :]  # (patterns, p, p)
        # A one on the diagonal, in place of a cell not observed, changes neither inverse nor determinant.
        inverse = np.linalg.inv(both * psi + (1.0 - self.patterns)[:, :, None] * np.eye(len(psi)))
        return both * inverse, -np.linalg.slogdet(inverse)[1]

    def times(self, precisions: Array, columns: Array) -> Array:
        """The precision of each row times its columns, (n, p, c)."""
        return (precisions if len(precisions) == 1 else precisions[self.pattern]) @ columns


@dataclass(frozen=True, eq=False)
class RowLikelihood:
    """What a relation says of rows, with T = psi^-1 V and S = I + V^T T on the observed cells."""

    log: Array  # (n,)
    precisions: Array  # (patterns, p, p), of psi
    solved: Array  # (n, p), covariance^-1 z
    T: Array  # (n, p, r)
    S_inverse: Array  # (n, r, r), the posterior covariance of the effects g in z = V g + noise
    effects: Array  # (n, r), their posterior mean


def row_likelihood(rows: RowsWithBlanks, psi: Array, V: Array) -> RowLikelihood:
    """Log likelihood of every row under psi + V V^T, by the Woodbury identity in r dimensions."""
    precisions, log_determinants = rows.precisions(psi)
    T = rows.times(precisions, V)
    plain = rows.times(precisions, rows.Z[:, :, None])[:, :, 0]
    S = np.eye(V.shape[2]) + V.transpose(0, 2, 1) @ T
    S_inverse = np.linalg.inv(S).astype(np.float64, copy=False)
    projected = V.transpose(0, 2, 1) @ plain[:, :, None]  # (n, r, 1)
    effects = (S_inverse @ projected)[:, :, 0]
    squares = np.sum(rows.Z * plain, axis=1) - np.sum(projected[:, :, 0] * effects, axis=1)
    count = rows.patterns.sum(axis=1)
    constant = (count * np.log(2.0 * np.pi) + log_determinants)[rows.pattern]
    return RowLikelihood(
        log=-0.5 * (constant + np.linalg.slogdet(S)[1] + squares),
        precisions=precisions,
        solved=plain - (T @ effects[:, :, None])[:, :, 0],
        T=T,
        S_inverse=S_inverse,
        effects=effects,
    )
