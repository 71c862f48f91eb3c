"""A search over feature maps, kernels and alphas by the errors of held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, count
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
from ..learning.moments import least_keys, sample_size
from ..learning.posterior import fit_function_posterior
from ..learning.problem import compress_rows
from ..linalg import Array, Index
from ..model import FittedModel, InputRange, NoisePart, TargetScale
from ..parameters import check_range, check_rank_fits, warn_user, weight_unit
from ..threads import SMALL_MATRIX, one_thread
from ..uncertainty import HeldOutScore, Residuals, without_rounding
from .candidates import GRID, default_alphas, learn_kernels, weighted_coefficients
from .folds import (
    Fold,
    ScoredTargets,
    Split,
    fold_of_moments,
    fold_of_rows,
    leave_one_out_sums,
)
from .stacking import candidate_weights, choose_candidate, model_shares

__all__ = [
    "SCORINGS",
    "SELECTIONS",
    "Candidate",
    "SearchResults",
    "SearchSettings",
    "Selected",
    "scale_weights",
    "search_moments",
    "search_rows",
]

SCORINGS = ("nmse", "mse")
SELECTIONS = ("best", "one_se", "average")

# With more targets than this, or than rows, all targets have the same weights of candidates.
MOST_TARGETS_APART = 64
# With at most this many rows, feature maps that need no targets are fitted again in every fold.
SMALL = 500
# Least share of the feature maps that show noise, for models of noise to be fitted on them.
LEAST_SHARE = 0.2
# Largest number of parts of the rows for sizes of errors.
SIZE_PARTS = 5
# With less work than this many seconds, no workers are started.
_MOMENT = 1.0


@dataclass(frozen=True, eq=False)
class SearchSettings:
    """Candidates to try, how they are scored, and how the model that is kept is selected.

    Attributes
    ----------
    kernels : list of FitSettings
        Ways to learn a kernel and predict with it. The first is the only kernel ridge,
        ``shrinkage=1``. Their alpha is not used.
    alphas : ndarray or None
        Ridge penalties for rows of weight one; None for values about the scale of the features.
    scoring : {"nmse", "mse"}
    selection : {"average", "best", "one_se"}
    fit_intercept : bool
    n_jobs : int or None
        Splits that threads work on at the same time.
    """

    kernels: list[FitSettings]
    alphas: Array | None = None
    scoring: str = "nmse"
    selection: str = "average"
    fit_intercept: bool = True
    n_jobs: int | None = None

    def score_weights(self, mean: Array, variance: Array) -> Array:
        """Weights of the squared errors of the targets in the score; zero for a constant target."""
        if self.scoring == "mse":
            return np.full(len(mean), 1.0 / len(mean))
        varies = variance > (10.0 * np.finfo(float).eps * mean) ** 2
        share = 1.0 / max(1, int(varies.sum()))
        return np.where(varies, share / np.where(varies, variance, 1.0), 0.0)

    def by_target(self, n_rows: int, n_targets: int) -> bool:
        """Whether targets have separate weights of candidates."""
        return self.selection == "average" and 1 < n_targets <= min(n_rows, MOST_TARGETS_APART)

    @property
    def iterative(self) -> bool:
        """Whether the solver of a candidate takes steps."""
        return any(SOLVERS[kernel.solver].iterative for kernel in self.kernels)


class Candidate(NamedTuple):
    """A feature map, a kernel and an alpha, fitted on all rows; and the key of the feature map."""

    map_key: Any
    model: FittedModel


class SearchResults(NamedTuple):
    """Errors and weights of the candidates of a search.

    Attributes
    ----------
    table : dict of ndarray
        Parameters and errors of all candidates, column by column.
    best_index : int
        Row of the best candidate in the table.
    best_error : float
        Its cross-validated error.
    target_scores : ndarray of shape (candidates, p) or None
        NaN for a constant target; None where targets share the weights of candidates.
    weights : ndarray of shape (candidates,) or (candidates, p), or None
        Of the candidates in an average.
    score, kernel_ridge_score : HeldOutScore or None
        Of the model that is kept, and of the model that would be kept with kernel ridge alone.
    n_splits : int
    """

    table: dict[str, NDArray[Any]]
    best_index: int
    best_error: float
    target_scores: Array | None
    weights: Array | None
    score: HeldOutScore | None
    kernel_ridge_score: HeldOutScore | None
    n_splits: int


class Selected(NamedTuple):
    """Models that a search has fitted on all rows, and its results.

    Attributes
    ----------
    model : FittedModel
        The model that is kept; with several feature maps on their `FeatureUnion`.
    best : Candidate
        The candidate with the least error.
    entangled : Candidate or None
        The best candidate whose kernel relates the targets to each other.
    results : SearchResults
    """

    model: FittedModel
    best: Candidate
    entangled: Candidate | None
    results: SearchResults


def search_rows(
    X: Any,
    Y: Array,
    weight: Array | None,
    maps: Mapping[Any, Any],
    splits: Sequence[Split],
    settings: SearchSettings,
    *,
    scale: TargetScale | None = None,
    keys: NDArray[np.uint64] | None = None,
    report: Callable[[int, int], None] | None = None,
    most_numbers: float = np.inf,
) -> Selected:
    """Try all candidates with every feature map on rows in memory, and fit the model that is kept.

    Parameters
    ----------
    X : table of n rows
    Y : ndarray of shape (n, p)
        On the learned scale, NaN where missing.
    weight : ndarray of shape (n,), or (n, p) with zero where a target is missing, or None
        Results do not depend on their scale: they are divided by their `weight_unit`.
    maps : dict of transformers
        Not fitted; None stands for the columns themselves.
    splits : list of (training rows, held-out rows)
    settings : SearchSettings
    scale : TargetScale, optional
        The scale on which targets are learned; scores are in units of the targets.
    keys : ndarray of shape (n,), optional
        Of the rows, by which samples are drawn; without them candidates have no samples.
    report : callable, optional
        Called after every split of every map with the number of those done and of all.
    most_numbers : float, optional
        If the features have more numbers than this, and the splits hold out all rows once, they are
        computed block by block.
    """
    weight = None if weight is None else scale_weights(weight)
    n, p = Y.shape
    # Starts of iterative solvers, and models without an intercept, depend on the coordinates.
    compress = (
        settings.fit_intercept and not settings.iterative and (weight is None or weight.ndim == 1)
    )
    targets = ScoredTargets.of(
        Y,
        weight,
        settings.score_weights(*_mean_and_variance(Y, weight)),
        compress=compress,
        by_target=settings.by_target(n, p),
        n_repeats=max(1.0, sum(len(test) for _, test in splits) / n),
    )
    steps = count(1)

    def split_done() -> None:
        if report is not None:
            report(next(steps), len(maps) * len(splits))

    trials = []
    # Small matrices need one BLAS thread; it is faster to set that once than in every step.
    with one_thread(max(n, targets.coordinates.shape[1]) <= SMALL_MATRIX):
        for map_key, feature_map in maps.items():
            rows = _map_rows(X, targets, feature_map, splits, settings, keys, most_numbers)
            trials.append(_try_candidates(map_key, rows, targets, settings, split_done))
        selected = _conclude(Comparison(trials, targets, settings, scale, InputRange.of(X)))
        return selected._replace(model=selected.model.with_error_size(X, size_parts(splits, n)))


def search_moments(
    parts: Sequence[Moments],
    sample: RowSample | None,
    feature_map: Any,
    settings: SearchSettings,
    *,
    ordered: bool = False,
    scale: TargetScale | None = None,
    inputs: InputRange | None = None,
) -> Selected:
    """Try all candidates on the moments of folds, and fit the model that is kept on their sum.

    Parameters
    ----------
    parts : list of Moments
        Each is held out from the others, or, where they are ``ordered`` in time, from those before
        it.
    sample : RowSample or None
        Rows to predict, each of a part.
    feature_map : transformer or None
        Fitted; the moments are those of its features.
    settings : SearchSettings
    ordered : bool, default=False
    scale : TargetScale, optional
        The scale on which targets are learned; scores are in units of the targets.
    inputs : InputRange, optional
        Range of the inputs of all rows.
    """
    total: Any = sum(parts[1:], parts[0])
    rows = total if total.complete else total.rows
    factor = rows.n_samples / rows.weight
    if sample is not None and len(sample.Y):
        unit = weight_unit(sample.row_weight)
        factor = 1.0 / unit if unit == sample.row_weight.min() else factor
    parts, total = [part.scaled(factor) for part in parts], total.scaled(factor)
    p = total.n_outputs
    mean, variance = np.zeros(p), np.zeros(p)
    for outputs, group in total.groups:
        mean[outputs], variance[outputs] = group.mean_y, np.diag(group.V) / group.weight
    Y, weight = (np.zeros((0, p)), None) if sample is None else (sample.Y, factor * sample.weight)
    by_target = settings.by_target(rows.n_samples, p)
    targets = ScoredTargets.of(
        Y, weight, settings.score_weights(mean, variance), by_target=by_target
    )
    trains = list(accumulate(parts[:-1])) if ordered else leave_one_out_sums(parts)
    folds = list[_MomentFold]()
    for part, train in enumerate(trains, start=int(ordered)):
        index, Phi = np.zeros(0, dtype=np.intp), np.zeros((0, total.n_features))
        if sample is not None:
            index = np.flatnonzero(sample.part == part)
            Phi = sample.Phi[index]
        folds.append((train, parts[part], index, Phi))
    mapped = _map_moments(folds, total, feature_map, targets, settings, lambda: sample)
    trials = [_try_candidates(None, mapped, targets, settings, lambda: None)]
    return _conclude(Comparison(trials, targets, settings, scale, inputs))


class MappedRows(NamedTuple):
    """The rows of a search in the features of one map.

    Attributes
    ----------
    feature_map : transformer or None
        Fitted on all rows.
    spread : float
        Mean squared length of the features, about their mean with an intercept.
    folds : list of callable
        Each makes a `Fold`.
    problem : callable
        Gives the problem of all rows.
    sample : callable
        Gives some of the rows, or None.
    """

    feature_map: Any
    spread: float
    folds: Sequence[Callable[[], Fold]]
    problem: Callable[[], Problem]
    sample: Callable[[], RowSample | None]


# Moments of training rows and of held-out rows, numbers of rows to predict, and their features.
_MomentFold = tuple[Moments, Moments, Index, Array]


def _map_rows(
    X: Any,
    targets: ScoredTargets,
    feature_map: Any,
    splits: Sequence[Split],
    settings: SearchSettings,
    keys: NDArray[np.uint64] | None,
    most_numbers: float,
) -> MappedRows:
    """Rows in memory in the features of a map that is not fitted yet."""
    (n, p), weight, centred = targets.Y.shape, targets.weight, settings.fit_intercept
    Y, traits = targets.Y[:, 0] if p == 1 else targets.Y, FeatureMapTraits.of(feature_map)
    # Whether the map is fitted again on the training rows of every split.
    in_folds = feature_map is not None and (traits.needs_targets or traits.exact_rows < n <= SMALL)
    if traits.cross_fitted:
        fitted, Phi = fit_and_map(feature_map, X, Y, weight, ensure_min_samples=2)
    else:
        fitted = fit_feature_map(feature_map, X, Y, weight)
        if not in_folds and np.isfinite(most_numbers):
            m = map_features(fitted, _safe_indexing(X, slice(0, 1))).shape[1]
            rounds = _rounds(splits, n) if n * m > most_numbers and m + p <= n else None
            if rounds is not None:
                height = max(1, int(most_numbers / m))
                return _map_blocks(X, targets, fitted, rounds, settings, keys, height)
        Phi = map_features(fitted, X, ensure_min_samples=2)
    check_range("X" if feature_map is None else "the output of feature_map", Phi)
    m = Phi.shape[1]
    for kernel in settings.kernels:
        check_rank_fits(kernel.rank, m, p, reduced=kernel.prediction == "reduced_rank")
    Y_filled, row_weight, fill_shares = targets.Y, np.ones(n), None
    if weight is not None:
        row_weight = weight
        if weight.ndim == 2:
            Y_filled, fill_shares = fill_rows(Phi, targets.Y, weight, centred=centred)
            row_weight = weight.max(axis=1)
    fold_options: dict[str, Any] = {
        "centred": centred,
        "iterative": settings.iterative,
        "ridge_only": len(settings.kernels) == 1,
        "fill_shares": fill_shares,
        "most": max(1, int(sample_size(p) / max(1.0, len(splits) / targets.n_repeats))),
    }
    features = Phi
    if in_folds:
        started = warm_start(feature_map, fitted)
    elif m > n and centred and not settings.iterative:
        features = compress_rows(Phi, np.zeros((n, 1)), centred=True).Phi
        fold_options["n_features"] = m

    def fold(train: Index, test: Index) -> Fold:
        train, test = train[row_weight[train] > 0.0], test[row_weight[test] > 0.0]
        both = features[train], features[test]
        if in_folds and len(train) and len(test):
            X_train, w_train = _safe_indexing(X, train), None if weight is None else weight[train]
            inner, Phi_train = fit_and_map(
                started, X_train, Y[train], w_train, ensure_min_samples=2
            )
            both = Phi_train, map_features(inner, _safe_indexing(X, test))
        return fold_of_rows(targets, (train, test), both, **fold_options)

    @cache
    def problem() -> Problem:
        rows = np.flatnonzero(row_weight)
        w = None if weight is None else row_weight[rows]
        return reduce_rows(Phi[rows], Y_filled[rows], w, centred=centred)[0]

    @cache
    def sample() -> RowSample | None:
        return None if keys is None else RowSample.of(np.asarray(Phi), targets.Y, keys, weight)

    centre = row_weight @ Phi / row_weight.sum() if centred else 0.0
    spread = row_weight @ np.sum((Phi - centre) ** 2, axis=1) / row_weight.sum()
    folds = [partial(fold, *split) for split in splits]
    return MappedRows(fitted, float(spread), folds, problem, sample)


def _rounds(splits: Sequence[Split], n: int) -> list[list[Index]] | None:
    """Held-out rows of the splits, in rounds that hold out every row once; else None."""
    rounds, start = list[list[Index]](), 0
    while start < len(splits):
        sizes = np.cumsum([len(test) for _, test in splits[start:]])
        stop = start + int(np.searchsorted(sizes, n)) + 1
        tests = [test for _, test in splits[start:stop]]
        held_out = np.concatenate(tests)
        if len(tests) < 2 or len(held_out) != n or len(np.unique(held_out)) != n:
            return None
        if any(len(train) + len(test) != n for train, test in splits[start:stop]):
            return None
        rounds.append(tests)
        start = stop
    return rounds


def _map_blocks(
    X: Any,
    targets: ScoredTargets,
    fitted: Any,
    rounds: Sequence[Sequence[Index]],
    settings: SearchSettings,
    keys: NDArray[np.uint64] | None,
    height: int,
) -> MappedRows:
    """Rows in memory in the features of a map, which are computed in blocks of rows and not kept."""
    (n, p), Y = targets.Y.shape, targets.Y
    most = max(1, int(sample_size(p) / len(rounds[0])))
    weight = np.ones((n, 1)) if targets.weight is None else targets.weight.reshape(n, -1)
    weight, folds = np.broadcast_to(weight, Y.shape), list[_MomentFold]()
    for tests in rounds:
        parts = list[Moments]()
        for test in tests:
            total: Any = 0
            for start in range(0, len(test), height):
                index = test[start : start + height]
                Phi = map_features(fitted, _safe_indexing(X, index))
                check_range("the output of feature_map", Phi)
                total = total + Moments.from_arrays(Phi, Y[index], weight[index])
            parts.append(total)
        for test, train, part in zip(tests, leave_one_out_sums(parts), parts, strict=True):
            index = test[np.linspace(0, len(test) - 1, min(most, len(test))).astype(np.intp)]
            folds.append((train, part, index, map_features(fitted, _safe_indexing(X, index))))

    @cache
    def sample() -> RowSample | None:
        if keys is None:
            return None
        rows = least_keys(keys, targets.weight, sample_size(p))
        Phi, w = map_features(fitted, _safe_indexing(X, rows)), targets.weight
        return RowSample.of(Phi, Y[rows], keys[rows], None if w is None else w[rows])

    return _map_moments(folds, sum(parts[1:], parts[0]), fitted, targets, settings, sample)


def _map_moments(
    folds: Sequence[_MomentFold],
    total: Moments,
    fitted: Any,
    targets: ScoredTargets,
    settings: SearchSettings,
    sample: Callable[[], RowSample | None],
) -> MappedRows:
    """Rows of which the moments of the training and the held-out rows of every split are known."""
    centred = settings.fit_intercept
    for kernel in settings.kernels:
        reduced = kernel.prediction == "reduced_rank"
        check_rank_fits(kernel.rank, total.n_features, total.n_outputs, reduced=reduced)

    @cache
    def problem() -> Problem:
        return reduce_moments(complete_moments(total, centred=centred), centred=centred)

    rows = total if total.complete else total.rows
    spread = float(np.trace(rows.C)) / rows.weight
    spread = spread if centred else spread + float(rows.mean_phi @ rows.mean_phi)
    makers = [partial(fold_of_moments, targets, *fold, centred=centred) for fold in folds]
    return MappedRows(fitted, spread, makers, problem, sample)


class Trial(NamedTuple):
    """Held-out errors of all candidates with one feature map.

    Attributes
    ----------
    map_key : Any
        Key of the map.
    rows : MappedRows
    alphas : ndarray
    folds : list of Fold
        Without held-out rows other than those to predict.
    errors : ndarray of shape (splits, kernels, alphas, q or 1)
        By target, or summed over targets; in units in which the sum is the score.
    """

    map_key: Any
    rows: MappedRows
    alphas: Array
    folds: list[Fold]
    errors: Array


def _try_candidates(
    map_key: Any,
    rows: MappedRows,
    targets: ScoredTargets,
    settings: SearchSettings,
    split_done: Callable[[], None],
) -> Trial:
    """Errors of all candidates with one feature map on the held-out rows of every split."""
    alphas = settings.alphas
    if alphas is None:
        alphas = default_alphas(rows.spread, FeatureMapTraits.of(rows.feature_map).noise)
    shape = len(settings.kernels), len(alphas), len(targets.unit.T)

    def errors_of(make_fold: Callable[[], Fold]) -> tuple[Fold, Array]:
        fold, errors = make_fold(), np.empty(shape)
        for number, factor in learn_kernels(fold.problem, settings.kernels):
            errors[number] = fold.errors(factor.coefficients(alphas))
        # Only predictions are needed from now on.
        none = np.zeros((0, 0))
        fold = replace(fold, Z=none, targets=none, weight=none)
        return fold, errors if targets.by_target else _sum_errors(errors, targets.score_weights)

    start = time.perf_counter()
    results = [errors_of(rows.folds[0])]
    split_done()
    short = (time.perf_counter() - start) * (len(rows.folds) - 1) < _MOMENT
    workers = 1 if short else settings.n_jobs
    parallel = Parallel(n_jobs=workers, prefer="threads", return_as="generator")
    for result in parallel(map(delayed(errors_of), rows.folds[1:])):
        results.append(result)
        split_done()
    folds, split_errors = zip(*results, strict=True)
    errors = np.stack(split_errors)
    missing = np.isnan(errors)
    if missing.any():
        # A target without rows in a split gets its mean error in the other splits.
        sums = np.where(missing, 0.0, errors).sum(axis=0)
        errors = np.where(missing, sums / np.maximum((~missing).sum(axis=0), 1), errors)
    return Trial(map_key, rows, alphas, list(folds), errors)


def _sum_errors(errors: Array, score_weights: Array) -> Array:
    """Errors summed over targets, (..., 1); missing ones count as the mean of the others."""
    missing = np.isnan(errors)
    if not missing.any():
        return np.asarray(errors.sum(axis=-1, keepdims=True))
    counted = np.where(missing, 0.0, score_weights).sum(axis=-1, keepdims=True)
    sums = np.where(missing, 0.0, errors).sum(axis=-1, keepdims=True) * score_weights.sum()
    return np.where(counted > 0.0, sums / np.where(counted > 0.0, counted, 1.0), np.nan)


class HeldOutPredictions(NamedTuple):
    """Predictions of rows by models that have not seen them.

    Attributes
    ----------
    shares : ndarray of shape (K, 1 or q)
        Of the models in the average of the model that is kept.
    row : ndarray of shape (N,)
        Numbers of the rows.
    values : ndarray of shape (N, p)
        NaN for a target without a training row in the split.
    """

    shares: Array
    row: Index
    values: Array


@dataclass(frozen=True, eq=False)
class Comparison:
    """All candidates of a search, by their errors on the same folds.

    Attributes
    ----------
    trials : list of Trial
        One for every feature map.
    targets : ScoredTargets
    settings : SearchSettings
    scale : TargetScale or None
        The scale on which targets are learned.
    inputs : InputRange or None
        Range of the inputs of all rows.
    """

    trials: Sequence[Trial]
    targets: ScoredTargets
    settings: SearchSettings
    scale: TargetScale | None
    inputs: InputRange | None

    def only_kernels(self, wanted: Sequence[bool]) -> Comparison:
        """The comparison of the candidates with some of the kernels."""
        numbers = np.flatnonzero(wanted)
        kernels = [self.settings.kernels[number] for number in numbers]
        trials = [trial._replace(errors=trial.errors[:, numbers]) for trial in self.trials]
        return replace(self, trials=trials, settings=replace(self.settings, kernels=kernels))

    def choose(self, splits: Any = slice(None)) -> tuple[int, int, int, float]:
        """Numbers of the feature map, the kernel and the alpha of the best candidate, and its error.

        Of equally good candidates, the one with the largest shrinkage and then the largest alpha
        is chosen. Only some of the ``splits`` may count.
        """
        shrinkages = [kernel.shrinkage for kernel in self.settings.kernels]
        best = 0, 0, 0, np.inf
        for number, trial in enumerate(self.trials):
            errors = trial.errors[splits].sum(axis=-1)
            errors = errors.reshape(len(errors), -1)
            shrinkage, alpha = np.meshgrid(shrinkages, trial.alphas, indexing="ij")
            order = np.lexsort((-alpha.ravel(), -shrinkage.ravel()))
            one_se = self.settings.selection == "one_se"
            chosen = int(order[choose_candidate(errors[:, order], one_se=one_se)])
            error = float(errors[:, chosen].mean())
            if error < best[3] or number == 0:
                best = number, *divmod(chosen, len(trial.alphas)), error
        return best

    def candidate(self, number: int, kernel: int, column: int) -> Candidate:
        """A feature map with a kernel and an alpha, by their numbers, fitted on all rows."""
        trial = self.trials[number]
        settings = self.settings.kernels[kernel]._replace(alpha=float(trial.alphas[column]))
        fit, feature_map = fit_problem(trial.rows.problem(), settings), trial.rows.feature_map
        model = FittedModel(
            feature_map,
            fit.linear,
            fit,
            fit_map=feature_map,
            scale=self.scale,
            inputs=self.inputs,
            sample=trial.rows.sample(),
        )
        return Candidate(trial.map_key, model)

    def models(self, without: int | None = None) -> list[tuple[int, Array]]:
        """Models to be stacked: numbers of trials, and weights (kernels, alphas, 1 or q) of candidates.

        They are the average of the candidates of every feature map, and for every map that
        estimates a noise the kernel ridge with the noise for its alpha; or the one candidate that
        is kept. The split ``without`` does not count, unless it is the only one.
        """
        folds, n_kernels = self.trials[0].folds, len(self.settings.kernels)
        splits, models, n_rows = np.arange(len(folds)) != without, [], 0.0
        splits = splits if splits.any() else ~splits
        if self.settings.selection != "average":
            number, kernel, column, _ = self.choose(splits)
            weights = np.zeros((n_kernels, len(self.trials[number].alphas), 1))
            weights[kernel, column] = 1.0
            return [(number, weights)]
        for split in np.flatnonzero(splits):
            n_rows += float(folds[split].total.max()) / self.targets.n_repeats
        for number, trial in enumerate(self.trials):
            by_target = self.targets.by_target
            weights = candidate_weights(trial.errors[splits], n_rows, by_target=by_target)
            models.append((number, weights))
        for number, trial in enumerate(self.trials):
            noise = FeatureMapTraits.of(trial.rows.feature_map).noise
            columns = np.flatnonzero(trial.alphas == noise)
            if len(columns) and self.settings.kernels[0].shrinkage == 1.0:
                weights = np.zeros((n_kernels, len(trial.alphas), 1))
                weights[0, columns[0]] = 1.0
                models.append((number, weights))
        return models

    def predict_held_out(self) -> HeldOutPredictions | None:
        """Held-out rows, predicted by an average of the models; None without held-out rows.

        The rows of a split are predicted with weights of candidates from the other splits, and with
        shares from other rows. With repeated folds other splits hold out the same rows, so that the
        predictions are not entirely independent of them.
        """
        rows, split_of, values = list[Index](), list[Index](), list[Array]()
        for split, fold in enumerate(self.trials[0].folds):
            if len(fold.index) == 0:
                continue
            predicted = []
            for number, weights in self.models(without=split):
                trial, kernels = self.trials[number], self.settings.kernels
                fold_of_map = trial.folds[split]
                coef = weighted_coefficients(fold_of_map.problem, kernels, trial.alphas, weights)
                predicted.append(fold_of_map.predict(coef, weights.sum(axis=(0, 1))))
            rows.append(fold.index)
            split_of.append(np.full(len(fold.index), split))
            values.append(np.stack(predicted))
        if not values:
            return None
        targets, row, together = self.targets, np.concatenate(rows), np.concatenate(values, axis=1)
        shares, average = np.ones((1, 1)), together[0]  # of (K, N, q)
        if len(together) > 1:
            Y, weight = _targets_of_rows(row, targets.coordinates, targets.weight)
            errors, by_target = targets.in_units(Y - together), targets.by_target
            shares, average = model_shares(errors, weight, by_target=by_target), np.empty(Y.shape)
            split_of_row = np.concatenate(split_of)
            for split in np.unique(split_of_row):
                held_out = split_of_row == split
                other = ~np.isin(row, row[held_out])
                apart = model_shares(errors[:, other], weight[other], by_target=by_target)
                average[held_out] = (together[:, held_out] * apart[:, None]).sum(axis=0)
        if targets.basis is not None:
            average = targets.first + average @ targets.basis.T
        return HeldOutPredictions(shares, row, average)

    def relative_variance(self, number: int, settings: FitSettings) -> Array:
        """Variance of new observations of the held-out rows, (N,), in units of the noise.

        By the Gaussian process of a kernel with the features of the map of this number.
        """
        variances = []
        for fold in self.trials[number].folds:
            if len(fold.index):
                ((_, factor),) = learn_kernels(fold.problem, [settings])
                posterior = fit_function_posterior(fold.problem, factor.kernel, settings.alpha)
                variances.append(posterior.relative_variance(fold.predicted))
        return np.concatenate(variances)

    def weights(self, shares: Array | None) -> list[Array]:
        """Weights (kernels, alphas, 1 or p) of the candidates of every map, from shares of models."""
        weights, models = [np.zeros((*t.errors.shape[1:3], 1)) for t in self.trials], self.models()
        shares = np.full((len(models), 1), 1.0 / len(models)) if shares is None else shares
        for (number, model_weights), share in zip(models, shares, strict=True):
            weights[number] = weights[number] + model_weights * share
        return weights

    def score(self, held_out: HeldOutPredictions | None) -> HeldOutScore | None:
        """Errors of held-out predictions in units of the targets."""
        if held_out is None:
            return None
        targets, Y = self.targets, self.targets.Y
        score_weights = targets.score_weights
        if self.scale is not None:
            Y = self.scale.inverse_transform(Y)
            held_out = held_out._replace(values=self.scale.inverse_transform(held_out.values))
            score_weights = self.settings.score_weights(*_mean_and_variance(Y, targets.weight))
        residuals = _residuals(held_out, Y, targets.weight, np.ones(len(held_out.row)))
        return HeldOutScore.of(residuals, score_weights)


def _conclude(compared: Comparison) -> Selected:
    """Choose what is kept, fit it on all rows, and score it on held-out rows."""
    trials, targets, kernels = compared.trials, compared.targets, compared.settings.kernels
    averaging = compared.settings.selection == "average"
    number, kernel, column, error = compared.choose()
    best = compared.candidate(number, kernel, column)
    entangled: Candidate | None = best
    _warn_of_ends(trials[number], best.model.fit.settings.alpha, compared.settings)
    if not _is_entangled(kernels[kernel]):
        entangling, entangled = list(map(_is_entangled, kernels)), None
        if any(entangling):
            others = compared.only_kernels(entangling)
            entangled = others.candidate(*others.choose()[:3])
    held_out = by_ridge = compared.predict_held_out()
    if held_out is not None and len(kernels) > 1:
        by_ridge = compared.only_kernels(
            [kernel is kernels[0] for kernel in kernels]
        ).predict_held_out()
    weights = compared.weights(None if held_out is None else held_out.shares)
    # In an average, the map of the best candidate is kept even without a weight.
    kept = [
        (trial, of_trial)
        for trial, of_trial in zip(trials, weights, strict=True)
        if of_trial.any() or (averaging and trial is trials[number])
    ]
    residuals = measured = None
    if held_out is not None:
        variance = compared.relative_variance(number, best.model.fit.settings)
        residuals = _residuals(held_out, targets.Y, targets.weight, variance)
        measured, _ = _targets_of_rows(np.unique(residuals.row), targets.Y, targets.weight)
    model = replace(
        best.model,
        feature_map=_side_by_side([trial.rows.feature_map for trial, _ in kept]),
        linear=_average(kept, kernels) if averaging else best.model.linear,
        sample=None,
        residuals=residuals,
        measured=measured,
        parts=_noise_parts(kept, kernels),
    )
    rows_before = sum(len(kernels) * len(trial.alphas) for trial in trials[:number])
    results = SearchResults(
        table=_candidate_table(trials, kernels),
        best_index=rows_before + kernel * len(trials[number].alphas) + column,
        best_error=error,
        target_scores=_target_scores(trials, targets) if targets.by_target else None,
        weights=_flat_weights(weights, targets) if averaging else None,
        score=compared.score(held_out),
        kernel_ridge_score=compared.score(by_ridge),
        n_splits=len(trials[0].folds),
    )
    return Selected(model, best, entangled, results)


def size_parts(splits: Sequence[Split], n: int) -> Index:
    """Parts (n,) of the rows to be left out in turn where sizes of errors are estimated.

    A part holds the rows of whole folds, so that rows of a group are left out together.
    """
    part = np.zeros(n, dtype=np.intp)
    for number, (_, test) in reversed(list(enumerate(splits))):
        part[test] = number % SIZE_PARTS
    return part


def _is_entangled(settings: FitSettings) -> bool:
    """Whether the kernel relates the targets to each other."""
    return settings.shrinkage < 1.0 and settings.prediction == "entangled"


def _targets_of_rows(row: Index, Y: Array, weight: Array | None) -> tuple[Array, Array]:
    """Targets (N, q) of rows, NaN where missing, and weights (N,), which copies of a row share."""
    Y = Y[row]
    row_weight = np.ones(len(Y)) if weight is None else weight[row]
    if row_weight.ndim == 2:
        Y, row_weight = np.where(row_weight > 0.0, Y, np.nan), row_weight.max(axis=1)
    return Y, row_weight / np.bincount(row)[row]


def _residuals(
    held_out: HeldOutPredictions, Y: Array, weight: Array | None, variance: Array
) -> Residuals:
    """Residuals of held-out predictions of targets (n, p), with the relative variances (N,)."""
    Y, row_weight = _targets_of_rows(held_out.row, Y, weight)
    errors = without_rounding(Y - held_out.values, Y)
    counted = (row_weight > 0.0) & ~np.isnan(errors).all(axis=1)
    row = held_out.row[counted]
    return Residuals(errors[counted], row_weight[counted], row, variance[counted])


def _average(kept: Sequence[tuple[Trial, Array]], kernels: Sequence[FitSettings]) -> LinearModel:
    """The weighted mean of all candidates, with the features of the maps side by side."""
    coefs, intercept = [], np.zeros(1)
    for trial, weights in kept:
        problem, share = trial.rows.problem(), weights.sum(axis=(0, 1))
        coef = weighted_coefficients(problem, kernels, trial.alphas, weights)
        coefs.append(coef.T @ problem.features.T)
        intercept = intercept + share * problem.mean_y - coefs[-1] @ problem.mean_phi
    return LinearModel(np.hstack(coefs), intercept)


def _noise_parts(
    kept: Sequence[tuple[Trial, Array]], kernels: Sequence[FitSettings]
) -> tuple[NoisePart, ...]:
    """Feature maps of an average on which models of noise are fitted; empty without an average.

    Every map comes with the settings of its heaviest candidate. Features of cross-fitted maps are
    predictions, which do not show the noise that went into them. Their shares go to the other maps,
    if these have a share of at least `LEAST_SHARE` for every target; otherwise there are no parts.
    """
    parts, total = [], np.zeros(1)
    for trial, weights in kept:
        kernel, column = divmod(int(weights.sum(axis=2).argmax()), len(trial.alphas))
        settings = kernels[kernel]._replace(alpha=float(trial.alphas[column]))
        shows_noise = not FeatureMapTraits.of(trial.rows.feature_map).cross_fitted
        share = weights.sum(axis=(0, 1)) * shows_noise
        total = total + share
        parts.append(NoisePart(trial.rows.feature_map, settings, share))
    if len(parts) < 2 or total.min() < LEAST_SHARE:
        return ()
    return tuple([part._replace(share=part.share / total) for part in parts])


def _candidate_table(
    trials: Sequence[Trial], kernels: Sequence[FitSettings]
) -> dict[str, NDArray[Any]]:
    """Parameters and errors of all candidates, column by column."""
    columns: dict[str, list[NDArray[Any]]] = {}
    steps: list[Any] = []
    for kernel in kernels:
        steps.append(kernel.max_iter if SOLVERS[kernel.solver].has_path else None)
    for trial in trials:
        errors = trial.errors.sum(axis=-1).reshape(len(trial.errors), -1)
        n_alphas = len(trial.alphas)
        table: dict[str, NDArray[Any]] = {}
        if any(steps):
            table["param_n_steps"] = np.repeat(steps, n_alphas)
        for name in GRID:
            kind = object if name == "rank" else None
            values = np.array([getattr(settings, name) for settings in kernels], dtype=kind)
            table[f"param_{name}"] = np.repeat(values, n_alphas)
        table["param_alpha"] = np.tile(trial.alphas, len(kernels))
        for split, split_errors in enumerate(errors):
            table[f"split{split}_test_score"] = split_errors
        table["mean_test_score"], table["std_test_score"] = errors.mean(axis=0), errors.std(axis=0)
        table["param_feature_map"] = np.full(errors.shape[1], trial.map_key)
        for name, column in table.items():
            columns.setdefault(name, []).append(column)
    return dict(zip(columns, map(np.concatenate, columns.values()), strict=True))


def _target_scores(trials: Sequence[Trial], targets: ScoredTargets) -> Array:
    """Mean error of every candidate and target over splits, (candidates, p); NaN for constants."""
    counts = targets.score_weights > 0.0
    mean = np.concatenate([trial.errors.mean(axis=0).reshape(-1, len(counts)) for trial in trials])
    return np.where(counts, mean * np.count_nonzero(counts), np.nan)


def _flat_weights(weights: Sequence[Array], targets: ScoredTargets) -> Array:
    """Weights of all candidates, (candidates, p), or (candidates,) if all targets share them."""
    width = targets.Y.shape[1] if targets.by_target else 1
    flat = []
    for trial_weights in weights:
        shape = (*trial_weights.shape[:2], width)
        flat.append(np.broadcast_to(trial_weights, shape).reshape(-1, width))
    return np.concatenate(flat)[:, 0 if width == 1 else slice(None)]


def scale_weights(weight: Array) -> Array:
    """Weights (n,) or (n, p) divided by their `weight_unit`.

    They are rounded to 40 of 53 bits, so that weights of another scale give the same numbers to the
    last bit: rounding errors would change splits of trees that are equally good.
    """
    mantissa, exponent = np.frexp(weight / weight_unit(weight))
    return np.asarray(np.ldexp(np.round(mantissa * 2.0**40) / 2.0**40, exponent))


def _mean_and_variance(Y: Array, weight: Array | None) -> tuple[Array, Array]:
    """Weighted mean and variance of every target over the rows where it is not missing."""
    if weight is None:
        mean, squares = Y.mean(axis=0), np.zeros(Y.shape[1])
        # In blocks, without a second table of the same size.
        for start in range(0, len(Y), 256):
            squares += np.sum((Y[start : start + 256] - mean) ** 2, axis=0)
        return mean, squares / len(Y)
    weight = np.broadcast_to(weight.reshape(len(Y), -1), Y.shape)
    Y, total = np.where(weight > 0.0, Y, 0.0), weight.sum(axis=0)
    mean = np.sum(weight * Y, axis=0) / total
    return mean, np.sum(weight * (Y - mean) ** 2, axis=0) / total


def _warn_of_ends(trial: Trial, alpha: float, settings: SearchSettings) -> None:
    """Warn if the best alpha is at an end of the grid of its feature map."""
    alphas, end = trial.alphas, "largest"
    if len(alphas) == 1:
        return
    if alpha != alphas.max():
        # No warning for the smallest alpha: forests interpolate by design, and the default grid
        # already reaches almost zero.
        interpolates = FeatureMapTraits.of(trial.rows.feature_map).interpolates
        if alpha != alphas.min() or settings.alphas is None or interpolates:
            return
        end = "smallest"
    warn_user(f"the {end} of the alphas was chosen, {alpha:.3g}; a wider grid may do better")


def _side_by_side(feature_maps: Sequence[Any]) -> Any:
    """One map with the features of several; None is the columns."""
    if len(feature_maps) == 1:
        return feature_maps[0]
    parts = []
    for number, feature_map in enumerate(feature_maps):
        parts.append(
            (f"map{number}", FunctionTransformer() if feature_map is None else feature_map)
        )
    return FeatureUnion(parts)
