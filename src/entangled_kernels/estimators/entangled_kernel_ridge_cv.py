"""Entangled kernel ridge that chooses its own settings by cross-validation from moments."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples

from ..features import FeatureMapTraits, map_features
from ..kernels import KrausKernel
from ..learning import SOLVERS, Moments, RowSample
from ..learning.noise import AveragedPart
from ..linalg import Array
from ..parameters import (
    check_choice,
    check_fraction,
    check_grid,
    check_groups,
    check_integer,
    check_positive,
    check_rank,
)
from ..selection import GRID, SCORINGS, Member, SearchSettings, grid_members
from ..threads import SMALL_MATRIX, one_thread
from .dask_tables import is_dask
from .entangled_kernel_ridge import PREDICTIONS, EntangledKernelRidge
from .prediction import solved_attribute
from .searching import SearchingMixin, SelectedFit, Trial
from .split_routing import SplitRoutingMixin
from .training import SolverParams, Table, check_solver_params

__all__ = ["EntangledKernelRidgeCV"]

# Parameters that are one of a few words.
CHOICES = {
    "scoring": SCORINGS,
    "selection": ("best", "one_se", "average"),
}
# Least share of maps whose noise can be seen in an average, for each target, to tell the noise of all.
LEAST_SHOWN = 0.2


class EntangledKernelRidgeCV(
    SplitRoutingMixin, SearchingMixin, RegressorMixin, MultiOutputMixin, BaseEstimator
):
    """Entangled kernel ridge regression with its settings chosen by cross-validation.

    Tries kernels from plain kernel ridge to fully learned ones, each with a path of alphas, and keeps what
    predicts held-out rows best. Kernel ridge is always among the candidates.

    Parameters
    ----------
    feature_map : "auto", transformer, None, or list of the last two, default="auto"
        Features phi(x), as in `EntangledKernelRidge`. Those of a list are candidates. ``"auto"`` tries the
        standardised columns; `ColumnWidthFeatures`, with a width for every column, of the columns and of
        columns made symmetric by powers; `ForestFeatures`; and, with two to eight targets and not in streams,
        `TargetProcessFeatures`. Kernels count columns up to one range beyond the training rows (``reach=1``;
        none in streams), so that only the standardised columns follow a trend farther out.
    alphas : array-like or None, default=None
        Ridge penalties to try. None takes 34 values over eleven decades about the scale of the features, and
        the noise that a feature map has found, its ``noise_``.
    param_grid : dict or None, default=None
        Values to try of the parameters of `EntangledKernelRidge`, as in scikit-learn's `GridSearchCV`:
        ``shrinkage``, ``alignment_mix``, ``target_alpha``, ``prediction``, ``rank`` and ``solver``, each with
        a list; a parameter that is left out has its default. ``solver_params`` may have a list of one dict.
        None is ``{"shrinkage": [0.25, 1.0], "alignment_mix": [0.0, 1.0], "target_alpha": [0.1, 1.0],
        "prediction": ["entangled", "partial_trace"]}``. Kernel ridge, ``shrinkage=1``, is always tried.
        Combinations that give the same kernel are tried once. With ``solver=["ascent"]`` steps along the path
        are candidates too, so that early stopping is selected.
    cv : int, splitter or iterable of splits, default=5
        An int asks for shuffled folds, of whole groups where `fit` is given groups; with at most 60 rows they
        are repeated until there are 10 splits. `TimeSeriesSplit` predicts folds from rows before.
    scoring : {"nmse", "mse"}, default="nmse"
        Mean over outputs of the squared error, divided by the variance of the output or not. Lower is better.
    selection : {"average", "best", "one_se"}, default="average"
        ``"average"``: for every feature map the mean of candidates, each weighted by how often it is the best
        when the splits get random weights (`entangled_kernels.selection.weights.bootstrap_weights`); these
        means, and kernel ridge with the noise that a map has found for its alpha, get shares by their errors
        on held-out rows (`entangled_kernels.selection.stacking`). For a target best is what is so by its own
        error and twice that of all, where there are no more than 64 targets and no more than rows. An
        average of coefficients is a coefficient matrix, so predicting costs what the features cost.
        ``"best"``: the candidate with the least error. ``"one_se"``: the one with the largest shrinkage and
        the largest alpha within a standard error.
    fit_intercept : bool, default=True
    n_jobs : int or None, default=None
        Folds worked on at the same time, in threads that start where that saves time. Results do not depend
        on it.
    target_transform : as in `EntangledKernelRidge`
        Candidates are tried on transformed targets, and ``best_score_`` and ``cv_results_`` are errors of
        these; ``cv_score_``, ``cv_rmse_`` and what stands beside them are errors of predictions in units of
        the targets. A transformer is fitted once, on all rows.
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
        Held-out error of the model that is kept, an average or not; lower is better. Each fold's rows are
        predicted with weights and shares that rest on the others. It is the error to expect of new rows like
        those that folds hold out: of any rows, of rows of new groups where folds are of groups, of later
        rows where they are in the order of time. Rows that no fold holds out have no part in it.
    cv_target_score_, cv_rmse_ : ndarray of shape (p,)
        That error of every target, NaN for a constant one, and its root mean squared error in its own unit.
    kernel_ridge_score_, kernel_ridge_target_score_ : float and ndarray of shape (p,)
        The same errors on the same folds of what would be kept with plain kernel ridge alone, of the same
        feature maps.
    best_index_ : int
        Its place in ``cv_results_``.
    cv_results_ : dict of ndarray
        One entry per candidate: ``param_*``, ``mean_test_score``, ``std_test_score`` and
        ``split{i}_test_score``; ready for `pandas.DataFrame`.
    cv_target_scores_ : ndarray of shape (number of candidates, p)
        Errors of every target in the order of ``cv_results_``, NaN for a constant one; only there where
        targets weigh candidates apart.
    coef_, intercept_ : ndarray of shape (p, m) and (p,)
        Those of the best estimator, or averages.
    average_weights_ : ndarray of shape (number of candidates, p) or (number of candidates,)
        With ``selection="average"``, in the order of ``cv_results_``; the same for all targets where they
        weigh candidates together.
    n_splits_ : int
    entangled_estimator_ : EntangledKernelRidge
        The best entangled candidate, fitted on all rows: the best estimator, unless that is kernel ridge or
        predicts with the partial trace. ``kernel_``, ``kraus_`` and `project` are those of
        it, and it has `transform`.
    feature_map_ : transformer or None
        Of ``coef_``; a `FeatureUnion` where candidates with several maps are averaged.
    n_iter_, n_features_in_, feature_names_in_, target_names_ : as in `EntangledKernelRidge`

    Notes
    -----
    Held-out errors come from moments of the folds (`entangled_kernels.selection.fold.Fold`): after one pass
    over the rows nothing depends on their number. One decomposition serves all alphas of a member.

    With `partial_fit`, `fit_batches` and Dask a row's fold is found by a hash of its values, or of its group
    (`entangled_kernels.streams.row_folds`), so it does not matter how rows are cut and ordered; ``cv`` must
    be a number, or a `KFold` or `GroupKFold` of which the number counts. With `TimeSeriesSplit`, which needs
    `fit_batches`, folds are blocks of the rows as they come. Of several feature maps, as with ``"auto"``, one
    is chosen on the first 10,000 rows; what else there is to choose is chosen on all rows.

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

    best_estimator_ = solved_attribute("best_estimator_", "best_estimator", "The chosen candidate.")
    best_params_ = solved_attribute("best_params_", "best_params", "Its parameters.")
    best_score_ = solved_attribute("best_score_", "best_score", "Its cross-validated error.")
    best_index_ = solved_attribute("best_index_", "best_index", "Its place in cv_results_.")
    cv_results_ = solved_attribute("cv_results_", "cv_results", "All candidates and their errors.")
    cv_target_scores_ = solved_attribute("cv_target_scores_", "cv_target_scores", "Errors by target.")
    average_weights_ = solved_attribute("average_weights_", "average_weights", "Weights of the candidates.")
    cv_score_ = solved_attribute("cv_score_", "score.score", "Held-out error of the model that is kept.")
    cv_target_score_ = solved_attribute("cv_target_score_", "score.targets", "The same of every target.")
    cv_rmse_ = solved_attribute(
        "cv_rmse_", "score.rmse", "Its root mean squared error, in units of the targets."
    )
    kernel_ridge_score_ = solved_attribute(
        "kernel_ridge_score_", "kernel_ridge.score", "What cv_score_ would be with kernel ridge alone."
    )
    kernel_ridge_target_score_ = solved_attribute(
        "kernel_ridge_target_score_", "kernel_ridge.targets", "The same of every target."
    )
    n_iter_ = solved_attribute(
        "n_iter_", "best_estimator.n_iter_", "Steps of the solver of the best estimator."
    )
    n_splits_ = solved_attribute("n_splits_", "n_splits", "Number of splits.")

    coef_ = solved_attribute("coef_", "linear.coef", "Coefficients (p, m) of the features.")
    intercept_ = solved_attribute("intercept_", "linear.intercept", "Constant of every target, (p,).")

    @property
    def entangled_estimator_(self) -> EntangledKernelRidge:
        """The best entangled candidate."""
        found: EntangledKernelRidge | None = self._solved_fit("entangled_estimator_").entangled
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
        """Its Kraus operators, (r, p, m)."""
        return self.entangled_estimator_.kraus_

    def project(self, X: Any) -> Array:
        """Rows as that candidate sees them, (n, p, r); see `EntangledKernelRidge.project`."""
        self._ensure_solved()
        return self.entangled_estimator_.project(X)

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
        sample_weight : array-like of shape (n_samples,) or float, optional
        groups : array-like of shape (n_samples,), optional
            Numbers or texts. Rows of a group are held out together, by folds of whole groups where ``cv`` is
            a number, and by splitters that ask for groups.
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
        table = self._check_table(X, y, sample_weight, groups)
        maps, trials = self._suited_maps(table.Y.shape[1]), list[Trial]()
        # All feature maps are tried on the same splits.
        splits = cache(lambda: self._splits(table))
        shown = _Progress() if self.verbose else None
        # Where matrices are small, one BLAS thread to the end, instead of on and off with every step.
        with one_thread(max(table.Y.shape) <= SMALL_MATRIX):
            for place, feature_map in maps.items():

                def report(done: int, n_splits: int, tried: int = len(trials)) -> None:
                    if progress is not None:
                        progress(tried * n_splits + done, len(maps) * n_splits)
                    if shown is not None:
                        shown.print(tried, len(maps), done, n_splits)

                trials.append(self._search_rows(feature_map, table, splits, report, place))
            self._fit, feature_map = self._conclude(trials, table)
        self.feature_map_ = feature_map
        return self

    def _solve_moments(self, parts: list[Moments], sample: RowSample | None) -> SelectedFit:
        """Choose and fit from the moments of folds."""
        if len(parts) < 2:
            raise ValueError(
                f"cv must leave rows in at least 2 folds, got {len(parts)}; more rows or groups are needed"
            )
        given, fitted = self._given_map(), self.feature_map_
        if isinstance(given, list):
            # The one of several maps that was chosen on the first rows.
            given = None if fitted is None else clone(fitted)
        trial = self._search_moments([parts], sample, given, fitted, None, ordered=self._ordered)
        rows = Table(np.zeros((0, 0)), np.zeros((0, 0)))
        if sample is not None:
            original = None if self.target_transform_ is None else self._back(sample.Y, None)
            rows = Table(sample.Phi, sample.Y, sample.weight, mapped=True, original=original)
        return self._conclude([trial], rows)[0]

    def _search_settings(self) -> SearchSettings:
        return SearchSettings(
            members=self._members(),
            alphas=None if self.alphas is None else np.asarray(self.alphas, dtype=np.float64),
            options=self._solver_options(),
            scoring=self.scoring,
            averaging=self.selection == "average",
            n_jobs=self.n_jobs,
        )

    def _members(self) -> list[Member]:
        return grid_members(self._grid(), max_iter=self._solver_params().max_iter)

    def _grid(self) -> dict[str, Any]:
        """Values to try of every parameter of a kernel."""
        if self.param_grid is None:
            return dict(GRID)
        if not isinstance(self.param_grid, Mapping):
            raise TypeError(f"param_grid must be a dict or None, got {type(self.param_grid).__name__}")
        unknown = sorted(map(str, set(self.param_grid) - {*GRID, "solver_params"}))
        if unknown:
            raise ValueError(f"param_grid has unknown keys {unknown}; it may hold {', '.join(GRID)}")
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

    def _best_model(self) -> Any:
        return self._fit.best_estimator

    def _averaged_parts(self, X: Any) -> list[AveragedPart]:
        fit, chosen = self._fit, dict(self._fit.best_params)
        best = chosen.pop("feature_map", None)
        if best is None or fit.average_weights is None:
            return super()._averaged_parts(X)
        places, parts = fit.cv_results["param_feature_map"], []
        weights = fit.average_weights.reshape(len(places), -1)  # (candidates, 1 or p)
        used = [one for one in np.unique(places) if one == best or weights[places == one].any()]
        if len(used) == 1:
            return super()._averaged_parts(X)
        maps = [feature_map for _, feature_map in self.feature_map_.transformer_list]
        shares = np.array([weights[places == one].sum(axis=0) for one in used])  # (maps, 1 or p)
        # What cross-fitted maps make of noise is hidden in their predictions; the others stand for them.
        shown = [not FeatureMapTraits.of(feature_map).cross_fitted for feature_map in maps]
        shares[np.logical_not(shown)] = 0.0
        if shares.sum(axis=0).min() < LEAST_SHOWN:
            return []
        shares /= shares.sum(axis=0)
        for one, feature_map, share in zip(used, maps, shares, strict=True):
            own = np.where(places[:, None] == one, weights, 0.0)
            heaviest = int(np.argmax(np.where(places == one, own.sum(axis=1), -1.0)))
            settings = {name: fit.cv_results[f"param_{name}"][heaviest] for name in chosen}
            settings = replace(fit.best_estimator._fit.settings, **settings)
            parts.append(AveragedPart(map_features(feature_map, X), settings, share))
        return parts

    def _for_workers(self) -> Self:
        slim = super()._for_workers()
        if self._fit is not None and self._fit.best_estimator is not None:
            best = self._fit.best_estimator._for_workers()
            slim._fit = replace(self._fit, best_estimator=best, cv_results={}, average_weights=None)
        return slim

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, choices in CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        check_integer("verbose", self.verbose, low=0)
        checks: dict[str, Callable[[str, Any], None]] = {
            "alignment_mix": check_fraction,
            "shrinkage": check_fraction,
            "target_alpha": partial(check_positive, zero_allowed=True),
            "prediction": partial(check_choice, choices=PREDICTIONS),
            "rank": lambda _, value: check_rank(value),
            "solver": partial(check_choice, choices=tuple(SOLVERS)),
        }
        for name, values in self._grid().items():
            for value in values:
                checks[name](f"param_grid[{name!r}]", value)
        self._solver_params()
        for value in [] if self.alphas is None else check_grid("alphas", self.alphas):
            check_positive("alphas", value)
        self._feature_maps()


class _Progress:
    """Prints how far a search is, and how long it will take from here."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def print(self, tried: int, n_maps: int, done: int, n_splits: int) -> None:
        """Print a line after a split; ``tried`` maps came before this one."""
        share = (tried * n_splits + done) / (n_maps * n_splits)
        seconds = time.perf_counter() - self.start
        print(
            f"feature map {tried + 1} of {n_maps}, split {done} of {n_splits}: {seconds:.0f} s, "
            f"about {seconds * (1.0 / share - 1.0):.0f} s left",
            flush=True,
        )
