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

from ..learning.cell_moments import CellMoments
from ..learning.moments import Moments
from ..learning.problem import Problem
from ..learning.solvers import SolverOptions
from ..linalg import Array, Index
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
# A share of its error that is added to a candidate with a gain other than one, where candidates are weighed.
HANDICAP = 0.05
# More targets than this, or than rows, weigh candidates together.
MOST_VOTERS = 64
# With more axes of the features than this, only members whose error on the first split is near the least are
# tried on the other splits: within a share of it that falls with the number of cells of the table, between
# these two.
RACED, MARGINS = 128, (0.01, 0.05)
# Seconds that are not worth a worker.
_MOMENT = 1.0
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class SearchSettings:
    """What is tried, and how errors are measured.

    Attributes
    ----------
    members : list of Member
    gains : ndarray
    alphas : ndarray or None
        None for values about the scale of the features.
    options : SolverOptions
    scoring : {"nmse", "mse"}
    averaging : bool
        Whether candidates are to be averaged, so that targets may weigh them apart.
    alpha_per_target : bool
        Whether targets choose apart.
    n_jobs : int or None
    """

    members: list[Member]
    gains: Array
    alphas: Array | None
    options: SolverOptions
    scoring: str = "nmse"
    averaging: bool = True
    alpha_per_target: bool = False
    n_jobs: int | None = None

    @property
    def ridge_only(self) -> bool:
        """Whether all candidates are kernel ridge."""
        return all(member.shrinkage == 1.0 for member in self.members)

    def by_target(self, table: TableSummary) -> bool:
        """Whether errors of every target are wanted."""
        few = 1 < len(table.mean) <= min(table.n_samples, MOST_VOTERS)
        return self.alpha_per_target or (self.averaging and few)

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
    def from_moments(
        cls, total: Moments | CellMoments, noise: float | None = None, *, centred: bool
    ) -> TableSummary:
        """Summary of rows of which the moments are known."""
        if isinstance(total, CellMoments):
            rows = cls.from_moments(total.rows, noise, centred=centred)
            mean, variance = np.zeros(total.n_outputs), np.zeros(total.n_outputs)
            for places, own in total.groups:
                mean[places], variance[places] = own.mean_y, np.diag(own.V) / own.weight
            return cls(total.n_samples, rows.mean_square, mean, variance, noise)
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
    grid = Grid(settings.members, settings.gains, alphas)
    output_weights, by_target = settings.score_weights(table), settings.by_target(table)
    pending = iter(source.folds(output_weights))
    start = time.perf_counter()
    error, fold = _try_candidates(next(pending), grid, settings.options, by_target)
    seconds = time.perf_counter() - start
    errors, folds = [error], [fold]
    tell = report or (lambda done, total: None)
    tell(1, source.n_splits)
    kept = _still_in_the_race(error, fold.problem, grid, output_weights, table.n_samples)
    raced = replace(grid, members=[grid.members[place] for place in kept])
    # Workers that start for less than a moment of work would take longer than they save.
    short = seconds * (source.n_splits - 1) * len(kept) / len(grid.members) < _MOMENT
    parallel = Parallel(n_jobs=1 if short else settings.n_jobs, prefer="threads", return_as="generator")
    jobs = (delayed(_try_candidates)(fold, raced, settings.options, by_target) for fold in pending)
    with one_thread(max(fold.problem.targets.shape) <= SMALL_MATRIX):
        for own, fold in parallel(jobs):
            error = np.full_like(errors[0], np.inf)
            error[kept] = own
            errors.append(error)
            folds.append(fold)
            tell(len(errors), source.n_splits)
    return Search(
        grid=grid,
        folds=folds,
        target_errors=_without_gaps(np.stack(errors)),
        output_weights=output_weights,
        n_repeats=source.n_repeats,
        alpha_per_target=settings.alpha_per_target,
        noise=table.noise,
    )


