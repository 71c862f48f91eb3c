"""The one value of every fitted entangled model: a linear model of features, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import _safe_indexing, check_array, gen_batches
from sklearn.utils.validation import _num_samples

from ..features import map_features
from ..learning import Fit, LinearModel, RowSample, leave_one_out
from ..linalg import Array, Index
from ..uncertainty import (
    Calibration,
    ErrorSize,
    HeldOut,
    Residuals,
    calibrate,
    estimate_error_size,
    group_patterns,
    information,
    plan_measurements,
)
from ..uncertainty.error_size import MOST_COLUMNS
from .explanation import NoisePart
from .input_range import InputRange, number_blocks
from .target_scale import TargetScale

__all__ = ["FIRST_BLOCK", "FittedModel", "block_height"]

# Rows that are mapped at once, however many features they have.
FIRST_BLOCK = 4096
# Bytes that a feature takes while rows are mapped: one float64, and one more while it is computed.
_BYTES_PER_FEATURE = 16
# A row whose model variance is this many times the largest of held-out training rows has novelty
# one.
_VARIANCE_BEYOND = 4.0


def block_height(n_features: int) -> int:
    """Number of rows whose features take the memory of scikit-learn's setting ``working_memory``."""
    allowed = float(get_config()["working_memory"]) * 2**20
    return max(1, int(allowed / (_BYTES_PER_FEATURE * max(1, n_features))))


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted entangled model, single or averaged: it predicts, and estimates its errors.

    An average of linear models over several feature maps is a linear model of the union of these.
    Rows are tables whose columns have been checked, or arrays of numbers if ``feature_map`` is
    None.

    Attributes
    ----------
    feature_map : transformer or None
        Fitted; None if the columns are the features.
    linear : LinearModel
        From features to targets on the learned scale.
    fit : Fit
        The learned kernel, its ridge problem and its posterior; of an average, those of the best
        candidate.
    fit_map : transformer or None
        The feature map of ``fit``.
    scale : LogScale, TransformerScale or None
        The scale on which targets are learned; None for the targets themselves.
    inputs : InputRange or None
        Range of the training inputs.
    sample : RowSample or None
        Training rows for leave-one-out residuals, if there are no held-out residuals.
    residuals : Residuals or None
        Held-out residuals on the learned scale. Without them deviations are those of the posterior,
        and intervals use leave-one-out residuals.
    measured : ndarray or None
        Targets of the rows with held-out residuals, on the learned scale.
    error_size : ErrorSize or None
        Sizes of errors by inputs and predictions; None if they are the same for all rows.
    parts : tuple of NoisePart
        Feature maps of an average with their shares, for explanations.
    """

    feature_map: Any
    linear: LinearModel
    fit: Fit
    fit_map: Any = None
    scale: TargetScale | None = None
    inputs: InputRange | None = None
    sample: RowSample | None = None
    residuals: Residuals | None = None
    measured: Array | None = None
    error_size: ErrorSize | None = None
    parts: tuple[NoisePart, ...] = ()

    @property
    def n_targets(self) -> int:
        """Number of targets, p."""
        return len(self.linear.intercept)

    @cached_property
    def calibration(self) -> Calibration:
        """Deviations and correlations of the errors; a ValueError if no rows were kept to estimate them."""
        residuals = self.residuals
        if residuals is None:
            if self.sample is None:
                raise ValueError("no rows were kept to calibrate on; fit the model again")
            residuals = leave_one_out(self.fit, self.sample)
        size = None if self.error_size is None else self.error_size.of(residuals)
        return calibrate(residuals, np.random.default_rng(0), size)

    @property
    def has_errors(self) -> bool:
        """Whether there are held-out residuals, or rows for leave-one-out residuals."""
        return self.residuals is not None or self.sample is not None

    def features(self, X: Any) -> Any:
        """Features (n, m) of rows; `learned_mean` checks that they are finite."""
        if self.feature_map is None:
            return X
        return map_features(self.feature_map, X, ensure_all_finite=False)

    def learned_mean(self, Phi: Any) -> Array:
        """Predictions (n, p) on the learned scale from features; an error if a feature is not finite."""
        mean = self.linear.predict(Phi)
        # A feature that is not finite shows in predictions, unless no target uses it.
        if not np.isfinite(mean).all() or not self.linear.coef.any(axis=0).all():
            name = "X" if self.feature_map is None else "features"
            with np.errstate(invalid="ignore", over="ignore"):
                check_array(Phi, dtype=[np.float64, np.float32], input_name=name)
        return mean

    def predict(
        self, X: Any, given: Array | None = None, *, std: bool = False, covariance: bool = False
    ) -> tuple[Array, Any]:
        """Predictions (n, p) in units of the targets, and their standard deviations, covariances or None.

        Given targets (n, p) are returned unchanged. Covariances are (n, p, p).
        """
        mean, spread = self._predict_learned(X, given, std=std, covariance=covariance)
        if self.scale is None:
            return mean, spread
        if covariance:
            spread = self.scale.covariance(mean, spread)
        elif std:
            spread = self.scale.moments(mean, spread)[1]
        return self._in_target_units(mean, given), spread

    def predict_mean(self, X: Any, given: Array | None = None) -> Array:
        """Means (n, p) of new observations; `predict` gives medians if targets have a scale."""
        if self.scale is None:
            return self.predict(X, given)[0]
        values = self.scale.moments(*self._predict_learned(X, given, std=True))[0]
        return values if given is None else np.where(np.isfinite(given), given, values)

    def predict_interval(
        self, X: Any, coverage: float, given: Array | None = None, *, joint: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends (n, p) of intervals that hold new observations."""
        given = np.full((_num_samples(X), self.n_targets), np.nan) if given is None else given
        learned = given if self.scale is None else self.scale.transform(given, "given")
        lower, upper = np.empty(given.shape), np.empty(given.shape)
        for rows, Phi in self._feature_blocks(X, self.feature_map):
            mean = self.learned_mean(Phi)
            size = self._size_of_errors(X, rows, mean)
            conditional = self.calibration.condition(mean, learned[rows], size=size)
            width = self.calibration.half_widths(
                coverage, np.isfinite(given[rows]), np.sqrt(conditional.variance), joint=joint
            )
            lower[rows], upper[rows] = conditional.mean - width, conditional.mean + width
        if self.scale is not None:
            # The inverse of a scale may be decreasing.
            ends = self._in_target_units(lower, given), self._in_target_units(upper, given)
            lower, upper = np.minimum(*ends), np.maximum(*ends)
        return lower, upper

    def suggest_measurements(self, known: NDArray[np.bool_], cost: Array) -> tuple[Any, Array]:
        """Numbers of the targets to measure next, (n, p), and the share of variance that each removes.

        ``known`` (n, p) is true for targets that are measured already, ``cost`` (p,) is the cost of
        measuring a target. The order ends with -1 for the targets that are known.
        """
        order = np.full(known.shape, -1, dtype=np.intp)
        reduction = np.full(known.shape, np.nan)
        variance = self.target_variance
        errors = self.calibration.deviation**2
        importance = np.where(variance > 0.0, errors / np.where(variance > 0.0, variance, 1.0), 0.0)
        for rows, pattern in group_patterns(known):
            plan = plan_measurements(self.calibration.correlation, pattern, importance, cost)
            order[rows, : len(plan.order)] = plan.order
            reduction[rows, : len(plan.order)] = plan.reduction
        return order, reduction

    @property
    def target_variance(self) -> Array:
        """Variance (p,) of each target over the training rows, on the learned scale."""
        return np.asarray(self.fit.problem.target_scatter / self.fit.problem.weight)

    @property
    def information(self) -> Array:
        """Share of the remaining variance of target b that measuring target a removes, (p, p), a in rows."""
        return information(self.calibration.correlation)

    def held_out(self, coverage: float) -> HeldOut:
        """Held-out predictions of training rows with intervals, in units of the targets."""
        if self.measured is None:
            raise ValueError("no held-out rows were kept; fit the model again")
        held_out = self.calibration.held_out(self.measured, coverage)
        if self.scale is None:
            return held_out
        measured, predicted, *ends = map(self.scale.inverse_transform, held_out)
        return HeldOut(measured, predicted, *np.sort(ends, axis=0))

    def novelty(self, X: Any) -> Array:
        """How far rows are from the training rows, (n,); a row above one is far.

        The larger of two numbers: the square root of the model's variance over four times the
        largest variance of held-out training rows, and `InputRange.distance` of the inputs.
        """
        largest = 0.0
        if self.has_errors:
            largest = float(np.max(self.calibration.residuals.relative_variance, initial=1.0)) - 1.0
        novelty = np.zeros(_num_samples(X)) if self.inputs is None else self.inputs.distance(X)
        if largest <= 0.0:
            return novelty
        for rows, Phi in self._feature_blocks(X, self.fit_map):
            with np.errstate(over="ignore", invalid="ignore"):
                excess = self.fit.posterior.unit.relative_variance(Phi) - 1.0
                distance = np.sqrt(np.maximum(excess, 0.0) / (_VARIANCE_BEYOND * largest))
            # A row with a feature that is not finite is infinitely far.
            novelty[rows] = np.maximum(
                novelty[rows], np.where(np.isfinite(distance), distance, np.inf)
            )
        return novelty

    def with_error_size(self, X: Any, part: Index) -> FittedModel:
        """The model with sizes of errors by inputs and predictions, if they improve its intervals.

        ``X`` are the training rows, to which the row numbers of the residuals refer; ``part`` (n,)
        are numbers of parts of them that are left out in turn.
        """
        if self.residuals is None or self.measured is None or self.inputs is None:
            return self
        rows = self.residuals.by_row()
        inputs = self._numeric_inputs(_safe_indexing(X, rows.row))
        predicted = self.measured - rows.values
        size = estimate_error_size(self.residuals, inputs, predicted, part[rows.row])
        return replace(self, error_size=size)

    def _size_of_errors(self, X: Any, rows: slice, mean: Array) -> Array | None:
        """Sizes (n, p) of the errors of some rows of X, which have the predictions ``mean``."""
        if self.error_size is None:
            return None
        block = X if len(mean) == _num_samples(X) else _safe_indexing(X, rows)
        return self.error_size(self._numeric_inputs(block), mean)

    def _numeric_inputs(self, X: Any) -> Array:
        """The columns of numbers (n, q) that may explain the size of errors; no columns if too many."""
        columns = np.zeros(0, dtype=np.intp) if self.inputs is None else self.inputs.columns
        if not 0 < len(columns) <= MOST_COLUMNS:
            return np.zeros((_num_samples(X), 0))
        return np.concatenate(list(number_blocks(X, columns)))

    def _predict_learned(
        self, X: Any, given: Array | None, *, std: bool = False, covariance: bool = False
    ) -> tuple[Array, Any]:
        """Mean, and standard deviation, covariance or None, on the learned scale."""
        if given is not None and self.scale is not None:
            given = self.scale.transform(given, "given")
        spread: Any
        means, spreads = [], []
        for rows, Phi in self._feature_blocks(X, self.feature_map):
            mean = self.learned_mean(Phi)
            if given is None and not (std or covariance):
                means.append(mean)
                continue
            if given is None and self.residuals is None:
                posterior = self.fit.posterior
                spread = posterior.covariance(Phi) if covariance else posterior.variance(Phi)
            else:
                known = np.full(mean.shape, np.nan) if given is None else given[rows]
                size = self._size_of_errors(X, rows, mean)
                errors = self.calibration.condition(
                    mean, known, size=size, with_covariance=covariance
                )
                mean, spread = errors.mean, errors.covariance if covariance else errors.variance
            means.append(mean)
            spreads.append(spread if covariance else np.sqrt(spread))
        if len(means) == 1:
            return means[0], spreads[0] if std or covariance else None
        return np.concatenate(means), np.concatenate(spreads) if std or covariance else None

    def _in_target_units(self, values: Array, given: Array | None) -> Array:
        """Targets from values on the learned scale; given targets are unchanged."""
        values = values if self.scale is None else self.scale.inverse_transform(values)
        return values if given is None else np.where(np.isfinite(given), given, values)

    def _feature_blocks(self, X: Any, feature_map: Any) -> Iterator[tuple[slice, Any]]:
        """Features of a map, in blocks of rows that take no more than ``working_memory``."""
        n, height = _num_samples(X), FIRST_BLOCK
        if n > height:
            height = max(height, block_height(self.linear.coef.shape[1]))
        whole = feature_map is None or n <= height or not hasattr(X, "shape")
        for rows in [slice(0, n)] if whole else gen_batches(n, height):
            block = X if whole else _safe_indexing(X, rows)
            if feature_map is not None:
                block = map_features(feature_map, block, ensure_all_finite=False)
            yield rows, block

    def check_arrays(self) -> None:
        """Raise unless shapes fit each other and numbers are finite, for models read from files."""
        problem, kernel, (p, m) = self.fit.problem, self.fit.kernel, self.linear.coef.shape
        m_fit, m_reduced = problem.features.shape
        k = problem.outputs.shape[1]
        shapes: list[tuple[str, Any, tuple[int | None, ...]]] = [
            ("coef", self.linear.coef, (p, m)),
            ("intercept", self.linear.intercept, (p,)),
            ("features", problem.features, (problem.n_features, m_reduced)),
            ("outputs", problem.outputs, (p, k)),
            ("scale", problem.scale, (m_reduced,)),
            ("targets", problem.targets, (m_reduced, k)),
            ("mean_phi", problem.mean_phi, (m_fit,)),
            ("mean_y", problem.mean_y, (p,)),
            ("target_scatter", problem.target_scatter, (p,)),
            ("L", kernel.L, (m_reduced, None)),
            ("Q", kernel.Q, (m_reduced, k, None)),
        ]
        if self.residuals is not None:
            n = len(self.residuals.row)
            shapes += [
                ("residuals", self.residuals.values, (n, p)),
                ("weights of residuals", self.residuals.weight, (n,)),
                ("variances of residuals", self.residuals.relative_variance, (n,)),
            ]
        if self.measured is not None and self.residuals is not None:
            shapes.append(("measured targets", self.measured, (self.residuals.n_rows, p)))
        if self.error_size is not None and self.residuals is not None:
            size, q = self.error_size, 0 if self.inputs is None else len(self.inputs.columns)
            shapes.append(("sizes of errors", size.held_out, (self.residuals.n_rows, p)))
            shapes.append(("unit of sizes", size.unit, (p,)))
            for part, width in ((size.by_inputs, q), (size.by_predictions, p)):
                if part is not None:
                    shapes += [
                        ("knots of sizes", part.knots, (5, width)),
                        ("means of sizes", part.mean, (4 * width,)),
                        ("factors of sizes", part.factor, (4 * width,)),
                        ("coefficients of sizes", part.coef, (4 * width, p)),
                        ("intercepts of sizes", part.intercept, (p,)),
                    ]
        if self.sample is not None:
            n = len(self.sample.key)
            shapes += [
                ("features of the sample", self.sample.Phi, (n, m)),
                ("targets of the sample", self.sample.Y, (n, p)),
                ("weights of the sample", self.sample.weight, (n, p)),
            ]
        # Targets may be missing.
        may_be_missing = ("residuals", "measured targets", "targets of the sample")
        for name, values, expected in shapes:
            fits = values.ndim == len(expected) and all(
                wanted in (None, size) for size, wanted in zip(values.shape, expected, strict=True)
            )
            if not fits:
                raise ValueError(f"{name} must have shape {expected}, got {values.shape}")
            if not np.isfinite(values).all() and (
                name not in may_be_missing or np.isinf(values).any()
            ):
                raise ValueError(f"{name} must hold finite numbers")
        if self.inputs is not None:
            InputRange.unpacked(self.inputs.packed())

    def __getstate__(self) -> dict[str, Any]:
        # The calibration is larger than the residuals, and is computed again when it is needed.
        return {name: value for name, value in vars(self).items() if name != "calibration"}
