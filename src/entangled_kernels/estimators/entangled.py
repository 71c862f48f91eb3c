"""The base class of the two entangled estimators: rows are added, a model is solved for, methods use it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy, deepcopy
from functools import partial
from typing import Any, Self

import joblib
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, _safe_indexing, check_array, check_consistent_length, get_tags
from sklearn.utils.validation import _num_samples, validate_data

from ..features import FeatureMapTraits, fit_feature_map, is_fitted
from ..learning import Moments, RowSample
from ..linalg import Array, Index
from ..model import (
    METHODS,
    Explanation,
    FittedModel,
    InputRange,
    TargetScale,
    explain_model,
    fit_target_scale,
    needs_rows,
)
from ..parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_numeric_columns,
    check_range,
    check_real,
    check_share,
    is_dask,
    naming_columns,
    validate_rows,
    warn_user,
)
from ..streams.batch import Batch, add_batches, naming_batch
from ..streams.dask_tables import first_rows, map_partitions, split_partitions, sum_partitions
from ..streams.row_stream import (
    FEATURE_SAMPLE,
    Rows,
    RowStream,
    sampling_keys,
    transform_targets,
)
from .base import (
    MultiTargetRegressor,
    Targets,
    check_columns,
    check_costs,
    check_given,
    check_measured,
    check_weighted_targets,
    drop_missing_rows,
    unchanged_on_error,
)

__all__ = [
    "COLUMN_ATTRIBUTES",
    "EntangledRegressor",
    "NoveltyWarning",
    "fitted_attribute",
]

# Attributes of an estimator that describe the columns of its tables.
COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "target_names_", "_one_dimensional")
# `predict` warns of rows this many times as far out as the edge of the training range, if there
# were at least so many training rows.
FAR, FEWEST_ROWS = 10.0, 20
FLOATS = [np.float64, np.float32]


class NoveltyWarning(UserWarning):
    """Rows to predict lie outside of the range of the training rows."""


def fitted_attribute(name: str, path: str) -> Any:
    """A property that reads a part of a solved estimator, such as "_model.linear.coef".

    There is no such attribute if the model is not solved, or the part is None.
    """

    def read(estimator: EntangledRegressor) -> Any:
        estimator._model_with(name)
        value: Any = estimator
        for part in path.split("."):
            value = None if value is None else getattr(value, part)
        if value is None:
            raise AttributeError(f"{type(estimator).__name__!r} object has no attribute {name!r}")
        return value

    return property(read)


class EntangledRegressor(MultiTargetRegressor):
    """Base class of the entangled estimators: a `RowStream` of rows, and a `FittedModel` solved from it.

    ``_stream`` is what was kept of the rows, None if nothing was kept; ``_model`` is the fitted
    model, None while new rows have not been solved for. A subclass defines how parameters are
    checked, which feature map is fitted on the first rows, and how moments become a model.
    """

    feature_map: Any
    fit_intercept: bool
    target_transform: Any
    random_state: Any

    _stream: RowStream | None = None
    _model: FittedModel | None = None

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
            Also return the covariance of a new observation of all targets, for every row.
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, NaN where a target is to be predicted. Columns of a
            data frame are matched by name; it may have only some of the targets.

        Returns
        -------
        mean : ndarray of shape (n, p), or (n,) when y was one-dimensional
            Given targets are returned unchanged. With a ``target_transform`` this is the median;
            `predict_mean` gives the mean.
        std : like mean, with ``return_std``
            Zero for a given target.
        cov : ndarray of shape (n, p, p), or (n,) when y was one-dimensional, with ``return_cov``

        Notes
        -----
        With ``given`` the other targets are conditioned on the given ones: the errors of targets
        are correlated (`residual_covariance_`), so the error of a given target predicts part of the
        errors of the others.

        Standard deviations of `EntangledKernelRidgeCV`, and all with ``given``, are those of
        held-out residuals. Those of `EntangledKernelRidgeCV.fit` follow the noise if its size
        depends on the inputs or the predictions (`entangled_kernels.uncertainty.ErrorSize`).
        Without ``given``, those of `EntangledKernelRidge` are of the Gaussian-process view: the
        posterior of the model plus `noise_variance_`, and the variance of the intercept, noise over
        n.

        With ``target_transform`` everything is in units of the targets: transformed targets are
        normal, and deviations and covariances are those of their inverse transform.
        """
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov cannot both be true; the covariance holds both"
            )
        if is_dask(X) and given is None:
            return self._predict_dask(X, return_std, return_cov)
        model, rows, values = self._check_new_rows(X, given)
        with naming_columns(X):
            mean, spread = model.predict(rows, values, std=return_std, covariance=return_cov)
        _warn_of_novelty(model.inputs, X)
        if return_cov:
            return self._finish(mean, X), spread[:, 0, 0] if self._one_dimensional else spread
        if return_std:
            return self._finish(mean, X), self._finish(spread, X)
        return self._finish(mean, X)

    def predict_mean(self, X: Any, *, given: Any = None) -> Any:
        """Predict the mean of new observations, where `predict` gives their median.

        Sums, such as totals over rows, need means. Means and medians differ if ``target_transform``
        is not linear: if the logarithm of a target has the deviation s, the mean is exp(s^2 / 2)
        times the median. Otherwise this is `predict`.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`.
        """
        if self._solved_model().scale is None:
            return self.predict(X, given=given)
        model, rows, values = self._check_new_rows(X, given)
        with naming_columns(X):
            return self._finish(model.predict_mean(rows, values), X)

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, given: Any = None, joint: bool = False
    ) -> tuple[Any, Any]:
        """Intervals that hold new observations with a given probability.

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
            Both are the given value of a given target.

        Notes
        -----
        Intervals are quantiles of held-out residuals divided by standard deviations that were
        estimated without the row, and that follow the noise as those of `predict` do. The quantile
        counts the new row as one more, as in the jackknife and split conformal prediction: with n
        rows, at least coverage (n + 1) of n + 1 are covered. With few rows the residuals of all
        targets are pooled; with n rows those of the target have n / (n + 100) of the weight. With
        ``given``, residuals are conditioned in the same way, with a covariance estimated without
        their rows.

        The coverage is an average over new rows from the distribution of the training rows, if one
        more row does not change the model much. It is not a worst-case guarantee such as that of
        the jackknife+, which needs the models of all folds to predict.

        With ``target_transform`` the ends of intervals are transformed back, so that those of a
        logarithm are positive.
        """
        check_share("coverage", coverage)
        check_flag("joint", joint)
        model, rows, values = self._check_new_rows(X, given)
        with naming_columns(X):
            lower, upper = model.predict_interval(rows, float(coverage), values, joint=joint)
        _warn_of_novelty(model.inputs, X)
        return self._finish(lower, X), self._finish(upper, X)

    def suggest_measurements(self, X: Any, given: Any = None, cost: Any = None) -> tuple[Any, Any]:
        """Which target of every row to measure next.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`.
        cost : sequence of p numbers, or mapping from names of targets to numbers, optional
            Cost of measuring each target; 1 by default.

        Returns
        -------
        order : ndarray of shape (n, p) of object
            Names of the targets to measure, the best first; None once all are measured.
        reduction : ndarray of shape (n, p)
            Expected share of the total variance that each measurement removes, after those before
            it; NaN where there is none. The total is the sum of the variances of all targets, each
            in units of the target's variance over the training rows.

        Notes
        -----
        The next target is the one that removes most of the total variance, its own included, for
        its cost.
        """
        model, _, values = self._check_new_rows(X, given)
        names = self._output_names(model.n_targets)
        shape = (_num_samples(X), len(names))
        known = np.zeros(shape, dtype=bool) if values is None else np.isfinite(values)
        order, reduction = model.suggest_measurements(known, check_costs(cost, names))
        return np.array([*names, None], dtype=object)[order], reduction

    def novelty(self, X: Any) -> Array:
        """How far rows are from the training rows; a row above 1 is far.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)

        Returns
        -------
        novelty : ndarray of shape (n,)

        Notes
        -----
        The larger of two numbers. The first is about features: the square root of the model's
        variance at the row over four times the largest variance of held-out training rows. The
        second is about inputs, since features of Gaussian kernels and forests are constant far
        away: the distance of each input from the middle of its training range, in units of the
        range or, with heavy tails, somewhat more (`entangled_kernels.model.InputRange`); a row that
        is half a range outside is at 1.

        Time that of predictions with deviations.
        """
        model, rows, _ = self._check_new_rows(X)
        with naming_columns(X):
            return model.novelty(rows)

    def explain(self, X: Any, given: Any = None, *, method: str = "auto") -> Explanation:
        """Which inputs matter for which targets, and with which sign.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Rows whose predictions are explained, at least two; a few hundred are enough. With few
            rows the noise of an average over several feature maps is underestimated.
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`. Then the predictions of the others
            given these are explained, and given targets are inputs too.
        method : {"auto", "gradient", "permutation"}, default="auto"
            Gradients if the feature map has them in closed form, otherwise permutations.

        Returns
        -------
        explanation : Explanation
            Effects of inputs on targets with their signs, sizes, and the sizes that noise would
            have.

        Notes
        -----
        An effect is the mean over rows of the gradient of a prediction by an input, times the
        standard deviation of that input over the rows, in units of the target; its size is the root
        mean square of the same. They are exact for linear maps. For maps without gradients
        (forests, text, other transformers) each input is permuted over the rows, in a way that
        gives the same numbers for a linear function.

        Noise is the size of effects in models, with the same features and settings, that are fitted
        to held-out errors in place of targets. In an average every feature map counts by its share,
        with the settings of its heaviest candidate, on the rows of X. Noise in tuning the features
        themselves is not included.

        Correlated inputs share their effect as the model does; neither gradients nor permutations
        show which of them is the cause. Targets with a ``target_transform`` are explained on the
        scale on which they are learned.

        Time n p d R for kernels with R landmarks, and twenty times this for the noise; permutations
        predict all rows up to five times for every input.
        """
        check_choice("method", method, METHODS)
        model, rows, values = self._check_new_rows(X, given)
        names = getattr(self, "feature_names_in_", None)
        inputs = None if names is None else list(map(str, names))
        with naming_columns(X):
            targets = self._output_names(model.n_targets)
            return explain_model(model, rows, values, method, inputs, targets)

    @property
    def model_(self) -> FittedModel:
        """The fitted model as one value."""
        return self._model_with("model_")

    coef_: Array = fitted_attribute("coef_", "_model.linear.coef")
    intercept_: Array = fitted_attribute("intercept_", "_model.linear.intercept")
    information_: Array = fitted_attribute("information_", "_model.information")

    @property
    def feature_map_(self) -> Any:
        """The fitted feature map, None if the columns are the features."""
        return self._model_or_stream("feature_map_").feature_map

    @property
    def target_transform_(self) -> TargetScale | None:
        """The scale on which targets are learned, None for the targets themselves."""
        return self._model_or_stream("target_transform_").scale

    @property
    def residual_covariance_(self) -> Any:
        """Covariance of the errors of the targets, (p, p); a `LinearOperator` for more than 2048 targets."""
        return self._model_with("residual_covariance_").calibration.mean_covariance()

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows added, including those of weight zero."""
        if self._stream is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'n_samples_seen_'"
            )
        return self._stream.n_rows

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, forget: float = 1.0
    ) -> Self:
        """Add rows; the model is solved when it is next used, or by `solve`.

        Any split of the rows into batches gives the model of all rows at once, up to rounding.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            May be empty. Names of columns must be those of the first batch.
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            NaN where a target is missing.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_outputs), or float, optional
            Weights of rows, or of single targets.
        forget : float, default=1.0
            Factor, above 0 and at most 1, on the weights of all earlier rows for every new row: the
            row before the last k rows has the weight ``forget ** k``. With 0.999 the last 1,000
            rows have 63% of the weight.

        Returns
        -------
        self

        Notes
        -----
        With ``forget`` the model is that of all rows at once with weights ``forget ** (n - 1 -
        i)``, for any split into batches. Rows with less than a thousandth of the largest weight are
        no longer used for deviations and intervals. The feature map does not change; a drift to
        inputs that it has not seen needs a new fit.

        A feature map that is fitted already is used unchanged. Otherwise it is fitted on the first
        10,000 rows, which are kept in memory until then, or on the rows that there are when the
        model is first used.

        Continues after `fit`. After a search, and after a table with more columns than rows, there
        are no moments to continue from, and it starts anew with a warning.

        When a batch is refused, the estimator is as it was before. Missing inputs that the feature
        map does not accept are found when it is fitted; the error names the rows, which are left
        out, and the rows of the call that failed have to be given again.

        Time n (m + p)^2, memory (m + p)^2, for m features and p targets and any number of rows.
        """
        return self._partial_fit(X, y, sample_weight, None, forget)

    def fit_batches(
        self,
        batches: Iterable[Any],
        *,
        targets: Sequence[str] | None = None,
        groups: str | None = None,
        n_rows: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 100,
        progress: Callable[[Batch], None] | None = None,
    ) -> Self:
        """Fit from an iterable of batches, for tables that do not fit in memory.

        Parameters
        ----------
        batches : iterable
            Of (X, y), (X, y, sample_weight), (X, y, sample_weight, groups), Bunches with data and
            target, or data frames (with ``targets``); or the result of
            `entangled_kernels.streams.read_batches`.
        targets : list of str, optional
            Names of the target columns, if batches are data frames.
        groups : str, optional
            Name of the column of groups, if batches are data frames; it is no input. Rows of a
            group are held out together.
        n_rows : int, optional
            Number of rows in all batches, which folds in the order of time need. The default is
            ``batches.n_rows``, or the rows are counted in a pass before the fit.
        checkpoint : path, optional
            File to which the moments are saved. If it exists, the fit continues from there: the
            batches that it has seen are passed over, and the model is the same, bit for bit, as
            that of a fit without an interruption. The file is not removed at the end.
        checkpoint_every : int, default=100
            Number of batches between two checkpoints. There is one more at the end, and one when a
            batch is refused, from which the fit continues once the batch is corrected.
        progress : callable, optional
            Called with every batch after it was added.

        Returns
        -------
        self
            Solved. When a batch is refused, the error names it, and the estimator has all batches
            before it.

        Notes
        -----
        A checkpoint is used only if the rows that it has seen are unchanged, by a checksum of their
        values. An iterable is run through for that. Of files read by `read_batches`, finished ones
        are compared by a digest, and the rows read of the last one are read again. Later batches
        may have changed.

        A feature map that is not fitted is fitted again on the same first rows, so it needs a fixed
        ``random_state``; the features of the first rows are compared.
        """
        check_integer("checkpoint_every", checkpoint_every, low=1)
        self._check_parameters()
        self._model = None
        self._stream = stream = self._new_stream(batches, targets, n_rows)
        ends = stream.ends
        facts: dict[str, Any] = {
            "estimator": type(self).__name__,
            "n_parts": stream.n_parts,
            "blocks": None if ends is None else ends.tolist(),
        }
        if self.target_transform is not None:
            facts["target_transform"] = joblib.hash(self.target_transform)
        try:
            add_batches(
                batches,
                stream,
                self._add_batch,
                self._fit_first_rows,
                targets=targets,
                groups=groups,
                facts=facts,
                checkpoint=checkpoint,
                every=checkpoint_every,
                progress=progress,
            )
        finally:
            if stream.n_outputs is None:
                self._stream = None
        if stream.n_outputs is None:
            raise ValueError("batches must hold at least one row, got none")
        if ends is not None and stream.n_rows != ends[-1]:
            self._stream = None
            raise ValueError(f"n_rows must be that of all batches, {stream.n_rows}, got {ends[-1]}")
        # Later rows would be after the last block.
        stream.ends = None
        self._solved_model()
        return self

    def merge(self, other: Self) -> Self:
        """Add all rows that another estimator has seen.

        Parameters
        ----------
        other : estimator of the same class
            With the same columns, targets and fitted feature map. It is not changed. Its other
            parameters do not matter.

        Returns
        -------
        self
        """
        if type(other) is not type(self):
            raise TypeError(
                f"other must be of type {type(self).__name__}, got {type(other).__name__}"
            )
        if other is self:
            raise ValueError(
                "other must be another estimator, got this one, whose rows would count twice"
            )
        mine, theirs = self._stream_to_merge("this estimator"), other._stream_to_merge("other")
        self._check_mergeable(other, mine, theirs)
        with mine.lock:
            mine.merge(theirs)
            self._stream, self._model = mine, None
        return self

    def solve(self) -> Self:
        """Solve for all rows added so far, so that all fitted attributes are available.

        `predict` and the other methods that use the model call this when needed. Several threads
        may call it; one of them does the work.

        Returns
        -------
        self
        """
        self._solved_model()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None or self._stream is not None

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        if hasattr(self.feature_map, "__sklearn_tags__"):
            tags.input_tags.sparse = get_tags(self.feature_map).input_tags.sparse
        return tags

    # Methods that a subclass defines.

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _solve(
        self, stream: RowStream, parts: list[Moments], sample: RowSample | None
    ) -> FittedModel:
        """The model from the moments of all parts of a stream, and its sample of rows."""
        raise NotImplementedError

    def _feature_maps(self) -> list[Any]:
        """The feature maps to choose from."""
        return [self.feature_map]

    def _choose_map(self, maps: list[Any], rows: Rows) -> Any:
        """One of several feature maps, by the first rows of a stream with targets on the learned scale."""
        raise NotImplementedError

    def _new_stream(
        self, batches: Any = None, targets: Any = None, n_rows: int | None = None
    ) -> RowStream:
        """An empty stream, with parts for the folds; the arguments are those of `fit_batches`."""
        return RowStream()

    def _parts_of(self, rows: Rows, groups: Any, stream: RowStream) -> Index | None:
        """Part of every row, None if there is one part only."""
        if groups is not None:
            raise ValueError(
                f"groups are for folds, and {type(self).__name__} has none; leave them out, or use "
                f"EntangledKernelRidgeCV"
            )
        return None

    # The model.

    def _solved_model(self) -> FittedModel:
        """The model, solved for all rows added so far, by one thread at a time."""
        stream, model = self._stream, self._model
        if model is not None:
            return model
        if stream is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate "
                f"arguments before using this estimator."
            )
        with stream.lock:
            if self._model is not None:
                return self._model
            if stream.n_rows < 2:
                raise NotFittedError(f"at least 2 rows are needed, got {stream.n_rows}")
            stream.finish_waiting(self._fit_first_rows)
            parts, sample = stream.summary()
            n_rows = sum(part.n_samples for part in parts)
            if n_rows < 2:
                raise NotFittedError(
                    f"at least 2 rows of positive sample_weight are needed, got {n_rows}"
                )
            if not all(part.complete for part in parts):
                measured = np.sum([part.target_weight for part in parts], axis=0)[None]
                check_measured(measured, measured, getattr(self, "target_names_", None))
            self._model = model = self._solve(stream, parts, sample)
        return model

    def _model_with(self, attribute: str) -> FittedModel:
        """The model, to read an attribute of it; reading an attribute does not solve."""
        if self._model is None:
            hint = "" if self._stream is None else "; call solve() once all rows are added"
            # A NotFittedError is an AttributeError too, so that hasattr is False.
            raise NotFittedError(
                f"{type(self).__name__!r} object has no attribute {attribute!r} yet{hint}"
            )
        return self._model

    def _model_or_stream(self, attribute: str) -> FittedModel | RowStream:
        """The value with the feature map and the scale, which are fitted before the model is solved."""
        if self._model is not None:
            return self._model
        if self._stream is not None and self._stream.ready:
            return self._stream
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")

    # Rows to fit.

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Rows, TargetScale | None, Index]:
        """Rows with a measured target, their targets on the learned scale; that scale; row numbers."""
        Y, weight = self._check_targets(X, y, sample_weight)
        n, index = len(Y), np.arange(len(Y))
        if weight is not None:
            # Rows of weight zero, and rows without any target, are left out before the feature map
            # is fitted.
            names = getattr(self, "target_names_", None)
            counted, Y, weight = drop_missing_rows(Y, weight, names)
            index = np.flatnonzero(counted)
            if len(index) < 2 <= n:
                raise ValueError(
                    f"at least 2 rows of positive sample_weight are needed, got {len(index)}"
                )
            X = X if len(index) == n else _safe_indexing(X, index)
        scale = None
        rows = Rows(X, Y, weight)
        if self.target_transform is not None:
            scale = self._fit_scale(rows)
            rows = rows._replace(Y=transform_targets(scale, Y, weight, index))
        return rows, scale, index

    def _check_targets(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, **limits: float
    ) -> Targets:
        """Targets (n, p) of the rows X, NaN where missing, and their weights."""
        targets = self._take_targets(y, reset=reset, missing=True)
        check_consistent_length(X, targets)
        names = getattr(self, "target_names_", None)
        checked = check_weighted_targets(targets, sample_weight, names)
        if (measured := checked.Y[np.isfinite(checked.Y)]).size:
            check_range("y", measured, **limits)
        return checked

    def _check_columns(
        self, X: Any, maps: Collection[Any], *, reset: bool = True, **checks: Any
    ) -> Any:
        """Rows with the columns of training; an array of numbers if these are the only features."""
        for feature_map in maps:
            if feature_map is None:
                check_numeric_columns(X)
                rows = validate_rows(self, X, reset=reset, dtype=FLOATS, **checks)
                X = rows if len(maps) == 1 else X
            else:
                check_columns(self, X, reset=reset)
        return X

    def _fit_scale(self, rows: Rows, *, refit: bool = True) -> TargetScale:
        names = self._output_names(rows.Y.shape[1])
        transform = self.target_transform
        return fit_target_scale(transform, rows.Y, rows.weight, names, refit=refit)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, forget: float) -> Self:
        self._check_parameters()
        check_real("forget", forget, "a number above 0 and at most 1", 0.0, 1.0, without=(0.0,))
        with unchanged_on_error(self):
            self._add_batch(Batch(X, y, sample_weight, groups=groups), forget=float(forget))
        return self

    def _add_batch(self, batch: Batch, name: str | None = None, forget: float = 1.0) -> None:
        """Add all rows of a batch or none; ``name`` is for later error messages."""
        X, y, sample_weight, _, groups = batch
        n, stream = _num_samples(X), self._stream
        first = stream is None or stream.n_outputs is None
        if n == 0:
            check_consistent_length(X, y)
            if not first and hasattr(X, "shape"):
                validate_data(self, X, reset=False, skip_check_array=True)
            return
        if forget < 1.0:
            sample_weight = _faded(sample_weight, forget ** np.arange(n - 1, -1, -1.0))
        rows = self._check_batch(X, y, sample_weight, first=first)._replace(name=name)
        if stream is None:
            stream = self._new_stream()
        part = self._parts_of(rows, groups, stream)
        if first:
            if self._model is not None:
                # scikit-learn requires partial_fit to work after any fit.
                warn_user(
                    f"partial_fit starts anew: fit kept no moments of the rows that this "
                    f"{type(self).__name__} was fitted on; add all rows with partial_fit or fit_batches",
                )
                self._model = None
            stream.grouped, self._stream = groups is not None, stream
            transform, maps = self.target_transform, self._feature_maps()
            if transform is not None and not needs_rows(transform):
                stream.scale = self._fit_scale(rows, refit=False)
            has_scale = transform is None or stream.scale is not None
            if has_scale and len(maps) == 1 and is_fitted(maps[0]):
                stream.feature_map, stream.ready = maps[0], True
        elif stream.grouped != (groups is not None):
            raise ValueError("groups must be given with every batch, or with none")
        with stream.lock:
            stream.add(rows._replace(part=part), self._fit_first_rows, forget**n)
            self._model = None

    def _fit_first_rows(self, rows: Rows) -> tuple[Any, TargetScale | None]:
        """Feature map and target scale, fitted on the first rows of a stream."""
        scale = None if self._stream is None else self._stream.scale
        if self.target_transform is not None:
            scale = scale or self._fit_scale(rows, refit=False)
            rows = rows._replace(Y=transform_targets(scale, rows.Y, rows.weight))
        maps = self._feature_maps()
        feature_map = maps[0] if len(maps) == 1 else self._choose_map(maps, rows)
        if not is_fitted(feature_map):
            targets = self._targets_like_y(rows.Y)
            feature_map = fit_feature_map(feature_map, rows.X, targets, rows.weight)
        return feature_map, scale

    def _check_batch(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Rows:
        """A batch, checked; the names of the columns of the first one are kept."""
        maps = self._feature_maps()
        X = self._check_columns(X, maps, reset=first)
        if maps != [None]:
            takes_missing = all(FeatureMapTraits.of(each).takes_missing_inputs for each in maps)
            finite = "allow-nan" if takes_missing else True
            with naming_columns(X):
                check_array(
                    X, accept_sparse=True, dtype=None, ensure_all_finite=finite, input_name="X"
                )
        Y, weight = self._check_targets(X, y, sample_weight, reset=first, smallest=0.0)
        n_outputs = None if self._stream is None else self._stream.n_outputs
        if n_outputs not in (None, Y.shape[1]):
            raise ValueError(f"y must have the {n_outputs} columns it had before, got {Y.shape[1]}")
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.size:
            check_range("X", np.nan_to_num(X, nan=0.0), smallest=0.0)
        return Rows(X, Y, weight, key=sampling_keys(X, Y))

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        """Fit on the partitions of Dask tables, by the workers that hold them.

        Before that, up to 10,000 of the first rows are copied to this process for the names of the
        columns, and to fit the feature map.
        """
        partitions = split_partitions(X, y, sample_weight, groups)
        self._stream = self._model = None
        try:
            for name, batch in first_rows(partitions, FEATURE_SAMPLE):
                with naming_batch(name, batch.X, batch.y):
                    self._add_batch(batch, name)
                if self._stream is not None and self._stream.ready:
                    break
            if self._stream is None:
                raise ValueError("X must hold at least one row, got none")
            self._stream.finish_waiting(self._fit_first_rows)
            self._stream = sum_partitions(
                _partition_stream, RowStream.merged, self._without_rows(), partitions
            )
            return self.solve()
        except BaseException:
            # A model of the first rows alone must not remain.
            self._stream = self._model = None
            raise

    def _without_rows(self) -> Self:
        """A copy without moments, to send to other processes."""
        slim = copy(self)
        slim._stream = None if self._stream is None else self._stream.without_rows()
        return slim

    def _stream_to_merge(self, name: str) -> RowStream:
        """The stream, or, if rows wait, a copy with the feature map fitted; an error changes nothing."""
        stream = self._stream
        if stream is None and self._model is not None:
            raise ValueError(
                f"{name} was fitted in memory and kept no moments to merge; add its rows with "
                f"partial_fit or fit_batches"
            )
        if stream is None:
            raise NotFittedError(
                f"{name} has seen no rows yet; call partial_fit or fit_batches first"
            )
        if stream.waiting:
            stream = deepcopy(stream)
            stream.finish_waiting(self._fit_first_rows)
        return stream

    def _check_mergeable(self, other: Self, mine: RowStream, theirs: RowStream) -> None:
        for name in COLUMN_ATTRIBUTES:
            values = [getattr(estimator, name, None) for estimator in (self, other)]
            listed = [None if value is None else np.atleast_1d(value).tolist() for value in values]
            if listed[0] != listed[1]:
                raise ValueError(
                    f"estimators to merge must have the same {name}, got {values[0]} and {values[1]}"
                )
        if mine.n_outputs != theirs.n_outputs or mine.n_parts != theirs.n_parts:
            raise ValueError(
                "estimators to merge must have the same number of targets and of folds"
            )
        if mine.grouped != theirs.grouped:
            raise ValueError("estimators to merge must both have groups of rows, or neither")
        for name, pair in (
            ("feature_map", (mine.feature_map, theirs.feature_map)),
            ("target_transform", (mine.scale, theirs.scale)),
        ):
            if joblib.hash(pair[0]) != joblib.hash(pair[1]):
                raise ValueError(
                    f"estimators to merge must have the same fitted {name}; fit it first and give it to both"
                )

    # Rows to predict.

    def _check_new_rows(self, X: Any, given: Any = None) -> tuple[FittedModel, Any, Array | None]:
        """The model, rows with the columns of training, and given targets (n, p) or None."""
        if is_dask(X, given):
            raise TypeError(
                "X and given must be tables in memory, got a Dask table; take its partitions one by one"
            )
        model = self._solved_model()
        rows = self._check_columns(X, [model.feature_map], reset=False, ensure_all_finite=False)
        if given is None:
            return model, rows, None
        names = self._output_names(model.n_targets)
        return model, rows, check_given(given, X, names, named=hasattr(self, "target_names_"))

    def _predict_dask(self, X: Any, return_std: bool, return_cov: bool) -> Any:
        """Lazy predictions in the partitions of X, with standard deviations or covariances."""
        p, slim = self._solved_model().n_targets, self._without_rows()
        slim._sklearn_output_config = {}

        def lazy(n_axes: int, option: str | None = None) -> Any:
            shape = () if self._one_dimensional else (p,) * n_axes
            predict = partial(_predict_partition, option=option)
            as_frame = self._container() == "pandas"
            return map_partitions(predict, slim, X, shape, self._output_names(p), as_frame=as_frame)

        mean = lazy(1)
        if return_cov:
            return mean, lazy(2, "return_cov")
        return (mean, lazy(1, "return_std")) if return_std else mean


def _warn_of_novelty(inputs: InputRange | None, X: Any) -> None:
    """Warn of single rows far outside of the training ranges, and of a batch that is mostly outside."""
    if inputs is None or inputs.n_rows < FEWEST_ROWS:
        return
    n = _num_samples(X)
    batch = inputs.judge(X, FAR)
    if batch.n_far:
        warn_user(
            f"{batch.n_far} of {n} rows lie far outside of the inputs of the training rows; check "
            f"units and the order of columns; novelty(X) gives the distance of each row",
            NoveltyWarning,
        )
    elif batch.unusual:
        warn_user(
            f"{batch.share_outside:.0%} of {n} rows have inputs outside of the range of the training "
            f"rows, more than new rows from the same distribution would have; errors may be larger, "
            f"and intervals cover less; novelty(X) gives the distance of each row",
            NoveltyWarning,
        )


def _predict_partition(estimator: EntangledRegressor, X: Any, option: str | None) -> Any:
    """Predictions for a partition, or the second result of ``predict`` with an option."""
    return estimator.predict(X) if option is None else estimator.predict(X, **{option: True})[1]


def _partition_stream(
    estimator: EntangledRegressor, X: Any, y: Any, sample_weight: Any, groups: Any
) -> RowStream | None:
    """A stream of the rows of one partition."""
    worker = estimator._without_rows()
    worker._add_batch(Batch(X, y, sample_weight, groups=groups))
    return worker._stream


def _faded(sample_weight: Any, factors: Array) -> Any:
    """Weights of rows, or of single targets, times a factor for each row; anything else is unchanged."""
    if sample_weight is None:
        return factors
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
        return weight * (factors[:, None] if weight.ndim == 2 else factors)
    except (TypeError, ValueError):
        return sample_weight
