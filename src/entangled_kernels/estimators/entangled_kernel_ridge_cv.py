"""Entangled kernel ridge that chooses its own settings by cross-validation from moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples

from ..kernels import KrausKernel
from ..learning import LinearModel, Moments, RowSample
from ..learning.cell_moments import CellMoments
from ..learning.noise import AveragedPart
from ..linalg import Array
from ..parameters import (
    check_choice,
    check_flag,
    check_fraction,
    check_grid,
    check_groups,
    check_positive,
    check_rank,
)
from ..selection import SCORINGS, Member, SearchSettings, grid_members
from ..threads import SMALL_MATRIX, one_thread
from .dask_tables import is_dask
from .entangled_kernel_ridge import PREDICTIONS, EntangledKernelRidge
from .explaining import noise_part
from .prediction import solved_attribute
from .searching import SearchingMixin, SelectedFit, Trial
from .split_routing import SplitRoutingMixin
from .training import Table

__all__ = ["EntangledKernelRidgeCV"]

# Parameters that are one of a few words.
CHOICES = {
    "scoring": SCORINGS,
    "selection": ("best", "one_se", "average"),
    "fit_features": ("auto", "fold", "all"),
}


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
        standardised columns; `EvidenceFeatures`, of a Gaussian plus linear kernel tuned by marginal
        likelihood; `ColumnWidthFeatures`, with a width for every column, of the columns and of columns made
        symmetric by powers; `ForestFeatures` with leaves of one and of four rows; and, with two to eight
        targets and not in streams, `TargetProcessFeatures`. Kernels count columns up to one range beyond the
        training rows (``reach=1``; none in streams), so that only the first follow a trend farther out.
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
        An int asks for shuffled folds, of whole groups where `fit` is given groups; of up to 500 rows, up to
        10 are taken twice or more, until there are 10. `TimeSeriesSplit` predicts folds from rows before.
    scoring : {"nmse", "mse"}, default="nmse"
        Mean over outputs of the squared error, divided by the variance of the output or not. Lower is better.
    selection : {"average", "best", "one_se"}, default="average"
        ``"average"``: for every feature map the mean of candidates, each weighted by how often it is the best
        when the splits get random weights (`entangled_kernels.selection.weights.bootstrap_weights`); these
        means, and kernel ridge with the noise that a map has found for its alpha, get shares by their errors
        on held-out rows (`entangled_kernels.selection.stacking`). For a target best is what is so by its own
        error and twice that of all, where there are no more than 64 targets and no more than rows. An
        average of coefficients is a coefficient matrix, so predicting costs what the features cost.
        ``"best"``: the candidate with the least error. ``"one_se"``: the one with the largest shrinkage, the
        least gain and the largest alpha within a standard error.
    alpha_per_target : bool, default=False
        Choose an alpha for every target, among kernels that treat targets alike: kernel ridge and the
        partial-trace predictions, and a gain with it. Keeps splits x members x gains x alphas x targets
        numbers.
    refit : bool, default=True
        Fit the chosen candidate on all rows. Without it there is nothing to predict with.
    fit_features : {"auto", "fold", "all"}, default="auto"
        Fit feature maps anew in every fold, or once on all rows. ``"auto"`` does the first for up to 500
        rows, where it is cheap and matters most, and for maps that need the targets; not for `Nystroem` of a
        psd kernel with as many components as rows, whose kernel is the same whatever rows it has seen.
    fit_intercept : bool, default=True
    init, max_iter, tol : as in `EntangledKernelRidge`
    n_jobs : int or None, default=None
        Folds worked on at the same time, in threads that start where that saves time. Results do not depend
        on it.
    random_state : int, RandomState or None, default=None
        For shuffling and random starts.
    max_memory, product_dtype : as in `EntangledKernelRidge`
        Features that are fitted on all rows are made in blocks where splits hold out every row once, as K
        folds do; with other splits, and where they are fitted in every fold, they are in memory.
    target_transform : as in `EntangledKernelRidge`
        Candidates are tried on transformed targets, and ``best_score_`` and ``cv_results_`` are errors of
        these; ``cv_score_``, ``cv_rmse_`` and what stands beside them are errors of predictions in units of
        the targets. A transformer is fitted once, on all rows.

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
        Its place in ``cv_results_``; there is none with ``alpha_per_target``.
    cv_results_ : dict of ndarray
        One entry per candidate: ``param_*``, ``mean_test_score``, ``std_test_score`` and
        ``split{i}_test_score``; ready for `pandas.DataFrame`. With more than 128 axes of the features,
        kernels far from the best on the first split are not tried on the others: there errors are infinite.
    cv_target_scores_ : ndarray of shape (number of candidates, p)
        Errors of every target in the order of ``cv_results_``, NaN for a constant one; only there where
        targets weigh candidates apart, or have their own alphas.
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
        target_transform: Any = None,
    ) -> None:
        super().__init__(
            feature_map,
            solver=solver,
            init=init,
            max_iter=max_iter,
            tol=tol,
            fit_intercept=fit_intercept,
            random_state=random_state,
            max_memory=max_memory,
            product_dtype=product_dtype,
            target_transform=target_transform,
        )
        self.alphas = alphas
        self.gains = gains
        self.alignment_mixes = alignment_mixes
        self.shrinkages = shrinkages
        self.target_alphas = target_alphas
        self.predictions = predictions
        self.ranks = ranks
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.alpha_per_target = alpha_per_target
        self.refit = refit
        self.fit_features = fit_features
        self.n_jobs = n_jobs

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

    @property
    def coef_(self) -> Array:
        """Coefficients (p, m) of the features."""
        return self._solved_linear("coef_").coef

    @property
    def intercept_(self) -> Array:
        """Constant of every target, (p,)."""
        return self._solved_linear("intercept_").intercept

    @property
    def entangled_estimator_(self) -> EntangledKernelRidge:
        """The best entangled candidate."""
        found: EntangledKernelRidge | None = self._solved_fit("entangled_estimator_").entangled
        if found is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute 'entangled_estimator_': no candidate was "
                f"entangled, or refit was False; put a value below 1 among the shrinkages"
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
        self._ensure_model()
        return self.entangled_estimator_.project(X)

    def _solved_linear(self, name: str) -> LinearModel:
        linear: LinearModel | None = self._solved_fit(name).linear
        if linear is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: refit was False")
        return linear

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
        # Where matrices are small, one BLAS thread to the end, instead of on and off with every step.
        with one_thread(max(table.Y.shape) <= SMALL_MATRIX):
            for place, feature_map in maps.items():

                def report(done: int, n_splits: int, tried: int = len(trials)) -> None:
                    if progress is not None:
                        progress(tried * n_splits + done, len(maps) * n_splits)

                trials.append(self._search_rows(feature_map, table, splits, report, place))
            self._fit, feature_map = self._conclude(trials, table)
        if self.refit:
            self.feature_map_ = feature_map
        return self

    def _solve_moments(self, parts: list[Moments | CellMoments], sample: RowSample | None) -> SelectedFit:
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

    def _ensure_model(self) -> None:
        self._ensure_solved()
        if self._fit.linear is None:
            raise NotFittedError("there is nothing to predict with, because refit was False; set refit=True")

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
        for one, (_, feature_map) in zip(used, self.feature_map_.transformer_list, strict=True):
            own = np.where(places[:, None] == one, weights, 0.0)
            heaviest = int(np.argmax(np.where(places == one, own.sum(axis=1), -1.0)))
            settings = {name: fit.cv_results[f"param_{name}"][heaviest] for name in chosen}
            settings = replace(fit.best_estimator._fit.settings, **settings)
            parts.append(noise_part(feature_map, X, settings, own.sum(axis=0)))
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
        check_flag("alpha_per_target", self.alpha_per_target)
        check_flag("refit", self.refit)
        grids: dict[str, Callable[[str, Any], None]] = {
            "alignment_mixes": check_fraction,
            "shrinkages": check_fraction,
            "target_alphas": partial(check_positive, zero_allowed=True),
            "predictions": partial(check_choice, choices=PREDICTIONS),
            "ranks": lambda _, value: check_rank(value),
            "gains": check_positive,
        }
        grids |= {} if self.alphas is None else {"alphas": check_positive}
        for name, check in grids.items():
            for value in check_grid(name, getattr(self, name)):
                check(name, value)
        self._feature_maps()
