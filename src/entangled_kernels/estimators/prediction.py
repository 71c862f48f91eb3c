"""Predicting with a linear model of features: row blocks, containers, and what is there once it is solved."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples

from ..conditioning import Calibration, group_patterns, information, plan_measurements
from ..learning import Fit
from ..learning.posterior import leave_one_out
from ..linalg import Array
from ..parameters import (
    check_flag,
    check_share,
    naming_columns,
)
from ..streams.stream import Stream
from .dask_tables import is_dask, predict_dask
from .given import check_costs, check_given
from .novelty import NoveltyMixin
from .target_transforms import LogTargets, TransformerTargets
from .training import Table, Training

__all__ = ["LinearPredictionMixin", "solved_attribute"]


def solved_attribute(name: str, path: str, doc: str) -> Any:
    """A read-only attribute ``name`` that shows a part of the solved model, by its path in ``_fit``.

    It is not there, and reading it solves nothing, while rows that were taken in wait to be solved for.
    """
    read = attrgetter(path)

    def show(self: Any) -> Any:
        value = read(self._solved_fit(name))
        if value is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value

    return property(show, doc=doc)


class LinearPredictionMixin(NoveltyMixin):
    """`predict` of an estimator whose solved model is linear in its features."""

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, given: Any = None
    ) -> Any:
        """Predict the targets, with their uncertainty on request.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        return_std : bool, default=False
            Also return the standard deviation of a new observation of every target.
        return_cov : bool, default=False
            Also return the covariance of a new observation of all targets, row by row.
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, NaN where one is to be predicted. Columns of a data frame are
            matched by name, and some of them will do.

        Returns
        -------
        mean : ndarray of shape (n, p), or (n,) when y was one-dimensional
            Measured targets come back as they are. With a ``target_transform`` of each target by itself this
            is the median; `predict_mean` gives the mean.
        std : like mean, with ``return_std``
            Zero for a measured target.
        cov : ndarray of shape (n, p, p), or (n,) when y was one-dimensional, with ``return_cov``

        Notes
        -----
        With ``given`` the other targets are conditioned on the measured ones: errors of targets go together,
        as residuals of rows that the model has not seen show (`residual_covariance_`), so that the error of
        a measured target says something of the others. Rows with the same targets measured are solved
        together. Rows taken in by `partial_fit` are solved for first.

        Deviations of `EntangledKernelRidgeCV`, and all that are conditioned, are those that such residuals
        show. Without ``given`` those of `EntangledKernelRidge` are of the Gaussian-process view: the
        posterior of the model plus `noise_variance_`, and with an intercept its variance, noise over n;
        with `TargetProcessFeatures`, whose training rows show no noise, they are those of residuals too.

        With ``target_transform`` all of this is in units of the targets (docs/target-transforms.md). Where
        each target is transformed by itself, transformed targets are normal: the prediction goes back to
        the targets as it is, deviations and covariances are those of the law that comes of it. Where targets
        are mixed, deviations are those that residuals in units of the targets show.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be true; the covariance holds both")
        self._ensure_model()
        if is_dask(X, given):
            if given is not None:
                raise TypeError("given needs tables in memory; predict the partitions of a Dask table apart")
            return predict_dask(self, X, return_std, return_cov)
        measured = None if given is None else self._check_given(given, X)
        mean, spread = self._predict_rows(X, return_std, return_cov, measured)
        self._warn_of_far_rows(X)
        if self._own_transform is not None:
            if return_cov:
                spread = self._own_transform.covariance(mean, spread)
            elif return_std:
                spread = self._own_transform.moments(mean, spread)[1]
            mean = self._back(mean, measured)
        if return_cov:
            return self._finish(mean, X), spread[:, 0, 0] if self._one_dimensional else spread
        if return_std:
            return self._finish(mean, X), self._finish(spread, X)
        return self._finish(mean, X)

    def predict_mean(self, X: Any, *, given: Any = None) -> Any:
        """Predict the mean of new observations, where `predict` gives their median.

        Sums, such as totals over rows, need means. They differ from medians where ``target_transform`` bends
        the scale of a target: of a target whose logarithm has the deviation s the mean is exp(s^2 / 2) times
        the median. Otherwise this is `predict`.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`.
        """
        self._ensure_model()
        if self._own_transform is None:
            return self.predict(X, given=given)
        if is_dask(X, given):
            raise TypeError("predict_mean needs tables in memory; take the partitions of a table apart")
        measured = None if given is None else self._check_given(given, X)
        mean, std = self._predict_rows(X, True, False, measured)
        values = self._own_transform.moments(mean, std)[0]
        return self._finish(values if measured is None else _put_back(measured, values), X)

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, given: Any = None, joint: bool = False
    ) -> tuple[Any, Any]:
        """Intervals in which new observations lie with some probability.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        coverage : float, default=0.9
            Between 0 and 1.
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`.
        joint : bool, default=False
            Whether all targets of a row are to lie in their intervals at once.

        Returns
        -------
        lower, upper : like the mean of `predict`
            Both are the measured value of a measured target.

        Notes
        -----
        Intervals rest on residuals of rows from models without them (`residual_covariance_` says which),
        over deviations that the row itself had no part in. The quantile of these scores counts the new row
        as one more, as the jackknife and split conformal prediction do: with n rows at least
        coverage (n + 1) of n + 1 are covered. With few rows the scores of all targets are pooled; with n
        rows a target's own scores have n / (n + 100) of the weight. For measured targets residuals are
        conditioned likewise, with a covariance that their own rows had no part in.

        What is promised: coverage on average over new rows that come from where the training rows came from,
        as far as the model does not change much with one row more. It is not a worst-case guarantee such as
        that of the jackknife+, which would need all models of the folds to predict.

        Where ``target_transform`` takes each target by itself, intervals of transformed targets go back to
        the targets, so that they never leave its range: those of a logarithm are positive.
        """
        if is_dask(X, given):
            raise TypeError("predict_interval needs tables in memory; take the partitions of a table apart")
        check_share("coverage", coverage)
        check_flag("joint", joint)
        self._ensure_model()
        measured = self._no_targets(X) if given is None else self._check_given(given, X)
        calibration, given = self._fit.calibration, self._given_as_learned(measured)
        ends = []
        for rows, block in self._row_blocks(X):
            found = calibration.condition(self._calibrated_mean(block), given[rows])
            std, known = np.sqrt(found.variance), np.isfinite(measured[rows])
            width = calibration.half_widths(float(coverage), known, std, joint=joint)
            ends.append((found.mean - width, found.mean + width))
        lower, upper = (np.concatenate(part) for part in zip(*ends, strict=True))
        if self._own_transform is not None:
            both = self._back(lower, measured), self._back(upper, measured)
            # An inverse may fall.
            lower, upper = np.minimum(*both), np.maximum(*both)
        return self._finish(lower, X), self._finish(upper, X)

    def suggest_measurements(self, X: Any, given: Any = None, cost: Any = None) -> tuple[Any, Any]:
        """Which target of every row to measure next.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`.
        cost : sequence of p numbers, or mapping from names of targets to numbers, optional
            What a measurement costs; 1 where nothing is said.

        Returns
        -------
        order : ndarray of shape (n, p) of object
            Names of the targets to measure, the best first; None once all are measured.
        reduction : ndarray of shape (n, p)
            Share that each of them is expected to remove, after those before it, of the sum of the variances
            of all targets, each in units of the target's own variance; NaN where there is none.

        Notes
        -----
        A measurement is the better the more it removes of that sum, its own variance included, for its cost.
        """
        self._ensure_model()
        names = self._output_names(self._n_targets())
        costs = check_costs(cost, names)
        known = np.isfinite(self._no_targets(X) if given is None else self._check_given(given, X))
        calibration, importance = self._fit.calibration, self._importance()
        order = np.full(known.shape, None, dtype=object)
        reduction = np.full(known.shape, np.nan)
        for rows, pattern in group_patterns(known):
            plan = plan_measurements(calibration.correlation, pattern, importance, costs)
            order[rows, : len(plan.order)] = np.array(names, dtype=object)[plan.order]
            reduction[rows, : len(plan.order)] = plan.reduction
        return order, reduction

    @property
    def residual_covariance_(self) -> Any:
        """Covariance of the errors of the targets, (p, p); a `LinearOperator` for more than 2048 targets."""
        return self._solved_fit("residual_covariance_").calibration.mean_covariance()

    @property
    def information_(self) -> Array:
        """Share of the remaining variance of target b that measuring a removes, (p, p), a in rows."""
        return information(self._solved_fit("information_").calibration.correlation)

    def _check_given(self, given: Any, X: Any) -> Array:
        names = self._output_names(self._n_targets())
        return check_given(given, X, _num_samples(X), names, named=hasattr(self, "target_names_"))

    def _no_targets(self, X: Any) -> Array:
        return np.full((_num_samples(X), self._n_targets()), np.nan)

    def _n_targets(self) -> int:
        """Number of targets, which may be other than that of the transformed ones."""
        transform = self.target_transform_
        return len(self._fit.linear.intercept) if transform is None else transform.n_targets

    def _importance(self) -> Array:
        """Variance of the error of each target, in units of the target's variance."""
        mixing = self._mixing_transform
        variance = np.asarray(self._target_variance() if mixing is None else mixing.variance)
        errors = self._fit.calibration.deviation**2
        return np.where(variance > 0.0, errors / np.where(variance > 0.0, variance, 1.0), 0.0)

    def _target_variance(self) -> Array:
        """Variance of each target over the training rows."""
        problem = self._best_model()._fit.problem
        return np.asarray(problem.target_scatter / problem.weight)

    def _features_and_mean(self, X: Any) -> tuple[Any, Array]:
        """Features and predictions of some rows."""
        Phi, linear = self._features(X), self._fit.linear
        mean: Array = linear.predict(Phi)
        with naming_columns(X):
            self._check_finite(Phi, mean, linear.coef)
        return Phi, mean

    def _calibrated_mean(self, X: Any) -> Array:
        """Predictions of some rows on the scale that errors are calibrated on.

        It is that of the transformed targets, unless the transform mixes them.
        """
        _, mean = self._features_and_mean(X)
        return mean if self._mixing_transform is None else self._mixing_transform.inverse_transform(mean)

    @property
    def _own_transform(self) -> LogTargets | TransformerTargets | None:
        """The transform of the targets where it takes each of them by itself."""
        transform = self.target_transform_
        return transform if transform is not None and transform.elementwise else None

    def _learned_names(self) -> list[str]:
        """Names of what is learned: the targets, or the columns of a transform that mixes them."""
        n_learned = len(self._fit.linear.intercept)
        if self._mixing_transform is None:
            return self._output_names(n_learned)
        return [f"latent{column}" for column in range(n_learned)]

    def _calibrate_in_target_units(self, fit: Fit, table: Table) -> Fit:
        """A fit whose errors are calibrated in units of the targets, where a transform mixes these."""
        if self._mixing_transform is None or fit.sample is None or table.original is None:
            return fit
        left = leave_one_out(fit, fit.sample)
        predicted = self._mixing_transform.inverse_transform(fit.sample.Y - left.values)
        targets = table.original[table.sampled_places(len(fit.sample.Y))]
        return replace(fit, residuals=replace(left, values=targets - predicted))

    def _stream_kept(self, training: Training) -> Stream | None:
        """The stream to which rows can be added, None where a transform mixes the targets."""
        return training.stream if self._mixing_transform is None else None

    def _given_as_learned(self, measured: Array) -> Array:
        """Measured targets on the scale that errors are calibrated on."""
        transform = self._own_transform
        return measured if transform is None else transform.transform(measured, "given")

    def _back(self, values: Array, measured: Array | None) -> Array:
        """Targets from values on that scale; measured ones as they are."""
        transform = self._own_transform
        found = values if transform is None else transform.inverse_transform(values)
        return found if measured is None else _put_back(measured, found)

    def _predict_rows(
        self, X: Any, return_std: bool, return_cov: bool, measured: Array | None
    ) -> tuple[Array, Array]:
        """Mean, and standard deviation or covariance, or nothing, on that scale, in blocks of rows."""
        given, mixing = None if measured is None else self._given_as_learned(measured), self._mixing_transform
        predict = self._predict_block
        if mixing is not None and (return_std or return_cov or given is not None):
            predict = self._calibrated_block
        blocks = [
            predict(block, return_std, return_cov, None if given is None else given[rows])
            for rows, block in self._row_blocks(X)
        ]
        mean, spread = (
            part[0] if len(part) == 1 else np.concatenate(part) for part in zip(*blocks, strict=True)
        )
        if mixing is not None and predict == self._predict_block:
            mean = mixing.inverse_transform(mean)
        return mean, spread

    def _calibrated_block(
        self, X: Any, return_std: bool, return_cov: bool, given: Array | None
    ) -> tuple[Array, Array]:
        """Mean, and standard deviation or covariance, or nothing, of some rows, as residuals show them."""
        mean = self._calibrated_mean(X)
        calibration: Calibration = self._fit.calibration
        given = np.full(mean.shape, np.nan) if given is None else given
        found = calibration.condition(mean, given, with_covariance=return_cov)
        if found.covariance is not None:
            return found.mean, found.covariance
        return found.mean, np.sqrt(found.variance) if return_std else np.empty(0)

    def _solved_fit(self, name: str) -> Any:
        """The solved model, for the attribute of this name; a `NotFittedError` where there is none."""
        if self._fit is None:
            hint = "" if self._stream is None else "; call solve() once all rows are taken in"
            # An AttributeError too, so that hasattr is False.
            raise NotFittedError(f"{type(self).__name__!r} object has no attribute {name!r} yet{hint}")
        return self._fit

    def _predict_block(
        self, X: Any, return_std: bool, return_cov: bool, given: Array | None
    ) -> tuple[Array, Array]:
        """Mean, and standard deviation or covariance, or nothing, of some rows."""
        if given is not None or return_std or return_cov:
            return self._calibrated_block(X, return_std, return_cov, given)
        return self._features_and_mean(X)[1], np.empty(0)


def _put_back(measured: Array, values: Array) -> Array:
    """Values with the measured targets, where these are finite, in their places."""
    return np.where(np.isfinite(measured), measured, values)
