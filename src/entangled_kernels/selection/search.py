"""A search over feature maps, kernels and alphas by held-out errors: from rows or moments to what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing

from ..features import FeatureMapTraits, fit_and_map, fit_feature_map, map_features, warm_start
from ..learning import (
    SOLVERS,
    Fit,
    FitSettings,
    LinearModel,
    Moments,
    Problem,
    RowSample,
    complete_moments,
    fill_rows,
    fit_problem,
    reduce_moments,
    reduce_rows,
)
from ..learning.moments import sample_size
from ..learning.posterior import fit_unit_posterior
from ..learning.problem import compress_rows
from ..linalg import Array, Index
from ..parameters import check_range, check_rank_fits, warn_user, weight_unit
from ..threads import SMALL_MATRIX, one_thread
from ..uncertainty import HeldOutScore, Residuals, without_rounding
from .candidates import Grid, Member, default_alphas, learn_members, weighted_coefficients
from .folds import (
    Fold,
    JudgedTargets,
    Split,
    fold_of_moments,
    fold_of_rows,
    leave_one_out_sums,
)
from .stacking import HeldOutErrors, candidate_weights, choose

__all__ = [
    "SCORINGS",
    "SELECTIONS",
    "Candidate",
    "HeldOutPredictions",
    "SearchSettings",
    "Selected",
    "TargetUnits",
    "UsedMap",
    "fitted_in_folds",
    "scale_weights",
    "search_moments",
    "search_rows",
    "weight_unit",
]

SCORINGS = ("nmse", "mse")
SELECTIONS = ("best", "one_se", "average")

# More targets than this, or than rows, weigh candidates together.
MOST_TARGETS_APART = 64
# With at most this many rows, feature maps that need no targets are fitted again in every fold.
SMALL = 500
# Seconds that are not worth a worker.
_MOMENT = 1.0


@dataclass(frozen=True, eq=False)
class SearchSettings:
    """What is tried, how it is judged, and what is kept.

    Attributes
    ----------
    members : list of Member
        Ways to learn a kernel.
    alphas : ndarray or None
        Ridge penalties for rows of weight one; None for values about the scale of the features.
    scoring : {"nmse", "mse"}
    selection : {"average", "best", "one_se"}
    fit_intercept : bool
    start : FitSettings
        Its ``init``, ``max_iter``, ``tol`` and ``seed`` are those of all candidates.
    n_jobs : int or None
        Splits that threads work on at the same time.
    """

    members: list[Member]
    alphas: Array | None = None
    scoring: str = "nmse"
    selection: str = "average"
    fit_intercept: bool = True
    start: FitSettings = field(default_factory=FitSettings)
    n_jobs: int | None = None

    def score_weights(self, mean: Array, variance: Array) -> Array:
        """Weights of the squared errors of the targets in the score; none for a target that is constant."""
        if self.scoring == "mse":
            return np.full(len(mean), 1.0 / len(mean))
        varies = variance > (10.0 * np.finfo(float).eps * mean) ** 2
        share = 1.0 / max(1, int(varies.sum()))
        return np.where(varies, share / np.where(varies, variance, 1.0), 0.0)

    def by_target(self, n_rows: int, n_targets: int) -> bool:
        """Whether targets weigh candidates apart."""
        return self.selection == "average" and 1 < n_targets <= min(n_rows, MOST_TARGETS_APART)

    @property
    def iterative(self) -> bool:
        """Whether the solver of a candidate takes steps."""
        return any(SOLVERS[member.solver].iterative for member in self.members)


class TargetUnits(NamedTuple):
    """Targets (n, p) before they were transformed, and the function back, to judge the model that is kept."""

    Y: Array
    back: Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Predictions of rows by models that have not seen them; a row comes once for every repeat of the folds.

    Attributes
    ----------
    index : ndarray of shape (N,)
        Places of the rows in the table.
    values : ndarray of shape (N, p)
        NaN for a target that has no training row in the split.
    relative_variance : ndarray of shape (N,)
        Of a new observation in units of the noise, in the Gaussian-process view of the best
        candidate.
    """

    index: NDArray[np.intp]
    values: Array
    relative_variance: Array

    def residuals(self, Y: Array, weight: Array | None = None) -> Residuals:
        """Residuals of targets (n, p), NaN where missing, with weights of rows (n,) or of cells (n, p)."""
        Y, row_weight = _targets_at(self.index, Y, weight)
        errors = without_rounding(Y - self.values, Y)
        counted = (row_weight > 0.0) & ~np.isnan(errors).all(axis=1)
        return Residuals(
            errors[counted],
            row_weight[counted],
            self.index[counted],
            self.relative_variance[counted],
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """A candidate, fitted on all rows.

    Attributes
    ----------
    place : Any
        Key of its feature map.
    feature_map : transformer or None
        Fitted.
    member : Member
    alpha, error : float
    index : int
        Its place in the results.
    fit : Fit
    features : ndarray of shape (n, m) or None
        Of the rows it was fitted on, where these are in memory.
    """

    place: Any
    feature_map: Any
    member: Member
    alpha: float
    error: float
    index: int
    fit: Fit
    features: Array | None = None


class UsedMap(NamedTuple):
    """A fitted feature map in the model that is kept, settings of its heaviest candidate, and its share."""

    feature_map: Any
    settings: FitSettings
    share: Array


@dataclass(frozen=True, eq=False)
class Selected:
    """What a search ends with.

    Attributes
    ----------
    feature_map : transformer or None
        Of the model that is kept, fitted; a `FeatureUnion` of several.
    linear : LinearModel
        The model that is kept, of these features.
    best : Candidate
    entangled : Candidate or None
        The best one that ties targets together.
    used : list of UsedMap
        The feature maps in the model that is kept.
    cv_results : dict of ndarray
        Parameters and errors of all candidates, column by column.
    target_scores : ndarray of shape (candidates, p) or None
        NaN for a constant target; None where targets do not weigh candidates apart.
    weights : ndarray of shape (candidates,) or (candidates, p), or None
        Of the candidates in an average.
    held_out : HeldOutPredictions or None
        Of the model that is kept, with weights and shares that rest on other rows.
    residuals : Residuals or None
    score, kernel_ridge_score : HeldOutScore or None
        Of the model that is kept, and of what would be kept of kernel ridge alone.
    n_splits : int
    """

    feature_map: Any
    linear: LinearModel
    best: Candidate
    entangled: Candidate | None
    used: list[UsedMap]
    cv_results: dict[str, NDArray[Any]]
    target_scores: Array | None
    weights: Array | None
    held_out: HeldOutPredictions | None
    residuals: Residuals | None
    score: HeldOutScore | None
    kernel_ridge_score: HeldOutScore | None
    n_splits: int

    def __getstate__(self) -> dict[str, Any]:
        # A column of words is kept as the words that differ, and their numbers.
        words = {
            name: column for name, column in self.cv_results.items() if column.dtype.kind == "U"
        }
        coded = {}
        for name, column in words.items():
            distinct, code = np.unique(column, return_inverse=True)
            coded[name] = (distinct, code.reshape(-1).astype(np.uint16))
        return vars(self) | {"cv_results": self.cv_results | coded}

    def __setstate__(self, state: dict[str, Any]) -> None:
        columns = state["cv_results"].items()
        plain = {
            name: column[0][column[1]] if isinstance(column, tuple) else column
            for name, column in columns
        }
        vars(self).update(state | {"cv_results": plain})


@dataclass(frozen=True, eq=False)
class Table:
    """What all feature maps have in common: targets, weights, and how errors are judged.

    Attributes
    ----------
    Y : ndarray of shape (n, p)
        NaN where missing.
    weight : ndarray of shape (n,) or (n, p), or None
        In units of a row.
    targets : JudgedTargets
    score_weights : ndarray of shape (p,)
    by_target : bool
    n_repeats : float
        How often a row is held out.
    """

    Y: Array
    weight: Array | None
    targets: JudgedTargets
    score_weights: Array
    by_target: bool
    n_repeats: float


@dataclass(frozen=True, eq=False)
class Trial:
    """All candidates tried with one feature map.

    Attributes
    ----------
    place : Any
        Key of the map.
    feature_map : transformer or None
        Fitted on all rows.
    grid : Grid
    noise : float or None
        Variance of the noise that the map has found.
    folds : list of Fold
    errors : ndarray of shape (splits, members, alphas, q or 1)
        By target, or summed over targets; in units in which the sum is the score.
    problem : callable
        Gives the problem of all rows.
    features : ndarray of shape (n, m) or None
        Of all rows, where these are in memory.
    """

    place: Any
    feature_map: Any
    grid: Grid
    noise: float | None
    folds: list[Fold]
    errors: Array
    problem: Callable[[], Problem]
    features: Array | None = None

    def only(self, wanted: Callable[[Member], bool]) -> Trial:
        """The trial of those members that are wanted."""
        places = [place for place, member in enumerate(self.grid.members) if wanted(member)]
        grid = Grid([self.grid.members[place] for place in places], self.grid.alphas)
        return replace(self, grid=grid, errors=self.errors[:, places])

    def without(self, split: int) -> Trial:
        """The trial without what a split says, unless it is the only one."""
        if len(self.errors) == 1:
            return self
        folds = [fold for place, fold in enumerate(self.folds) if place != split]
        return replace(self, folds=folds, errors=np.delete(self.errors, split, axis=0))

    def one_hot(self, place: int) -> Array:
        """All weight on one candidate, (members, alphas, 1)."""
        weights = np.zeros((int(np.prod(self.grid.shape)), 1))
        weights[place] = 1.0
        return weights.reshape(*self.grid.shape, 1)

    def best(self, rule: str) -> tuple[int, float]:
        """Place and error of the candidate to keep.

        Of equals it is the one with the largest shrinkage, then the largest alpha.
        """
        errors, order = (
            self.errors.sum(axis=-1).reshape(len(self.errors), -1),
            self.grid.preference(),
        )
        place = int(order[choose(errors[:, order], one_se=rule == "one_se")])
        return place, float(errors[:, place].mean())

    def average(self, table: Table) -> Array:
        """Weights of all candidates in an average, (members, alphas, 1 or q)."""
        n_rows = sum(float(fold.total.max()) for fold in self.folds) / table.n_repeats
        return candidate_weights(self.errors, n_rows, by_target=table.by_target)

    def process(self) -> Array | None:
        """All weight on kernel ridge with the noise for its alpha, the process that the map was tuned as."""
        members = [
            place for place, member in enumerate(self.grid.members) if member.shrinkage == 1.0
        ]
        alphas = np.flatnonzero(self.grid.alphas == self.noise)
        if len(members) == 0 or len(alphas) == 0:
            return None
        return self.one_hot(int(np.ravel_multi_index((members[0], alphas[0]), self.grid.shape)))


def search_rows(
    X: Any,
    Y: Array,
    weight: Array | None,
    maps: Mapping[Any, Any],
    splits: Sequence[Split],
    settings: SearchSettings,
    *,
    report: Callable[[int, int], None] | None = None,
    units: TargetUnits | None = None,
    most_numbers: float = np.inf,
) -> Selected:
    """Try all candidates with every feature map on rows in memory, and fit what is kept on all of them.

    Parameters
    ----------
    X : table of n rows
    Y : ndarray of shape (n, p)
        NaN where missing.
    weight : ndarray of shape (n,), or (n, p) with zero where a target is missing, or None
        Results do not depend on their scale: they are divided by their `weight_unit`.
    maps : dict of transformers
        Not fitted; None stands for the columns themselves.
    splits : list of (training rows, held-out rows)
    settings : SearchSettings
    report : callable, optional
        Called after every split of every map with the number of those done and of all.
    units : TargetUnits, optional
        Where the targets are transformed ones.
    most_numbers : float, optional
        Features of more numbers than this are made block by block, where the held-out rows of the
        splits are all rows once.
    """
    weight = None if weight is None else scale_weights(weight)
    n, p = Y.shape
    mean, variance = _mean_and_variance(Y, weight)
    score_weights = settings.score_weights(mean, variance)
    # Starts of iterative solvers, and models without an intercept, depend on the coordinates.
    compress = (
        settings.fit_intercept and not settings.iterative and (weight is None or weight.ndim == 1)
    )
    targets = JudgedTargets.of(Y, score_weights, compress=compress)
    n_repeats = max(1.0, sum(len(test) for _, test in splits) / n)
    by_target = settings.by_target(n, p)
    table = Table(Y, weight, targets, score_weights, by_target, n_repeats)
    trials = []
    # Where matrices are small, one BLAS thread to the end, instead of on and off with every step.
    with one_thread(max(n, targets.Y.shape[1]) <= SMALL_MATRIX):
        for number, (place, feature_map) in enumerate(maps.items()):

            def tell(done: int, number: int = number) -> None:
                if report is not None:
                    report(number * len(splits) + done, len(maps) * len(splits))

            trials.append(
                _try_map(X, table, place, feature_map, splits, settings, tell, most_numbers)
            )
        return _conclude(trials, table, settings, units)


def search_moments(
    parts: Sequence[Moments],
    sample: RowSample | None,
    feature_map: Any,
    settings: SearchSettings,
    *,
    ordered: bool = False,
    units: TargetUnits | None = None,
) -> Selected:
    """Try all candidates on the moments of folds, and fit what is kept on their sum.

    Parameters
    ----------
    parts : list of Moments
        Each is held out from the others, or, where they are ``ordered`` in time, from those before
        it.
    sample : RowSample or None
        Rows to predict, each of a part.
    feature_map : transformer or None
        Fitted, of which the moments are.
    settings : SearchSettings
    ordered : bool, default=False
    units : TargetUnits, optional
        Of the rows of the sample.
    """
    whole: Any = sum(parts[1:], parts[0])
    rows = whole if whole.complete else whole.rows
    factor = rows.n_samples / rows.weight
    if sample is not None and len(sample.Y):
        unit = weight_unit(sample.row_weight)
        factor = 1.0 / unit if unit == sample.row_weight.min() else factor
    parts, whole = [part.scaled(factor) for part in parts], whole.scaled(factor)
    mean, variance = _mean_and_variance_of_moments(whole)
    p, score_weights = len(mean), settings.score_weights(mean, variance)
    Y, weight = (np.zeros((0, p)), None) if sample is None else (sample.Y, factor * sample.weight)
    targets = JudgedTargets(Y, np.sqrt(score_weights), p)
    table = Table(Y, weight, targets, score_weights, settings.by_target(rows.n_samples, p), 1.0)
    trains = list(accumulate(parts[:-1])) if ordered else leave_one_out_sums(parts)
    folds = list(zip(trains, parts[int(ordered) :], strict=True))
    trial = _try_moments(
        folds, whole, sample, None, feature_map, table, settings, first=int(ordered)
    )
    return _conclude([trial], table, settings, units)


def _try_map(
    X: Any,
    table: Table,
    place: Any,
    feature_map: Any,
    splits: Sequence[Split],
    settings: SearchSettings,
    tell: Callable[[int], None],
    most_numbers: float,
) -> Trial:
    """Errors of all candidates with one feature map on rows in memory."""
    n, p = table.Y.shape
    weight, centred = table.weight, settings.fit_intercept
    Y = table.Y[:, 0] if p == 1 else table.Y
    in_folds = fitted_in_folds(feature_map, n)
    Phi: Any = None
    if FeatureMapTraits.of(feature_map).cross_fitted:
        fitted, Phi = fit_and_map(feature_map, X, Y, weight, ensure_min_samples=2)
    else:
        fitted = fit_feature_map(feature_map, X, Y, weight)
    if Phi is None and not in_folds and np.isfinite(most_numbers):
        m = map_features(fitted, _safe_indexing(X, slice(0, 1))).shape[1]
        rounds = _rounds(splits, n)
        if n * m > most_numbers and m + p <= n and rounds is not None:
            return _try_blocks(
                X, table, place, fitted, rounds, settings, tell, int(most_numbers / m)
            )
    if Phi is None:
        Phi = map_features(fitted, X, ensure_min_samples=2)
    check_range("X" if feature_map is None else "the output of feature_map", Phi)
    m = Phi.shape[1]
    for member in settings.members:
        check_rank_fits(member.rank, m, p)
    started = warm_start(feature_map, fitted) if in_folds else None
    shrinkage: float | None = None
    filled, row_weight = table.Y, weight
    if weight is not None and weight.ndim == 2:
        filled, shrinkage = fill_rows(Phi, table.Y, weight, centred=centred)
        row_weight = weight.max(axis=1)
    options: dict[str, Any] = {
        "centred": centred,
        "iterative": settings.iterative,
        "ridge_only": all(member.shrinkage == 1.0 for member in settings.members),
        "shrinkage": shrinkage,
        "most": max(1, int(sample_size(p) / max(1.0, len(splits) / table.n_repeats))),
    }
    compact = Phi
    if not in_folds and m > n and centred and not settings.iterative:
        compact = compress_rows(Phi, np.zeros((n, 1)), centred=True).Phi

    def fold_of(split: Split) -> Fold:
        train, test = split
        if weight is not None:
            counted = weight if weight.ndim == 1 else weight.max(axis=1)
            train, test = train[counted[train] > 0.0], test[counted[test] > 0.0]
            if len(train) == 0 or len(test) == 0:
                raise ValueError(
                    "every fold needs rows of positive sample_weight in both of its parts"
                )
        if not in_folds:
            both, wide = (compact[train], compact[test]), compact is not Phi
            return fold_of_rows(
                table.targets,
                weight,
                (train, test),
                both,
                n_features=m if wide else None,
                **options,
            )
        own = None if weight is None else weight[train]
        X_train, X_test = (_safe_indexing(X, index) for index in (train, test))
        inner, Phi_train = fit_and_map(started, X_train, Y[train], own, ensure_min_samples=2)
        both = Phi_train, map_features(inner, X_test)
        return fold_of_rows(table.targets, weight, (train, test), both, **options)

    w = np.ones(n) if row_weight is None else row_weight
    centre = w @ Phi / w.sum() if centred else 0.0
    spread = float(w @ np.sum((Phi - centre) ** 2, axis=1)) / float(w.sum())
    noise = FeatureMapTraits.of(fitted).noise
    grid = _grid(settings, spread, noise)
    jobs = [partial(fold_of, split) for split in splits]
    folds, errors = _judge_folds(jobs, grid, table, settings, tell)

    @cache
    def problem() -> Problem:
        keep = np.flatnonzero(w)
        own = None if row_weight is None else row_weight[keep]
        return reduce_rows(Phi[keep], filled[keep], own, centred=centred)[0]

    return Trial(place, fitted, grid, noise, folds, errors, problem, Phi)


def _rounds(splits: Sequence[Split], n: int) -> list[list[Index]] | None:
    """Held-out rows of consecutive splits that are all rows once, and of all splits; else None."""
    rounds, start = list[list[Index]](), 0
    while start < len(splits):
        sizes = np.cumsum([len(test) for _, test in splits[start:]])
        stop = start + int(np.searchsorted(sizes, n)) + 1
        own = splits[start:stop]
        tests = [test for _, test in own]
        whole = len(own) > 1 and int(sum(map(len, tests))) == n == len(
            np.unique(np.concatenate(tests))
        )
        if not whole or any(len(train) + len(test) != n for train, test in own):
            return None
        rounds.append(tests)
        start = stop
    return rounds


def _try_blocks(
    X: Any,
    table: Table,
    place: Any,
    fitted: Any,
    rounds: Sequence[Sequence[Index]],
    settings: SearchSettings,
    tell: Callable[[int], None],
    height: int,
) -> Trial:
    """Errors of all candidates with features that are made block by block, and not kept."""
    p, height = table.Y.shape[1], max(1, height)
    most = max(1, int(sample_size(p) / len(rounds[0])))
    weight = (
        np.ones((len(table.Y), 1))
        if table.weight is None
        else table.weight.reshape(len(table.Y), -1)
    )
    weight = np.broadcast_to(weight, table.Y.shape)
    folds, predicted = list[tuple[Moments, Moments]](), list[Index]()
    for tests in rounds:
        parts = list[Moments]()
        for test in tests:
            total: Any = 0
            for start in range(0, len(test), height):
                index = test[start : start + height]
                Phi = map_features(fitted, _safe_indexing(X, index))
                check_range("the output of feature_map", Phi)
                total = total + Moments.from_arrays(Phi, table.Y[index], weight[index])
            parts.append(total)
            predicted.append(
                test[np.linspace(0, len(test) - 1, min(most, len(test))).astype(np.intp)]
            )
        folds += zip(leave_one_out_sums(parts), parts, strict=True)
    index, whole = np.concatenate(predicted), folds[0][0] + folds[0][1]
    Phi = map_features(fitted, _safe_indexing(X, index))
    part = np.repeat(np.arange(len(predicted)), [len(own) for own in predicted])
    sample = RowSample(
        Phi, table.Y[index], weight[index], part, np.zeros(len(index), dtype=np.uint64)
    )
    trial = _try_moments(folds, whole, sample, index, fitted, table, settings, tell)
    return replace(trial, place=place)


def _try_moments(
    parts: Sequence[tuple[Moments, Moments]],
    whole: Moments,
    sample: RowSample | None,
    places: Index | None,
    fitted: Any,
    table: Table,
    settings: SearchSettings,
    tell: Callable[[int], None] = lambda done: None,
    first: int = 0,
) -> Trial:
    """Errors of all candidates on moments of the training and the held-out rows of every split.

    ``places`` are those of the sample in the table, None where it is the table; ``first`` is the
    part of the sample that the first split holds out.
    """
    centred = settings.fit_intercept
    m, p = whole.n_features, whole.n_outputs
    for member in settings.members:
        check_rank_fits(member.rank, m, p)

    def fold_of(part: int, train: Moments, test: Moments) -> Fold:
        own = np.zeros(0, dtype=np.intp) if sample is None else np.flatnonzero(sample.part == part)
        Phi = np.zeros((0, m)) if sample is None else sample.Phi[own]
        index = own if places is None else places[own]
        return fold_of_moments(table.targets, train, test, index, Phi, centred=centred)

    rows = whole if whole.complete else whole.rows
    spread = float(np.trace(rows.C)) / rows.weight
    spread = spread if centred else spread + float(rows.mean_phi @ rows.mean_phi)
    noise = FeatureMapTraits.of(fitted).noise
    grid = _grid(settings, spread, noise)
    jobs = [partial(fold_of, number, *pair) for number, pair in enumerate(parts, start=first)]
    folds, errors = _judge_folds(jobs, grid, table, settings, tell)

    @cache
    def problem() -> Problem:
        complete = whole if whole.complete else complete_moments(whole, centred=centred)
        return reduce_moments(complete, centred=centred)

    return Trial(None, fitted, grid, noise, folds, errors, problem)


def _judge_folds(
    jobs: Sequence[Callable[[], Fold]],
    grid: Grid,
    table: Table,
    settings: SearchSettings,
    tell: Callable[[int], None],
) -> tuple[list[Fold], Array]:
    """Folds without what only errors need, and errors (splits, members, alphas, q or 1) of all candidates."""

    def judge(job: Callable[[], Fold]) -> tuple[Fold, Array]:
        fold = job()
        errors = np.empty((*grid.shape, len(table.targets.unit.T)))
        for place, factor in learn_members(fold.problem, grid.members, settings.start):
            errors[place] = fold.errors(factor.coefficients(grid.alphas))
        return fold.for_predictions(), errors if table.by_target else _summed(errors, table)

    start = time.perf_counter()
    judged = [judge(jobs[0])]
    tell(1)
    # Workers that start for less than a moment of work would take longer than they save.
    short = (time.perf_counter() - start) * (len(jobs) - 1) < _MOMENT
    parallel = Parallel(
        n_jobs=1 if short else settings.n_jobs, prefer="threads", return_as="generator"
    )
    for found in parallel(delayed(judge)(job) for job in jobs[1:]):
        judged.append(found)
        tell(len(judged))
    folds, errors = zip(*judged, strict=True)
    whole = np.stack(errors)
    gaps = np.isnan(whole)
    if gaps.any():
        # A target that a split cannot judge counts as in the other splits.
        means = np.where(gaps, 0.0, whole).sum(axis=0) / np.maximum((~gaps).sum(axis=0), 1)
        whole = np.where(gaps, means, whole)
    return list(folds), whole


def _summed(errors: Array, table: Table) -> Array:
    """Errors summed over targets, where some are not judged the others in their place."""
    gaps = np.isnan(errors)
    if not gaps.any():
        return np.asarray(errors.sum(axis=-1, keepdims=True))
    counted = np.where(gaps, 0.0, table.score_weights).sum(axis=-1, keepdims=True)
    whole = np.where(gaps, 0.0, errors).sum(axis=-1, keepdims=True) * table.score_weights.sum()
    return np.where(counted > 0.0, whole / np.where(counted > 0.0, counted, 1.0), np.nan)


def _conclude(
    trials: list[Trial], table: Table, settings: SearchSettings, units: TargetUnits | None
) -> Selected:
    """Decide what is kept, fit it on all rows, and say how well it predicts held-out rows."""
    best = _fit_best(trials, settings)
    _warn_of_ends(
        best, next(trial.grid.alphas for trial in trials if trial.place == best.place), settings
    )
    models = _models(trials, table, settings)
    found = _predict_held_out(trials, table, settings, best)
    shares, held_out = np.ones((1, 1)), None
    if found is not None:
        shares, held_out = found
    elif len(models) > 1:
        shares = np.full((len(models), 1), 1.0 / len(models))
    weights = [np.zeros((*trial.grid.shape, 1)) for trial in trials]
    for (number, own), share in zip(models, shares, strict=True):
        weights[number] = weights[number] + own * share
    used = [number for number, own in enumerate(weights) if own.any()]
    if settings.selection == "average":
        best_number = [trial.place for trial in trials].index(best.place)
        used = sorted({*used, best_number})
        linear = _average(
            [trials[number] for number in used], [weights[number] for number in used], settings
        )
    else:
        linear = best.fit.linear
    ridge = _predict_ridge(trials, table, settings, best, held_out)
    score_weights, score, ridge_score = table.score_weights, None, None
    if units is not None:
        score_weights = settings.score_weights(*_mean_and_variance(units.Y, table.weight))
    if held_out is not None:
        score = HeldOutScore.of(_residuals(held_out, table, units), score_weights)
    if ridge is not None:
        ridge_score = HeldOutScore.of(_residuals(ridge, table, units), score_weights)
    width = table.Y.shape[1] if table.by_target else 1
    flat = [np.broadcast_to(own, (*own.shape[:2], width)).reshape(-1, width) for own in weights]
    fitted = [trials[number].feature_map for number in used]
    entangled = best
    if not best.member.entangled:
        entangled = _fit_best(trials, settings, lambda member: member.entangled)
    return Selected(
        feature_map=fitted[0] if len(fitted) == 1 else _side_by_side(fitted),
        linear=linear,
        best=best,
        entangled=entangled,
        used=[_used_map(trials[number], weights[number], settings) for number in used],
        cv_results=_results(trials),
        target_scores=_target_scores(trials, table) if table.by_target else None,
        weights=None
        if settings.selection != "average"
        else np.concatenate(flat)[:, 0 if width == 1 else slice(None)],
        held_out=held_out,
        residuals=None if held_out is None else held_out.residuals(table.Y, table.weight),
        score=score,
        kernel_ridge_score=ridge_score,
        n_splits=len(trials[0].folds),
    )


def _models(
    trials: Sequence[Trial], table: Table, settings: SearchSettings
) -> list[tuple[int, Array]]:
    """Models to be stacked: number of the trial, and weights of its candidates, (members, alphas, 1 or q).

    They are the average of the candidates of every feature map, and the process of every map that
    was tuned as one; or the one candidate that is kept.
    """
    if settings.selection != "average":
        chosen = [trial.best(settings.selection) for trial in trials]
        number = int(np.argmin([error for _, error in chosen]))
        return [(number, trials[number].one_hot(chosen[number][0]))]
    averages = [(number, trial.average(table)) for number, trial in enumerate(trials)]
    processes = [(number, trial.process()) for number, trial in enumerate(trials)]
    return averages + [(number, own) for number, own in processes if own is not None]


def _predict_held_out(
    trials: Sequence[Trial], table: Table, settings: SearchSettings, best: Candidate | None
) -> tuple[Array, HeldOutPredictions] | None:
    """Shares of the models, (K, 1 or q), and what they predict for held-out rows; None without such rows.

    A split's rows are predicted with weights of candidates that rest on the other splits, and with
    shares that rest on other rows. With repeated folds other splits have held out the same rows, so
    a little of what they say remains.
    """
    start, indices, numbers, values, spreads = settings.start, [], [], [], []
    for split, fold in enumerate(trials[0].folds):
        if len(fold.index) == 0:
            continue
        models = _models([trial.without(split) for trial in trials], table, settings)
        predicted = []
        for number, weights in models:
            own = trials[number].folds[split]
            coef = weighted_coefficients(own.problem, trials[number].grid, weights, start)
            predicted.append(own.predict(coef, weights.sum(axis=(0, 1))))
        values.append(np.stack(predicted))
        indices.append(fold.index)
        numbers.append(np.full(len(fold.index), split))
        spreads.append(_relative_variance(trials, split, best, start))
    if not values:
        return None
    index, split_of, together = (
        np.concatenate(indices),
        np.concatenate(numbers),
        np.concatenate(values, axis=1),
    )
    Y, row_weight = _targets_at(index, table.targets.Y, table.weight)
    if len(together) == 1:
        shares, total = np.ones((1, 1)), together[0]
    else:
        errors = HeldOutErrors(
            table.targets.in_units(Y - together), row_weight, index, table.by_target
        )
        shares, total = errors.shares(), np.empty(together.shape[1:])
        for split in np.unique(split_of):
            rows = split_of == split
            apart = errors.shares(without=index[rows])
            total[rows] = np.einsum(
                "kno,ko->no",
                together[:, rows],
                np.broadcast_to(apart, (len(apart), total.shape[1])),
            )
    return shares, HeldOutPredictions(index, table.targets.expanded(total), np.concatenate(spreads))


def _predict_ridge(
    trials: Sequence[Trial],
    table: Table,
    settings: SearchSettings,
    best: Candidate,
    held_out: HeldOutPredictions | None,
) -> HeldOutPredictions | None:
    """Predictions of held-out rows by what would be kept of kernel ridge alone."""
    plain = [trial.only(lambda member: member.shrinkage == 1.0) for trial in trials]
    if held_out is None or len(plain[0].grid.members) == len(trials[0].grid.members):
        return held_out
    found = _predict_held_out(plain, table, settings, None)
    return None if found is None else found[1]


def _relative_variance(
    trials: Sequence[Trial], split: int, best: Candidate | None, start: FitSettings
) -> Array:
    """Relative variances of the held-out rows of a split with the best candidate."""
    if best is None:
        return np.ones(len(trials[0].folds[split].index))
    fold = next(trial.folds[split] for trial in trials if trial.place == best.place)
    (_, factor), *_ = learn_members(fold.problem, [best.member], start)
    return fit_unit_posterior(factor, best.alpha).relative_variance(fold.predicted)


def _fit_best(
    trials: Sequence[Trial],
    settings: SearchSettings,
    wanted: Callable[[Member], bool] | None = None,
) -> Any:
    """The best candidate, or the best that is wanted, fitted on all rows; None where there is none."""
    tried = list(trials) if wanted is None else [trial.only(wanted) for trial in trials]
    if not tried[0].grid.members:
        return None
    chosen = [trial.best(settings.selection) for trial in tried]
    number = int(np.argmin([error for _, error in chosen]))
    trial, (place, error) = tried[number], chosen[number]
    member, alpha = np.unravel_index(place, trial.grid.shape)
    own, penalty = trial.grid.members[member], float(trial.grid.alphas[alpha])
    earlier = sum(int(np.prod(other.grid.shape)) for other in trials[:number])
    index = earlier + trials[number].grid.members.index(own) * len(trial.grid.alphas) + int(alpha)
    fit = fit_problem(trial.problem(), own.settings(settings.start, penalty))
    return Candidate(
        trial.place, trial.feature_map, own, penalty, error, index, fit, trial.features
    )


def _average(
    trials: Sequence[Trial], weights: Sequence[Array], settings: SearchSettings
) -> LinearModel:
    """The weighted mean of all candidates, with the features of the maps side by side."""
    coefs, intercept = [], np.zeros(1)
    for trial, own in zip(trials, weights, strict=True):
        problem = trial.problem()
        coef = weighted_coefficients(problem, trial.grid, own, settings.start)
        coefs.append(coef.T @ problem.features.T)
        intercept = intercept + own.sum(axis=(0, 1)) * problem.mean_y - coefs[-1] @ problem.mean_phi
    return LinearModel(np.hstack(coefs), intercept)


def _used_map(trial: Trial, weights: Array, settings: SearchSettings) -> UsedMap:
    """A feature map with the settings of its heaviest candidate and its share, (1,) or (p,)."""
    heaviest = int(weights.sum(axis=2).argmax())
    member, alpha = np.unravel_index(heaviest, trial.grid.shape)
    own = trial.grid.members[member].settings(settings.start, float(trial.grid.alphas[alpha]))
    return UsedMap(trial.feature_map, own, weights.sum(axis=(0, 1)))


def _results(trials: Sequence[Trial]) -> dict[str, NDArray[Any]]:
    """Parameters and errors of all candidates, column by column."""
    tables = []
    for trial in trials:
        errors = trial.errors.sum(axis=-1).reshape(len(trial.errors), -1)
        table = trial.grid.columns() | {f"split{i}_test_score": own for i, own in enumerate(errors)}
        table |= {"mean_test_score": errors.mean(axis=0), "std_test_score": errors.std(axis=0)}
        tables.append(table | {"param_feature_map": np.full(errors.shape[1], trial.place)})
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _target_scores(trials: Sequence[Trial], table: Table) -> Array:
    """Mean over splits of the error of every candidate and target, (candidates, p); NaN for constants."""
    counts = table.score_weights > 0.0
    mean = np.concatenate([trial.errors.mean(axis=0).reshape(-1, len(counts)) for trial in trials])
    return np.where(counts, mean * np.count_nonzero(counts), np.nan)


def _residuals(held_out: HeldOutPredictions, table: Table, units: TargetUnits | None) -> Residuals:
    """Residuals of held-out rows in units of the targets."""
    if units is None:
        return held_out.residuals(table.Y, table.weight)
    return replace(held_out, values=units.back(held_out.values)).residuals(units.Y, table.weight)


def _targets_at(index: NDArray[np.intp], Y: Array, weight: Array | None) -> tuple[Array, Array]:
    """Targets (N, q) at these places, NaN where missing, and weights (N,), which copies of a row share."""
    Y = Y[index]
    row_weight = np.ones(len(Y)) if weight is None else weight[index]
    if row_weight.ndim == 2:
        Y, row_weight = np.where(row_weight > 0.0, Y, np.nan), row_weight.max(axis=1)
    return Y, row_weight / np.bincount(index)[index]


def _grid(settings: SearchSettings, spread: float, noise: float | None) -> Grid:
    alphas = default_alphas(spread, noise) if settings.alphas is None else settings.alphas
    return Grid(settings.members, alphas)


def scale_weights(weight: Array) -> Array:
    """Weights (n,) or (n, p) divided by their `weight_unit`.

    They are rounded, to forty of fifty-three bits, so that those of other scales are the same to
    the last bit: trees that split between equals would see the rounding.
    """
    mantissa, exponent = np.frexp(weight / weight_unit(weight))
    return np.asarray(np.ldexp(np.round(mantissa * 2.0**40) / 2.0**40, exponent))


def _mean_and_variance(Y: Array, weight: Array | None) -> tuple[Array, Array]:
    """Weighted mean and variance of every target over the rows that have it."""
    if weight is None:
        mean = Y.mean(axis=0)
        # Without a second table of that size.
        blocks = np.array_split(Y, max(1, len(Y) // 256))
        return mean, np.sum(
            [np.sum((block - mean) ** 2, axis=0) for block in blocks], axis=0
        ) / len(Y)
    weight = np.broadcast_to(weight.reshape(len(Y), -1), Y.shape)
    known, total = np.where(weight > 0.0, Y, 0.0), weight.sum(axis=0)
    mean = np.sum(weight * known, axis=0) / total
    return mean, np.sum(weight * (known - mean) ** 2, axis=0) / total


def _mean_and_variance_of_moments(moments: Moments) -> tuple[Array, Array]:
    groups = moments.groups
    mean, variance = np.zeros(moments.n_outputs), np.zeros(moments.n_outputs)
    for places, own in groups:
        mean[places], variance[places] = own.mean_y, np.diag(own.V) / own.weight
    return mean, variance


def fitted_in_folds(feature_map: Any, n_rows: int) -> bool:
    """Whether a map is fitted again on the training rows of every split."""
    if feature_map is None:
        return False
    traits = FeatureMapTraits.of(feature_map)
    return traits.needs_targets or traits.exact_rows < n_rows <= SMALL


def _warn_of_ends(best: Candidate, alphas: Array, settings: SearchSettings) -> None:
    """Warn where the best alpha is at an end of the grid."""
    for end, name in ((alphas.min(), "smallest"), (alphas.max(), "largest")):
        # Of a forest the smallest ridge is the forest itself; that of the default grid is hardly
        # any.
        if name == "smallest" and (
            settings.alphas is None or FeatureMapTraits.of(best.feature_map).interpolates
        ):
            continue
        if len(alphas) > 1 and best.alpha == end:
            warn_user(f"the {name} of the alphas was chosen, {end:.3g}; a wider grid may do better")


def _side_by_side(maps: list[Any]) -> FeatureUnion:
    """Fitted maps whose features stand side by side; None are the columns themselves."""
    columns = [FunctionTransformer() if own is None else own for own in maps]
    return FeatureUnion([(f"map{i}", own) for i, own in enumerate(columns)])
