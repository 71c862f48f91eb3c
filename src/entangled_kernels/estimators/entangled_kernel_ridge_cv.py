"""Entangled kernel ridge that chooses its settings by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, TimeSeriesSplit
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter
from sklearn.utils.validation import _num_features, _num_samples

from ..features import FeatureMapTraits, default_feature_maps, is_fitted, map_features
from ..kernels import KrausKernel
from ..learning import FitSettings, Moments, RowSample
from ..learning.moments import least_keys, sample_size
from ..linalg import Array, Index
from ..model import FIRST_BLOCK, FittedModel, InputRange, NoisePart, TargetScale
from ..parameters import (
    check_choice,
    check_feature_map,
    check_grid,
    check_groups,
    check_integer,
    check_numeric_columns,
    check_penalty,
    check_share,
    is_dask,
    validate_rows,
)
from ..selection import (
    GRID,
    SCORINGS,
    SELECTIONS,
    Candidate,
    SearchSettings,
    Selected,
    TargetUnits,
    UsedMap,
    grid_members,
    scale_weights,
    search_moments,
    search_rows,
    split_rows,
)
from ..streams.batch import as_batch
from ..streams.row_stream import (
    RowMap,
    Rows,
    RowStream,
    block_ends,
    group_folds,
    row_folds,
    sampling_keys,
)
from ..uncertainty import HeldOut
from .base import MultiTargetRegressor, route_groups
from .entangled import FLOATS, EntangledRegressor, refusing_sparse_rows
from .entangled_kernel_ridge import (
    EntangledKernelRidge,
    SolverParams,
    check_solver_params,
    warn_of_stall,
)

__all__ = ["EntangledKernelRidgeCV"]

T = TypeVar("T")
# Least share of the feature maps that show noise, for an explanation to compare effects with those
# of noise.
LEAST_SHARE = 0.2


class EntangledKernelRidgeCV(EntangledRegressor):
    """Entangled kernel ridge regression with its settings chosen by cross-validation.

    Tries kernels from plain kernel ridge to fully learned ones, each with a path of alphas, and
    keeps what predicts held-out rows best. Kernel ridge is always among the candidates.

    Parameters
    ----------
    feature_map : "auto", transformer, None, or list of the last two, default="auto"
        Features phi(x), as in `EntangledKernelRidge`. Those of a list are candidates. ``"auto"``
        tries the standardised columns; `ColumnWidthFeatures`, with a width for every column, of the
        columns and of columns made symmetric by powers; `ForestFeatures`; and, with two to eight
        targets and not in streams, `TargetProcessFeatures`. With more than 200 inputs powers and
        processes are left out. Kernels clip columns at one range beyond the training rows
        (``reach=1``; not in streams), so that only the standardised columns follow a trend farther
        out.
    alphas : array-like or None, default=None
        Ridge penalties to try. None takes 34 values over eleven decades about the scale of the
        features, and the noise that a feature map has found, its ``noise_``.
    param_grid : dict or None, default=None
        Values to try of the parameters of `EntangledKernelRidge`, as in scikit-learn's
        `GridSearchCV`: ``shrinkage``, ``alignment_mix``, ``target_alpha``, ``prediction``, ``rank``
        and ``solver``, each with a list; a parameter that is left out has its default.
        ``solver_params`` may have a list of one dict. None is ``{"shrinkage": [0.25, 1.0],
        "alignment_mix": [0.0, 1.0], "target_alpha": [0.1, 1.0], "prediction": ["entangled",
        "partial_trace"]}``. Kernel ridge, ``shrinkage=1``, is always tried. Combinations that give
        the same kernel are tried once. With ``solver=["ascent"]`` steps along the path are
        candidates too, so that early stopping is selected.
    cv : int, splitter or iterable of splits, default=5
        An int asks for shuffled folds, of whole groups where `fit` is given groups; with at most 60
        rows they are repeated until there are 10 splits. `TimeSeriesSplit` predicts folds from rows
        before.
    scoring : {"nmse", "mse"}, default="nmse"
        Mean over outputs of the squared error, divided by the variance of the output or not. Lower
        is better.
    selection : {"average", "best", "one_se"}, default="average"
        ``"average"``: for every feature map a mean of its candidates, weighted by the likelihood of
        their held-out errors, E^(-n / 2) for a mean squared error E
        (`entangled_kernels.selection.stacking`). These means, and kernel ridge with the noise that
        a map has estimated for its alpha, are stacked by a convex combination on held-out
        predictions. Each target weighs candidates by its own error plus twice the mean error of all
        targets, where there are no more than 64 targets and no more than rows. An average of
        coefficients is a coefficient matrix, so predicting costs what the features cost.
        ``"best"``: the candidate with the least error. ``"one_se"``: the one with the largest
        shrinkage and the largest alpha within a standard error.
    fit_intercept : bool, default=True
    n_jobs : int or None, default=None
        Folds worked on at the same time, in threads that start where that saves time. Results do
        not depend on it.
    target_transform : as in `EntangledKernelRidge`
        Candidates are tried on transformed targets, and ``best_score_`` and ``cv_results_`` are
        errors of these; ``cv_score_``, ``cv_rmse_`` and what stands beside them are errors of
        predictions in units of the targets. A transformer is fitted once, on all rows.
    random_state : int, RandomState or None, default=None
        For shuffling and random starts.
    verbose : int, default=0
        With 1, print the progress of the search: feature map, split and the seconds that are left.

    Attributes
    ----------
    best_estimator_ : EntangledKernelRidge
        The chosen candidate, fitted on all rows.
    best_params_ : dict
        Its parameters, the feature map's place among those tried with them when there are several.
    best_score_ : float
        Its cross-validated error; lower is better. It is the least of many, so somewhat too good.
    cv_score_ : float
        Held-out error of the model that is kept, an average or not; lower is better. Each fold's
        rows are predicted with weights and shares that rest on the others. It is the error to
        expect of new rows like those that folds hold out: of any rows, of rows of new groups where
        folds are of groups, of later rows where they are in the order of time. Rows that no fold
        holds out have no part in it.
    cv_target_score_, cv_rmse_ : ndarray of shape (p,)
        That error of every target, NaN for a constant one, and its root mean squared error in its
        own unit.
    kernel_ridge_score_, kernel_ridge_target_score_ : float and ndarray of shape (p,)
        The same errors on the same folds of what would be kept with plain kernel ridge alone, of
        the same feature maps.
    best_index_ : int
        Its place in ``cv_results_``.
    cv_results_ : dict of ndarray
        One entry per candidate: ``param_*``, ``mean_test_score``, ``std_test_score`` and
        ``split{i}_test_score``; ready for `pandas.DataFrame`.
    cv_target_scores_ : ndarray of shape (number of candidates, p)
        Errors of every target in the order of ``cv_results_``, NaN for a constant one; only there
        where targets weigh candidates apart.
    coef_, intercept_ : ndarray of shape (p, m) and (p,)
        Those of the best estimator, or averages.
    average_weights_ : ndarray of shape (number of candidates, p) or (number of candidates,)
        With ``selection="average"``, in the order of ``cv_results_``; the same for all targets
        where they weigh candidates together.
    n_splits_ : int
    entangled_estimator_ : EntangledKernelRidge
        The best entangled candidate, fitted on all rows: the best estimator, unless that is kernel
        ridge or predicts with the partial trace. ``kernel_``, ``kraus_`` and `project` are those of
        it, and it has `transform`.
    feature_map_ : transformer or None
        Of ``coef_``; a `FeatureUnion` where candidates with several maps are averaged.
    n_iter_, n_features_in_, feature_names_in_, target_names_ : as in `EntangledKernelRidge`

    Notes
    -----
    Rows in batches are judged by the moments of the folds (`entangled_kernels.selection.folds`):
    after one pass over the rows nothing depends on their number. One decomposition serves all
    alphas of a kernel.

    With `partial_fit`, `fit_batches` and Dask a row's fold is found by a hash of its values, or of
    its group (`entangled_kernels.streams.row_stream`), so it does not matter how rows are cut and
    ordered; ``cv`` must be a number, or a `KFold` or `GroupKFold` of which the number counts. With
    `TimeSeriesSplit`, which needs `fit_batches`, folds are blocks of the rows in their order. Of
    several feature maps, such as ``"auto"``, one is chosen on the first 10,000 rows; what else
    there is to choose is chosen on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidgeCV
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = EntangledKernelRidgeCV(random_state=0).fit(X, Y)
    >>> sorted(model.best_params_)[:5]
    ['alignment_mix', 'alpha', 'feature_map', 'prediction', 'rank']
    """

    def __init__(
        self,
        feature_map: Any = "auto",
        *,
        alphas: ArrayLike | None = None,
        param_grid: Any = None,
        cv: Any = 5,
        scoring: str = "nmse",
        selection: str = "average",
        fit_intercept: bool = True,
        target_transform: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.feature_map = feature_map
        self.alphas = alphas
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.target_transform = target_transform
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012 (scikit-learn reads it from the class)

    _search: Selected | None = None
    _candidates: tuple[EntangledKernelRidge | None, EntangledKernelRidge | None] = (None, None)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Choose the settings, and fit with them on all rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            NaN where a target is missing.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_outputs), or float, optional
            Non-negative. A constant factor changes nothing: weights are divided by that of one row.
        groups : array-like of shape (n_samples,), optional
            Numbers or text. Rows of a group are held out together, by folds of whole groups where
            ``cv`` is a number, and by splitters that ask for groups.
        progress : callable, optional
            Called after every split of every feature map with the number of those done and of all.

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_dask(X, y, sample_weight, groups):
            return self._fit_dask(X, y, sample_weight, groups)
        self._reset()
        (X,) = indexable(X)
        groups = None if groups is None else check_groups(groups, _num_samples(X))
        rows, scale, index = self._training_rows(X, y, sample_weight)
        original = rows.Y if scale is None else scale.inverse_transform(rows.Y)
        if len(rows.Y) < 2:
            raise ValueError("at least 2 rows are needed, got 1 sample")
        maps = self._suited_maps(rows)
        X = self._search_inputs(rows.X, maps)
        splits = split_rows(
            self.cv,
            X,
            self._targets_like_y(rows.Y),
            None if groups is None else groups[index],
            index if len(index) < len(np.asarray(y)) else None,
            n_table=len(np.asarray(y)),
            random_state=self.random_state,
        )
        shown = _Progress(len(maps)) if self.verbose else None

        def report(done: int, n_steps: int) -> None:
            if progress is not None:
                progress(done, n_steps)
            if shown is not None:
                shown.print(done, n_steps)

        memory = float(get_config()["working_memory"]) * 2**20
        with refusing_sparse_rows(next(iter(maps.values()))) if issparse(X) else nullcontext():
            found = search_rows(
                X,
                rows.Y,
                rows.weight,
                maps,
                splits,
                self._search_settings(),
                report=report,
                units=None if scale is None else TargetUnits(original, scale.inverse_transform),
                most_numbers=memory / 8 if len(rows.Y) > FIRST_BLOCK else np.inf,
            )
        key = sampling_keys(rows.X, rows.Y)
        weight = None if rows.weight is None else scale_weights(rows.weight)

        samples = dict[Any, RowSample]()

        def sample_of(candidate: Candidate) -> RowSample:
            if candidate.place not in samples:
                samples[candidate.place] = sample_rows(candidate)
            return samples[candidate.place]

        def sample_rows(candidate: Candidate) -> RowSample:
            if candidate.features is not None:
                return RowSample.of(np.asarray(candidate.features), rows.Y, key, weight)
            # Features that were computed block by block were not kept.
            some = least_keys(key, weight, sample_size(rows.Y.shape[1]))
            Phi = map_features(candidate.feature_map, _safe_indexing(X, some))
            own_weight = None if weight is None else weight[some]
            return RowSample.of(Phi, rows.Y[some], key[some], own_weight)

        self._model = self._keep(
            found, rows.measured(), scale, InputRange.of(rows.X), sample_of, len(maps) > 1
        )
        return self

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, forget: float = 1.0
    ) -> Self:
        """Take in some more rows, as `EntangledKernelRidge.partial_fit` does, each into one of the folds.

        Parameters
        ----------
        X, y, sample_weight, forget : as in `EntangledKernelRidge.partial_fit`
        groups : array-like of shape (n_samples,), optional
            Numbers or text, with every batch or with none. All rows of a group share a fold, which
            is found by a hash of the group; without groups it is found by a hash of the row.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, groups, forget)

    def held_out_predictions(self, coverage: float = 0.9) -> HeldOut:
        """Held-out predictions of the training rows, with intervals.

        Parameters
        ----------
        coverage : float, default=0.9
            Coverage of the intervals.

        Returns
        -------
        held_out : HeldOut
            ``measured``, ``predicted``, ``lower`` and ``upper``, each (n, p); of rows in batches a
            sample.
        """
        check_share("coverage", coverage)
        return self._solved_model().held_out(float(coverage))

    def project(self, X: Any) -> Array:
        """Projections (n, p, r) by the best entangled candidate; see `EntangledKernelRidge.project`."""
        self._solved_model()
        if self._candidates[1] is None:
            raise ValueError("no candidate was entangled; put a shrinkage below 1 in param_grid")
        return self.entangled_estimator_.project(X)

    def get_metadata_routing(self) -> MetadataRouter:
        """What `fit` takes itself, and what it hands to the splitter: groups, as in `RidgeCV`."""
        return route_groups(self, self.cv)

    @property
    def best_estimator_(self) -> EntangledKernelRidge:
        """The chosen candidate, fitted on all rows."""
        self._shown("best_estimator_")
        found = self._candidates[0]
        if found is None:
            raise AttributeError("no candidate was kept")
        return found

    @property
    def entangled_estimator_(self) -> EntangledKernelRidge:
        """The best entangled candidate, fitted on all rows."""
        self._shown("entangled_estimator_")
        found = self._candidates[1]
        if found is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'entangled_estimator_': no candidate was "
                f"entangled; put a shrinkage below 1 in param_grid"
            )
        return found

    @property
    def kernel_(self) -> KrausKernel:
        """The kernel of the best entangled candidate."""
        return self.entangled_estimator_.kernel_

    @property
    def kraus_(self) -> Array:
        """Kraus operators of the best entangled candidate, (r, p, m)."""
        return self.entangled_estimator_.kraus_

    @property
    def best_params_(self) -> dict[str, Any]:
        """Parameters of the chosen candidate."""
        found = self._searched("best_params_")
        best = self._parameters(found.best)
        return best if found.best.place is None else best | {"feature_map": found.best.place}

    @property
    def best_score_(self) -> float:
        """Cross-validated error of the chosen candidate."""
        return self._searched("best_score_").best.error

    @property
    def best_index_(self) -> int:
        """Place of the chosen candidate in ``cv_results_``."""
        return self._searched("best_index_").best.index

    @property
    def cv_results_(self) -> dict[str, NDArray[Any]]:
        """Parameters and errors of all candidates."""
        return self._searched("cv_results_").cv_results

    @property
    def cv_target_scores_(self) -> Array:
        """Errors of all candidates by target."""
        return _present(
            self._searched("cv_target_scores_").target_scores, self, "cv_target_scores_"
        )

    @property
    def average_weights_(self) -> Array:
        """Weights of all candidates in the average."""
        return _present(self._searched("average_weights_").weights, self, "average_weights_")

    @property
    def cv_score_(self) -> float:
        """Held-out error of the model that is kept."""
        return float(_present(self._searched("cv_score_").score, self, "cv_score_").score)

    @property
    def cv_target_score_(self) -> Array:
        """Held-out error of the model that is kept, by target."""
        return _present(self._searched("cv_target_score_").score, self, "cv_target_score_").targets

    @property
    def cv_rmse_(self) -> Array:
        """Held-out root mean squared error of the model that is kept, in units of the targets."""
        return _present(self._searched("cv_rmse_").score, self, "cv_rmse_").rmse

    @property
    def kernel_ridge_score_(self) -> float:
        """What ``cv_score_`` would be with kernel ridge alone."""
        found = self._searched("kernel_ridge_score_").kernel_ridge_score
        return float(_present(found, self, "kernel_ridge_score_").score)

    @property
    def kernel_ridge_target_score_(self) -> Array:
        """What ``cv_target_score_`` would be with kernel ridge alone."""
        found = self._searched("kernel_ridge_target_score_").kernel_ridge_score
        return _present(found, self, "kernel_ridge_target_score_").targets

    @property
    def n_iter_(self) -> int:
        """Steps of the solver of the chosen candidate."""
        return self._shown("n_iter_").fit.n_iter

    @property
    def n_splits_(self) -> int:
        """Number of splits."""
        return self._searched("n_splits_").n_splits

    def _searched(self, name: str) -> Selected:
        """The result of the search, for the attribute of this name."""
        self._shown(name)
        return _present(self._search, self, name)

    def _reset(self) -> None:
        super()._reset()
        self._search, self._candidates = None, (None, None)

    def _without_rows(self) -> Self:
        slim = super()._without_rows()
        slim._search, slim._candidates = None, (None, None)
        return slim

    # The search.

    def _solve_parts(
        self, parts: list[Moments], sample: RowSample | None, stream: RowStream
    ) -> FittedModel:
        if len(parts) < 2:
            raise ValueError(
                f"cv must leave rows in at least 2 folds, got {len(parts)}; more rows or groups are needed"
            )
        row_map = stream.row_map or RowMap()
        Y, scale = np.zeros((0, 0)) if sample is None else sample.Y, row_map.scale
        units = None
        if scale is not None:
            units = TargetUnits(scale.inverse_transform(Y), scale.inverse_transform)
        found = search_moments(
            parts,
            sample,
            row_map.feature_map,
            self._search_settings(),
            ordered=self._ordered,
            units=units,
        )
        return self._keep(found, Y, scale, stream.inputs, lambda candidate: sample, False)

    def _keep(
        self,
        found: Selected,
        Y: Array,
        scale: TargetScale | None,
        inputs: InputRange | None,
        sample_of: Callable[[Candidate], RowSample | None],
        several: bool,
    ) -> FittedModel:
        """Keep what a search ended with; ``Y`` are the targets that its held-out rows are numbered in."""

        def estimator(candidate: Candidate | None) -> EntangledKernelRidge | None:
            if candidate is None:
                return None
            model = FittedModel(
                feature_map=candidate.feature_map,
                linear=candidate.fit.linear,
                fit=candidate.fit,
                fit_map=candidate.feature_map,
                scale=scale,
                inputs=inputs,
                sample=sample_of(candidate),
            )
            return self._candidate_estimator(candidate, model)

        best = estimator(found.best)
        entangled = best if found.entangled is found.best else estimator(found.entangled)
        self._candidates = best, entangled
        place = found.best.place if several else None
        self._search = replace(
            found,
            best=replace(found.best, features=None, place=place),
            entangled=None,
            held_out=None,
            used=[],
        )
        return FittedModel(
            feature_map=found.feature_map,
            linear=found.linear,
            fit=found.best.fit,
            fit_map=found.best.feature_map,
            scale=scale,
            inputs=inputs,
            residuals=found.residuals,
            measured=None if found.residuals is None else Y[np.unique(found.residuals.row)],
            parts=_noise_parts(found.used),
        )

    def _candidate_estimator(
        self, candidate: Candidate, model: FittedModel
    ) -> EntangledKernelRidge:
        """A candidate as an estimator of its own, on tables with the same columns."""
        if model.fit.stop_reason == "stalled":
            warn_of_stall(model.fit)
        estimator = EntangledKernelRidge(
            self._map_of(candidate),
            fit_intercept=self.fit_intercept,
            random_state=self.random_state,
            target_transform=self.target_transform,
        ).set_params(**self._parameters(candidate))
        MultiTargetRegressor.set_output(estimator, predict=self._container())
        found: EntangledKernelRidge = estimator.adopt_model(model, self)
        return found

    def _map_of(self, candidate: Candidate) -> Any:
        """The feature map of a candidate as it was given, not fitted."""
        maps = self._feature_maps()
        if candidate.place is not None and len(maps) > 1:
            return maps[candidate.place]
        if len(maps) == 1 or candidate.feature_map is None:
            return maps[0] if len(maps) == 1 else None
        return clone(candidate.feature_map)

    def _parameters(self, candidate: Candidate) -> dict[str, Any]:
        """Parameters of `EntangledKernelRidge` that make it a candidate."""
        parameters = candidate.member.parameters() | {"alpha": candidate.alpha}
        solver = self._solver_params()
        if candidate.member.n_steps is not None:
            solver = solver._replace(max_iter=candidate.member.n_steps)
        defaults = SolverParams()._asdict()
        changed = {
            name: value for name, value in solver._asdict().items() if value != defaults[name]
        }
        return {**parameters, "solver_params": changed} if changed else parameters

    def _search_settings(self) -> SearchSettings:
        params = self._solver_params()
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return SearchSettings(
            members=grid_members(self._grid(), max_iter=params.max_iter),
            alphas=None if self.alphas is None else np.asarray(self.alphas, dtype=np.float64),
            scoring=self.scoring,
            selection=self.selection,
            fit_intercept=bool(self.fit_intercept),
            start=FitSettings(
                init=params.init, max_iter=params.max_iter, tol=params.tol, seed=int(seed)
            ),
            n_jobs=self.n_jobs,
        )

    def _grid(self) -> dict[str, Any]:
        """Values to try of every parameter of a kernel."""
        if self.param_grid is None:
            return dict(GRID)
        if not isinstance(self.param_grid, Mapping):
            raise TypeError(
                f"param_grid must be a dict or None, got {type(self.param_grid).__name__}"
            )
        unknown = sorted(map(str, set(self.param_grid) - {*GRID, "solver_params"}))
        if unknown:
            raise ValueError(
                f"param_grid has unknown keys {unknown}; it may hold {', '.join(GRID)}"
            )
        defaults = EntangledKernelRidge().get_params(deep=False)
        return {
            name: check_grid(f"param_grid[{name!r}]", self.param_grid.get(name, [defaults[name]]))
            for name in GRID
        }

    def _solver_params(self) -> SolverParams:
        given = (self.param_grid or {}).get("solver_params", [None])
        if isinstance(given, Mapping) or len(given) != 1:
            raise ValueError(
                "param_grid['solver_params'] must be a list of one dict; numbers of steps of an ascent are "
                "candidates by themselves"
            )
        return check_solver_params(given[0])

    # Feature maps.

    def _given_map(self) -> Any:
        maps = self._feature_maps()
        return maps[0] if len(maps) == 1 else maps

    def _feature_maps(self, *, streamed: bool = False) -> list[Any]:
        """The maps to choose from, for rows in memory or in a stream."""
        if isinstance(self.feature_map, str) and self.feature_map == "auto":
            return default_feature_maps(self.random_state, streamed=streamed)
        maps = (
            list(self.feature_map)
            if isinstance(self.feature_map, list | tuple)
            else [self.feature_map]
        )
        if not maps:
            raise ValueError("feature_map must hold at least one feature map, got an empty list")
        for one in maps:
            if isinstance(one, str):
                raise ValueError(
                    f"feature_map must be 'auto', None, a transformer or a list of the last two, got {one!r}"
                )
            check_feature_map(one)
        return maps

    def _suited_maps(self, rows: Rows, *, streamed: bool = False) -> dict[int, Any]:
        """The maps, by their places, that are tried with such rows, in memory or in a stream."""
        try:
            n_inputs = _num_features(rows.X)
        except TypeError:  # rows of texts
            n_inputs = 1
        maps = dict(enumerate(self._feature_maps(streamed=streamed)))
        traits = {place: FeatureMapTraits.of(one) for place, one in maps.items()}
        suited = {
            place: one
            for place, one in maps.items()
            if traits[place].suits(rows.Y.shape[1], n_inputs)
        }
        return suited if suited else maps

    def _search_inputs(self, X: Any, maps: dict[int, Any]) -> Any:
        """Inputs with their columns kept; an array where the columns are the only features."""
        for feature_map in maps.values():
            if feature_map is None:
                check_numeric_columns(X)
                rows = validate_rows(self, X, ensure_min_samples=2, **FLOATS)
                X = rows if len(maps) == 1 else X
            else:
                self._check_columns(X)
        return X

    def _fit_first_map(self, rows: Rows) -> Any:
        """Choose a feature map as `fit` would on the first rows of a stream, and fit it on them."""
        maps, best = list(self._suited_maps(rows, streamed=True).values()), 0
        if len(maps) > 1:
            splits = self.cv
            if not self._ordered:
                if rows.part is None or len(np.unique(rows.part)) < 2:
                    raise ValueError(
                        f"the first {len(rows.Y)} rows must lie in at least 2 folds for a feature map to be "
                        f"chosen on them, got 1; mix the groups among the rows, or give one feature map"
                    )
                splits = PredefinedSplit(rows.part)
            search = clone(self).set_params(feature_map=maps, cv=splits, target_transform=None)
            search.fit(rows.X, self._targets_like_y(rows.Y), rows.weight)
            best = search.best_params_["feature_map"]
        elif is_fitted(maps[0]):
            return maps[0]
        return self._fit_map(maps[best], rows.X, rows.Y, rows.weight)[0]

    # Folds of rows in batches.

    @property
    def _ordered(self) -> bool:
        """Whether folds are blocks in the order of time."""
        return isinstance(self.cv, TimeSeriesSplit)

    def _n_parts(self) -> int:
        cv = self.cv
        if isinstance(cv, TimeSeriesSplit):
            if not (cv.gap == 0 and cv.max_train_size is None and cv.test_size is None):
                raise ValueError(
                    f"cv must be a TimeSeriesSplit of n_splits alone where rows come in batches, got {cv!r}"
                )
            # The rows before the first fold are a part too.
            return int(cv.n_splits) + 1
        if isinstance(cv, KFold | GroupKFold):
            return int(cv.n_splits)
        if not isinstance(cv, Integral):
            raise ValueError(
                f"cv must be a number of folds, KFold, GroupKFold or TimeSeriesSplit where rows come in "
                f"batches, since a row's fold is found by a hash of its values or group, or by its place; "
                f"got {cv!r}"
            )
        check_integer("cv", cv, low=2)
        return int(cv)

    def _parts_of(self, rows: Rows, groups: Any) -> Index:
        if self._ordered:
            raise ValueError(
                "cv: folds in the order of time need rows one after the other, and their number before the "
                "first; use fit_batches, or fit on a table in memory"
            )
        if groups is not None:
            return group_folds(check_groups(groups, len(rows.Y)), self._n_parts())
        if isinstance(self.cv, GroupKFold):
            raise ValueError("groups must be given where cv is GroupKFold, got None")
        return row_folds(rows.X, rows.Y, self._n_parts())

    def _block_ends(self, batches: Any, targets: Any, n_rows: int | None) -> Index | None:
        if not self._ordered:
            return None
        if n_rows is None:
            n_rows = getattr(batches, "n_rows", None)
        if n_rows is None:
            if iter(batches) is batches:
                raise ValueError(
                    "n_rows must be given where batches can be read only once, since folds in the order of "
                    "time need the number of rows before the first"
                )
            n_rows = sum(_num_samples(as_batch(item, targets).X) for item in batches)
        check_integer("n_rows", n_rows, low=1)
        return block_ends(int(n_rows), self._n_parts())

    def _check_mergeable(self, other: Self, mine: RowStream, theirs: RowStream) -> None:
        super()._check_mergeable(other, mine, theirs)
        if self._ordered or other._ordered:
            raise ValueError(
                "estimators to merge must not have folds in the order of time, since rows of two streams "
                "have no order; use fit_batches with all batches"
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, choices in (("scoring", SCORINGS), ("selection", SELECTIONS)):
            check_choice(name, getattr(self, name), choices)
        check_integer("verbose", self.verbose, low=0)
        for name, values in self._grid().items():
            for value in values:
                try:
                    EntangledKernelRidge(**{name: value})._check_parameters()
                except (TypeError, ValueError) as error:
                    raise type(error)(f"param_grid: {error}") from error
        self._solver_params()
        for value in [] if self.alphas is None else check_grid("alphas", self.alphas):
            check_penalty("alphas", value)
        self._feature_maps()


def _noise_parts(used: Sequence[UsedMap]) -> tuple[NoisePart, ...]:
    """Feature maps of an average, with their shares, on which models of noise are fitted.

    Features of cross-fitted maps are predictions, in which their part of the noise does not show;
    the other maps replace them where these have a share of `LEAST_SHARE` for every target. Empty
    without an average.
    """
    if len(used) < 2:
        return ()
    shown = [not FeatureMapTraits.of(one.feature_map).cross_fitted for one in used]
    shares = [one.share * show for one, show in zip(used, shown, strict=True)]
    total = np.sum(np.broadcast_arrays(*shares), axis=0)
    if total.min() < LEAST_SHARE:
        return ()
    parts = zip(used, shares, strict=True)
    return tuple(NoisePart(one.feature_map, one.settings, share / total) for one, share in parts)


class _Progress:
    """Prints how far a search is, and how long the rest will take."""

    def __init__(self, n_maps: int) -> None:
        self.start, self.n_maps = time.perf_counter(), n_maps

    def print(self, done: int, n_steps: int) -> None:
        """Print a line after a split; ``n_steps`` is the number of splits of all maps together."""
        number, split = divmod(done - 1, n_steps // self.n_maps)
        seconds = time.perf_counter() - self.start
        print(
            f"feature map {number + 1} of {self.n_maps}, split {split + 1} of {n_steps // self.n_maps}: "
            f"{seconds:.0f} s, about {seconds * (n_steps / done - 1.0):.0f} s left",
            flush=True,
        )


def _present(value: T | None, estimator: Any, name: str) -> T:
    """A value, or an AttributeError where there is none."""
    if value is None:
        raise AttributeError(f"{type(estimator).__name__!r} object has no attribute {name!r}")
    return value
