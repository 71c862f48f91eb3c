"""Entangled kernel ridge that chooses its settings by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, TimeSeriesSplit
from sklearn.utils import check_random_state, indexable
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter
from sklearn.utils.validation import _num_features, _num_samples

from ..features import FeatureMapTraits, default_feature_maps
from ..kernels import KrausKernel
from ..learning import FitSettings, Moments, RowSample
from ..linalg import Array, Index
from ..model import FIRST_BLOCK, FittedModel, check_target_transform
from ..parameters import (
    check_choice,
    check_feature_map,
    check_flag,
    check_grid,
    check_groups,
    check_integer,
    check_penalty,
    check_settings,
    check_share,
    is_dask,
)
from ..selection import (
    GRID,
    SCORINGS,
    SELECTIONS,
    Candidate,
    SearchResults,
    SearchSettings,
    Selected,
    grid_settings,
    search_moments,
    search_rows,
    split_rows,
)
from ..streams.batch import as_batch
from ..streams.row_stream import (
    Rows,
    RowStream,
    block_ends,
    group_folds,
    row_folds,
    sampling_keys,
)
from ..uncertainty import HeldOut
from .base import MultiTargetRegressor, route_groups
from .entangled import EntangledRegressor, fitted_attribute
from .entangled_kernel_ridge import (
    EntangledKernelRidge,
    SolverParams,
    check_solver_params,
    warn_of_stall,
)

__all__ = ["EntangledKernelRidgeCV"]


class EntangledKernelRidgeCV(EntangledRegressor):
    """Entangled kernel ridge regression with its settings chosen by cross-validation.

    Tries kernels from plain kernel ridge to fully learned ones, each with a path of alphas, and
    averages the candidates, or chooses one, by their held-out errors.

    Parameters
    ----------
    feature_map : "auto", transformer, None, or list of the last two, default="auto"
        Features phi(x), as in `EntangledKernelRidge`; those of a list are candidates. ``"auto"``
        tries the standardised columns; `ColumnWidthFeatures`, with a width for every column, of the
        columns and of columns made symmetric by powers; `ForestFeatures`; and, with two to eight
        targets and not in streams, `TargetProcessFeatures`. With more than 200 inputs, powers and
        processes are left out. Kernels clip columns at one range beyond the training rows
        (``reach=1``; not in streams), so that only the standardised columns extrapolate farther.
    alphas : array-like or None, default=None
        Ridge penalties to try. None is 34 values over eleven decades about the scale of the
        features, and the noise that a feature map has estimated, its ``noise_``.
    param_grid : dict or None, default=None
        Lists of values to try of the parameters ``shrinkage``, ``alignment_mix``, ``target_alpha``,
        ``prediction``, ``rank`` and ``solver`` of `EntangledKernelRidge`, as in scikit-learn's
        `GridSearchCV`; a parameter that is left out has its default. ``solver_params`` may have a
        list of one dict. None is ``{"shrinkage": [0.25, 1.0], "alignment_mix": [0.0, 1.0],
        "target_alpha": [0.1, 1.0], "prediction": ["entangled", "partial_trace"]}``. Kernel ridge,
        ``shrinkage=1``, is always tried; with ``"reduced_rank"`` among the predictions, so are its
        predictions of every rank. With ``solver=["ascent"]`` the steps along the path are
        candidates too, so that early stopping is selected.
    cv : int, splitter or iterable of splits, default=5
        An int is a number of shuffled folds, or of folds of whole groups if `fit` is given groups;
        with at most 60 rows they are repeated until there are 10 splits. With `TimeSeriesSplit`,
        folds are predicted from the rows before them.
    scoring : {"nmse", "mse"}, default="nmse"
        Mean over outputs of the squared error, divided by the variance of the output or not. Lower
        is better.
    selection : {"average", "best", "one_se"}, default="average"
        ``"average"``: the candidates of every feature map are averaged with weights E^(-n / 2) for
        a held-out mean squared error E (`entangled_kernels.selection.stacking`). These averages,
        and kernel ridge with the noise that a map has estimated for its alpha, are stacked by a
        convex combination on held-out predictions. With at most 64 targets, and no more than rows,
        every target has its weights, by its own error plus twice the mean error of all targets. An
        average predicts as fast as a single candidate. ``"best"``: the candidate with the least
        error. ``"one_se"``: the one with the largest shrinkage and the largest alpha within a
        standard error.
    fit_intercept : bool, default=True
    n_jobs : int or None, default=None
        Folds computed at the same time, in threads, if that saves time. Results do not depend on
        it.
    target_transform : as in `EntangledKernelRidge`
        Candidates are tried on transformed targets, and ``best_score_`` and ``cv_results_`` are
        errors of these. ``cv_score_``, ``cv_rmse_``, ``cv_target_score_`` and the scores of kernel
        ridge are in units of the targets. A transformer is fitted once, on all rows.
    random_state : int, RandomState or None, default=None
        For shuffling and random starts.
    verbose : int, default=0
        With 1, print the progress of the search: feature map, split and the seconds that are left.

    Attributes
    ----------
    best_estimator_ : EntangledKernelRidge
        The best candidate, fitted on all rows.
    best_params_ : dict
        Its parameters, and the number of its feature map if several are tried.
    best_score_ : float
        Its cross-validated error, which is somewhat too optimistic as the least of many errors.
    cv_score_ : float
        Held-out error of the model, an average or not. The rows of a fold are predicted with
        weights and shares from the other folds. It estimates the error on new rows that are like
        the held-out ones: of new groups if folds are of groups, later rows if folds are in the
        order of time. Rows that no fold holds out do not count.
    cv_target_score_, cv_rmse_ : ndarray of shape (p,)
        The same error by target, NaN for a constant target, and the root mean squared error in
        units of the target.
    kernel_ridge_score_, kernel_ridge_target_score_ : float and ndarray of shape (p,)
        The same errors of a search with plain kernel ridge alone, on the same feature maps and
        folds.
    best_index_ : int
        Row of the best candidate in ``cv_results_``.
    cv_results_ : dict of ndarray
        One entry per candidate: ``param_*``, ``mean_test_score``, ``std_test_score`` and
        ``split{i}_test_score``; ready for `pandas.DataFrame`.
    cv_target_scores_ : ndarray of shape (number of candidates, p)
        Errors of every target in the order of ``cv_results_``, NaN for a constant target; only
        available if every target has its weights.
    coef_, intercept_ : ndarray of shape (p, m) and (p,)
        Of the average, or of the best estimator.
    average_weights_ : ndarray of shape (number of candidates, p) or (number of candidates,)
        With ``selection="average"``, in the order of ``cv_results_``; one column if all targets
        have the same weights.
    n_splits_ : int
    entangled_estimator_ : EntangledKernelRidge
        The best candidate that predicts with an entangled kernel, fitted on all rows; `kernel_`,
        `kraus_` and `project` are of this estimator.
    feature_map_ : transformer or None
        Of ``coef_``; a `FeatureUnion` if candidates with several maps are averaged.
    n_iter_, n_features_in_, feature_names_in_, target_names_ : as in `EntangledKernelRidge`

    Notes
    -----
    For rows in batches, errors are computed from the moments of the folds
    (`entangled_kernels.selection.folds`): after one pass over the rows the cost does not depend on
    their number. One decomposition serves all alphas of a kernel.

    With `partial_fit`, `fit_batches` and Dask, the fold of a row is a hash of its values, or of its
    group (`entangled_kernels.streams.row_stream`), so results do not depend on the order of the
    rows and the size of batches. ``cv`` must be a number, or a `KFold` or `GroupKFold`, of which
    only the number of folds is used. With `TimeSeriesSplit`, which needs `fit_batches`, folds are
    blocks of the rows in their order. Of several feature maps, such as ``"auto"``, one is chosen on
    the first 10,000 rows; the other settings are chosen on all rows.

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

    # scikit-learn reads it from the class.
    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012

    _search: SearchResults | None = None
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
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_outputs), float, optional
            Non-negative. A constant factor has no effect.
        groups : array-like of shape (n_samples,), optional
            Numbers or text. Rows of a group are held out together, if ``cv`` is a number or a
            splitter that uses groups.
        progress : callable, optional
            Called after every split of every feature map with the number done and the total.

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_dask(X, y, sample_weight, groups):
            return self._fit_dask(X, y, sample_weight, groups)
        self._stream = self._model = None
        (X,) = indexable(X)
        groups = None if groups is None else check_groups(groups, _num_samples(X))
        rows, scale, index = self._training_rows(X, y, sample_weight)
        if len(rows.Y) < 2:
            raise ValueError("at least 2 rows are needed, got 1 sample")
        maps = self._suitable_maps(self._feature_maps(streamed=False), rows)
        X = self._check_columns(rows.X, maps.values(), ensure_min_samples=2)
        splits = split_rows(
            self.cv,
            X,
            self._targets_like_y(rows.Y),
            None if groups is None else groups[index],
            index if len(index) < len(np.asarray(y)) else None,
            n_table=len(np.asarray(y)),
            random_state=self.random_state,
        )
        memory = float(get_config()["working_memory"]) * 2**20
        selected = search_rows(
            X,
            rows.Y,
            rows.weight,
            maps,
            splits,
            self._search_settings(),
            scale=scale,
            keys=sampling_keys(rows.X, rows.Y),
            report=_print_progress(len(maps), progress) if self.verbose else progress,
            most_numbers=memory / 8 if len(rows.Y) > FIRST_BLOCK else np.inf,
        )
        self._model = self._keep(selected)
        return self

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, forget: float = 1.0
    ) -> Self:
        """Add rows, as `EntangledKernelRidge.partial_fit` does, each to one of the folds.

        Parameters
        ----------
        X, y, sample_weight, forget : as in `EntangledKernelRidge.partial_fit`
        groups : array-like of shape (n_samples,), optional
            Numbers or text, with every batch or with none. All rows of a group are in one fold.

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
        """`EntangledKernelRidge.project` of the entangled estimator, (n, p, r)."""
        self._solved_model()
        if not hasattr(self, "entangled_estimator_"):
            raise ValueError("no candidate was entangled; put a shrinkage below 1 in param_grid")
        return self.entangled_estimator_.project(X)

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata that `fit` uses, and groups for the splitter, as in `RidgeCV`."""
        return route_groups(self, self.cv)

    @property
    def best_estimator_(self) -> EntangledKernelRidge:
        """The chosen candidate, fitted on all rows."""
        self._model_with("best_estimator_")
        best = self._candidates[0]
        if best is None:
            raise AttributeError("no candidate was kept")
        return best

    @property
    def entangled_estimator_(self) -> EntangledKernelRidge:
        """The best entangled candidate, fitted on all rows."""
        self._model_with("entangled_estimator_")
        entangled = self._candidates[1]
        if entangled is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'entangled_estimator_': "
                f"no candidate was entangled; put a shrinkage below 1 in param_grid"
            )
        return entangled

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
        parameters = self._parameters(self._model_with("best_params_").fit.settings)
        numbers = self.cv_results_["param_feature_map"]
        if len(set(numbers)) > 1:
            parameters["feature_map"] = int(numbers[self.best_index_])
        return parameters

    best_score_: float = fitted_attribute("best_score_", "_search.best_error")
    best_index_: int = fitted_attribute("best_index_", "_search.best_index")
    cv_results_: dict[str, NDArray[Any]] = fitted_attribute("cv_results_", "_search.table")
    cv_target_scores_: Array = fitted_attribute("cv_target_scores_", "_search.target_scores")
    average_weights_: Array = fitted_attribute("average_weights_", "_search.weights")
    cv_score_: float = fitted_attribute("cv_score_", "_search.score.score")
    cv_target_score_: Array = fitted_attribute("cv_target_score_", "_search.score.targets")
    cv_rmse_: Array = fitted_attribute("cv_rmse_", "_search.score.rmse")
    kernel_ridge_score_: float = fitted_attribute(
        "kernel_ridge_score_", "_search.kernel_ridge_score.score"
    )
    kernel_ridge_target_score_: Array = fitted_attribute(
        "kernel_ridge_target_score_", "_search.kernel_ridge_score.targets"
    )
    n_splits_: int = fitted_attribute("n_splits_", "_search.n_splits")
    n_iter_: int = fitted_attribute("n_iter_", "_model.fit.n_iter")

    def _without_rows(self) -> Self:
        slim = super()._without_rows()
        slim._search, slim._candidates = None, (None, None)
        return slim

    # The search.

    def _solve(
        self, stream: RowStream, parts: list[Moments], sample: RowSample | None
    ) -> FittedModel:
        if len(parts) < 2:
            raise ValueError(
                f"cv must leave rows in at least 2 folds, got {len(parts)}; "
                f"more rows or groups are needed"
            )
        selected = search_moments(
            parts,
            sample,
            stream.feature_map,
            self._search_settings(),
            ordered=isinstance(self.cv, TimeSeriesSplit),
            scale=stream.scale,
            inputs=stream.inputs,
        )
        return self._keep(selected)

    def _keep(self, selected: Selected) -> FittedModel:
        """The model of a search, whose results and best candidates are kept."""
        best = entangled = self._candidate_estimator(selected.best)
        if selected.entangled is not selected.best:
            entangled = self._candidate_estimator(selected.entangled)
        self._candidates, self._search = (best, entangled), selected.results
        return selected.model

    def _candidate_estimator(self, candidate: Candidate | None) -> EntangledKernelRidge | None:
        """A fitted estimator for a candidate, on tables with the same columns."""
        if candidate is None:
            return None
        fit, maps = candidate.model.fit, self._feature_maps(streamed=False)
        if fit.stop_reason == "stalled":
            warn_of_stall(fit)
        key = 0 if len(maps) == 1 else candidate.map_key
        feature_map = (
            maps[key] if key is not None else clone(candidate.model.feature_map, safe=False)
        )
        estimator = EntangledKernelRidge(
            feature_map,
            fit_intercept=self.fit_intercept,
            random_state=self.random_state,
            target_transform=self.target_transform,
        ).set_params(**self._parameters(fit.settings))
        MultiTargetRegressor.set_output(estimator, predict=self._container())
        adopted: EntangledKernelRidge = estimator.adopt_model(candidate.model, self)
        return adopted

    def _parameters(self, settings: FitSettings) -> dict[str, Any]:
        """Parameters of `EntangledKernelRidge` with these settings."""
        parameters = {name: getattr(settings, name) for name in ("alpha", *GRID)}
        solver, defaults = self._grid()[1]._replace(max_iter=settings.max_iter), SolverParams()
        changed = {
            name: value
            for name, value in solver._asdict().items()
            if value != getattr(defaults, name)
        }
        return parameters | {"solver_params": changed} if changed else parameters

    def _search_settings(self) -> SearchSettings:
        grid, params = self._grid()
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        start = FitSettings(
            init=params.init, max_iter=params.max_iter, tol=params.tol, seed=int(seed)
        )
        return SearchSettings(
            kernels=grid_settings(grid, start),
            alphas=None if self.alphas is None else np.asarray(self.alphas, dtype=np.float64),
            scoring=self.scoring,
            selection=self.selection,
            fit_intercept=bool(self.fit_intercept),
            n_jobs=self.n_jobs,
        )

    def _grid(self) -> tuple[dict[str, list[Any]], SolverParams]:
        """Values to try of every parameter of a kernel, and the settings of iterative solvers."""
        defaults = EntangledKernelRidge().get_params(deep=False)
        defaults = {name: [defaults[name]] for name in (*GRID, "solver_params")}
        grid = check_settings("param_grid", self.param_grid, defaults)
        if self.param_grid is None:
            grid |= GRID
        grid = {name: check_grid(f"param_grid[{name!r}]", values) for name, values in grid.items()}
        params = grid.pop("solver_params")
        if len(params) != 1:
            raise ValueError(
                "param_grid['solver_params'] must be a list of one dict; numbers of steps of an "
                "ascent are candidates by themselves"
            )
        return grid, check_solver_params(params[0])

    # Feature maps.

    def _feature_maps(self, *, streamed: bool = True) -> list[Any]:
        """The maps to choose from, for rows in a stream or in memory."""
        if isinstance(self.feature_map, str) and self.feature_map == "auto":
            return default_feature_maps(self.random_state, streamed=streamed)
        several = isinstance(self.feature_map, list | tuple)
        maps = list(self.feature_map) if several else [self.feature_map]
        if not maps:
            raise ValueError("feature_map must hold at least one feature map, got an empty list")
        for feature_map in maps:
            if isinstance(feature_map, str):
                raise ValueError(
                    f"feature_map must be 'auto', None, a transformer or a list of the last two, "
                    f"got {feature_map!r}"
                )
            check_feature_map(feature_map)
        return maps

    def _suitable_maps(self, maps: list[Any], rows: Rows) -> dict[int, Any]:
        """The maps, by their numbers in the list, that suit the numbers of inputs and targets."""
        try:
            n_inputs = _num_features(rows.X)
        except TypeError:  # rows of texts
            n_inputs = 1
        suitable = {
            number: feature_map
            for number, feature_map in enumerate(maps)
            if FeatureMapTraits.of(feature_map).suits(rows.Y.shape[1], n_inputs)
        }
        return suitable or dict(enumerate(maps))

    def _choose_map(self, maps: list[Any], rows: Rows) -> Any:
        """The feature map that `fit` would choose on the first rows of a stream."""
        maps = list(self._suitable_maps(maps, rows).values())
        if len(maps) == 1:
            return maps[0]
        splits = self.cv
        if not isinstance(self.cv, TimeSeriesSplit):
            if rows.part is None or len(np.unique(rows.part)) < 2:
                raise ValueError(
                    f"the first {len(rows.Y)} rows must be in at least 2 folds for a feature map to "
                    f"be chosen on them, got 1; mix the groups among the rows, or give one feature map"
                )
            splits = PredefinedSplit(rows.part)
        search = clone(self).set_params(feature_map=maps, cv=splits, target_transform=None)
        search.fit(rows.X, self._targets_like_y(rows.Y), rows.weight)
        return clone(maps[search.best_params_["feature_map"]], safe=False)

    # Folds of rows in batches.

    def _new_stream(
        self, batches: Any = None, targets: Any = None, n_rows: int | None = None
    ) -> RowStream:
        cv, ordered = self.cv, isinstance(self.cv, TimeSeriesSplit)
        if ordered and (cv.gap or cv.max_train_size is not None or cv.test_size is not None):
            raise ValueError(
                f"cv must be a TimeSeriesSplit of n_splits alone if rows come in batches, got {cv!r}"
            )
        if not isinstance(cv, Integral | KFold | GroupKFold | TimeSeriesSplit):
            raise ValueError(
                f"cv must be a number of folds, KFold, GroupKFold or TimeSeriesSplit if rows come in "
                f"batches, since the fold of a row is a hash of its values or group, or follows from "
                f"its number; got {cv!r}"
            )
        if isinstance(cv, Integral):
            check_integer("cv", cv, low=2)
        # With TimeSeriesSplit, the rows before the first fold are a part too.
        n_parts = int(cv if isinstance(cv, Integral) else cv.n_splits) + ordered
        if not ordered or batches is None:
            return RowStream(n_parts)
        if n_rows is None:
            n_rows = getattr(batches, "n_rows", None)
        if n_rows is None:
            if iter(batches) is batches:
                raise ValueError(
                    "n_rows must be given if batches can be read only once, since folds in the "
                    "order of time need the number of rows before the first"
                )
            n_rows = sum(_num_samples(as_batch(item, targets).X) for item in batches)
        check_integer("n_rows", n_rows, low=1)
        return RowStream(n_parts, ends=block_ends(int(n_rows), n_parts))

    def _parts_of(self, rows: Rows, groups: Any, stream: RowStream) -> Index:
        n, n_parts = len(rows.Y), self._new_stream().n_parts
        if n_parts != stream.n_parts:
            raise ValueError(
                f"cv must stay at the {stream.n_parts} folds of earlier rows, got {n_parts}"
            )
        if isinstance(self.cv, TimeSeriesSplit):
            if stream.ends is None:
                raise ValueError(
                    "cv: folds in the order of time need the number of rows before the first; use "
                    "fit_batches, or fit on a table in memory"
                )
            # Rows beyond the end are refused when all are counted.
            block = np.searchsorted(stream.ends, stream.n_rows + np.arange(n), side="right")
            return np.minimum(block, n_parts - 1)
        if groups is not None:
            return group_folds(check_groups(groups, n), n_parts)
        if isinstance(self.cv, GroupKFold):
            raise ValueError("groups must be given if cv is GroupKFold, got None")
        return row_folds(rows.X, rows.Y, n_parts)

    def _check_mergeable(self, other: Self, mine: RowStream, theirs: RowStream) -> None:
        super()._check_mergeable(other, mine, theirs)
        if isinstance(self.cv, TimeSeriesSplit) or isinstance(other.cv, TimeSeriesSplit):
            raise ValueError(
                "estimators to merge must not have folds in the order of time, since rows of two "
                "streams have no order; use fit_batches with all batches"
            )

    def _check_parameters(self) -> None:
        check_flag("fit_intercept", self.fit_intercept)
        if self.target_transform is not None:
            check_target_transform(self.target_transform)
        for name, choices in (("scoring", SCORINGS), ("selection", SELECTIONS)):
            check_choice(name, getattr(self, name), choices)
        check_integer("verbose", self.verbose, low=0)
        for name, values in self._grid()[0].items():
            for value in values:
                try:
                    EntangledKernelRidge(**{name: value})._check_parameters()
                except (TypeError, ValueError) as error:
                    raise type(error)(f"param_grid: {error}") from error
        for value in [] if self.alphas is None else check_grid("alphas", self.alphas):
            check_penalty("alphas", value)
        self._feature_maps()


def _print_progress(
    n_maps: int, progress: Callable[[int, int], None] | None
) -> Callable[[int, int], None]:
    """A callback that prints the split of a search and the seconds left, then calls ``progress``."""
    start = time.perf_counter()

    def report(done: int, n_steps: int) -> None:
        """After a split; ``n_steps`` is the number of splits of all maps together."""
        n_splits, seconds = n_steps // n_maps, time.perf_counter() - start
        number, split = divmod(done - 1, n_splits)
        print(
            f"feature map {number + 1} of {n_maps}, split {split + 1} of {n_splits}: "
            f"{seconds:.0f} s, about {seconds * (n_steps / done - 1.0):.0f} s left",
            flush=True,
        )
        if progress is not None:
            progress(done, n_steps)

    return report
