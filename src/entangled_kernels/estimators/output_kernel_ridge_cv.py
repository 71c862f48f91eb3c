"""Output kernel learning with penalty and alpha chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter
from sklearn.utils.parallel import Parallel, delayed

from ..convex import (
    OutputPenalty,
    Result,
    alpha_unit,
    diagonalise,
    learn_output_kernel,
    output_kernel_path,
    reduce_problem,
)
from ..linalg import Array, Index
from ..parameters import check_alphas, check_grid, check_groups, warn_user
from ..selection import split_rows
from .base import route_groups
from .output_kernel_ridge import OutputKernelRidge

__all__ = ["OutputKernelRidgeCV"]

# In the units of `alpha_unit`: from next to interpolation to next to the mean of the targets.
GRID = np.logspace(-4, 2, 13)
# Penalties that are added to the objective and favour low rank have narrow optima.
FINE_GRID = np.logspace(-4, 2, 25)
# A constraint keeps the size of the output kernel: alpha alone has to reach all sizes of the fit.
WIDE_GRID = np.logspace(-4, 4, 17)
# An end of the grid is worth a warning if the score still rises towards it by this share of its
# range.
RISING = 0.01
# Parameters of the search that are those of its models.
SHARED = (
    "kernel",
    "gamma",
    "kernel_params",
    "penalty_params",
    "constraint",
    "rank",
    "fit_intercept",
    "solver_params",
)
# From alpha and penalty, a result, its training rows and test rows to a number.
Score = Callable[[dict[str, Any], Result, Index, Index], float]


class OutputKernelRidgeCV(OutputKernelRidge):
    """Output kernel learning with penalty and alpha chosen by cross-validation.

    Parameters
    ----------
    kernel, gamma, kernel_params
        The input kernel, as in `OutputKernelRidge`.
    alphas : array-like of float or None, default=None
        Positive values to choose from. None stands for 13 values from 1e-4 to 1e2 in a unit that
        follows the scale of kernel and targets; see Notes. With a constraint they are 17 values up
        to 1e4, and for the trace and elastic penalties, whose optima are narrow, 25 values.
    penalty : str or sequence of str, default="frobenius"
        Penalties to choose from, as in `OutputKernelRidge`.
    penalty_params, constraint
        Of all penalties, as in `OutputKernelRidge`.
    rank : int or None, default=None
        Largest rank of the output kernel, as in `OutputKernelRidge`.
    cv : int, splitter, iterable of splits or None, default=5
        Folds, as scikit-learn takes them, of the rows with a target. They are worked on in
        parallel inside ``joblib.parallel_config(n_jobs=...)``.
    scoring : str or callable, default="nmse"
        ``"nmse"`` is minus the squared error on held-out rows over the variance of the target in
        all rows, averaged over the targets: 0 is best, about -1 is the mean. It is defined for
        folds of one row, and for targets that are constant in a fold; a target without held-out
        values in a fold is left out there. Otherwise a scorer, as scikit-learn takes them; it is
        given no weights, and NaN for missing targets.
    fit_intercept : bool, default=True
        As in `OutputKernelRidge`.
    solver_params : dict or None, default=None
        ``max_iter`` and ``tol``, as in `OutputKernelRidge`.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha, the largest of those with the best score.
    penalty_ : str
        The chosen penalty.
    best_score_ : float
        Mean score of it over the folds.
    best_index_ : int
    best_params_ : dict
        ``{"alpha": alpha_, "penalty": penalty_}``.
    alphas_ : ndarray of shape (n_candidates,)
        The values chosen from, those of the first penalty first.
    cv_results_ : dict of ndarray
        ``alpha``, ``penalty``, ``mean_test_score``, ``std_test_score``, ``rank_test_score`` and
        ``split0_test_score``, ...
    n_splits_ : int
    output_kernel_, dual_coef_, intercept_, X_fit_, duality_gap_, objective_history_, n_iter_,
    converged_, \
