"""Searching over candidates on the rows of an estimator, and fitting what was chosen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit, RepeatedKFold, check_cv
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_consistent_length, check_random_state

from ..features import default_feature_maps, fit_feature_map, found_noise, needs_targets, warm_start
from ..learning import SOLVERS, LinearModel, Moments, Problem, SolverOptions
from ..parameters import check_feature_map, check_integer, check_rank_fits
from ..selection import (
    HeldOutPredictions,
    Member,
    MomentFolds,
    RefittedFolds,
    RowFolds,
    Search,
    SearchSettings,
    Split,
    TableSummary,
    decide,
    grid_members,
    group_partitions,
    predict_held_out,
    refit,
    run_search,
)
from ..streams import row_folds
from ..streams.stream import Rows, Stream
from .entangled_kernel_ridge import EntangledKernelRidge
from .prediction import LinearPredictionMixin
from .targets import TargetsMixin

__all__ = ["SearchingMixin", "SelectedFit"]

Array = NDArray[np.float64]

# With this many rows or fewer, folds are repeated until there are so many, and feature maps fitted in each.
SMALL, FOLDS_WHEN_SMALL = 500, 20


@dataclass(frozen=True, eq=False)
class Trial:
    """All candidates tried with one feature map, given and fitted, and the problem of all rows to refit on.

    Without ``refit`` there is no problem, and where no moments were kept no stream to go on from.
    """

    feature_map: Any
    fitted: Any
    search: Search
    n_splits: int
    problem: Problem | None
    stream: Stream | None


@dataclass(frozen=True, eq=False)
class SelectedFit:
    """What a search has ended with; `EntangledKernelRidgeCV` explains each part, None where there is none."""

    cv_results: dict[str, NDArray[Any]]
    cv_target_scores: Array | None
    best_params: dict[str, Any]
    best_score: float
    best_index: int | None
    n_splits: int
    best_estimator: EntangledKernelRidge | None = None
    average_weights: Array | None = None
    linear: LinearModel | None = None
    held_out: HeldOutPredictions | None = None


class SearchingMixin(LinearPredictionMixin):
    """The search of `EntangledKernelRidgeCV`, whose parameters it reads."""

    alphas: ArrayLike | None
    gains: Any
    alignment_mixes: Any
    shrinkages: Any
    target_alphas: Any
    predictions: Any
    solver: str
    ranks: Any
    cv: Any
    scoring: str
    selection: str
    alpha_per_target: bool
    refit: bool
    fit_features: str
    init: str
    max_iter: int
    tol: float
    n_jobs: int | None
    random_state: Any

    def _search_rows(
        self,
        feature_map: Any,
        X: Any,
        targets: Array,
        sample_weight: Any,
        splits: Callable[[], list[Split]],
        report: Callable[[int, int], None],
    ) -> Trial:
        """Try all candidates with one feature map, on rows in memory."""
        fitted = self._fit_map(feature_map, X, targets, sample_weight)
        in_folds = feature_map is not None and self._fitted_in_folds(feature_map, len(targets))
        if not in_folds and self._exceeds_memory(fitted, X, targets):
            check_consistent_length(X, targets)
            groups = list(group_partitions(splits(), len(targets)))
            if min(map(len, groups)) > 1:
                rounds = [
                    self._moments_of_parts(fitted, X, targets, sample_weight, [test for _, test in group])
                    for group in groups
                ]
                return self._search_moments(rounds, feature_map, fitted, report)
        Phi, Y, weight = self._training_rows(fitted, X, targets, sample_weight)
        self._check_ranks(Phi.shape[1], Y.shape[1])
        rows: dict[str, Any] = {"Y": Y, "weight": weight, "splits": splits(), "centred": self.fit_intercept}
        problem, stream = self._problem_of_rows(Phi, Y, weight) if self.refit else (None, None)
        if in_folds:
            # The search of every fold starts from what all rows gave.
            source: RowFolds = RefittedFolds(X, **rows, feature_map=warm_start(feature_map, fitted))
        else:
            norms = SOLVERS[self.solver].iterative
            source = RowFolds(Phi, **rows, norms=norms, product_dtype=self.product_dtype)
        table = TableSummary.from_rows(Phi, Y, weight, found_noise(fitted), centred=self.fit_intercept)
        search = run_search(table, source, self._search_settings(), report)
        return Trial(feature_map, fitted, search, source.n_splits, problem, stream)

    def _search_moments(
        self,
        rounds: list[list[Moments]],
        feature_map: Any,
        fitted: Any,
        report: Callable[[int, int], None] | None,
    ) -> Trial:
        """Try all candidates with one feature map, on the moments of folds, in one round or several."""
        total = sum(rounds[0][1:], rounds[0][0])
        self._check_ranks(total.n_features, total.n_outputs)
        problem, stream = self._problem_of_moments(total) if self.refit else (None, None)
        source = MomentFolds(rounds, centred=self.fit_intercept)
        table = TableSummary.from_moments(total, found_noise(fitted), centred=self.fit_intercept)
        search = run_search(table, source, self._search_settings(), report)
        return Trial(feature_map, fitted, search, source.n_splits, problem, stream)

    def _conclude(self, trials: list[Trial]) -> tuple[SelectedFit, Any]:
        """Choose among what was tried, fit it on all rows; and the feature map to predict with."""
        searches = [trial.search for trial in trials]
        decision = decide(searches, self.selection)
        choice, best = decision.choice, trials[decision.place]
        self._warn_of_ends(choice.alpha, best.search.grid.alphas)
        place = {"feature_map": decision.place} if len(trials) > 1 else {}
        selected = SelectedFit(
            cv_results=decision.table,
            cv_target_scores=decision.target_scores,
            best_params=choice.parameters() | place,
            best_score=choice.error,
            best_index=decision.index,
            n_splits=best.n_splits,
        )
        problems = [trial.problem for trial in trials if trial.problem is not None]
        if not problems:
            return selected, None
        estimator = self._estimator(best.feature_map).set_params(**choice.parameters())
        settings, options = estimator._settings(), self._solver_options()
        fit, linear = refit(searches, decision, problems, settings, options)
        estimator._warn_if_stalled(fit)
        estimator._adopt(self, best.fitted, fit, best.stream)
        weights = decision.flat_weights()
        held_out = predict_held_out(searches, decision, self.selection, options)
        used = [trials[place].fitted for place in decision.used()]
        return (
            replace(
                selected,
                best_estimator=estimator,
                linear=linear,
                average_weights=weights,
                held_out=held_out,
            ),
            used[0] if len(used) == 1 else _side_by_side(used),
        )

    def _given_map(self) -> Any:
        """The feature map, where there is but one."""
        maps = self._feature_maps()
        return maps[0] if len(maps) == 1 else maps

    def _fit_first_map(self, rows: Rows) -> Any:
        """Choose a feature map as `fit` would on the first rows of a stream, and fit it on them."""
        maps, best = self._feature_maps(), 0
        targets = self._targets_like_y(rows.Y)
        if len(maps) > 1:
            folds = PredefinedSplit(row_folds(rows.X, rows.Y, self._n_parts()))
            search = clone(self).set_params(cv=folds, refit=False).fit(rows.X, targets, rows.weight)
            best = search.best_params_["feature_map"]
        return fit_feature_map(maps[best], rows.X, targets, rows.weight)

    def _feature_maps(self) -> list[Any]:
        """The maps to choose from."""
        if isinstance(self.feature_map, str) and self.feature_map == "auto":
            return default_feature_maps(self.random_state)
        maps = list(self.feature_map) if isinstance(self.feature_map, list | tuple) else [self.feature_map]
        if not maps:
            raise ValueError("feature_map must hold at least one feature map, got an empty list")
        for one in maps:
            if isinstance(one, str):
                raise ValueError(
                    f"feature_map must be 'auto', None, a transformer or a list of the last two, got {one!r}"
                )
            check_feature_map(one)
        return maps

    def _search_settings(self) -> SearchSettings:
        return SearchSettings(
            members=self._members(),
            # One is always among the gains, since kernel ridge is always a candidate.
            gains=np.unique(np.array([1.0, *self.gains], dtype=np.float64)),
            alphas=None if self.alphas is None else np.asarray(self.alphas, dtype=np.float64),
            options=self._solver_options(),
            scoring=self.scoring,
            averaging=self.selection == "average",
            alpha_per_target=bool(self.alpha_per_target),
            n_jobs=self.n_jobs,
        )

    def _members(self) -> list[Member]:
        members = grid_members(
            self.solver,
            self.ranks,
            self.target_alphas,
            self.alignment_mixes,
            self.shrinkages,
            self.predictions,
            max_iter=int(self.max_iter),
        )
        if not self.alpha_per_target:
            return members
        # Operators tie the targets together, so that they cannot have alphas of their own.
        return [one for one in members if one.shrinkage == 1.0 or one.prediction == "partial_trace"]

    def _solver_options(self) -> SolverOptions:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return SolverOptions(
            init=self.init, max_iter=int(self.max_iter), tol=float(self.tol), rng=np.random.default_rng(seed)
        )

    def _estimator(self, feature_map: Any) -> EntangledKernelRidge:
        estimator = EntangledKernelRidge(
            feature_map,
            init=self.init,
            max_iter=self.max_iter,
            tol=self.tol,
            fit_intercept=self.fit_intercept,
            random_state=self.random_state,
            max_memory=self.max_memory,
            product_dtype=self.product_dtype,
        )
        return TargetsMixin.set_output(estimator, predict=self._container())

    def _fitted_in_folds(self, feature_map: Any, n_rows: int) -> bool:
        if self.fit_features != "auto":
            return self.fit_features == "fold"
        return n_rows <= SMALL or needs_targets(feature_map)

    def _splits(self, X: Any, Y: Array, groups: Any) -> list[Split]:
        cv, n = self.cv, len(Y)
        if isinstance(cv, Integral):
            check_integer("cv", cv, low=2)
            n_folds = int(cv)
            if n_folds > n:
                raise ValueError(f"cv must be at most the number of rows, {n}, got {n_folds}")
            repeats = max(1, FOLDS_WHEN_SMALL // n_folds) if n_folds < n <= SMALL else 1
            cv = RepeatedKFold(n_splits=n_folds, n_repeats=repeats, random_state=self.random_state)
        return list(check_cv(cv).split(X, Y, groups))

    def _check_ranks(self, n_features: int, n_outputs: int) -> None:
        for rank in self.ranks:
            check_rank_fits(rank, n_features, n_outputs)

    def _warn_of_ends(self, chosen: float | Array, alphas: Array) -> None:
        for end, name in ((alphas.min(), "smallest"), (alphas.max(), "largest")):
            if len(alphas) > 1 and np.any(chosen == end):
                warnings.warn(
                    f"the {name} of the alphas was chosen, {end:.3g}; a wider grid may do better",
                    UserWarning,
                    stacklevel=4,
                )


def _side_by_side(maps: list[Any]) -> FeatureUnion:
    """Fitted maps whose features stand side by side; None are the columns themselves."""
    columns = [FunctionTransformer() if own is None else own for own in maps]
    return FeatureUnion([(f"map{i}", own) for i, own in enumerate(columns)])
