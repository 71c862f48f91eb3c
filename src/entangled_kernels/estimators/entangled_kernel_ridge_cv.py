"""Entangled kernel ridge that chooses its own settings by cross-validation from moments."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable
from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, PredefinedSplit, RepeatedKFold, check_cv
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, get_tags, indexable

from ..candidates import SCORINGS, default_alphas, grid_members, score_weights
from ..moments import Moments
from ..row_folds import row_folds
from ..search import Search, Task, average_weights, candidate_errors
from ..selection import Member, Split, folds_of_parts, make_folds, partitions
from ..solvers import SOLVERS, SolverOptions
from ..threads import SMALL_MATRIX, one_thread
from .dask_tables import fit_dask, is_dask
from .entangled_kernel_ridge import PREDICTIONS, EntangledKernelRidge
from .evidence_features import EvidenceFeatures, GaussianFeatures
from .feature_maps import FeatureMapMixin
from .out_of_core import OutOfCoreMixin
from .parameters import (
    check_choice,
    check_flag,
    check_fraction,
    check_integer,
    check_positive,
    check_rank,
    resolve_rank,
)
from .streaming import PRODUCT_DTYPES, Solved, Stream
from .targets import TargetsMixin

__all__ = ["EntangledKernelRidgeCV"]

Array = NDArray[np.float64]

# A function of the number of splits done and of all.
Report = Callable[[int, int], None]

SELECTIONS = ("best", "one_se", "average")
FIT_FEATURES = ("auto", "fold", "all")

DELEGATED = ("n_features_in_", "feature_names_in_", "target_names_", "feature_map_", "n_iter_")

# With this many rows or fewer, folds are repeated until there are so many, and feature maps fitted in each.
SMALL, FOLDS_WHEN_SMALL = 500, 20
_ROWS_AT_ONCE = 256
# More targets than this, or than rows, weigh candidates together.
MOST_VOTERS = 64


class EntangledKernelRidgeCV(
    OutOfCoreMixin, FeatureMapMixin, TargetsMixin, RegressorMixin, MultiOutputMixin, BaseEstimator
):
    """Entangled kernel ridge regression with its settings chosen by cross-validation.

    Tries kernels from plain kernel ridge to fully learned ones, each with a path of alphas, and keeps what
    predicts held-out rows best. Kernel ridge is always among the candidates.

    Parameters
    ----------
    feature_map : "auto", transformer, None, or list of the last two, default="auto"
        Features phi(x), as in `EntangledKernelRidge`. Those of a list are candidates. ``"auto"`` tries the
        standardised columns, `EvidenceFeatures`, of a Gaussian plus linear kernel tuned by marginal
        likelihood, and `GaussianFeatures`, of a Gaussian kernel as wide as the median distance.
    alphas : array-like or None, default=None
        Ridge penalties to try. None takes 34 values over eleven decades about the scale of the features, and
        the noise that a feature map has found, its ``noise_``.
    gains : sequence, default=(1.0, 1.2, 1.4)
        Factors on the coefficients to try. A ridge penalty that is right for the noise draws predictions
        towards the mean; where held-out rows show that it draws too far, a gain above one undoes it. One is
        always tried. In averages the errors of other gains count 5% more than they are.
    alignment_mixes, shrinkages, target_alphas, predictions, ranks : sequences
        Values to try of the parameters of `EntangledKernelRidge`. Combinations that give the same kernel are
        tried once: ``shrinkage=1`` is kernel ridge whatever the rest, and for the closed form without a rank
        the partial-trace prediction does not depend on the mix and is the entangled one of mix 0.
    solver : {"closed-form", "ascent", "lbfgs"}, default="closed-form"
        With ``"ascent"`` the steps along the path are candidates too, so that early stopping is selected.
    cv : int, splitter or iterable of splits, default=5
        An int asks for shuffled folds; of up to 500 rows they are repeated until there are 20.
    scoring : {"nmse", "mse"}, default="nmse"
        Mean over outputs of the squared error, divided by the variance of the output or not. Lower is better.
    selection : {"average", "best", "one_se"}, default="average"
        ``"average"``: the mean of candidates, each weighted by how often it is the best when the splits get
        random weights (`entangled_kernels.choice.bootstrap_weights`); for a target, best by its own error
        and twice that of all, where there are no more than 64 targets and no more than rows. An average of
        coefficients is a coefficient matrix, so predicting costs what the features cost. ``"best"``: the
        candidate with the least error. ``"one_se"``: the one with the largest shrinkage, the least gain and
        the largest alpha within a standard error.
    alpha_per_target : bool, default=False
        Choose an alpha for every target, among kernels that treat targets alike: kernel ridge and the
        partial-trace predictions, and a gain with it. Keeps splits x members x gains x alphas x targets
        numbers.
    refit : bool, default=True
        Fit the chosen candidate on all rows. Without it there is nothing to predict with.
    fit_features : {"auto", "fold", "all"}, default="auto"
        Fit feature maps anew in every fold, or once on all rows. ``"auto"`` does the first for up to 500
        rows, where it is cheap and matters most, and for maps that need the targets.
    fit_intercept : bool, default=True
    init, max_iter, tol : as in `EntangledKernelRidge`
    n_jobs : int or None, default=None
        Folds worked on at the same time. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        For shuffling and random starts.
    max_memory, product_dtype : as in `EntangledKernelRidge`
        Features that are fitted on all rows are made in blocks where splits hold out every row once, as K
        folds do; with other splits, and where they are fitted in every fold, they are in memory.

    Attributes
    ----------
    best_estimator_ : EntangledKernelRidge
        The chosen candidate, fitted on all rows.
    best_params_ : dict
        Its parameters, the feature map's place among those tried with them when there are several.
    best_score_ : float
        Its cross-validated error; lower is better. It is the least of many, so somewhat too good.
    best_index_ : int
        Its place in ``cv_results_``; there is none with ``alpha_per_target``.
    cv_results_ : dict of ndarray
        One entry per candidate: ``param_*``, ``mean_test_score``, ``std_test_score`` and
        ``split{i}_test_score``; ready for `pandas.DataFrame`.
    cv_target_scores_ : ndarray of shape (number of candidates, p)
        Errors of every target in the order of ``cv_results_``, NaN for a constant one; only there where
        targets weigh candidates apart, or have their own alphas.
    coef_, intercept_ : ndarray of shape (p, m) and (p,)
        Those of the best estimator, or averages.
    average_weights_ : ndarray of shape (number of candidates, p) or (number of candidates,)
        With ``selection="average"``, in the order of ``cv_results_``; the same for all targets where they
        weigh candidates together.
    n_splits_ : int
    feature_map_ : transformer or None
        Of ``coef_``; a `FeatureUnion` where candidates with several maps are averaged.
    n_iter_, n_features_in_, feature_names_in_, target_names_ : as in `EntangledKernelRidge`

    Notes
    -----
    Held-out errors come from moments of the folds (`entangled_kernels.selection.Fold`): after one pass over
    the rows nothing depends on their number. One decomposition serves all alphas of a member.

    With `partial_fit`, `fit_batches` and Dask a row's fold is found by a hash of its values
    (`entangled_kernels.row_folds.row_folds`), so it does not matter how rows are cut and ordered; ``cv`` must
    be a number, or a `KFold` of which the number counts. Of several feature maps, as with ``"auto"``, one is
    chosen on the first 10,000 rows; what else there is to choose is chosen on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidgeCV
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = EntangledKernelRidgeCV(random_state=0).fit(X, Y)
    >>> sorted(model.best_params_)[:5]
    ['alignment_mix', 'alpha', 'feature_map', 'gain', 'prediction']
    """

    def __init__(
        self,
        feature_map: Any = "auto",
        *,
        alphas: ArrayLike | None = None,
        gains: Any = (1.0, 1.2, 1.4),
        alignment_mixes: Any = (0.0, 0.5, 1.0),
        shrinkages: Any = (0.0, 0.25, 0.5, 0.75, 1.0),
        target_alphas: Any = (0.01, 0.1, 1.0, 10.0),
        predictions: Any = PREDICTIONS,
        solver: str = "closed-form",
        ranks: Any = (None,),
        cv: Any = 5,
        scoring: str = "nmse",
        selection: str = "average",
        alpha_per_target: bool = False,
        refit: bool = True,
        fit_features: str = "auto",
        fit_intercept: bool = True,
        init: str = "identity",
        max_iter: int = 200,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        max_memory: float = 2**30,
        product_dtype: str = "float64",
    ) -> None:
        self.feature_map = feature_map
        self.alphas = alphas
        self.gains = gains
        self.alignment_mixes = alignment_mixes
        self.shrinkages = shrinkages
        self.target_alphas = target_alphas
        self.predictions = predictions
        self.solver = solver
        self.ranks = ranks
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.alpha_per_target = alpha_per_target
        self.refit = refit
        self.fit_features = fit_features
        self.fit_intercept = fit_intercept
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.max_memory = max_memory
        self.product_dtype = product_dtype

    # Of models saved before there were any.
    gains: Any = (1.0,)

    # What comes of the moments: found when first asked for, if rows came in by `partial_fit`.
    best_estimator_, best_params_, best_score_, cv_results_ = Solved(), Solved(), Solved(), Solved()
    coef_, intercept_, average_weights_, n_splits_, n_iter_ = Solved(), Solved(), Solved(), Solved(), Solved()
    best_index_, cv_target_scores_, _predictor = Solved(), Solved(), Solved()

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
            For splitters that keep groups together.
        progress : callable, optional
            Called after every split of every feature map with the number of those done and of all.

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_dask(X, y, sample_weight):
            fit_dask(self, X, y, sample_weight)
            return self
        self._forget()
        (X,) = indexable(X)
        maps, members = self._feature_maps(), self._members()
        searches: list[Search] = []
        splits: list[Split] = []
        for place, feature_map in enumerate(maps):

            def report(done: int, n_splits: int, place: int = place) -> None:
                if progress is not None:
                    progress(place * n_splits + done, len(maps) * n_splits)

            rows = (X, y, sample_weight, groups)
            search, splits = self._search(feature_map, members, rows, splits, report)
            searches.append(search)

        def fit_best(best: EntangledKernelRidge, place: int) -> EntangledKernelRidge:
            best.set_params(feature_map=maps[place])
            return best.fit(X, y, sample_weight)

        self._conclude(searches, fit_best)
        for name in DELEGATED:
            if hasattr(self, "_predictor") and hasattr(self._predictor, name):
                setattr(self, name, getattr(self._predictor, name))
        return self

    def _solve_parts(self, parts: list[Moments]) -> None:
        """Choose and fit from the moments of folds."""
        if len(parts) < 2:
            raise ValueError(
                f"cv must leave rows in at least 2 folds, got {len(parts)}; more rows are needed"
            )
        total, members = sum(parts[1:], parts[0]), self._members()
        self.n_splits_ = len(parts)
        noise = getattr(self.feature_map_, "noise_", None)
        search = self._search_parts([parts], members, noise, lambda done, n_splits: None)

        def fit_best(best: EntangledKernelRidge, place: int) -> EntangledKernelRidge:
            best.set_params(feature_map=self._given_map())
            for name in ("n_features_in_", "feature_names_in_", "target_names_", "feature_map_"):
                if hasattr(self, name):
                    setattr(best, name, getattr(self, name))
            best._one_dimensional = self._one_dimensional
            best._stream = Stream(total.n_outputs, [total], n_rows=total.n_samples)
            best._unsolve()
            return best

        self._conclude([search], fit_best)
        if self.refit:
            self.n_iter_ = self.best_estimator_.n_iter_

    def _search_parts(
        self, rounds: list[list[Moments]], members: list[Member], noise: float | None, report: Report
    ) -> Search:
        """Held-out errors of all candidates, from the moments of folds, in one round of them or several."""
        total = sum(rounds[0][1:], rounds[0][0])
        for rank in self.ranks:
            resolve_rank(rank, total.n_features, total.n_outputs, total.n_features * total.n_outputs)
        spread = float(np.trace(total.C)) / total.weight
        scale = spread if self.fit_intercept else spread + float(total.mean_phi @ total.mean_phi)
        alphas = self._alphas(scale, noise)
        output_weights = score_weights(self.scoring, np.diag(total.V) / total.weight, total.mean_y)
        per_target = self._by_target(total.n_samples, total.n_outputs)
        gains = self._gains()
        task = (members, alphas, self._options(), gains, per_target)
        folds = itertools.chain.from_iterable(
            folds_of_parts(parts, output_weights, centred=self.fit_intercept) for parts in rounds
        )
        jobs = (delayed(candidate_errors)(fold, *task) for fold in folds)
        errors = self._run(jobs, sum(map(len, rounds)), report)
        return Search(
            members=members,
            gains=gains,
            alphas=alphas,
            target_errors=np.stack(errors),
            output_weights=output_weights,
            n_repeats=float(len(rounds)),
            alpha_per_target=bool(self.alpha_per_target),
        )

    def _conclude(
        self,
        searches: list[Search],
        fit_best: Callable[[EntangledKernelRidge, int], EntangledKernelRidge],
    ) -> None:
        """Choose among what was tried, and fit it on all rows."""
        choices = [search.choose(self.selection) for search in searches]
        settings = [choice.parameters() for choice in choices]
        best_map = int(np.argmin([choice.error for choice in choices]))
        best, chosen = choices[best_map], settings[best_map]
        self.best_score_ = best.error
        self._store_results(searches)
        if best.place is not None:
            earlier = sum(search.n_candidates for search in searches[:best_map])
            self.best_index_ = earlier + best.place
        self._warn_of_ends(best.alpha, searches[best_map].alphas)
        self.best_params_ = chosen | ({"feature_map": best_map} if len(searches) > 1 else {})
        if not self.refit:
            self._forget_fit()
            return
        self.best_estimator_ = fit_best(self._estimator(None).set_params(**chosen), best_map)
        self._predictor = self.best_estimator_
        if self.selection == "average":
            weights = average_weights(searches)
            flat = np.concatenate([own.reshape(-1, own.shape[-1]) for own in weights])
            self.average_weights_ = flat if searches[0].by_target else flat[:, 0]
            fitted = {best_map: self.best_estimator_}
            for place, own in enumerate(weights):
                if place != best_map and own.any():
                    fitted[place] = fit_best(self._estimator(None).set_params(**settings[place]), place)
            self._predictor = self._average(searches, weights, fitted)
        self.coef_, self.intercept_ = self._predictor.coef_, self._predictor.intercept_

    def _average(
        self, searches: list[Search], weights: list[Array], fitted: dict[int, EntangledKernelRidge]
    ) -> EntangledKernelRidge:
        """The best estimator with its coefficients replaced by the weighted mean over all candidates.

        Where candidates with other features take part, all their features stand side by side.
        """
        averaged: EntangledKernelRidge = copy(self.best_estimator_)
        coefs, intercept, maps = [], np.zeros(1), []
        for place, estimator in sorted(fitted.items()):
            problem, own = estimator._problem, weights[place]
            coefs.append(searches[place].average(problem, own, self._options()))
            intercept = intercept + own.sum(axis=(0, 1, 2)) * problem.mean_y - coefs[-1] @ problem.mean_phi
            maps.append(estimator.feature_map_)
        averaged.coef_, averaged.intercept_ = np.hstack(coefs), intercept
        if len(maps) > 1:
            columns = [FunctionTransformer() if own is None else own for own in maps]
            averaged.feature_map_ = FeatureUnion([(f"map{i}", own) for i, own in enumerate(columns)])
        return averaged

    def _miss_moments(self) -> None:
        warnings.warn(
            "partial_fit starts anew: folds of rows that fit had in memory are not kept; take in all rows "
            "with partial_fit or fit_batches",
            UserWarning,
            stacklevel=4,
        )

    def _n_parts(self) -> int:
        if isinstance(self.cv, KFold):
            return int(self.cv.n_splits)
        if not isinstance(self.cv, Integral):
            raise ValueError(
                f"cv must be a number of folds, or KFold, where rows come in batches, since a row's fold is "
                f"found by a hash of its values; got {self.cv!r}"
            )
        check_integer("cv", self.cv, low=2)
        return int(self.cv)

    def _parts_of(self, X: Any, Y: Array) -> NDArray[np.intp]:
        return row_folds(X, Y, self._n_parts())

    def _given_map(self) -> Any:
        """The feature map, where there is but one."""
        maps = self._feature_maps()
        return maps[0] if len(maps) == 1 else maps

    def _fit_map(self, X: Any, targets: Array, sample_weight: Any) -> None:
        """Choose a feature map as `fit` would on these rows, and fit it on them."""
        maps, best = self._feature_maps(), 0
        if len(maps) > 1:
            folds = row_folds(X, targets.reshape(len(targets), -1), self._n_parts())
            search = clone(self).set_params(cv=PredefinedSplit(folds), refit=False)
            best = search.fit(X, targets, sample_weight).best_params_["feature_map"]
        fitted = self._estimator(maps[best])
        fitted._fit_map(X, targets, sample_weight)
        self.feature_map_ = fitted.feature_map_

    def _forget_fit(self) -> None:
        """Drop what an earlier fit left, so that nothing predicts with it."""
        for name in (*DELEGATED, "best_estimator_", "_predictor", "coef_", "intercept_", "average_weights_"):
            self.__dict__.pop(name, None)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict as `EntangledKernelRidge.predict` does.

        With ``selection="average"`` the uncertainty is that of the best candidate alone.
        """
        if hasattr(self, "best_params_") and not hasattr(self, "coef_"):
            raise NotFittedError("there is nothing to predict with, because refit was False; set refit=True")
        self._check_solved()
        for fitted in (self._predictor, self.best_estimator_):
            TargetsMixin.set_output(fitted, predict=self._container())
        mean = self._predictor.predict(X)
        if not (return_std or return_cov):
            return mean
        spread = self.best_estimator_.predict(X, return_std=return_std, return_cov=return_cov)[1]
        return mean, spread

    def _feature_maps(self) -> list[Any]:
        """The maps to choose from."""
        if isinstance(self.feature_map, str) and self.feature_map == "auto":
            seed = self.random_state
            return [
                StandardScaler(),
                EvidenceFeatures(random_state=seed),
                GaussianFeatures(random_state=seed),
            ]
        if isinstance(self.feature_map, str):
            raise ValueError(
                f"feature_map must be 'auto', None, a transformer or a list of the last two, got "
                f"{self.feature_map!r}"
            )
        maps = list(self.feature_map) if isinstance(self.feature_map, list | tuple) else [self.feature_map]
        if not maps:
            raise ValueError("feature_map must hold at least one feature map, got an empty list")
        return maps

    def _check_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        check_choice("scoring", self.scoring, SCORINGS)
        check_choice("selection", self.selection, SELECTIONS)
        check_choice("fit_features", self.fit_features, FIT_FEATURES)
        check_integer("max_iter", self.max_iter, low=1)
        check_positive("max_memory", self.max_memory)
        check_choice("product_dtype", self.product_dtype, PRODUCT_DTYPES)
        check_flag("alpha_per_target", self.alpha_per_target)
        check_flag("refit", self.refit)
        for value in _grid("alignment_mixes", self.alignment_mixes):
            check_fraction("alignment_mixes", value)
        for value in _grid("shrinkages", self.shrinkages):
            check_fraction("shrinkages", value)
        for value in _grid("target_alphas", self.target_alphas):
            check_positive("target_alphas", value, zero_allowed=True)
        for value in _grid("predictions", self.predictions):
            check_choice("predictions", value, PREDICTIONS)
        for value in _grid("ranks", self.ranks):
            check_rank(value)
        for value in [] if self.alphas is None else _grid("alphas", self.alphas):
            check_positive("alphas", value)
        for value in _grid("gains", self.gains):
            check_positive("gains", value)

    def _members(self) -> list[Member]:
        grid = (self.ranks, self.target_alphas, self.alignment_mixes, self.shrinkages, self.predictions)
        members = grid_members(self.solver, *grid, max_iter=int(self.max_iter))
        if not self.alpha_per_target:
            return members
        # Operators tie the targets together, so that they cannot have alphas of their own.
        return [one for one in members if one.shrinkage == 1.0 or one.prediction == "partial_trace"]

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

    def _container(self) -> str:
        return str(getattr(self, "_sklearn_output_config", {}).get("predict", "default"))

    def _search(
        self,
        feature_map: Any,
        members: list[Member],
        rows: tuple[Any, Any, Any, Any],
        splits: list[Split],
        report: Report,
    ) -> tuple[Search, list[Split]]:
        """Held-out errors of all candidates with one feature map, and the splits, made if there are none.

        ``rows`` are X, y, weights and groups.
        """
        X, y, sample_weight, groups = rows
        estimator = self._estimator(feature_map)
        estimator._check_parameters()
        targets = estimator._take_targets(y)
        estimator._fit_map(X, targets, sample_weight)
        noise = getattr(estimator.feature_map_, "noise_", None)
        in_folds = feature_map is not None and self._fitted_in_folds(feature_map, len(targets))
        if not in_folds and estimator._exceeds_memory(X, targets):
            check_consistent_length(X, targets)
            splits = splits or self._splits(X, targets, groups)
            rounds = [[test for _, test in group] for group in partitions(splits, len(targets))]
            if min(map(len, rounds)) > 1:
                parts = [estimator._moments_of_parts(X, targets, sample_weight, tests) for tests in rounds]
                return self._search_parts(parts, members, noise, report), splits
        Phi, Y, weight = estimator._features_and_targets(X, targets, sample_weight)
        for rank in self.ranks:
            resolve_rank(rank, Phi.shape[1], Y.shape[1], Phi.shape[1] * Y.shape[1])
        splits = splits or self._splits(X, Y, groups)
        alphas = self._alphas(self._mean_square(Phi, weight), noise)
        output_weights = score_weights(self.scoring, *_variance_and_mean(Y, weight))
        gains = self._gains()
        task = (members, alphas, self._options(), gains, self._by_target(*Y.shape))
        if not in_folds:
            folds = make_folds(
                *(Phi, Y, weight, splits, output_weights),
                centred=self.fit_intercept,
                norms=self.solver != "closed-form",
                product_dtype=self.product_dtype,
            )
            jobs = (delayed(candidate_errors)(fold, *task) for fold in folds)
        else:
            # The search of every fold starts from what all rows gave.
            if isinstance(estimator.feature_map_, EvidenceFeatures):
                estimator.set_params(feature_map=estimator.feature_map_.warm_start())
            own = delayed(_errors_with_own_features)
            jobs = (own(estimator, X, Y, weight, split, output_weights, task) for split in splits)
        errors = self._run(jobs, len(splits), report)
        search = Search(
            members=members,
            gains=gains,
            alphas=alphas,
            target_errors=np.stack(errors),
            output_weights=output_weights,
            n_repeats=max(1.0, sum(len(test) for _, test in splits) / len(Y)),
            alpha_per_target=bool(self.alpha_per_target),
        )
        return search, splits

    def _run(self, jobs: Iterable[Any], n_jobs: int, report: Report) -> list[Array]:
        """Results of all jobs in order."""
        results = []
        for result in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            results.append(result)
            report(len(results), n_jobs)
        return results

    def _by_target(self, n_rows: int, n_outputs: int) -> bool:
        """Whether errors of every target are wanted."""
        votes = self.selection == "average" and 1 < n_outputs <= min(n_rows, MOST_VOTERS)
        return bool(self.alpha_per_target) or votes

    def _fitted_in_folds(self, feature_map: Any, n_rows: int) -> bool:
        if self.fit_features != "auto":
            return self.fit_features == "fold"
        return n_rows <= SMALL or _sees_targets(feature_map)

    def _options(self) -> SolverOptions:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return SolverOptions(
            init=self.init, max_iter=int(self.max_iter), tol=float(self.tol), rng=np.random.default_rng(seed)
        )

    def _splits(self, X: Any, Y: Array, groups: Any) -> list[Split]:
        cv, n = self.cv, len(Y)
        if isinstance(cv, Integral):
            check_integer("cv", cv, low=2)
            n_folds = int(cv)
            if n_folds > n:
                raise ValueError(f"cv must be at most the number of rows, {n}, got {n_folds}")
            repeats = max(1, FOLDS_WHEN_SMALL // n_folds) if n_folds < n <= SMALL else 1
            cv = RepeatedKFold(n_splits=n_folds, n_repeats=repeats, random_state=self.random_state)
        splits = list(check_cv(cv).split(X, Y, groups))
        self.n_splits_ = len(splits)
        return splits

    def _mean_square(self, Phi: Array, weight: Array | None) -> float:
        """Mean over rows of the squared length of the features, centred where there is an intercept."""
        w = np.ones(len(Phi)) if weight is None else weight
        centre = w @ Phi / w.sum() if self.fit_intercept else 0.0
        return float(w @ np.sum((Phi - centre) ** 2, axis=1)) / float(w.sum())

    def _gains(self) -> Array:
        """The gains in rising order, one always among them, since kernel ridge is always a candidate."""
        return np.unique(np.array([1.0, *self.gains], dtype=np.float64))

    def _alphas(self, scale: float, noise: float | None) -> Array:
        if self.alphas is not None:
            return np.asarray(self.alphas, dtype=np.float64)
        return default_alphas(scale, noise)

    def _store_results(self, searches: list[Search]) -> None:
        tables = [search.table() for search in searches]
        for place, search in enumerate(searches):
            tables[place]["param_feature_map"] = np.full(search.n_candidates, place)
        self.cv_results_ = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        if searches[0].by_target:
            self.cv_target_scores_ = np.concatenate([search.target_scores() for search in searches])

    def _warn_of_ends(self, chosen: float | Array, alphas: Array) -> None:
        for end, name in ((alphas.min(), "smallest"), (alphas.max(), "largest")):
            if len(alphas) > 1 and np.any(chosen == end):
                warnings.warn(
                    f"the {name} of the alphas was chosen, {end:.3g}; a wider grid may do better",
                    UserWarning,
                    stacklevel=4,
                )


def _variance_and_mean(Y: Array, weight: Array | None) -> tuple[Array, Array]:
    """Of every column, without a second table of that size."""
    mean = Y.mean(axis=0) if weight is None else weight @ Y / weight.sum()
    variance = np.zeros_like(mean)
    for start in range(0, len(Y), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        variance += np.sum((Y[rows] - mean) ** 2 * (1.0 if weight is None else weight[rows, None]), axis=0)
    return variance / (len(Y) if weight is None else weight.sum()), mean


def _grid(name: str, values: Any) -> list[Any]:
    """Values of a grid as a list, or an error that names it."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a sequence of values to try, got {values!r}")
    grid = list(values)
    if not grid:
        raise ValueError(f"{name} must hold at least one value, got none")
    return grid


def _sees_targets(feature_map: Any) -> bool:
    """Whether a transformer, or a step of a pipeline, cannot be fitted without the targets."""
    steps = getattr(feature_map, "steps", None)
    if steps is not None:
        return any(_sees_targets(step) for _, step in steps)
    return hasattr(feature_map, "__sklearn_tags__") and bool(get_tags(feature_map).target_tags.required)


def _errors_with_own_features(
    estimator: EntangledKernelRidge,
    X: Any,
    Y: Array,
    weight: Array | None,
    split: Split,
    output_weights: Array,
    task: Task,
) -> Array:
    """Errors on one split, with the feature map fitted on its training rows."""
    train, test = split
    own = clone(estimator)
    train_weight = None if weight is None else weight[train]
    with one_thread(len(Y) <= SMALL_MATRIX):
        Phi_train = own._fit_features(_safe_indexing(X, train), Y[train], train_weight)
        Phi = np.vstack([Phi_train, own._features(_safe_indexing(X, test))])
        order = np.concatenate([train, test])
        stacked = (np.arange(len(train)), np.arange(len(train), len(order)))
        rows = (Phi, Y[order], None if weight is None else weight[order])
        fold = next(make_folds(*rows, [stacked], output_weights, centred=estimator.fit_intercept))
        return candidate_errors(fold, *task)