stop_reason_
        Of the fit to all rows with the choice, as in `OutputKernelRidge`.
    n_features_in_, feature_names_in_, target_names_
        As in `OutputKernelRidge`.

    See Also
    --------
    OutputKernelRidge : The model for one alpha.

    Notes
    -----
    A fold takes one eigendecomposition of its Gram matrix, which serves all penalties and alphas;
    alphas are worked through in decreasing order, each starting from the output kernel of the last.

    The unit of the default grid is tr(K) / n times the size that the output kernel takes on: one
    with a constraint, (||Y||^2 n / (p tr K))^(1/(q+1)) for a penalty that grows with the power q,
    such as 2 for the Frobenius and 1 for the trace penalty. So the choice depends on the units of
    neither inputs nor targets (but for the elastic penalty, which mixes two powers), nor on a
    constant factor of the weights, and the prediction has the units of the targets. The targets
    share one unit: standardise them if their units differ. A warning names an end of the grid when
    it was chosen and the score still rises towards it.

    Time n^3 for every fold and once more, then n p^2 + p^3 for every fold, alpha and update of the
    kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.preprocessing import StandardScaler
    >>> from entangled_kernels import OutputKernelRidgeCV
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = OutputKernelRidgeCV("rbf", gamma=0.1).fit(StandardScaler().fit_transform(X), Y)
    >>> model.alpha_ in model.alphas_
    True
    >>> bool(model.best_score_ == model.cv_results_["mean_test_score"].max())
    True
    """

    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012 (read by scikit-learn)

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        gamma: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        alphas: ArrayLike | None = None,
        penalty: Any = "frobenius",
        penalty_params: dict[str, Any] | None = None,
        constraint: bool = False,
        rank: int | None = None,
        cv: Any = 5,
        scoring: Any = "nmse",
        fit_intercept: bool = True,
        solver_params: dict[str, Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.kernel_params = kernel_params
        self.alphas = alphas
        self.penalty = penalty
        self.penalty_params = penalty_params
        self.constraint = constraint
        self.rank = rank
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.solver_params = solver_params

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose penalty and alpha, then learn from all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel between all rows, (n_samples, n_samples).
        y : array-like or data frame of shape (n_samples, n_outputs) or (n_samples,)
            NaN is a missing target, as in `OutputKernelRidge`; it has no held-out error.
        sample_weight : float or array-like of shape (n_samples,) or (n_samples, p), optional
            Non-negative weights of the squared errors, in training and in ``"nmse"``; a weight of
            zero is a missing target.
        groups : array-like of shape (n_samples,), optional
            Rows of a group are held out together, by folds of whole groups where ``cv`` is a
            number, and by splitters that ask for groups.

        Returns
        -------
        self
        """
        given = None if self.alphas is None else check_alphas(self.alphas)
        names = (
            [self.penalty] if isinstance(self.penalty, str) else check_grid("penalty", self.penalty)
        )
        penalties = [self._check_penalty(name) for name in names]
        settings = self._check_parameters()
        rows, used, Y, weight = self._take_rows(X, y, sample_weight)
        splits = self._splits(rows, used, Y, weight, groups)
        K = self._gram(rows, rows)
        problem = diagonalise(reduce_problem(K, Y, weight, centred=self.fit_intercept))
        if given is None:
            grids = [_grid(penalty) * alpha_unit(problem, penalty) for penalty in penalties]
        else:
            grids = [given] * len(penalties)
        self.alphas_ = np.concatenate(grids)
        # The number of the penalty of every candidate.
        numbers = np.repeat(np.arange(len(grids)), [len(grid) for grid in grids])
        score = self._score_function(K, rows, Y, weight)

        def score_fold(train: Index, test: Index) -> Array:
            w = None if weight is None else weight[train]
            Kt = K[np.ix_(train, train)]
            fold = diagonalise(reduce_problem(Kt, Y[train], w, centred=self.fit_intercept))
            scores = np.empty(len(numbers))
            for number, penalty in enumerate(penalties):
                candidates = np.flatnonzero(numbers == number)
                order = candidates[np.argsort(-self.alphas_[candidates], kind="stable")]
                alphas = [float(alpha) for alpha in self.alphas_[order]]
                path = output_kernel_path(fold, alphas, penalty=penalty, **settings)
                for candidate, result in zip(order, path, strict=True):
                    model = {"alpha": self.alphas_[candidate], "penalty": penalty.name}
                    scores[candidate] = score(model, result, train, test)
            return scores

        columns = Parallel(prefer="threads")(delayed(score_fold)(*split) for split in splits)
        self._choose(
            np.column_stack(columns), np.array([penalty.name for penalty in penalties])[numbers]
        )
        penalty = penalties[int(numbers[self.best_index_])]
        result = learn_output_kernel(problem, self.alpha_, penalty=penalty, **settings)
        self._store(rows, used, result)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata that `fit` takes, and that it passes to the splitter."""
        return route_groups(self, self.cv)

    def _splits(
        self,
        rows: Any,
        used: NDArray[np.bool_],
        Y: Array,
        weight: Array | None,
        groups: ArrayLike | None,
    ) -> list[tuple[Index, Index]]:
        """Splits of the rows that have a target."""
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            if len(Y) < int(cv):
                raise ValueError(
                    f"cv={cv} needs at least {cv} rows, got n_samples={len(Y)}; use a smaller cv, "
                    f"or OutputKernelRidge with an alpha of your choice"
                )
            cv = KFold(int(cv)) if groups is None else GroupKFold(int(cv))
        groups = None if groups is None else check_groups(groups, len(used))[used]
        splits = split_rows(cv, rows, Y, groups, np.flatnonzero(used), n_table=len(used))
        if not splits:
            raise ValueError(f"cv must give at least one split, got none from {self.cv!r:.80}")
        for train, test in splits:
            self._check_split(weight, train, test)
        return splits

    def _check_split(self, weight: Array | None, train: Index, test: Index) -> None:
        """Raise unless a split has held-out rows, and every target in its training rows."""
        if not len(test) or (weight is not None and not weight[test].any()):
            raise ValueError(
                "sample_weight is zero on all held-out rows of a fold; use other folds"
            )
        if weight is None or weight.ndim == 1:
            return
        never = np.flatnonzero(~(weight[train] > 0.0).any(axis=0))
        if len(never):
            name = self._output_names(weight.shape[1])[never[0]]
            raise ValueError(
                f"y must have a value of every target in the training rows of every fold, got only "
                f"missing values of {name!r} in those of one; use more folds, or other folds"
            )

    def _score_function(self, K: Array, rows: Any, Y: Array, weight: Array | None) -> Score:
        """Score of a result from training rows on test rows."""
        if isinstance(self.scoring, str) and self.scoring == "nmse":
            w = np.ones(len(Y)) if weight is None else weight
            w_targets = np.broadcast_to(w.reshape(len(Y), -1), Y.shape)  # (n, p)
            present = np.where(w_targets > 0.0, Y, 0.0)
            mean = np.average(present, axis=0, weights=w_targets)
            variance = np.average((present - mean) ** 2, axis=0, weights=w_targets)
            # The variance of a constant target is rounding.
            variance[variance <= (4 * np.finfo(np.float64).eps * mean) ** 2] = 1.0

            def nmse(_: Any, result: Result, train: Index, test: Index) -> float:
                prediction = K[np.ix_(test, train)] @ (result.C @ result.L) + result.intercept
                held = w_targets[test].any(axis=0)  # targets with a held-out value
                squares = (present[test] - prediction)[:, held] ** 2
                error = np.average(squares, axis=0, weights=w_targets[test][:, held])
                return -float(np.mean(error / variance[held]))

            return nmse
        scorer = check_scoring(self, self.scoring)
        if weight is not None and weight.ndim == 2:
            Y = np.where(weight > 0.0, Y, np.nan)

        precomputed = self.kernel == "precomputed"

        def scored(params: dict[str, Any], result: Result, train: Index, test: Index) -> float:
            model = OutputKernelRidge(**params, **{name: getattr(self, name) for name in SHARED})
            model._one_dimensional = self._one_dimensional
            X_train = rows[np.ix_(train, train)] if precomputed else rows[train]
            # Only the fit to all rows warns.
            model._store(X_train, np.ones(len(train), bool), replace(result, converged=True))
            model.n_features_in_ = X_train.shape[1]
            X_test = rows[np.ix_(test, train)] if precomputed else rows[test]
            return float(scorer(model, X_test, Y[test, 0] if self._one_dimensional else Y[test]))

        return scored

    def _choose(self, scores: Array, penalties: NDArray[np.str_]) -> None:
        """Largest alpha of the best mean score; store it and the table."""
        mean = scores.mean(axis=1)
        if not np.isfinite(mean).all():
            bad = float(self.alphas_[~np.isfinite(mean)][0])
            raise ValueError(
                f"scoring={self.scoring!r} gave a score that is not finite for alpha={bad:.3g}; "
                f"use folds on which it is defined, or scoring='nmse'"
            )
        best = np.flatnonzero(mean == mean.max())
        self.best_index_ = int(best[np.argmax(self.alphas_[best])])
        self.alpha_ = float(self.alphas_[self.best_index_])
        self.best_score_ = float(mean[self.best_index_])
        self.penalty_ = str(penalties[self.best_index_])
        self.best_params_ = {"alpha": self.alpha_, "penalty": self.penalty_}
        self.n_splits_ = scores.shape[1]
        self.cv_results_ = {
            "alpha": self.alphas_.copy(),
            "penalty": penalties,
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": rankdata(-mean, method="min").astype(int),
            **{f"split{i}_test_score": scores[:, i] for i in range(self.n_splits_)},
        }
        self._warn_at_the_end(mean, np.flatnonzero(penalties == self.penalty_))

    def _warn_at_the_end(self, mean: Array, candidates: Index) -> None:
        """Warn if the chosen alpha is the first or last of its penalty and the score still rises."""
        order = candidates[np.argsort(self.alphas_[candidates], kind="stable")]
        if len(order) < 2 or self.best_index_ not in (order[0], order[-1]):
            return
        upper = self.best_index_ == order[-1]
        neighbour = order[-2] if upper else order[1]
        if mean[self.best_index_] - mean[neighbour] <= RISING * (
            mean[candidates].max() - mean[candidates].min()
        ):
            return
        end, way = ("largest", "larger") if upper else ("smallest", "smaller")
        warn_user(
            f"alpha={self.alpha_:.3g} is the {end} of alphas, and the score still rises towards "
            f"it; pass alphas with {way} values"
        )


def _grid(penalty: OutputPenalty) -> Array:
    """Default alphas of a penalty, in the unit of the problem."""
    if penalty.is_ball:
        return WIDE_GRID
    return FINE_GRID if penalty.name in ("trace", "elastic") else GRID
