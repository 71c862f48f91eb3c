"""The one value of every fitted entangled model: a linear model of features, and what it knows of errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import _safe_indexing, check_array, gen_batches
from sklearn.utils.validation import _num_samples

from ..features import map_features
from ..learning import Fit, LinearModel, RowSample, leave_one_out
from ..linalg import Array
from ..uncertainty import (
    Calibration,
    HeldOut,
    Residuals,
    calibrate,
    group_patterns,
    information,
    plan_measurements,
)
from .explanation import Explanation, NoisePart, explain_model
from .input_range import InputRange
from .target_scale import TargetScale

__all__ = ["FIRST_BLOCK", "FittedModel", "Prediction", "block_height"]

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


class Prediction(NamedTuple):
    """Predictions (n, p) and, where they were asked for, standard deviations or covariances (n, p, p)."""

    mean: Array
    std: Array | None = None
    covariance: Array | None = None


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted entangled model, single or averaged: it predicts, and knows how far it errs.

    An average of linear models over several feature maps is a linear model of the union of these,
    so one form serves all. Rows are tables whose columns have been checked; where ``feature_map``
    is None they are arrays of numbers.

    Attributes
    ----------
    feature_map : transformer or None
        Fitted; None where the columns are the features.
    linear : LinearModel
        From features to targets on the learned scale.
    fit : Fit
        The learned kernel, its ridge problem and its posterior: of the model itself, or of the best
        candidate of an average.
    fit_map : transformer or None
        The feature map of ``fit``.
    scale : LogScale, TransformerScale or None
        The scale on which targets are learned; None for the targets themselves.
    inputs : InputRange or None
        Range of the training inputs.
    sample : RowSample or None
        Training rows from which leave-one-out residuals are computed, where there are no held-out
        ones.
    residuals : Residuals or None
        Held-out residuals on the learned scale. Without them deviations are those of the posterior,
        and intervals rest on leave-one-out residuals.
    measured : ndarray or None
        Targets, on the learned scale, of the rows that the held-out residuals are of.
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
    parts: tuple[NoisePart, ...] = ()

    @property
    def n_targets(self) -> int:
        """Number of targets, p."""
        return len(self.linear.intercept)

    @cached_property
    def calibration(self) -> Calibration:
        """Deviations and correlations of the errors; a ValueError where no rows were kept to judge them."""
        residuals = self.residuals
        if residuals is None:
            if self.sample is None:
                raise ValueError("no rows were kept to calibrate on; fit the model again")
            residuals = leave_one_out(self.fit, self.sample)
        return calibrate(residuals, np.random.default_rng(0))

    @property
    def has_errors(self) -> bool:
        """Whether errors of rows without a part in the model are known."""
        return self.residuals is not None or self.sample is not None

    def features(self, X: Any) -> Any:
        """Features (n, m) of rows; whether they are finite is left to `learned_mean`."""
        if self.feature_map is None:
            return X
        return map_features(self.feature_map, X, ensure_all_finite=False)

    def learned_mean(self, Phi: Any) -> Array:
        """Predictions (n, p) on the learned scale from features; an error where a feature is not finite."""
        mean = self.linear.predict(Phi)
        # A feature that is not finite makes predictions so, unless no target uses it.
        if not np.isfinite(mean).all() or not self.linear.coef.any(axis=0).all():
            name = "X" if self.feature_map is None else "features"
            with np.errstate(invalid="ignore", over="ignore"):
                check_array(Phi, dtype=[np.float64, np.float32], input_name=name)
        return mean

    def predict(
        self, X: Any, given: Array | None = None, *, std: bool = False, covariance: bool = False
    ) -> Prediction:
        """Predictions in units of the targets; ``given`` targets (n, p) come back as they are."""
        mean, spread = self._learned(X, given, std=std, covariance=covariance)
        if self.scale is not None:
            if covariance:
                spread = self.scale.covariance(mean, spread)
            elif std:
                spread = self.scale.moments(mean, spread)[1]
            mean = self._in_target_units(mean, given)
        return Prediction(mean, spread if std else None, spread if covariance else None)

    def predict_mean(self, X: Any, given: Array | None = None) -> Array:
        """Means (n, p) of new observations, where `predict` gives medians if targets have a scale."""
        if self.scale is None:
            return self.predict(X, given).mean
        values = self.scale.moments(*self._learned(X, given, std=True))[0]
        return values if given is None else np.where(np.isfinite(given), given, values)

    def predict_interval(
        self, X: Any, coverage: float, given: Array | None = None, *, joint: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends (n, p) of intervals that hold new observations with some probability."""
        given = np.full((_num_samples(X), self.n_targets), np.nan) if given is None else given
        learned = self._learned_given(given)
        lower, upper = np.empty(given.shape), np.empty(given.shape)
        for rows, block in self._blocks(X):
            found = self.calibration.condition(
                self.learned_mean(self.features(block)), learned[rows]
            )
            known = np.isfinite(given[rows])
            width = self.calibration.half_widths(
                coverage, known, np.sqrt(found.variance), joint=joint
            )
            lower[rows], upper[rows] = found.mean - width, found.mean + width
        if self.scale is not None:
            # The inverse of a scale may fall.
            ends = self._in_target_units(lower, given), self._in_target_units(upper, given)
            lower, upper = np.minimum(*ends), np.maximum(*ends)
        return lower, upper

    def suggest_measurements(self, known: NDArray[np.bool_], cost: Array) -> tuple[Any, Array]:
        """Numbers of the targets to measure next, (n, p), -1 once all are known, and what each removes.

        ``known`` (n, p) says which targets are measured already, ``cost`` (p,) what a measurement
        costs.
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
        found = self.calibration.held_out(self.measured, coverage)
        if self.scale is None:
            return found
        measured, predicted, *ends = map(self.scale.inverse_transform, found)
        return HeldOut(measured, predicted, *np.sort(ends, axis=0))

    def novelty(self, X: Any) -> Array:
        """How far rows are from what training supports, (n,); above one is far.

        The larger of two numbers: the root of the model's variance in units of four times the
        largest of held-out training rows, and `InputRange.distance` of the inputs.
        """
        largest = 0.0
        if self.has_errors:
            largest = float(np.max(self.calibration.residuals.relative_variance, initial=1.0)) - 1.0
        novelty = np.zeros(_num_samples(X)) if self.inputs is None else self.inputs.distance(X)
        if largest <= 0.0:
            return novelty
        for rows, block in self._blocks(X):
            Phi = block
            if self.fit_map is not None:
                Phi = map_features(self.fit_map, block, ensure_all_finite=False)
            with np.errstate(over="ignore", invalid="ignore"):
                excess = self.fit.posterior.unit.relative_variance(Phi) - 1.0
                distance = np.sqrt(np.maximum(excess, 0.0) / (_VARIANCE_BEYOND * largest))
            # A feature that is not finite is as far out as can be.
            novelty[rows] = np.maximum(
                novelty[rows], np.where(np.isfinite(distance), distance, np.inf)
            )
        return novelty

    def explain(
        self,
        X: Any,
        given: Array | None,
        method: str,
        inputs: Sequence[str] | None,
        targets: Sequence[str],
    ) -> Explanation:
        """Which inputs matter for which targets (`entangled_kernels.model.explanation.explain_model`)."""
        return explain_model(self, X, given, method, inputs, targets)

    def _learned(
        self, X: Any, given: Array | None, *, std: bool = False, covariance: bool = False
    ) -> tuple[Array, Any]:
        """Mean, and standard deviation or covariance or None, on the learned scale, block by block."""
        learned = None if given is None else self._learned_given(given)
        means, spreads = [], []
        for rows, block in self._blocks(X):
            Phi = self.features(block)
            mean, spread = self.learned_mean(Phi), None
            if given is None and self.residuals is None and (std or covariance):
                posterior = self.fit.posterior
                spread = (
                    posterior.covariance(Phi) if covariance else np.sqrt(posterior.variance(Phi))
                )
            elif given is not None or std or covariance:
                known = np.full(mean.shape, np.nan) if learned is None else learned[rows]
                found = self.calibration.condition(mean, known, with_covariance=covariance)
                mean, spread = (
                    found.mean,
                    found.covariance if covariance else np.sqrt(found.variance),
                )
            means.append(mean)
            spreads.append(spread)
        if len(means) == 1:
            return means[0], spreads[0]
        known_spreads = [spread for spread in spreads if spread is not None]
        return np.concatenate(means), np.concatenate(known_spreads) if known_spreads else None

    def _learned_given(self, given: Array) -> Array:
        return given if self.scale is None else self.scale.transform(given, "given")

    def _in_target_units(self, values: Array, given: Array | None) -> Array:
        """Targets from values on the learned scale; given targets are as they were measured."""
        values = values if self.scale is None else self.scale.inverse_transform(values)
        return values if given is None else np.where(np.isfinite(given), given, values)

    def _blocks(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows whose features take no more than ``working_memory``."""
        n, height = _num_samples(X), max(FIRST_BLOCK, block_height(self.linear.coef.shape[1]))
        if self.feature_map is None or n <= height or not hasattr(X, "shape"):
            yield slice(0, n), X
            return
        for rows in gen_batches(n, height):
            yield rows, _safe_indexing(X, rows)

    def check_arrays(self) -> None:
        """Raise unless shapes fit each other and numbers are finite, which they may not in an edited file."""
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
        # The calibration is larger than the residuals, and computed again when it is needed.
        return {name: value for name, value in vars(self).items() if name != "calibration"}
