"""Residuals of rows that a model has not seen, and their standard deviations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..linalg import Array, Index

__all__ = ["HeldOutScore", "Residuals", "without_rounding"]

# Five deviations, in units of the size that nine in ten normal residuals do not exceed.
_FARTHEST = 5.0 / 1.645
# A target that varies by no more than this share of its size is constant, and one that is constant
# has no errors but those beyond the other share: rows may be a sample, in which a target that
# varies is constant.
_CONSTANT, _NO_ERROR = 10.0 * np.finfo(float).eps, 1e-9


@dataclass(frozen=True, eq=False)
class Residuals:
    """Targets less their predictions, for rows that had no part in the model that predicts them.

    Attributes
    ----------
    values : ndarray of shape (N, p)
        NaN where a target was not measured.
    weight : ndarray of shape (N,)
        Those of the copies of a row add up to the weight of the row.
    row : ndarray of shape (N,)
        Which row a residual is of; repeated folds give several of one row.
    relative_variance : ndarray of shape (N,)
        Of a new observation with the same inputs, in units of the noise.
    """

    values: Array
    weight: Array
    row: Index
    relative_variance: Array

    @cached_property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return len(np.unique(self.row))

    def by_row(self) -> Residuals:
        """One residual for each row, in the order of their numbers: the weighted mean of its copies."""
        row, copy_of = np.unique(self.row, return_inverse=True)
        if len(row) == len(self.row):
            order = np.argsort(self.row)
            return Residuals(
                self.values[order], self.weight[order], row, self.relative_variance[order]
            )
        copy_of, known = copy_of.reshape(-1), np.isfinite(self.values)
        weights, sums = np.zeros((2, len(row), self.values.shape[1]))
        np.add.at(weights, copy_of, known * self.weight[:, None])
        np.add.at(sums, copy_of, np.where(known, self.values, 0.0) * self.weight[:, None])
        values = np.divide(sums, weights, out=np.full(sums.shape, np.nan), where=weights > 0.0)
        weight = np.asarray(np.bincount(copy_of, self.weight), dtype=np.float64)
        variance = np.bincount(copy_of, self.weight * self.relative_variance) / weight
        return Residuals(values, weight, row, variance)

    def deviation(self) -> Array:
        """Root mean square of the residuals of every target, (p,).

        A residual counts for at most five deviations, judged by the residual that nine in ten do
        not exceed: a single row far out must not widen the intervals of all others.
        """
        known = np.isfinite(self.values)
        weights = known * self.weight[:, None]
        total = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
        sizes = np.where(known, np.abs(self.values), 0.0)
        # By target, whose sizes then lie side by side.
        target_sizes, target_weights = (
            np.ascontiguousarray(sizes.T),
            np.ascontiguousarray(weights.T),
        )
        order = np.argsort(target_sizes, axis=1)
        cumulative = np.cumsum(np.take_along_axis(target_weights, order, axis=1), axis=1)
        n_below = np.count_nonzero(cumulative < 0.9 * total[:, None], axis=1)
        ninth_decile = np.minimum(n_below, len(sizes) - 1)
        row = np.take_along_axis(order, ninth_decile[:, None], axis=1)
        typical = np.take_along_axis(target_sizes, row, axis=1)[:, 0]
        largest = np.where(typical > 0.0, _FARTHEST * typical, np.inf)
        return np.asarray(
            np.sqrt(np.sum(weights * np.minimum(sizes, largest) ** 2, axis=0) / total)
        )

    def standardised(self, deviation: Array) -> Array:
        """Residuals in units of their deviations (p,), (N, p); zero for a target without errors."""
        return np.asarray(self.values / np.where(deviation > 0.0, deviation, 1.0))

    def left_out_scales(self, Z: Array) -> Array:
        """Root mean squares of Z (N, p) over the rows other than a residual's own, (N, p).

        Scores in units that a row had no part in do not look smaller than those of a new row.
        """
        known = np.isfinite(Z)
        weights = known * self.weight[:, None]
        squares = weights * np.where(known, Z, 0.0) ** 2
        rows, copy_of = np.unique(self.row, return_inverse=True)
        copy_of, row_weights, row_squares = copy_of.reshape(-1), weights, squares
        if len(rows) < len(copy_of):
            row_weights, row_squares = np.zeros((2, len(rows), Z.shape[1]))
            np.add.at(row_weights, copy_of, weights)
            np.add.at(row_squares, copy_of, squares)
        else:
            copy_of = np.arange(len(copy_of))
        other_weights = weights.sum(axis=0) - row_weights
        other_squares = np.maximum(squares.sum(axis=0) - row_squares, 0.0)
        mean = other_squares / np.where(other_weights > 0.0, other_weights, 1.0)
        return np.asarray(
            np.sqrt(np.where((other_weights > 0.0) & (mean > 0.0), mean, 1.0))[copy_of]
        )


def without_rounding(errors: Array, targets: Array) -> Array:
    """Errors (N, p) of targets (N, p), both NaN where blank; rounding in those of a constant target is zero.

    It is predicted to rounding, which must have no say in how the errors of others are spread.
    """
    low, high = np.fmin.reduce(targets, axis=0), np.fmax.reduce(targets, axis=0)
    size = np.fmax(np.abs(low), np.abs(high))
    return np.where(
        (high - low <= _CONSTANT * size) & (np.abs(errors) <= _NO_ERROR * size), 0.0, errors
    )


class HeldOutScore(NamedTuple):
    """Errors of a model on held-out rows.

    Attributes
    ----------
    score : float
        Mean over targets in the unit of the scoring.
    targets : ndarray of shape (p,)
        Of every target, NaN for one that is constant.
    rmse : ndarray of shape (p,)
        Root of the mean squared error, in the target's own unit.
    """

    score: float
    targets: Array
    rmse: Array

    @classmethod
    def of(cls, residuals: Residuals, output_weights: Array) -> HeldOutScore:
        """Of residuals, with the weights of the squared errors of the targets in the score."""
        known = ~np.isnan(residuals.values)
        weight = np.where(known, residuals.weight[:, None], 0.0)
        squares = np.where(known, residuals.values, 0.0) ** 2
        mean = np.sum(weight * squares, axis=0) / np.maximum(
            weight.sum(axis=0), np.finfo(float).tiny
        )
        relative = mean * output_weights * np.count_nonzero(output_weights)
        targets = np.where(output_weights > 0.0, relative, np.nan)
        return cls(float(mean @ output_weights), targets, np.sqrt(mean))