def _still_in_the_race(
    errors: Array, problem: Problem, grid: Grid, output_weights: Array, n_samples: int
) -> Index:
    """Places of the members that go on to further splits, from errors (members, ..., 1 or p) on the first.

    Where decompositions are small, all. Else those whose best candidate is near the best of all, or near the
    best for a target by the votes of `Search.votes`; and always kernel ridge. The more cells were held out,
    the less of a difference is noise.
    """
    if len(problem.scale) <= RACED:
        return np.arange(len(grid.members))
    errors = np.where(np.isnan(errors), 0.0, errors)
    votes = errors
    if errors.shape[-1] > 1:
        relative = errors * output_weights
        votes = relative * np.count_nonzero(output_weights) + SHARED * relative.sum(axis=-1, keepdims=True)
    least = votes.min(axis=(1, 2))  # (members, 1 or p)
    margin = np.clip(1.0 / np.sqrt(n_samples * len(output_weights)), *MARGINS)
    near = (least <= (1.0 + margin) * least.min(axis=0)).any(axis=1)
    return np.flatnonzero(near | np.array([member.shrinkage == 1.0 for member in grid.members]))


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
    gain, alpha : float, or ndarray of shape (p,) where targets chose apart
    error : float
    place : int or None
        Among the candidates in their order; None where targets chose apart.
    """

    member: Member
    gain: float | Array
    alpha: float | Array
    error: float
    place: int | None

    def parameters(self) -> dict[str, Any]:
        """Parameters of `EntangledKernelRidge` that make it this candidate."""
        return self.member.parameters() | {"gain": self.gain, "alpha": self.alpha}


@dataclass(frozen=True, eq=False)
class Search:
    """Held-out errors of all candidates with one feature map.

    Attributes
    ----------
    grid : Grid
    folds : list of Fold
        Able to predict their held-out rows, where these were there.
    target_errors : ndarray of shape (splits, members, gains, alphas, p or 1)
        Of every target, or weighted means over targets. Infinite for members that were dropped after the
        first split.
    output_weights : ndarray of shape (p,)
        Weights of the targets in the mean.
    n_repeats : float
        How often a row was held out.
    alpha_per_target : bool
        Whether targets choose apart.
    noise : float or None
        Variance of the noise that the feature map has found.
    """

    grid: Grid
    folds: list[Fold]
    target_errors: Array
    output_weights: Array
    n_repeats: float
    alpha_per_target: bool = False
    noise: float | None = None

    @property
    def by_target(self) -> bool:
        """Whether the errors of every target are there."""
        return self.alpha_per_target or self.target_errors.shape[-1] > 1

    @cached_property
    def errors(self) -> Array:
        """Weighted means over targets, (splits, members, gains, alphas)."""
        return self._weighted(self.target_errors) if self.by_target else self.target_errors[..., 0]

    @property
    def n_candidates(self) -> int:
        """Number of members times gains times alphas."""
        return int(np.prod(self.grid.shape))

    def restricted(self, wanted: Callable[[Member], bool]) -> Search:
        """The search with those members alone that are wanted; of kernel ridge alone, without its gains."""
        members = [place for place, member in enumerate(self.grid.members) if wanted(member)]
        chosen = [self.grid.members[place] for place in members]
        plain = all(member.shrinkage == 1.0 for member in chosen)
        gains = np.flatnonzero((self.grid.gains == 1.0) | (not plain))
        grid = Grid(chosen, self.grid.gains[gains], self.grid.alphas)
        # Both at once: one after the other copies all of it twice.
        places = np.array(members, dtype=np.intp)[:, None]
        return replace(self, grid=grid, target_errors=self.target_errors[:, places, gains])

    @property
    def process(self) -> int | None:
        """Place of kernel ridge with the noise for its alpha, the process that the map was tuned as."""
        members = [place for place, member in enumerate(self.grid.members) if member.shrinkage == 1.0]
        gains, alphas = np.flatnonzero(self.grid.gains == 1.0), np.flatnonzero(self.grid.alphas == self.noise)
        if len(members) == 0 or len(alphas) == 0:
            return None
        return int(np.ravel_multi_index((members[0], gains[0], alphas[0]), self.grid.shape))

    def choose(self, rule: str) -> Choice:
        """The candidate to keep.

        Of candidates that are as good as the best, to four digits or, with the rule "one_se", within a
        standard error, the one with the largest shrinkage, then the least gain, then the largest alpha.
        """
        if self.alpha_per_target:
            return self._choose_by_target(rule)
        order = self.grid.preference()
        errors = self.errors.reshape(len(self.errors), -1)
        place = int(order[_choose(errors[:, order], rule)])
        member, gain, alpha = (int(index) for index in np.unravel_index(place, self.grid.shape))
        return Choice(
            member=self.grid.members[member],
            gain=float(self.grid.gains[gain]),
            alpha=float(self.grid.alphas[alpha]),
            error=float(errors.mean(axis=0)[place]),
            place=place,
        )

    def _choose_by_target(self, rule: str) -> Choice:
        """The member that is best when every target has its own gain and alpha, with these."""
        least = self._weighted(self.target_errors.mean(axis=0).min(axis=(1, 2)))  # (members,)
        member, gain, alpha = np.unravel_index(self.grid.preference(), self.grid.shape)
        preferred = np.array(list(dict.fromkeys(member)))
        best = int(preferred[choose(least[None, preferred])])
        gain, alpha = gain[member == best], alpha[member == best]
        errors = self.target_errors[:, best, gain, alpha]  # (splits, gains and alphas, p)
        targets = range(errors.shape[2])
        chosen = np.array([_choose(errors[:, :, target], rule) for target in targets])
        return Choice(
            member=self.grid.members[best],
            gain=self.grid.gains[gain[chosen]],
            alpha=self.grid.alphas[alpha[chosen]],
            error=float(errors.mean(axis=0)[chosen, targets] @ self.output_weights),
            place=None,
        )

    def average(self, problem: Problem, weights: Array, options: SolverOptions) -> Array:
        """Weighted sum of the coefficients of all candidates, (p, m) of the original features.

        ``weights`` is (members, gains, alphas, 1), or (members, gains, alphas, p) where targets have weights
        of their own.
        """
        with one_thread(max(problem.targets.shape) <= SMALL_MATRIX):
            coef = weighted_coefficients(problem, problem.outputs, self.grid, weights, options)
        return coef.T @ problem.features.T

    def table(self) -> dict[str, NDArray[Any]]:
        """Parameters and errors of all candidates, column by column."""
        errors = self.errors.reshape(len(self.errors), -1)
        columns = self.grid.columns() | {f"split{i}_test_score": own for i, own in enumerate(errors)}
        mean = errors.mean(axis=0)
        deviation = np.full_like(mean, np.inf)
        deviation[np.isfinite(mean)] = errors[:, np.isfinite(mean)].std(axis=0)
        return columns | {"mean_test_score": mean, "std_test_score": deviation}

    def votes(self) -> Array:
        """Errors (splits, members, gains, alphas, 1 or p) by which candidates are weighed.

        Where targets do not choose apart, each one weighs its own error and `SHARED` times that of all.
        """
        handicap = np.where(self.grid.gains == 1.0, 1.0, 1.0 + HANDICAP)[:, None, None]
        if not self.by_target or self.alpha_per_target:
            return self.target_errors * handicap
        errors = self._relative(self.target_errors)
        errors += SHARED * self.errors[..., None]
        errors *= handicap
        return errors

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
        if np.isfinite(errors[..., 0]).all():
            return errors @ self.output_weights
        # Also where a target counts for nothing, what was not tried stays infinite.
        return np.where(
            np.isinf(errors).any(axis=-1),
            np.inf,
            np.where(np.isinf(errors), 0.0, errors) @ self.output_weights,
        )


def _choose(errors: Array, rule: str) -> int:
    return choose(errors, one_standard_error(errors) if rule == "one_se" else None)
