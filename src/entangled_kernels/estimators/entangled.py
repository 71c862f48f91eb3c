"""What the two entangled estimators share: taking rows in, solving when that is needed, and delegating."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, _safe_indexing, check_array, check_consistent_length, get_tags
from sklearn.utils.validation import _num_samples, validate_data

from ..features import FeatureMapTraits, fit_and_map, fit_feature_map, is_fitted, map_features
from ..learning import Moments, RowSample
from ..linalg import Array, Index
from ..model import (
    METHODS,
    Explanation,
    FittedModel,
    TargetScale,
    block_height,
    check_target_transform,
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
from ..streams.batch import Batch, as_batch
from ..streams.dask_tables import first_rows, map_partitions, split_partitions, sum_partitions
from ..streams.out_of_core import BatchRun, named_errors
from ..streams.row_stream import FEATURE_SAMPLE, RowMap, Rows, RowStream, sampling_keys
from .base import (
    MultiTargetRegressor,
    check_costs,
    check_given,
    check_measured,
    check_weighted_targets,
    simplify_weights,
    to_container,
    unchanged_on_error,
)

__all__ = [
    "COLUMN_ATTRIBUTES",
    "FLOATS",
    "EntangledRegressor",
    "NoveltyWarning",
    "refusing_sparse_rows",
]

# What an estimator knows of the columns of its tables.
COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "target_names_", "_one_dimensional")
# `predict` warns of rows this many times as far out as the edge of the training range, from so many
# rows on.
FAR, FEWEST_ROWS = 10.0, 20
FLOATS: dict[str, Any] = {"dtype": [np.float64, np.float32]}


class NoveltyWarning(UserWarning):
    """Rows to be predicted lie outside of what the model was fitted on."""


class EntangledRegressor(MultiTargetRegressor):
    """Base class of the entangled estimators: a `RowStream` of rows, and a `FittedModel` solved from it.

    ``_stream`` is what was kept of the rows, None where nothing was kept; ``_model`` is the fitted
    model, None while rows that were taken in wait to be solved for. A subclass says how parameters
    are checked, how a feature map is fitted on the first rows, and how moments become a model.
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
            Also return the covariance of a new observation of all targets, row by row.
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, NaN where one is to be predicted. Columns of a data
            frame are matched by name; it may have some of the targets only.

        Returns
        -------
        mean : ndarray of shape (n, p), or (n,) when y was one-dimensional
            Given targets come back as they are. With a ``target_transform`` this is the median;
            `predict_mean` gives the mean.
        std : like mean, with ``return_std``
            Zero for a given target.
        cov : ndarray of shape (n, p, p), or (n,) when y was one-dimensional, with ``return_cov``

        Notes
        -----
        With ``given`` the other targets are conditioned on the given ones: errors of targets are
        correlated, as residuals of held-out rows show (`residual_covariance_`), so the error of a
        given target predicts part of the errors of the others. Rows taken in by `partial_fit` are
        solved for first.

        Deviations of `EntangledKernelRidgeCV`, and all that are conditioned, are those of held-out
        residuals. Without ``given`` those of `EntangledKernelRidge` are of the Gaussian-process
        view: the posterior of the model plus `noise_variance_`, and with an intercept its variance,
        noise over n.

        With ``target_transform`` all of this is in units of the targets: transformed targets are
        normal, the prediction is transformed back, and deviations and covariances are those of the
        resulting law.
        """
        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov cannot both be true; the covariance holds both"
            )
        model = self._solved_model()
        if is_dask(X, given):
            if given is not None:
                raise TypeError(
                    "given needs tables in memory; predict the partitions of a Dask table apart"
                )
            return self._predict_dask(X, return_std, return_cov)
        rows, values = self._new_rows(X), self._given_values(given, X)
        with naming_columns(X):
            found = model.predict(rows, values, std=return_std, covariance=return_cov)
        self._warn_of_novelty(X)
        if return_cov and found.covariance is not None:
            cov = found.covariance
            return self._finish(found.mean, X), cov[:, 0, 0] if self._one_dimensional else cov
        if return_std and found.std is not None:
            return self._finish(found.mean, X), self._finish(found.std, X)
        return self._finish(found.mean, X)

    def predict_mean(self, X: Any, *, given: Any = None) -> Any:
        """Predict the mean of new observations, where `predict` gives their median.

        Sums, such as totals over rows, need means. They differ from medians where
        ``target_transform`` bends the scale of a target: if the logarithm of a target has the
        deviation s, the mean is exp(s^2 / 2) times the median. Otherwise this is `predict`.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`.
        """
        model = self._solved_model()
        if model.scale is None:
            return self.predict(X, given=given)
        _refuse_dask("predict_mean", X, given)
        rows, values = self._new_rows(X), self._given_values(given, X)
        with naming_columns(X):
            return self._finish(model.predict_mean(rows, values), X)

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
            Both are the given value of a given target.

        Notes
        -----
        Intervals rest on residuals of rows from models without them, over deviations that were
        estimated without the row. The quantile of these scores counts the new row as one more, as
        the jackknife and split conformal prediction do: with n rows at least coverage (n + 1) of n
        + 1 are covered. With few rows the scores of all targets are pooled; with n rows the scores
        of a target itself have n / (n + 100) of the weight. With given targets residuals are
        conditioned likewise, with a covariance estimated without their rows.

        The coverage holds on average over new rows that come from where the training rows came
        from, as far as the model does not change much with one row more. It is not a worst-case
        guarantee such as that of the jackknife+, which would need all models of the folds to
        predict.

        With ``target_transform`` intervals of transformed targets are transformed back, so that
        those of a logarithm are positive.
        """
        _refuse_dask("predict_interval", X, given)
        check_share("coverage", coverage)
        check_flag("joint", joint)
        model = self._solved_model()
        rows, values = self._new_rows(X), self._given_values(given, X)
        with naming_columns(X):
            lower, upper = model.predict_interval(rows, float(coverage), values, joint=joint)
        self._warn_of_novelty(X)
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
            Share that each of them is expected to remove, after those before it, of the sum of the
            variances of all targets, each in units of the target's own variance; NaN where there is
            none.

        Notes
        -----
        The next target is the one that removes most of that sum, its own variance included, for its
        cost.
        """
        model = self._solved_model()
        names = self._output_names(model.n_targets)
        costs, values = check_costs(cost, names), self._given_values(given, X)
        known = (
            np.zeros((_num_samples(X), len(names)), dtype=bool)
            if values is None
            else np.isfinite(values)
        )
        order, reduction = model.suggest_measurements(known, costs)
        return np.array([*names, None], dtype=object)[order], reduction

    def novelty(self, X: Any) -> Array:
        """How far rows are from what training supports; above 1 is far.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)

        Returns
        -------
        novelty : ndarray of shape (n,)

        Notes
        -----
        The larger of two numbers. The first is about features: the root of the model's variance at
        the row, in units of four times the largest of held-out training rows. Features of Gaussian
        kernels and of forests are constant far away, so it does not see such rows. The second is
        about inputs: the distance of each from the middle of its range in training, in units of the
        range or, with heavy tails, somewhat more (`entangled_kernels.model.InputRange`); a row that
        is half a range outside is at 1.

        Time that of predictions with deviations.
        """
        _refuse_dask("novelty", X)
        model = self._solved_model()
        rows = self._new_rows(X)
        with naming_columns(X):
            return model.novelty(rows)

    def explain(self, X: Any, given: Any = None, *, method: str = "auto") -> Explanation:
        """Which inputs matter for which targets, and which way.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Rows to explain predictions of, at least two; a few hundred are enough. With a handful,
            the noise of an average over several feature maps comes out too small.
        given : array-like or data frame of shape (n, p), optional
            Targets that are measured already, as in `predict`. Then the predictions of the others
            given these are explained, and given targets count as inputs too.
        method : {"auto", "gradient", "permutation"}, default="auto"
            Gradients where the feature map has them in closed form, otherwise permutations.

        Returns
        -------
        explanation : Explanation
            Effects of inputs on targets with their signs, sizes, and the sizes that noise would
            have.

        Notes
        -----
        An effect is the mean over rows of the gradient of a prediction by an input, times the
        standard deviation of that input over the rows, in units of the target; its size is the root
        mean square of the same. They are exact for linear maps. With maps that have no gradients
        (forests, text, foreign transformers) each input is permuted over the rows instead, in a way
        that gives the same numbers for a linear function.

        Noise is the size that effects have in models, with the same features and settings, of
        targets that are nothing but errors of held-out rows. In an average every feature map counts
        by its share, with the settings of its heaviest candidate; over several maps the rows of X
        replace those of training. Noise in tuning the features themselves is not included.

        Correlated inputs share their effect in whatever way the model does; neither gradients nor
        permutations tell which of them is the cause.

        Targets with a ``target_transform`` are explained on the scale on which they are learned.

        Time n p d R for kernels with R landmarks, some twenty times over for the noise;
        permutations predict all rows up to five times for every input.
        """
        _refuse_dask("explain", X, given)
        check_choice("method", method, METHODS)
        model = self._solved_model()
        rows, values = self._new_rows(X), self._given_values(given, X)
        inputs = (
            [str(name) for name in self.feature_names_in_]
            if hasattr(self, "feature_names_in_")
            else None
        )
        with naming_columns(X):
            return model.explain(rows, values, method, inputs, self._output_names(model.n_targets))

    @property
    def model_(self) -> FittedModel:
        """The fitted model: one value that predicts, conditions on given targets, and knows its errors."""
        return self._shown("model_")

    @property
    def coef_(self) -> Array:
        """Coefficients (p, m) of the features."""
        return self._shown("coef_").linear.coef

    @property
    def intercept_(self) -> Array:
        """Constant of every target, (p,)."""
        return self._shown("intercept_").linear.intercept

    @property
    def feature_map_(self) -> Any:
        """The fitted feature map, None where the columns are the features."""
        return self._row_map("feature_map_").feature_map

    @property
    def target_transform_(self) -> TargetScale | None:
        """The scale on which targets are learned, None for the targets themselves."""
        return self._row_map("target_transform_").scale

    @property
    def residual_covariance_(self) -> Any:
        """Covariance of the errors of the targets, (p, p); a `LinearOperator` for more than 2048 targets."""
        return self._shown("residual_covariance_").calibration.mean_covariance()

    @property
    def information_(self) -> Array:
        """Share of the remaining variance of target b that measuring a removes, (p, p), a in rows."""
        return self._shown("information_").information

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows taken in, those of weight zero included."""
        if self._stream is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'n_samples_seen_'"
            )
        return self._stream.n_rows

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, forget: float = 1.0
    ) -> Self:
        """Take in some more rows; the model is solved when it is next used, or by `solve`.

        Any split of the rows into batches gives the model of all rows at once, up to rounding.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            One row or none is allowed. Names of columns must be those of the first batch.
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            NaN where a target is missing.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_outputs), or float, optional
            Weights of rows, or of single targets.
        forget : float, default=1.0
            Factor, above 0 and at most 1, on the weights of all earlier rows for every new row: the
            row before the last k rows weighs ``forget ** k``. With 0.999 the last 1,000 rows hold
            63% of the weight.

        Returns
        -------
        self

        Notes
        -----
        With ``forget`` the model is that of all rows at once with weights ``forget ** (n - 1 -
        i)``, however they are cut into batches: moments are sums, and a sum is forgotten by a
        factor. Rows whose weight has fallen below a thousandth no longer calibrate deviations and
        intervals. Weights of the past fade, the feature map does not change; a drift to inputs that
        it has not seen needs a new fit.

        A feature map that is fitted already is used as it is. Otherwise it is fitted on the first
        10,000 rows, which are held in memory until then, or on those that there are when the model
        is first used; it does not change afterwards.

        Continues where `fit` stopped. Where `fit` keeps no moments, after a search or of a table
        with more columns than rows, it starts again, with a warning.

        When a batch is refused, the estimator is as it was before. Missing inputs that the feature
        map does not take are found when it is fitted; the error then names the rows, which are left
        out, and the rows of the call that failed are to be given again.

        Time n (m + p)^2, memory (m + p)^2, for m features and p targets, whatever the number of
        rows.
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
            target, data frames (with ``targets``), or what `entangled_kernels.streams.read_batches`
            gives.
        targets : list of str, optional
            Names of the target columns, where batches are data frames.
        groups : str, optional
            Name of the column of groups, where batches are data frames; it is no input. Rows of a
            group are held out together.
        n_rows : int, optional
            Number of rows in all batches, which folds in the order of time need. Without it
            ``batches`` may know it, as those of `read_batches` do of most files, or are run through
            once to count it.
        checkpoint : path, optional
            File to which the moments are saved now and then. When it exists, the fit continues from
            there: the batches that it has seen are passed over, and the model is the same, to the
            last bit, as that of a fit that was never interrupted. The file stays when the fit is
            done.
        checkpoint_every : int, default=100
            Number of batches between two checkpoints. There is one more at the end, and one when a
            batch is refused, from which the fit continues once the batch is mended.
        progress : callable, optional
            Called with every batch after it was taken in.

        Returns
        -------
        self
            Solved. When a batch is refused the error names it, and the estimator holds all batches
            before it.

        Notes
        -----
        A checkpoint is used only where the rows that it has seen are unchanged: their values are
        checked. To that end an iterable is run through; files read by `read_batches` that were
        finished are compared by a digest, the rows of the one in progress are read again, and then
        reading starts where it is needed. What comes later may have changed, such as a batch that
        was refused.

        A feature map that is not fitted is fitted again on the same first rows, so it needs a fixed
        ``random_state``; that it is the same map is checked.
        """
        check_integer("checkpoint_every", checkpoint_every, low=1)
        self._check_parameters()
        self._reset()
        ends = self._block_ends(batches, targets, n_rows)
        self._stream = stream = RowStream(self._n_parts())

        def take(batch: Batch, where: str, n_before: int) -> None:
            part = None
            if ends is not None:
                numbers = n_before + np.arange(_num_samples(batch.X))
                # Rows beyond the end are counted, and refused, when all are there.
                part = np.minimum(np.searchsorted(ends, numbers, side="right"), len(ends) - 1)
            self._take_batch(batch, part=part, where=where)

        signature: dict[str, Any] = {
            "estimator": type(self).__name__,
            "n_parts": self._n_parts(),
            "blocks": None if ends is None else ends.tolist(),
        }
        if self.target_transform is not None:
            signature["target_transform"] = joblib.hash(self.target_transform)
        run = BatchRun(
            stream, take, self._fit_row_map, signature, checkpoint, checkpoint_every, progress
        )
        try:
            position = run.run(batches, lambda item: as_batch(item, targets, groups))
        finally:
            if stream.n_outputs is None:
                self._stream = None
        if stream.n_outputs is None:
            raise ValueError("batches must hold at least one row, got none")
        if ends is not None and position.n_rows != ends[-1]:
            self._reset()
            raise ValueError(
                f"n_rows must be that of all batches, {position.n_rows}, got {ends[-1]}"
            )
        return self.solve()

    def merge(self, other: Self) -> Self:
        """Take in all rows that another estimator has seen.

        Parameters
        ----------
        other : estimator of the same kind
            With the same columns and targets and, where there is one, the same fitted feature map.
            It is not changed. Its other parameters do not matter.

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
        before = deepcopy(mine) if mine.waiting else mine
        try:
            mine.finish_waiting(self._fit_row_map)
            if theirs.waiting:
                other = deepcopy(other)
                theirs = other._stream_to_merge("other")
                theirs.finish_waiting(other._fit_row_map)
            self._check_mergeable(other, mine, theirs)
        except BaseException:
            # A refused merge leaves rows waiting for the feature map.
            self._stream = before
            raise
        with mine.lock:
            mine.merge(theirs)
            self._model = None
        return self

    def solve(self) -> Self:
        """Solve for all rows taken in so far, so that every attribute of the model is there.

        `predict` and everything else that uses the model does this by itself when it is needed.
        Several threads may call it; one of them does the work.

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

    # What a subclass says.

    def _check_parameters(self) -> None:
        check_flag("fit_intercept", self.fit_intercept)
        if self.target_transform is not None:
            check_target_transform(self.target_transform)

    def _solve_parts(
        self, parts: list[Moments], sample: RowSample | None, stream: RowStream
    ) -> FittedModel:
        """The model from the moments of all parts of a stream."""
        raise NotImplementedError

    def _fit_first_map(self, rows: Rows) -> Any:
        """The feature map fitted on the first rows of a stream, whose targets are on the learned scale."""
        given = self._given_map()
        if is_fitted(given):
            return given
        return self._fit_map(given, rows.X, rows.Y, rows.weight)[0]

    def _given_map(self) -> Any:
        """The feature map that was given, a list where there are several."""
        return self.feature_map

    def _n_parts(self) -> int:
        """Number of parts, such as folds, that rows of a stream fall into."""
        return 1

    def _parts_of(self, rows: Rows, groups: Any) -> Index | None:
        """Part of every row, None where there is one part only."""
        if groups is not None:
            raise ValueError(
                f"groups are for folds, of which {type(self).__name__} has none; leave them out, or use "
                f"EntangledKernelRidgeCV"
            )
        return None

    def _block_ends(self, batches: Any, targets: Any, n_rows: int | None) -> Index | None:
        """Ends of the blocks of rows that are the parts, where these are in the order of time."""
        return None

    # Solving.

    def _solved_model(self) -> FittedModel:
        """The model, solved for all rows taken in so far, in one thread at a time."""
        stream, model = self._stream, self._model
        if model is None and stream is not None:
            with stream.lock:
                model = self._model
                if model is None:
                    model = self._model = self._solve_stream(stream)
        if model is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate "
                f"arguments before using this estimator."
            )
        return model

    def _solve_stream(self, stream: RowStream) -> FittedModel:
        if stream.n_rows < 2:
            raise NotFittedError(f"at least 2 rows are needed, got {stream.n_rows}")
        stream.finish_waiting(self._fit_row_map)
        parts, sample = stream.summary()
        n_rows = sum(part.n_samples for part in parts)
        if n_rows < 2:
            raise NotFittedError(
                f"at least 2 rows of positive sample_weight are needed, got {n_rows}"
            )
        if not all(part.complete for part in parts):
            measured = np.sum([part.target_weight for part in parts], axis=0)[None]
            check_measured(measured, measured, getattr(self, "target_names_", None))
        return self._solve_parts(parts, sample, stream)

    def _shown(self, name: str) -> FittedModel:
        """The model, for the attribute of this name; reading an attribute solves nothing."""
        if self._model is None:
            hint = "" if self._stream is None else "; call solve() once all rows are taken in"
            # A NotFittedError is an AttributeError too, so that hasattr is False.
            raise NotFittedError(
                f"{type(self).__name__!r} object has no attribute {name!r} yet{hint}"
            )
        return self._model

    def _row_map(self, name: str) -> RowMap:
        if self._model is not None:
            return RowMap(self._model.feature_map, self._model.scale)
        if self._stream is not None and self._stream.row_map is not None:
            return self._stream.row_map
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # Taking rows in.

    def _reset(self) -> None:
        """Drop everything that was fitted."""
        self._stream = self._model = None

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Rows, TargetScale | None, Index]:
        """Rows with a measured target, their targets on the learned scale; that scale; and their numbers."""
        targets = self._take_targets(y, missing=True)
        check_consistent_length(X, targets)
        Y, weight = self._check_weighted(targets, sample_weight)
        index = np.arange(len(Y))
        if weight is not None:
            check_measured(Y, weight, getattr(self, "target_names_", None))
            # Rows of weight zero, and rows without any target, are left out before a feature map
            # sees them.
            counted = weight > 0.0 if weight.ndim == 1 else weight.any(axis=1)
            if not counted.all():
                index = np.flatnonzero(counted)
                if len(index) < 2 <= len(Y):
                    raise ValueError(
                        f"at least 2 rows of positive sample_weight are needed, got {len(index)}"
                    )
                X, Y, weight = _safe_indexing(X, index), Y[index], simplify_weights(weight[index])
        if self.target_transform is None:
            return Rows(X, Y, weight), None, index
        scale = fit_target_scale(self.target_transform, Y, weight, self._output_names(Y.shape[1]))
        return Rows(X, RowMap(None, scale).targets(Y, weight, index), weight), scale, index

    def _check_weighted(
        self, targets: Array, sample_weight: Any, *, smallest: float | None = None
    ) -> tuple[Array, Array | None]:
        """Targets (n, p), NaN where missing, and weights, in the range in which squares can be summed."""
        Y = targets.reshape(len(targets), -1)
        if (measured := Y[np.isfinite(Y)]).size:
            check_range("y", measured, **({} if smallest is None else {"smallest": smallest}))
        if sample_weight is None and not np.isnan(Y).any():
            return Y, None
        return check_weighted_targets(Y, sample_weight, getattr(self, "target_names_", None))

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, forget: float) -> Self:
        self._check_parameters()
        check_real("forget", forget, "a number above 0 and at most 1", 0.0, 1.0, without=(0.0,))
        with unchanged_on_error(self):
            self._take_batch(Batch(X, y, sample_weight, groups=groups), forget=float(forget))
        return self

    def _take_batch(
        self,
        batch: Batch,
        *,
        part: Index | None = None,
        where: str | None = None,
        forget: float = 1.0,
    ) -> None:
        """Take in a batch, whole or not at all.

        ``part`` is that of every row, where it does not follow from the row or its group; ``where``
        is what errors that come later call the batch.
        """
        X, y, sample_weight, groups = batch.X, batch.y, batch.sample_weight, batch.groups
        n, stream = _num_samples(X), self._stream
        if stream is not None and stream.n_parts != self._n_parts():
            raise ValueError(
                f"cv must stay at the {stream.n_parts} folds that rows were taken in with, got "
                f"{self._n_parts()}"
            )
        first = stream is None or stream.n_outputs is None
        if n == 0:
            check_consistent_length(X, y)
            if not first and hasattr(X, "shape"):
                validate_data(self, X, reset=False, skip_check_array=True)
            return
        if forget < 1.0:
            sample_weight = _faded(sample_weight, forget ** np.arange(n - 1, -1, -1.0))
        rows = self._check_batch(X, y, sample_weight, first=first)._replace(where=where)
        rows = rows._replace(part=self._parts_of(rows, groups) if part is None else part)
        if stream is None or first:
            stream = self._start_stream(stream, rows, grouped=groups is not None)
        elif stream.grouped != (groups is not None):
            raise ValueError("groups must be given with every batch, or with none")
        with stream.lock:
            stream.take(rows, self._fit_row_map, forget**n)
            self._model = None

    def _start_stream(self, stream: RowStream | None, rows: Rows, *, grouped: bool) -> RowStream:
        """Begin a stream of rows like these."""
        if self._model is not None:
            # scikit-learn's contract wants partial_fit to work after any fit.
            warn_user(
                f"partial_fit starts anew: fit kept no moments of the rows that this {type(self).__name__} "
                f"was fitted on; take in all rows with partial_fit or fit_batches",
            )
            self._reset()
        self._stream = stream = RowStream(self._n_parts()) if stream is None else stream
        stream.grouped = grouped
        if not needs_rows(self.target_transform):
            names, given = self._output_names(rows.Y.shape[1]), self._given_map()
            stream.scale = fit_target_scale(
                self.target_transform, rows.Y, rows.weight, names, refit=False
            )
            if is_fitted(given):
                stream.row_map = RowMap(given, stream.scale)
        return stream

    def _fit_row_map(self, rows: Rows) -> RowMap:
        """Feature map and target scale, fitted on the first rows of a stream."""
        scale = None if self._stream is None else self._stream.scale
        if scale is None:
            names = self._output_names(rows.Y.shape[1])
            scale = fit_target_scale(self.target_transform, rows.Y, rows.weight, names, refit=False)
        rows = rows._replace(Y=RowMap(None, scale).targets(rows.Y, rows.weight))
        return RowMap(self._fit_first_map(rows), scale)

    def _check_batch(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Rows:
        """A batch checked, with the names of its columns kept where it is the first."""
        targets = self._take_targets(y, reset=first, missing=True)
        given = self._given_map()
        if given is None:
            check_numeric_columns(X)
            X = validate_rows(self, X, reset=first, **FLOATS)
        else:
            self._check_columns(X, reset=first)
            maps = given if isinstance(given, list) else [given]
            takes_missing = all(FeatureMapTraits.of(one).takes_missing_inputs for one in maps)
            finite = "allow-nan" if takes_missing else True
            with naming_columns(X):
                check_array(
                    X, accept_sparse=True, dtype=None, ensure_all_finite=finite, input_name="X"
                )
        n_outputs = None if self._stream is None else self._stream.n_outputs
        if n_outputs is not None and targets[:1].size != n_outputs:
            raise ValueError(
                f"y must have the {n_outputs} columns it had before, got {targets[:1].size}"
            )
        check_consistent_length(X, targets)
        Y, weight = self._check_weighted(targets, sample_weight, smallest=0.0)
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.size:
            check_range("X", np.nan_to_num(X, nan=0.0), smallest=0.0)
        return Rows(X, Y, weight, key=sampling_keys(X, Y))

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        """Fit on the partitions of Dask tables, wherever they are.

        Before that the first rows, up to 10,000, are brought here for the names of columns, and for
        a feature map that is not fitted yet.
        """
        partitions = split_partitions(X, y, sample_weight, groups)
        self._reset()
        try:
            for where, (X_first, y_first, weight, own_groups) in first_rows(
                partitions, FEATURE_SAMPLE
            ):
                with named_errors(where, X_first, y_first):
                    self._take_batch(
                        Batch(X_first, y_first, weight, groups=own_groups), where=where
                    )
                if self._stream is not None and self._stream.row_map is not None:
                    break
            if self._stream is None:
                raise ValueError("X must hold at least one row, got none")
            self._stream.finish_waiting(self._fit_row_map)
            self._stream = sum_partitions(
                _partition_stream, RowStream.merged, self._without_rows(), partitions
            )
            return self.solve()
        except BaseException:
            # No model of the first rows alone is left behind.
            self._reset()
            raise

    def _without_rows(self) -> Self:
        """A copy for other processes, without the moments, which are not used there."""
        slim = copy(self)
        slim._stream = None if self._stream is None else self._stream.blank()
        return slim

    def _stream_to_merge(self, name: str) -> RowStream:
        if self._stream is not None:
            return self._stream
        if self._model is not None:
            raise ValueError(
                f"{name} was fitted in memory and kept no moments to merge; take in its rows with "
                f"partial_fit or fit_batches"
            )
        raise NotFittedError(f"{name} has seen no rows yet; call partial_fit or fit_batches first")

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
            raise ValueError(
                "estimators to merge must both have taken in groups of rows, or neither"
            )
        for name in ("feature_map", "target_transform"):
            if joblib.hash(getattr(self, f"{name}_")) != joblib.hash(getattr(other, f"{name}_")):
                raise ValueError(
                    f"estimators to merge must have the same fitted {name}; fit it first and give it to both"
                )

    # Features of rows.

    def _fit_map(
        self, feature_map: Any, X: Any, Y: Array, weight: ArrayLike | None
    ) -> tuple[Any, Any]:
        """A feature map fitted on rows, and their features where new rows would get others, else None."""
        if feature_map is None:
            return None, None
        self._check_columns(X)
        targets = self._targets_like_y(Y)
        with refusing_sparse_rows(feature_map) if issparse(X) else nullcontext():
            if FeatureMapTraits.of(feature_map).cross_fitted:
                return fit_and_map(feature_map, X, targets, weight, ensure_min_samples=2)
            return fit_feature_map(feature_map, X, targets, weight), None

    def _training_features(self, feature_map: Any, X: Any, Phi: Any = None) -> Any:
        """Features (n, m) of the training rows; ``Phi`` where they are known already."""
        if feature_map is None:
            check_numeric_columns(X)
            Phi = validate_rows(self, X, ensure_min_samples=2, **FLOATS)
        elif Phi is None:
            Phi = map_features(feature_map, X, ensure_min_samples=2)
        check_range("X" if feature_map is None else "the output of feature_map", Phi)
        return Phi

    def _exceeds_memory(self, feature_map: Any, rows: Rows) -> bool:
        """Whether features take more than ``working_memory``, so that rows are mapped block by block.

        With more columns than rows, moments would take more than the features.
        """
        n, p = rows.Y.shape
        m = map_features(feature_map, _safe_indexing(rows.X, slice(0, 1))).shape[1]
        return bool(n > 2 * block_height(m) and m + p <= n)

    def _check_columns(self, X: Any, *, reset: bool = True) -> None:
        """Keep or compare number and names of the columns of a table that only the feature map reads."""
        if isinstance(X, np.ndarray) and X.ndim != 2:
            check_array(X, dtype=None, ensure_all_finite=False)  # raises scikit-learn's own error
        validate_data(self, X, reset=reset, skip_check_array=True)

    # New rows.

    def _new_rows(self, X: Any) -> Any:
        """Rows to predict, with the columns of training; an array where the columns are the features."""
        if self._solved_model().feature_map is None:
            return validate_rows(self, X, reset=False, ensure_all_finite=False, **FLOATS)
        self._check_columns(X, reset=False)
        return X

    def _given_values(self, given: Any, X: Any) -> Array | None:
        """Given targets (n, p), NaN where one is to be predicted; None without any."""
        if given is None:
            return None
        names, named = (
            self._output_names(self._solved_model().n_targets),
            hasattr(self, "target_names_"),
        )
        return check_given(given, X, _num_samples(X), names, named=named)

    def _warn_of_novelty(self, X: Any) -> None:
        """Warn where inputs lie outside of the training ranges: single rows by far, or much of a batch."""
        inputs = self._solved_model().inputs
        if inputs is None or inputs.n_rows < FEWEST_ROWS:
            return
        n = _num_samples(X)
        batch = inputs.judge(X, FAR)
        if batch.n_far:
            warn_user(
                f"{batch.n_far} of {n} rows lie far outside of the inputs that the model was fitted on; "
                f"predictions there rest on no row. Check units and order of columns; novelty(X) tells how "
                f"far each row is out",
                NoveltyWarning,
            )
        elif batch.unusual:
            warn_user(
                f"{batch.share_outside:.0%} of {n} rows have inputs outside of the range that the model was "
                f"fitted on, far more than if they came from where the training rows came from; errors may "
                f"be larger, and intervals hold less, than on those. novelty(X) says how far each is out",
                NoveltyWarning,
            )

    def _predict_dask(self, X: Any, return_std: bool, return_cov: bool) -> Any:
        """Lazy predictions in the partitions of X, with standard deviations or covariances."""
        slim, p = self._without_rows(), self._solved_model().n_targets
        slim._sklearn_output_config = {}

        def lazy(predict: Callable[[Any, Any], Any], n_axes: int) -> Any:
            shape = () if self._one_dimensional else (p,) * n_axes
            meta = None
            if not hasattr(X, "map_blocks") and len(shape) < 2:
                meta = to_container("pandas", np.empty((0, *shape)), self._output_names(p), None)
            found = map_partitions(predict, slim, X, shape, meta)
            is_frame = meta is not None
            return found.to_dask_array() if is_frame and self._container() != "pandas" else found

        mean = lazy(_partition_mean, 1)
        if return_cov:
            return mean, lazy(_partition_covariance, 2)
        return (mean, lazy(_partition_deviation, 1)) if return_std else mean


def _partition_stream(
    estimator: EntangledRegressor, X: Any, y: Any, sample_weight: Any, groups: Any
) -> RowStream | None:
    """A stream of the rows of a partition alone."""
    alone = copy(estimator)
    alone._stream = None if estimator._stream is None else estimator._stream.blank()
    alone._take_batch(Batch(X, y, sample_weight, groups=groups))
    return alone._stream


def _partition_mean(estimator: EntangledRegressor, X: Any) -> Any:
    return estimator.predict(X)


def _partition_deviation(estimator: EntangledRegressor, X: Any) -> Any:
    return estimator.predict(X, return_std=True)[1]


def _partition_covariance(estimator: EntangledRegressor, X: Any) -> Any:
    return estimator.predict(X, return_cov=True)[1]


def _refuse_dask(method: str, *tables: Any) -> None:
    if is_dask(*tables):
        raise TypeError(
            f"{method} needs tables in memory; take the partitions of a Dask table apart"
        )


def _faded(sample_weight: Any, factors: Array) -> Any:
    """Weights of rows, or of single targets, times a factor for each row; what is no weight is unchanged."""
    if sample_weight is None:
        return factors
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
        return weight * (factors[:, None] if weight.ndim == 2 else factors)
    except (TypeError, ValueError):
        return sample_weight


@contextmanager
def refusing_sparse_rows(feature_map: Any) -> Iterator[None]:
    """Turn the error of a map that takes no sparse rows into one that names the way out."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if "sparse" not in str(error).lower():
            raise
        raise TypeError(
            f"X is sparse, and {type(feature_map).__name__} needs dense rows; use X.toarray(), or a "
            f"feature_map for sparse rows, such as MaxAbsScaler() ({error})"
        ) from error
