"""Searching over candidates on the rows of an estimator, and fitting what was chosen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_random_state

from ..conditioning import Calibration, HeldOut, HeldOutScore, Residuals, calibrate, held_out_intervals
from ..features import FeatureMapTraits, default_feature_maps, fit_feature_map, is_fitted, warm_start
from ..learning import SOLVERS, LinearModel, Moments, RowSample, SolverOptions, fit_problem
from ..learning.input_range import InputRange
from ..learning.missing import complete_moments, fill_rows
from ..linalg import Array, Index
from ..parameters import check_feature_map, check_rank_fits, check_share
from ..selection import (
    BlankFolds,
    Choice,
    HeldOutPredictions,
    Member,
    MomentFolds,
    RefittedFolds,
    RowFolds,
    Search,
    SearchSettings,
    Split,
    TableSummary,
    group_partitions,
    refit,
    run_search,
    settle,
)
from ..streams.stream import Rows, Stream
from .entangled_kernel_ridge import EntangledKernelRidge
from .explaining import ExplainingMixin
from .folding import SMALL, FoldingMixin
from .notices import warn_if_stalled
from .targets import TargetsMixin
from .training import SolverParams, Table, Training

__all__ = ["SearchingMixin", "SelectedFit"]


@dataclass(frozen=True, eq=False)
class Trial:
    """All candidates tried with one feature map, given and fitted, and what all rows give to refit on.

    ``place`` is that of the map among those that were given.
    """

    feature_map: Any
    fitted: Any
    search: Search
    training: Training
    place: int = 0


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
    residuals: Residuals | None = None
    score: HeldOutScore | None = None
    kernel_ridge: HeldOutScore | None = None
    measured: Array | None = None
    entangled: EntangledKernelRidge | None = None

    @cached_property
    def calibration(self) -> Calibration:
        """What held-out residuals say of errors; made when first asked for."""
        if self.residuals is None:
            # An AttributeError too, so that hasattr is False.
            raise NotFittedError("no held-out rows were kept to calibrate on")
        return calibrate(self.residuals, np.random.default_rng(0))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "calibration"}


class SearchingMixin(FoldingMixin, ExplainingMixin):
    """The search of `EntangledKernelRidgeCV`, whose parameters it reads."""

    alphas: ArrayLike | None
    n_jobs: int | None
    selection: str

    def held_out_predictions(self, coverage: float = 0.9) -> HeldOut:
        """Training rows as models that had not seen them predict them, with intervals.

        Parameters
        ----------
        coverage : float, default=0.9
            Of the intervals.

        Returns
        -------
        held_out : HeldOut
            ``measured``, ``predicted``, ``lower`` and ``upper``, each (n, p); of rows in batches a sample.
        """
        check_share("coverage", coverage)
        self._ensure_model()
        if self._fit.measured is None:
            raise ValueError("no held-out rows were kept; fit the model again")
        found = held_out_intervals(self._fit.calibration, self._fit.measured, float(coverage))
        return found if self._own_transform is None else found.mapped(self._own_transform.inverse_transform)

    def _search_rows(
        self,
        feature_map: Any,
        table: Table,
        splits: Callable[[], list[Split]],
        report: Callable[[int, int], None],
        place: int,
    ) -> Trial:
        """Try all candidates with one feature map, at its place among those given, on rows in memory."""
        fitted, Phi = self._fit_map(feature_map, *self._map_targets(table))
        n = len(table.Y)
        in_folds = feature_map is not None and self._fitted_in_folds(feature_map, n)
        if not in_folds and Phi is None and self._exceeds_memory(fitted, table):
            groups = list(group_partitions(splits(), n))
            if min(map(len, groups)) > 1:
                rounds = [
                    self._moments_of_parts(fitted, table, [test for _, test in group]) for group in groups
                ]
                # The parts of the sample are those of the first round.
                sample = rounds[0][1]
                places = None if sample is None else table.sampled_places(len(sample.Y))
                parts = [own for own, _ in rounds]
                trial = self._search_moments(parts, sample, feature_map, fitted, report, places)
                return replace(trial, place=place)
        Phi = self._training_features(fitted, table.X, Phi)
        self._check_ranks(Phi.shape[1], table.Y.shape[1])
        own_splits, settings = splits(), self._search_settings()
        source, training = self._row_folds(
            feature_map if in_folds else None, fitted, Phi, table, own_splits, ridge_only=settings.ridge_only
        )
        summary = TableSummary.from_rows(
            Phi, table.Y, table.weight, FeatureMapTraits.of(fitted).noise, centred=self.fit_intercept
        )
        search = run_search(summary, source, settings, report)
        return Trial(feature_map, fitted, search, training, place)

    def _row_folds(
        self, feature_map: Any, fitted: Any, Phi: Any, table: Table, splits: list[Split], *, ridge_only: bool
    ) -> tuple[RowFolds, Training]:
        """Folds of rows in memory, and what all rows give to refit on.

        A feature map is fitted in every fold, where there is one to fit; its search for a kernel starts from
        what all rows gave.
        """
        rows: dict[str, Any] = {
            "splits": splits,
            "centred": bool(self.fit_intercept),
            "norms": any(SOLVERS[member.solver].iterative for member in self._members()),
            "ridge_only": ridge_only,
        }
        started = None if feature_map is None else warm_start(feature_map, fitted)
        X = Phi if feature_map is None else table.X
        filled: Array | None = None
        source: RowFolds
        if table.weight is not None and table.weight.ndim == 2:
            filled, shrinkage = fill_rows(Phi, table.Y, table.weight, centred=bool(self.fit_intercept))
            source = BlankFolds(X, table.Y, table.weight, **rows, feature_map=started, shrinkage=shrinkage)
        elif feature_map is not None:
            source = RefittedFolds(X, table.Y, table.weight, **rows, feature_map=started)
        else:
            source = RowFolds(X, table.Y, table.weight, **rows)
        training = self._training_of_rows(Phi, table, filled)
        return source, training

    def _search_moments(
        self,
        rounds: list[list[Moments]],
        sample: RowSample | None,
        feature_map: Any,
        fitted: Any,
        report: Callable[[int, int], None] | None,
        places: Index | None = None,
        *,
        ordered: bool = False,
    ) -> Trial:
        """Try all candidates with one feature map, on the moments of folds, in one round or several.

        ``places`` are those of the sample in the table, None where the sample is the table. Parts that are
        ``ordered`` are held out from those before them.
        """
        centred = bool(self.fit_intercept)
        total = sum(rounds[0][1:], rounds[0][0])
        self._check_ranks(total.n_features, total.n_outputs)
        complete = complete_moments(total, centred=centred)
        training = self._training_of_moments(complete, sample)
        training = replace(training, stream=Stream.of_moments(total, sample))
        source = MomentFolds(rounds, centred=centred, sample=sample, places=places, ordered=ordered)
        summary = TableSummary.from_moments(total, FeatureMapTraits.of(fitted).noise, centred=centred)
        search = run_search(summary, source, self._search_settings(), report)
        return Trial(feature_map, fitted, search, training)

    def _conclude(self, trials: list[Trial], table: Table) -> tuple[SelectedFit, Any]:
        """Choose among what was tried, fit it on all rows; and the feature map to predict with.

        Folds held out rows of the table, by their places.
        """
        searches = [trial.search for trial in trials]
        options = self._solver_options()
        decision, held_out = settle(searches, self.selection, table.Y, table.weight, options)
        choice, best = decision.choice, trials[decision.place]
        self._warn_of_ends(choice.alpha, best)
        place = {"feature_map": best.place} if len(trials) > 1 else {}
        given = np.array([trial.place for trial in trials])
        decision.table["param_feature_map"] = given[decision.table["param_feature_map"]]
        selected = SelectedFit(
            cv_results=decision.table,
            cv_target_scores=decision.target_scores,
            best_params=self._parameters(choice) | place,
            best_score=choice.error,
            best_index=decision.index,
            n_splits=len(best.search.folds),
        )
        estimator = self._estimator(best.feature_map).set_params(**self._parameters(choice))
        problems = [trial.training.problem for trial in trials]
        fit, linear = refit(searches, decision, problems, estimator._settings(), options)
        warn_if_stalled(fit)
        # Where rows came in batches, the stream has watched their inputs.
        streamed = None if self._stream is None else self._stream.inputs
        inputs = streamed if table.mapped else InputRange.of(table.X)
        fit = replace(best.training.sampled(fit), inputs=inputs)
        fit = self._calibrate_in_target_units(fit, table)
        estimator._adopt(self, best.fitted, fit, self._stream_kept(best.training))
        mixed = self._mixing_transform is not None
        residuals = None if held_out is None else self._residuals(held_out, table, in_target_units=mixed)
        measured = table.original if mixed and table.original is not None else table.Y
        own, ridge = self._scores(held_out, searches, table, options)
        used = [trials[place].fitted for place in decision.used()]
        return (
            replace(
                selected,
                best_estimator=estimator,
                linear=linear,
                average_weights=decision.flat_weights(),
                residuals=residuals,
                score=own,
                kernel_ridge=ridge,
                measured=None if residuals is None else measured[np.unique(residuals.row)],
                entangled=estimator if choice.member.entangled else self._best_entangled(trials, table),
            ),
            used[0] if len(used) == 1 else _side_by_side(used),
        )

    def _residuals(self, held_out: HeldOutPredictions, table: Table, *, in_target_units: bool) -> Residuals:
        """Residuals of held-out rows, of the targets or of transformed ones."""
        if table.original is None or self.target_transform_ is None or not in_target_units:
            return held_out.residuals(table.Y, table.weight)
        values = self.target_transform_.inverse_transform(held_out.values)
        return replace(held_out, values=values).residuals(table.original, table.weight)

    def _scores(
        self,
        held_out: HeldOutPredictions | None,
        searches: list[Search],
        table: Table,
        options: SolverOptions,
    ) -> tuple[HeldOutScore | None, HeldOutScore | None]:
        """Errors on held-out rows of the model that is kept, and of what would be kept of kernel ridge."""
        if held_out is None:
            return None, None
        plain = [search.restricted(lambda member: member.shrinkage == 1.0) for search in searches]
        ridge = held_out
        if any(own.n_candidates < search.n_candidates for own, search in zip(plain, searches, strict=True)):
            ridge = cast(HeldOutPredictions, settle(plain, self.selection, table.Y, table.weight, options)[1])
        weights = searches[0].output_weights
        if table.original is not None:
            no_features = np.zeros((len(table.Y), 1))
            targets = TableSummary.from_rows(no_features, table.original, table.weight, centred=True)
            weights = self._search_settings().score_weights(targets)
        own = HeldOutScore.of(self._residuals(held_out, table, in_target_units=True), weights)
        if ridge is held_out:
            return own, own
        return own, HeldOutScore.of(self._residuals(ridge, table, in_target_units=True), weights)

    def _best_entangled(self, trials: list[Trial], table: Table) -> EntangledKernelRidge | None:
        """The best entangled candidate, fitted on all rows; None where there is none."""
        if not any(member.entangled for member in trials[0].search.grid.members):
            return None
        learned = [trial.search.restricted(lambda member: member.entangled) for trial in trials]
        choices = [search.choose(self.selection) for search in learned]
        place = int(np.argmin([choice.error for choice in choices]))
        trial, training = trials[place], trials[place].training
        estimator = self._estimator(trial.feature_map)
        estimator.set_params(**self._parameters(choices[place]))
        fit = training.sampled(fit_problem(training.problem, estimator._settings()))
        fit = self._calibrate_in_target_units(fit, table)
        return estimator._adopt(self, trial.fitted, fit, None)

    def _given_map(self) -> Any:
        """The feature map, where there is but one."""
        maps = self._feature_maps()
        return maps[0] if len(maps) == 1 else maps

    def _fit_first_map(self, rows: Rows) -> Any:
        """Choose a feature map as `fit` would on the first rows of a stream, and fit it on them."""
        rows = self._transform_first(rows)
        maps, best = list(self._suited_maps(rows.Y.shape[1], streamed=True).values()), 0
        targets = self._targets_like_y(rows.Y)
        if len(maps) > 1:
            search = clone(self).set_params(
                feature_map=maps, cv=self._first_splits(rows), target_transform=None
            )
            best = search.fit(rows.X, targets, rows.weight).best_params_["feature_map"]
        elif is_fitted(maps[0]):
            return maps[0]
        return fit_feature_map(maps[best], rows.X, targets, rows.weight)

    def _suited_maps(self, n_targets: int, *, streamed: bool = False) -> dict[int, Any]:
        """The maps, by their places, that are to be tried with so many targets, in memory or in a stream."""
        maps = dict(enumerate(self._feature_maps(streamed=streamed)))
        suited = {place: one for place, one in maps.items() if FeatureMapTraits.of(one).suits(n_targets)}
        return suited if suited else maps

    def _feature_maps(self, *, streamed: bool = False) -> list[Any]:
        """The maps to choose from, for rows in memory or in a stream."""
        if isinstance(self.feature_map, str) and self.feature_map == "auto":
            return default_feature_maps(self.random_state, streamed=streamed)
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
        """What is tried: the estimator says it."""
        raise NotImplementedError

    def _members(self) -> list[Member]:
        """Ways to learn a kernel that are tried: the estimator says them."""
        raise NotImplementedError

    def _solver_options(self) -> SolverOptions:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        params = self._solver_params()
        return SolverOptions(
            init=params.init, max_iter=params.max_iter, tol=params.tol, rng=np.random.default_rng(seed)
        )

    def _solver_params(self) -> SolverParams:
        """Settings of the solver: the estimator says them."""
        raise NotImplementedError

    def _parameters(self, choice: Choice) -> dict[str, Any]:
        """Parameters of `EntangledKernelRidge` that make it a candidate."""
        parameters = choice.parameters()
        solver = self._solver_params()
        if choice.member.n_steps is not None:
            solver = solver._replace(max_iter=choice.member.n_steps)
        defaults = SolverParams()._asdict()
        changed = {name: value for name, value in solver._asdict().items() if value != defaults[name]}
        return {**parameters, "solver_params": changed} if changed else parameters

    def _estimator(self, feature_map: Any) -> EntangledKernelRidge:
        estimator = EntangledKernelRidge(
            feature_map,
            fit_intercept=self.fit_intercept,
            random_state=self.random_state,
            target_transform=self.target_transform,
        )
        return TargetsMixin.set_output(estimator, predict=self._container())

    def _fitted_in_folds(self, feature_map: Any, n_rows: int) -> bool:
        traits = FeatureMapTraits.of(feature_map)
        return traits.needs_targets or (n_rows <= SMALL and n_rows > traits.exact_rows)

    def _check_ranks(self, n_features: int, n_outputs: int) -> None:
        for member in self._members():
            check_rank_fits(member.rank, n_features, n_outputs)

    def _warn_of_ends(self, chosen: float | Array, trial: Trial) -> None:
        alphas = trial.search.grid.alphas
        for end, name in ((alphas.min(), "smallest"), (alphas.max(), "largest")):
            # Of a forest the smallest ridge is the forest itself; that of the default grid is hardly any.
            if name == "smallest" and (
                self.alphas is None or FeatureMapTraits.of(trial.feature_map).interpolates
            ):
                continue
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
