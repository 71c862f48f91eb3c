"""Sizes of errors that depend on the inputs and the predictions, so that intervals follow the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array, Index
from .residuals import Residuals

__all__ = ["ErrorSize", "LogSize", "estimate_error_size", "interval_scores"]

# With fewer rows than this, or from more columns than this, sizes are not estimated.
FEWEST_ROWS, MOST_COLUMNS = 20, 64
# Quantiles of a column: its ends, and the knots between which its function is linear.
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Scale of the basis functions with a bend, which the penalty shrinks more than straight lines.
BEND = 0.5
# A column that varies by no more than this share of its size is constant.
CONSTANT = 1e-9
# Ridge penalties for the size of all targets, and for the departures of single targets from it.
PENALTIES = np.append(np.logspace(0.0, 4.0, 9), np.inf)
DEPARTURE_PENALTIES = np.append(np.logspace(0.5, 4.5, 5), np.inf)
# Least and largest absolute residual in the fit, and the largest in scores, as multiples of the mean.
NEAR, FAR, FAR_SCORED = 0.01, 3.0, 5.0
# Coverages of the intervals that are scored, and the gain in standard errors that is required.
LEVELS, REQUIRED = np.linspace(0.1, 0.9, 9), 1.0
# Largest logarithm of a size.
LARGEST = 3.0
# Steps of Fisher scoring.
STEPS = 8
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LogSize:
    """Logarithms of the sizes of p targets, each a sum of piecewise linear functions of q columns.

    Attributes
    ----------
    knots : ndarray of shape (5, q)
        The least value, the quartiles and the largest value of each column. Beyond the ends the
        functions are constant.
    mean, factor : ndarray of shape (4 q,)
        Means of the basis functions, which are the columns and their distances from the quartiles,
        and what they are multiplied by; zero for a constant column.
    coef : ndarray of shape (4 q, p)
    intercept : ndarray of shape (p,)
    """

    knots: Array
    mean: Array
    factor: Array
    coef: Array
    intercept: Array

    def __call__(self, values: Array) -> Array:
        """Logarithms of sizes (n, p) for columns (n, q); a missing value counts as the median."""
        basis = (_basis(values, self.knots) - self.mean) * self.factor
        return np.asarray(basis @ self.coef + self.intercept)


@dataclass(frozen=True, eq=False)
class ErrorSize:
    """Relative sizes of the errors of new rows, which multiply the deviations of the targets.

    With both parts, the size is the geometric mean of a size by the inputs and one by the
    predictions.

    Attributes
    ----------
    by_inputs, by_predictions : LogSize or None
    unit : ndarray of shape (p,)
        Sizes are divided by it, so that residuals have the same deviations before and after they
        are divided by their sizes.
    held_out : ndarray of shape (n, p)
        Sizes of the training rows, each estimated without the row.
    """

    by_inputs: LogSize | None
    by_predictions: LogSize | None
    unit: Array
    held_out: Array

    def __call__(self, inputs: Array, predicted: Array) -> Array:
        """Sizes (n, p) of rows with inputs (n, q) and predictions (n, p)."""
        parts = (self.by_inputs, inputs), (self.by_predictions, predicted)
        logs = [part(values) for part, values in parts if part is not None]
        return _sizes(np.mean(logs, axis=0)) / self.unit

    def of(self, residuals: Residuals) -> Array:
        """Held-out sizes (N, p) of the rows of residuals."""
        row = np.unique(residuals.row, return_inverse=True)[1]
        return self.held_out[row.reshape(-1)]


def estimate_error_size(
    residuals: Residuals, inputs: Array, predicted: Array, part: Index
) -> ErrorSize | None:
    """Sizes of errors by inputs and predictions; None if they do not improve held-out intervals.

    Parameters
    ----------
    residuals : Residuals
        Of n distinct rows.
    inputs : ndarray of shape (n, q)
        Of the same rows, in the order of their numbers. NaN where missing.
    predicted : ndarray of shape (n, p)
        Held-out predictions of these rows. NaN where missing.
    part : ndarray of shape (n,)
        Numbers of the parts of the rows that are left out in turn.

    Notes
    -----
    Let z be residuals over their deviations. The mean of abs(z) in a row is modelled as exp(s),
    where s is a sum of piecewise linear functions of the columns: one function for all targets,
    plus departures of single targets, which have a penalty of their own. Fisher scoring minimises

        sum_i w_i (abs(z_i) exp(-s_i) + s_i) + penalty / 2 * sum of squared coefficients,

    where the first term is the negative log-likelihood of a Laplace distribution; abs(z) is limited
    to three times its mean, so that outliers do not decide. One eigendecomposition serves all
    penalties and steps. An infinite penalty means constant sizes. Penalties are chosen by the
    likelihood of the rows that are left out.

    There is one such model of the inputs and one of the predictions, and s is the mean of both.
    One of them alone is used if its likelihood is larger by more than a standard error.

    Sizes must improve intervals for rows that are left out: intervals quantile * size are compared
    with constant ones, with one quantile of abs(z) / size for each target and coverage, by the
    interval score (Gneiting and Raftery, 2007), mean over targets and `LEVELS`. The mean gain over
    rows must be larger than its standard error.

    Time n m^2 + m^3 for m = 4 q basis functions, and n m p for every penalty, for each part.

    References
    ----------
    T. Gneiting and A. E. Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation",
    Journal of the American Statistical Association 102 (2007), 359-378.
    """
    rows, deviation = residuals.by_row(), residuals.deviation()
    Z, weight = np.abs(rows.standardised(deviation)), rows.weight / rows.weight.mean()
    known = np.isfinite(Z)
    total = weight @ known
    mean = weight @ np.where(known, Z, 0.0) / np.where(total > 0.0, total, 1.0)
    known &= mean > 0.0
    usable = [0 < table.shape[1] <= MOST_COLUMNS for table in (inputs, predicted)]
    if len(Z) < FEWEST_ROWS or len(np.unique(part)) < 2 or not known.any() or not any(usable):
        return None
    Z = np.where(known, Z / np.where(mean > 0.0, mean, 1.0), 0.0)
    # A missing residual counts as the mean of the row.
    A = np.where(known, np.clip(Z, NEAR, FAR), 0.0)
    row_mean = A.sum(axis=1) / np.maximum(1, known.sum(axis=1))
    row_mean = np.where(known.any(axis=1), row_mean, 1.0)
    A = np.where(known, A, row_mean[:, None])
    models, left_out = list[LogSize | None](), list[Array]()
    for table, is_usable in zip((inputs, predicted), usable, strict=True):
        models.append(None)
        if is_usable:
            models[-1], log_size = _fit_log_size(table, A, weight, part)
            left_out.append(log_size)
    log_size = np.mean(left_out, axis=0)
    if len(left_out) == 2:
        losses = _losses(A, log_size).mean(axis=1)
        gains = [_gain(losses - _losses(A, alone).mean(axis=1), weight) for alone in left_out]
        best = int(np.argmax(gains))
        if gains[best] > REQUIRED:
            log_size, models[1 - best] = left_out[best], None
    sizes, mass = _sizes(log_size), known * weight[:, None]
    Z = np.minimum(Z, FAR_SCORED)
    gain = interval_scores(Z, mass, np.ones(Z.shape)) - interval_scores(Z, mass, sizes)
    if not _gain(gain.sum(axis=1) / np.maximum(1, known.sum(axis=1)), weight) > REQUIRED:
        return None
    size = ErrorSize(models[0], models[1], np.ones(Z.shape[1]), sizes)
    divided = replace(residuals, values=residuals.values / size.of(residuals)).deviation()
    unit = np.where(divided > 0.0, deviation / np.where(divided > 0.0, divided, 1.0), 1.0)
    return replace(size, unit=unit, held_out=sizes / unit)


def interval_scores(Z: Array, mass: Array, sizes: Array) -> Array:
    """Scores (n, p) of intervals of half width quantile * size, mean over `LEVELS`.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Absolute residuals.
    mass : ndarray of shape (n, p)
        Weights, with which every target has a quantile of Z / size; zero where a residual is
        missing, which then has the score zero.
    sizes : ndarray of shape (n, p)
    """
    ratio, total, scores = Z / sizes, mass.sum(axis=0), np.zeros(Z.shape)
    order = np.argsort(ratio, axis=0, kind="stable")
    ratio = np.take_along_axis(ratio, order, axis=0)
    below = np.cumsum(np.take_along_axis(mass, order, axis=0), axis=0)
    for level in LEVELS:
        # Sums of equal weights reach the level exactly, or a rounding below it.
        at = np.argmax(below >= (level - 1e-9) * total, axis=0)
        half = np.take_along_axis(ratio, at[None], axis=0) * sizes
        scores += 2.0 * half + 2.0 / (1.0 - level) * np.maximum(Z - half, 0.0)
    return np.where(mass > 0.0, scores / len(LEVELS), 0.0)


def _gain(gains: Array, weight: Array) -> float:
    """The weighted mean of gains (n,) over its standard error."""
    mean = np.average(gains, weights=weight)
    error = np.sqrt(np.average((gains - mean) ** 2, weights=weight) / len(gains))
    return float(mean / error) if error > 0.0 else 0.0


def _losses(A: Array, log_size: Array) -> Array:
    """Negative log-likelihoods of absolute residuals with a mean of exp(log_size)."""
    return np.asarray(A * np.exp(-log_size) + log_size)


def _sizes(log_size: Array) -> Array:
    """Sizes from their logarithms, which are limited."""
    return np.asarray(np.exp(np.clip(log_size, -LARGEST, LARGEST)))


def _basis(values: Array, knots: Array) -> Array:
    """The columns within their ends, and their distances from the inner knots, (n, 4 q).

    All are in units of the range of the column; a constant column is zero.
    """
    low, high = knots[0], knots[-1]
    varies = high - low > CONSTANT * np.maximum(np.abs(low), np.abs(high))
    unit = np.where(varies, high - low, np.inf)
    values = np.clip(np.where(np.isfinite(values), values, knots[2]), low, high)
    return np.hstack([(values - low) / unit, *(np.abs(values - knots[1:-1, None]) / unit)])


def _fit_log_size(table: Array, A: Array, weight: Array, part: Index) -> tuple[LogSize, Array]:
    """Model of log sizes by the columns of a table, and log sizes (n, p) of rows that are left out.

    ``A`` (n, p) are absolute residuals with a mean of about one.
    """
    n, p = A.shape
    finite = np.isfinite(table)
    columns = np.where(finite | ~finite.any(axis=0), np.where(finite, table, 0.0), np.nan)
    knots = np.nanquantile(columns, QUANTILES, axis=0)
    basis = _basis(table, knots)
    mean, scale = basis.mean(axis=0), basis.std(axis=0)
    factor = np.where(scale > 0.0, 1.0 / np.where(scale > 0.0, scale, 1.0), 0.0)
    factor[table.shape[1] :] *= BEND
    basis = (basis - mean) * factor
    out = [np.zeros(n, dtype=bool), *[part == number for number in np.unique(part)]]
    # The first ridge has all rows, every other one leaves out a part.
    ridges = [_LogSizeRidge(basis, weight * ~rows) for rows in out]
    start = [np.zeros((n, 1))] * len(ridges)
    coef, intercept, log_sizes = _fit_ridges(
        ridges, A.mean(axis=1, keepdims=True), start, PENALTIES, out, weight
    )
    if 1 < p <= MOST_COLUMNS:
        departures, shift, log_sizes = _fit_ridges(
            ridges, A, log_sizes, DEPARTURE_PENALTIES, out, weight
        )
        coef, intercept = coef + departures, intercept + shift
    left_out = np.zeros((n, p))
    for rows, values in zip(out, log_sizes, strict=True):
        left_out[rows] = values[rows]
    coef, intercept = np.tile(coef, p // coef.shape[1]), np.tile(intercept, p // len(intercept))
    return LogSize(knots, mean, factor, coef, intercept), left_out


def _fit_ridges(
    ridges: Sequence[_LogSizeRidge],
    A: Array,
    offsets: Sequence[Array],
    penalties: Array,
    out: Sequence[Mask],
    weight: Array,
) -> tuple[Array, Array, list[Array]]:
    """Coefficients and intercept of the first ridge, and log sizes (n, k) of all rows by every ridge.

    ``out`` are the rows that each ridge leaves out; the penalty is the one with which they are
    fitted best. ``offsets`` are parts of the log sizes that are known already, for every ridge.
    """
    fits, losses = list[Any](), np.zeros(len(penalties))
    for ridge, offset, rows in zip(ridges, offsets, out, strict=True):
        coef, intercept, log_sizes = ridge.fit(A, offset, penalties)
        losses += _losses(A[rows], log_sizes[:, rows]).mean(axis=2) @ weight[rows]
        fits.append((coef, intercept, log_sizes))
    best = int(losses.argmin())
    coef, intercept, _ = fits[0]
    return coef[best], intercept[best], [log_sizes[best] for _, _, log_sizes in fits]


class _LogSizeRidge:
    """Ridge regression of log sizes on basis functions (n, m), for several penalties at once."""

    def __init__(self, basis: Array, weight: Array) -> None:
        self.share = weight / weight.sum()
        self.centre = self.share @ basis
        centred = basis - self.centre
        values, self.vectors = np.linalg.eigh((centred * weight[:, None]).T @ centred)
        self.eigenvalues = np.maximum(values, 0.0)
        self.coordinates = centred @ self.vectors
        self.weighted = weight[:, None] * self.coordinates

    def fit(self, A: Array, offset: Array, penalties: Array) -> tuple[Array, Array, Array]:
        """Coefficients (L, m, k), intercepts (L, k) and log sizes (L, n, k) for L penalties.

        ``A`` (n, k) are absolute residuals, and ``offset`` (n, 1) or (n, k) is a part of their log
        sizes that is known already.
        """
        inverse = 1.0 / (self.eigenvalues + penalties[:, None])[:, :, None]  # (L, m, 1)
        relative = A * np.exp(-offset)
        log_size = np.zeros((len(penalties), 1, A.shape[1])) + np.log(self.share @ relative)
        inner = np.zeros((1, 1, 1))
        for _ in range(STEPS):
            # The working response of Fisher scoring, since the information of a log size is one.
            response = log_size + np.minimum(relative * np.exp(-log_size) - 1.0, FAR)
            mean = (self.share @ response)[:, None]  # (L, 1, k)
            inner = inverse * (self.weighted.T @ (response - mean))
            log_size = mean + self.coordinates @ inner
        # With the last coefficients, the intercept in closed form.
        mean += np.log(self.share @ (relative * np.exp(-log_size)))[:, None]
        coef = self.vectors @ inner
        log_size = offset + mean + self.coordinates @ inner
        return coef, (mean[:, 0] - self.centre @ coef), log_size
