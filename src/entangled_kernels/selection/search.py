"""A search over candidates with one feature map: their held-out errors, and the best of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ..learning.moments import Moments
from ..learning.problem import Problem
from ..learning.solvers import SolverOptions
from ..linalg import Array
from ..threads import SMALL_MATRIX, one_thread
from .candidates import Grid, Member, default_alphas
from .errors import candidate_errors, weighted_coefficients
from .fold import Fold
from .folds import MomentFolds, RowFolds
from .weights import choose, one_standard_error

__all__ = [
    "SCORINGS",
    "Choice",
    "Search",
    "SearchSettings",
    "TableSummary",
    "run_search",
]

SCORINGS = ("nmse", "mse")

# How much the error of all targets counts beside a target's own where it votes for candidates.
SHARED = 2.0
# More targets than this, or than rows, weigh candidates together.
MOST_VOTERS = 64
# Seconds that are not worth a worker.
_MOMENT = 1.0
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class SearchSettings:
    """What is tried, and how errors are measured.

    Attributes
    ----------
    members : list of Member
    alphas : ndarray or None
        None for values about the scale of the features.
    options : SolverOptions
    scoring : {"nmse", "mse"}
    averaging : bool
        Whether candidates are to be averaged, so that targets may weigh them apart.
    n_jobs : int or None
    """

    members: list[Member]
    alphas: Array | None
    options: SolverOptions
    scoring: str = "nmse"
    averaging: bool = True
    n_jobs: int | None = None

    @property
    def ridge_only(self) -> bool:
        """Whether all candidates are kernel ridge."""
        return all(member.shrinkage == 1.0 for member in self.members)

    def by_target(self, table: TableSummary) -> bool:
        """Whether errors of every target are wanted."""
        return self.averaging and 1 < len(table.mean) <= min(table.n_samples, MOST_VOTERS)

    def score_weights(self, table: TableSummary) -> Array:
        """Weights of the squared errors of the outputs in the score; none for an output that is constant."""
        mean, variance = table.mean, table.variance
        if self.scoring == "mse":
            return np.full(len(mean), 1.0 / len(mean))
        varies = variance > (10.0 * np.finfo(float).eps * mean) ** 2
        share = 1.0 / max(1, int(varies.sum()))
        return np.where(varies, share / np.where(varies, variance, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class TableSummary:
    """What a search must know of all rows together.

    Attributes
    ----------
    n_samples : int
    mean_square : float
        Mean over rows of the squared length of the features, centred where models have an intercept.
    mean, variance : ndarray of shape (p,)
        Of the targets.
    noise : float or None
        Variance of the noise that the feature map has found.
    """

    n_samples: int
    mean_square: float
    mean: Array
    variance: Array
    noise: float | None = None

    @classmethod
    def from_rows(
        cls, Phi: Array, Y: Array, weight: Array | None, noise: float | None = None, *, centred: bool
    ) -> TableSummary:
        """Summary of rows in memory."""
        if weight is not None and weight.ndim == 2:
            return cls._from_cells(Phi, Y, weight, noise, centred=centred)
        w = np.ones(len(Phi)) if weight is None else weight
        centre = w @ Phi / w.sum() if centred else 0.0
        mean_square = float(w @ np.sum((Phi - centre) ** 2, axis=1)) / float(w.sum())
        mean = Y.mean(axis=0) if weight is None else weight @ Y / weight.sum()
        variance = np.zeros_like(mean)
        # Without a second table of that size.
        for start in range(0, len(Y), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            own = 1.0 if weight is None else weight[rows, None]
            variance += np.sum((Y[rows] - mean) ** 2 * own, axis=0)
        variance /= len(Y) if weight is None else weight.sum()
        return cls(len(Y), mean_square, mean, variance, noise)

    @classmethod
    def _from_cells(
        cls, Phi: Array, Y: Array, weight: Array, noise: float | None, *, centred: bool
    ) -> TableSummary:
        """Summary of rows with weights of cells (n, p): means and variances of targets are of their own."""
        known = np.where(weight > 0.0, Y, 0.0)
        total = weight.sum(axis=0)
        mean = np.sum(weight * known, axis=0) / total
        variance = np.sum(weight * (known - mean) ** 2, axis=0) / total
        rows = cls.from_rows(Phi, known[:, :1], weight.max(axis=1), centred=centred)
        return cls(len(Y), rows.mean_square, mean, variance, noise)

    @classmethod
    def from_moments(cls, total: Moments, noise: float | None = None, *, centred: bool) -> TableSummary:
        """Summary of rows of which the moments are known."""
        if not total.complete:
            rows = cls.from_moments(total.rows, noise, centred=centred)
            variance = total.target_scatter / total.target_weight
            return cls(total.n_samples, rows.mean_square, total.mean_y, variance, noise)
        spread = float(np.trace(total.C)) / total.weight
        mean_square = spread if centred else spread + float(total.mean_phi @ total.mean_phi)
        return cls(total.n_samples, mean_square, total.mean_y, np.diag(total.V) / total.weight, noise)


def run_search(
    table: TableSummary,
    source: RowFolds | MomentFolds,
    settings: SearchSettings,
    report: Callable[[int, int], None] | None = None,
) -> Search:
    """Held-out errors of all candidates with one feature map.

    Parameters
    ----------
    table : TableSummary
    source : RowFolds, RefittedFolds or MomentFolds
    settings : SearchSettings
    report : callable, optional
        Called after every fold with the number of those done and of all.
    """
    alphas = default_alphas(table.mean_square, table.noise) if settings.alphas is None else settings.alphas
    grid = Grid(settings.members, alphas)
    output_weights, by_target = settings.score_weights(table), settings.by_target(table)
    pending = iter(source.folds(output_weights))
    start = time.perf_counter()
    error, fold = _try_candidates(next(pending), grid, settings.options, by_target)
    seconds = time.perf_counter() - start
    errors, folds = [error], [fold]
    tell = report or (lambda done, total: None)
    tell(1, source.n_splits)
    # Workers that start for less than a moment of work would take longer than they save.
    short = seconds * (source.n_splits - 1) < _MOMENT
    parallel = Parallel(n_jobs=1 if short else settings.n_jobs, prefer="threads", return_as="generator")
    jobs = (delayed(_try_candidates)(fold, grid, settings.options, by_target) for fold in pending)
    with one_thread(max(fold.problem.targets.shape) <= SMALL_MATRIX):
        for error, fold in parallel(jobs):
            errors.append(error)
            folds.append(fold)
            tell(len(errors), source.n_splits)
    return Search(
        grid=grid,
        folds=folds,
        target_errors=_without_gaps(np.stack(errors)),
        output_weights=output_weights,
        n_repeats=source.n_repeats,
        noise=table.noise,
    )


def _without_gaps(errors: Array) -> Array:
    """Errors (splits, ..., p) with those of a target that a split could not judge as in the other splits."""
    gaps = np.isnan(errors)
    if not gaps.any():
        return errors
    means = np.where(gaps, 0.0, errors).sum(axis=0) / np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, means, errors)


def _try_candidates(
    fold: Fold | Callable[[], Fold], grid: Grid, options: SolverOptions, by_target: bool
) -> tuple[Array, Fold]:
    """Errors of all candidates on a fold, and what is needed of it to predict its held-out rows."""
    fold = fold if isinstance(fold, Fold) else fold()
    return candidate_errors(fold, grid, options, by_target=by_target), fold.for_predictions()


@dataclass(frozen=True, eq=False)
class Choice:
    """A candidate to keep.

    Attributes
    ----------
    member : Member
    alpha : float
    error : float
    place : int
        Among the candidates in their order.
    """

    member: Member
    alpha: float
    error: float
    place: int

    def parameters(self) -> dict[str, Any]:
        """Parameters of `EntangledKernelRidge` that make it this candidate."""
        return self.member.parameters() | {"alpha": self.alpha}


@dataclass(frozen=True, eq=False)
class Search:
    """Held-out errors of all candidates with one feature map.

    Attributes
    ----------
    grid : Grid
    folds : list of Fold
        Able to predict their held-out rows, where these were there.
    target_errors : ndarray of shape (splits, members, alphas, p or 1)
        Of every target, or weighted means over targets.
    output_weights : ndarray of shape (p,)
        Weights of the targets in the mean.
    n_repeats : float
        How often a row was held out.
    noise : float or None
        Variance of the noise that the feature map has found.
    """

    grid: Grid
    folds: list[Fold]
    target_errors: Array
    output_weights: Array
    n_repeats: float
    noise: float | None = None

    @property
    def by_target(self) -> bool:
        """Whether the errors of every target are there."""
        return bool(self.target_errors.shape[-1] > 1)

    @cached_property
    def errors(self) -> Array:
        """Weighted means over targets, (splits, members, alphas)."""
        return self._weighted(self.target_errors) if self.by_target else self.target_errors[..., 0]

    @property
    def n_candidates(self) -> int:
        """Number of members times alphas."""
        return int(np.prod(self.grid.shape))

    def restricted(self, wanted: Callable[[Member], bool]) -> Search:
        """The search with those members alone that are wanted."""
        places = [place for place, member in enumerate(self.grid.members) if wanted(member)]
        grid = Grid([self.grid.members[place] for place in places], self.grid.alphas)
        return replace(self, grid=grid, target_errors=self.target_errors[:, places])

    @property
    def process(self) -> int | None:
        """Place of kernel ridge with the noise for its alpha, the process that the map was tuned as."""
        members = [place for place, member in enumerate(self.grid.members) if member.shrinkage == 1.0]
        alphas = np.flatnonzero(self.grid.alphas == self.noise)
        if len(members) == 0 or len(alphas) == 0:
            return None
        return int(np.ravel_multi_index((members[0], alphas[0]), self.grid.shape))

    def choose(self, rule: str) -> Choice:
        """The candidate to keep.

        Of candidates that are as good as the best, to four digits or, with the rule "one_se", within a
        standard error, the one with the largest shrinkage, then the largest alpha.
        """
        order = self.grid.preference()
        errors = self.errors.reshape(len(self.errors), -1)
        ordered = errors[:, order]
        place = int(order[choose(ordered, one_standard_error(ordered) if rule == "one_se" else None)])
        member, alpha = (int(index) for index in np.unravel_index(place, self.grid.shape))
        return Choice(
            member=self.grid.members[member],
            alpha=float(self.grid.alphas[alpha]),
            error=float(errors.mean(axis=0)[place]),
            place=place,
        )

    def average(self, problem: Problem, weights: Array, options: SolverOptions) -> Array:
        """Weighted sum of the coefficients of all candidates, (p, m) of the original features.

        ``weights`` is (members, alphas, 1), or (members, alphas, p) where targets have weights
        of their own.
        """
        with one_thread(max(problem.targets.shape) <= SMALL_MATRIX):
            coef = weighted_coefficients(problem, problem.outputs, self.grid, weights, options)
        return coef.T @ problem.features.T

    def table(self) -> dict[str, NDArray[Any]]:
        """Parameters and errors of all candidates, column by column."""
        errors = self.errors.reshape(len(self.errors), -1)
        columns = self.grid.columns() | {f"split{i}_test_score": own for i, own in enumerate(errors)}
        return columns | {"mean_test_score": errors.mean(axis=0), "std_test_score": errors.std(axis=0)}

    def votes(self) -> Array:
        """Errors (splits, members, alphas, 1 or p) by which candidates are weighed.

        Each target weighs its own error and `SHARED` times that of all.
        """
        if not self.by_target:
            return self.target_errors
        return self._relative(self.target_errors) + SHARED * self.errors[..., None]

    def target_scores(self) -> Array:
        """Mean over splits of the error of every candidate and target, (candidates, p); NaN for constants."""
        mean = self._relative(self.target_errors.mean(axis=0))
        return np.where(self.output_weights > 0.0, mean, np.nan).reshape(-1, len(self.output_weights))

    def _relative(self, errors: Array) -> Array:
        """Errors (..., p) of all targets in units in which their mean is the score."""
        counts = self.output_weights > 0.0
        counted = errors if counts.all() else np.where(counts, errors, 0.0)
        return counted * (self.output_weights * np.count_nonzero(counts))

    def _weighted(self, errors: Array) -> Array:
        """Weighted means over targets of errors (..., p)."""
        return errors @ self.output_weights
