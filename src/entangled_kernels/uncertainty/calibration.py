"""Predictive distributions calibrated on residuals: deviations, relations between targets, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from scipy.stats import norm

from ..linalg import Array
from ..parameters import warn_user
from .correlation import (
    Conditional,
    Correlation,
    choose_shares,
    estimate_correlation,
    group_patterns,
)
from .residuals import Residuals

__all__ = ["Calibration", "HeldOut", "calibrate", "joint_quantile", "target_quantiles"]

# With more targets than this the covariance of errors is a linear operator, not a matrix.
MOST_DENSE = 2048
# Parts of the rows that are left out in turn when residuals are conditioned on given targets.
N_PARTS = 5
# With this many rows the scores of a target itself weigh as much as those of all targets.
HALF_POOLED = 100.0
Mask = NDArray[np.bool_]


class HeldOut(NamedTuple):
    """Measured targets (n, p), NaN where missing, held-out predictions of them, and ends of intervals."""

    measured: Array
    predicted: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far new observations lie from predictions, and what the errors of some targets say of others.

    The covariance of the errors of a new observation is deviation * R * deviation, R a correlation
    matrix. Deviations may be multiplied by sizes, which differ from row to row (`ErrorSize`).

    Attributes
    ----------
    residuals : Residuals
    deviation : ndarray of shape (p,)
        Standard deviation of the errors of every target.
    correlation : Correlation
        R.
    shares : ndarray of shape (2,)
        Shares of the estimates in R.
    size : ndarray of shape (N, p) or None
        Sizes of the errors in the rows of the residuals; None if they are the same for all rows.
    """

    residuals: Residuals
    deviation: Array
    correlation: Correlation
    shares: Array
    size: Array | None = None

    @property
    def shrinkage(self) -> float:
        """Share of the identity in R; with 1 the errors of targets say nothing of each other."""
        return 1.0 - float(np.sum(self.shares))

    def mean_covariance(self) -> Any:
        """Covariance of errors, (p, p); a linear operator with very many targets."""
        unit = self.deviation
        if len(unit) <= MOST_DENSE:
            return unit[:, None] * self.correlation.dense() * unit
        F, unshared = self.correlation.factor * unit, self.correlation.unshared * unit**2

        def multiply(vector: Array) -> Array:
            vector = vector.reshape(len(unshared), -1)
            return np.asarray(F.T @ (F @ vector) + unshared[:, None] * vector)

        shape = (len(unit), len(unit))
        return LinearOperator(
            shape, matvec=multiply, rmatvec=multiply, matmat=multiply, dtype=np.float64
        )

    def condition(
        self,
        mean: Array,
        given: Array,
        *,
        size: Array | None = None,
        with_covariance: bool = False,
    ) -> Conditional:
        """Predictions (n, p) conditioned on ``given`` targets (n, p), NaN where one is to be predicted.

        ``size`` (n, p) are the sizes of the errors. They multiply deviations; the conditional mean
        does not depend on them, so that a target that is a sum of others remains their sum.
        """
        std = self.deviation
        unit = np.where(std > 0.0, std, 1.0)
        errors = self.correlation.condition((given - mean) / unit, with_covariance=with_covariance)
        values = np.where(np.isfinite(given), given, mean + std * errors.mean)
        std = std if size is None else std * size
        covariance = errors.covariance
        if covariance is not None:
            covariance = std[..., :, None] * covariance * std[..., None, :]
        return Conditional(values, std**2 * errors.variance, covariance)

    def half_widths(self, coverage: float, known: Mask, std: Array, *, joint: bool) -> Array:
        """Half the widths of intervals, (n, p), for rows with deviations ``std`` and known targets (n, p).

        Notes
        -----
        For every pattern of known targets, residuals are conditioned as new rows are, with a
        correlation estimated without the rows themselves; the conditional residuals over their
        deviations are the scores. A quantile of the scores times the deviation is half the width.
        Joint intervals use the largest score of every row.
        """
        widths = np.zeros(std.shape)
        for rows, pattern in group_patterns(known):
            if pattern.all():
                continue
            # A target without errors says nothing about the errors of others.
            scores = np.where(self.deviation[~pattern] > 0.0, self._scores(pattern), np.nan)
            counted = np.isfinite(scores).any(axis=1)
            if not counted.any():
                continue
            scores, weight = scores[counted], self.residuals.weight[counted]
            n_rows = len(np.unique(self.residuals.row[counted]))
            quantiles = joint_quantile if joint else target_quantiles
            columns = np.flatnonzero(~pattern)
            widths[np.ix_(rows, columns)] = (
                quantiles(scores, weight, n_rows, coverage) * std[rows][:, columns]
            )
        return widths

    def held_out(self, measured: Array, coverage: float) -> HeldOut:
        """Held-out predictions, with intervals, of the rows that the residuals are of.

        Parameters
        ----------
        measured : ndarray of shape (n, p)
            Targets of the distinct rows of the residuals, in their order.
        coverage : float

        Notes
        -----
        A row that was held out several times gets the mean of its predictions.
        """
        residuals = self.residuals
        row = np.unique(residuals.row, return_inverse=True)[1].reshape(-1)
        known = np.isfinite(residuals.values)
        weight = np.where(known, residuals.weight[:, None], 0.0)
        total, sums = np.zeros(measured.shape), np.zeros(measured.shape)
        np.add.at(total, row, weight)
        np.add.at(sums, row, weight * np.where(known, residuals.values, 0.0))
        predicted = measured - np.divide(
            sums, total, out=np.full(total.shape, np.nan), where=total > 0.0
        )
        std = np.broadcast_to(self.deviation, measured.shape)
        if self.size is not None:
            std = std * self.size[np.unique(row, return_index=True)[1]]
        width = self.half_widths(coverage, np.zeros(measured.shape, dtype=bool), std, joint=False)
        return HeldOut(measured, predicted, predicted - width, predicted + width)

    @cached_property
    def _standardised(self) -> Array:
        """Residuals in units of deviations that were estimated without their rows, (N, p)."""
        Z = self.residuals.standardised(self.deviation)
        return Z / self.residuals.left_out_scales(Z / self._sizes)

    @property
    def _sizes(self) -> Array:
        """Sizes (N, p) of the errors in the rows of the residuals, ones if there are none."""
        return np.ones(self.residuals.values.shape) if self.size is None else self.size

    @cached_property
    def _left_out(self) -> list[tuple[Mask, Correlation]]:
        """The residuals of every part of the rows, and the correlation estimated from the other parts."""
        rows, parts = self.residuals.by_row(), list[Any]()
        Z = rows.standardised(self.deviation)
        part = np.arange(len(rows.row)) % N_PARTS
        for number in range(min(N_PARTS, len(rows.row))):
            others = part != number
            correlation = estimate_correlation(Z[others], rows.weight[others], self.shares)
            parts.append((np.isin(self.residuals.row, rows.row[~others]), correlation))
        return parts

    def _scores(self, pattern: Mask) -> Array:
        """Absolute conditional errors over their deviations, (N, u) for the u targets that are not known."""
        Z = self._standardised
        if not pattern.any():
            return np.asarray(np.abs(Z) / self._sizes)
        scores = np.empty((len(Z), int((~pattern).sum())))
        for rows, correlation in self._left_out:
            expected = correlation.condition(np.where(pattern, Z[rows], np.nan))
            error = (Z[rows] - expected.mean)[:, ~pattern]
            scores[rows] = np.abs(error) / np.sqrt(expected.variance[:, ~pattern])
        return scores / self._sizes[:, ~pattern]

    def __getstate__(self) -> dict[str, object]:
        # Cached values are computed again when they are needed.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def calibrate(
    residuals: Residuals, rng: np.random.Generator, size: Array | None = None
) -> Calibration:
    """Deviations and correlation of residuals.

    Parameters
    ----------
    residuals : Residuals
    rng : numpy.random.Generator
        Draws the targets that are taken as given where estimates of the correlation are compared.
    size : ndarray of shape (N, p), optional
        Sizes of the errors in the rows of the residuals.

    Notes
    -----
    Of a row that was held out several times the correlation takes the mean of its residuals, which
    differ by the folds; deviations take all of them.
    """
    deviation, rows = residuals.deviation(), residuals.by_row()
    Z = rows.standardised(deviation)
    shares = choose_shares(Z[:, deviation > 0.0], rows.weight, rng)
    correlation = estimate_correlation(Z, rows.weight, shares)
    return Calibration(residuals, deviation, correlation, shares, size)


def joint_quantile(scores: Array, weight: Array, n_rows: int, coverage: float) -> float:
    """The largest score of a row that a new row exceeds with probability 1 - coverage.

    The new row is one more beside the n, and may be the worst: the scores carry n / (n + 1) of the
    mass, and the rest lies above them.
    """
    largest = np.nanmax(scores, axis=1)
    order = np.argsort(largest, kind="stable")
    mass = np.cumsum(weight[order]) / weight.sum()
    needed = _needed_mass(n_rows, coverage)
    return _quantile_at(int(np.searchsorted(mass, needed)), largest[order], n_rows, coverage)


def target_quantiles(scores: Array, weight: Array, n_rows: int, coverage: float) -> Array:
    """A quantile for every target, (p,), of its scores and, where rows are few, of all targets' scores.

    ``scores`` is (N, p), NaN where a target is missing. With n rows the scores of the target itself
    have n / (n + 100) of the mass.

    Time N p log(N p).
    """
    known = np.isfinite(scores)
    flat = np.flatnonzero(known)
    order = flat[np.argsort(scores.reshape(-1)[flat])]
    pooled, mass = scores.reshape(-1)[order], weight[order // scores.shape[1]]
    pooled_mass = np.cumsum(mass) / mass.sum()
    # Places (p, N) of the scores of every target among all of them, in order; missing ones come
    # last.
    places = np.full(scores.shape, len(order))
    places.reshape(-1)[order] = np.arange(len(order))
    places = np.ascontiguousarray(places.T)
    by_size = np.argsort(places, axis=1)
    places, counts = np.take_along_axis(places, by_size, axis=1), known.sum(axis=0)
    own_mass = np.cumsum(np.where(places < len(order), weight[by_size], 0.0), axis=1)
    total = np.maximum(own_mass[:, -1:], np.finfo(float).tiny)
    part = np.where(counts > 0, n_rows / (n_rows + HALF_POOLED), 0.0)
    needed = _needed_mass(n_rows, coverage)
    # Between two scores of the target itself its mass is constant, and only the pooled mass grows.
    reached = part[:, None] * own_mass / total
    with_pooled = reached + (1.0 - part[:, None]) * np.append(pooled_mass, 1.0)[places]
    enough = np.minimum(np.sum(with_pooled < needed, axis=1), counts)
    before = np.where(
        enough > 0, np.take_along_axis(reached, enough[:, None] - 1, axis=1)[:, 0], 0.0
    )
    place = np.searchsorted(pooled_mass, (needed - before) / (1.0 - part))
    last = np.take_along_axis(places, np.minimum(enough, len(scores) - 1)[:, None], axis=1)[:, 0]
    place = np.where(enough == counts, place, np.minimum(place, last))
    beyond = place >= len(pooled)
    quantiles = pooled[np.where(beyond, 0, place)]
    if beyond.any():
        quantiles[beyond] = _quantile_at(len(pooled), pooled, n_rows, coverage)
    return np.asarray(quantiles)


def _needed_mass(n_rows: int, coverage: float) -> float:
    """Mass of the scores that a quantile must reach, where a new row is one more beside the n rows."""
    return (coverage - 1e-12) * (n_rows + 1.0) / n_rows


def _quantile_at(place: int, scores: Array, n_rows: int, coverage: float) -> float:
    """The score at a place of increasing scores; beyond the last, that one stretched by the normal tail."""
    if place < len(scores):
        return float(scores[place])
    warn_user(
        f"{n_rows} rows cannot show what covers {coverage:g} of new ones, only {n_rows / (n_rows + 1):.3g}; "
        f"intervals are stretched beyond by the normal distribution"
    )
    reached = norm.ppf(0.5 + 0.5 * n_rows / (n_rows + 1.0))
    return float(scores[-1] * norm.ppf(0.5 + 0.5 * coverage) / reached)
