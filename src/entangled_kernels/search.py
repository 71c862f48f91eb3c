"""What a search over candidates found, and what to make of it: the best, a wary choice, or an average."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .choice import bootstrap_weights, choose, one_standard_error
from .reduction import Problem
from .selection import Fold, Member, fold_errors, fold_target_errors, member_paths
from .solvers import SolverOptions
from .threads import SMALL_MATRIX, one_thread

__all__ = ["Search", "Task", "average_weights", "candidate_errors", "member_parameters"]

Array = NDArray[np.float64]

# Members, alphas, options of the solvers, and whether errors of every target are asked for.
Task = tuple[list[Member], Array, SolverOptions, bool]

# How much the error of all targets counts beside a target's own where it votes for candidates.
SHARED = 2.0

MEMBER_PARAMETERS = ("solver", "alignment_mix", "shrinkage", "target_alpha", "rank", "prediction")


def candidate_errors(
    fold: Fold, members: list[Member], alphas: Array, options: SolverOptions, per_target: bool
) -> Array:
    """Errors of all candidates on one split: (members, alphas, p), or weighted means over targets with 1."""
    with one_thread(max(fold.problem.targets.shape) <= SMALL_MATRIX):
        if per_target:
            return fold_target_errors(fold, members, alphas, options)
        return fold_errors(fold, members, alphas, options)[..., None]


@dataclass(frozen=True, eq=False)
class Search:
    """Held-out errors of all candidates with one feature map.

    Attributes
    ----------
    members : list of Member
    alphas : ndarray
        A candidate is a member and an alpha.
    target_errors : ndarray of shape (splits, members, alphas, p or 1)
        Of every target, or weighted means over targets.
    output_weights : ndarray of shape (p,)
        Weights of the targets in the mean.
    n_repeats : float
        How often a row was held out.
    alpha_per_target : bool
        Whether targets choose apart.
    """

    members: list[Member]
    alphas: Array
    target_errors: Array
    output_weights: Array
    n_repeats: float
    alpha_per_target: bool = False

    @property
    def by_target(self) -> bool:
        """Whether the errors of every target are there."""
        return self.alpha_per_target or self.target_errors.shape[3] > 1

    @cached_property
    def errors(self) -> Array:
        """Weighted means over targets, (splits, members, alphas)."""
        return self.target_errors @ self.output_weights if self.by_target else self.target_errors[..., 0]

    def choose(self, rule: str) -> tuple[int, float | Array, float]:
        """Place of the member to keep, its alpha or alphas, and its error.

        Of candidates that are as good as the best, to four digits or, with the rule "one_se", within a
        standard error, the one with the largest shrinkage, then the largest alpha.
        """
        order = self.preference()
        if not self.alpha_per_target:
            errors = self.errors.reshape(len(self.errors), -1)
            place = order[_choose(errors[:, order], rule)]
            row, column = np.unravel_index(place, self.errors.shape[1:])
            return int(row), float(self.alphas[column]), float(errors[:, place].mean())
        # Every member with the best alpha for every target.
        least = self.target_errors.mean(axis=0).min(axis=1) @ self.output_weights  # (members,)
        by_preference = np.array(list(dict.fromkeys(order // len(self.alphas))))
        row = int(by_preference[choose(least[None, by_preference])])
        falling = np.argsort(-self.alphas)
        errors = np.take(self.target_errors[:, row], falling, axis=1)  # (splits, alphas, p)
        targets = range(len(self.output_weights))
        columns = [falling[_choose(errors[..., target], rule)] for target in targets]
        mean = self.target_errors[:, row].mean(axis=0)[columns, targets]
        return row, self.alphas[columns], float(mean @ self.output_weights)

    def average(self, problem: Problem, weights: Array, options: SolverOptions) -> Array:
        """Weighted sum of the coefficients of all candidates, (p, m) of the original features.

        ``weights`` is (members, alphas, 1), or (members, alphas, p) where targets have weights of their own.
        """
        used = [member for member, own in zip(self.members, weights, strict=True) if own.any()]
        paths = member_paths(problem, used, self.alphas, options)
        if weights.shape[2] == 1:
            total = np.zeros_like(problem.targets)
            for member, path in paths:
                total += np.tensordot(weights[self.members.index(member), :, 0], path, axes=1)
            return problem.expand_coef(total)
        total = np.zeros((len(problem.scale), problem.n_outputs))
        for member, path in paths:
            for own, coef in zip(weights[self.members.index(member)], path, strict=True):
                places = np.flatnonzero(own)
                total[:, places] += own[places] * (coef @ problem.outputs[places].T)
        return total.T @ problem.features.T

    def entries(self) -> Iterator[dict[str, Any]]:
        """Parameters and errors of every candidate."""
        places = itertools.product(enumerate(self.members), enumerate(self.alphas))
        for (row, member), (column, alpha) in places:
            errors = self.errors[:, row, column]
            entry = {f"param_{name}": value for name, value in member_parameters(member).items()}
            entry |= {"param_alpha": float(alpha)}
            entry |= {f"split{i}_test_score": error for i, error in enumerate(errors)}
            yield entry | {"mean_test_score": errors.mean(), "std_test_score": errors.std()}

    def tables(self) -> Array:
        """Errors (splits, members, alphas, 1 or p) by which candidates are weighed.

        Where targets do not choose apart, each one weighs its own error and `SHARED` times that of all.
        """
        if self.alpha_per_target or not self.by_target:
            return self.target_errors
        return self._relative() + SHARED * self.errors[..., None]

    def target_scores(self) -> Array:
        """Mean over splits of the error of every candidate and target, (candidates, p); NaN for constants."""
        mean = self._relative().mean(axis=0)
        return np.where(self.output_weights > 0.0, mean, np.nan).reshape(-1, len(self.output_weights))

    def _relative(self) -> Array:
        """Errors of all targets in units in which their mean is the score."""
        return self.target_errors * (self.output_weights * np.count_nonzero(self.output_weights))

    def preference(self) -> NDArray[np.intp]:
        """Places of all candidates, the largest shrinkage and then the largest alpha first."""
        shrinkage = np.repeat([member.shrinkage for member in self.members], len(self.alphas))
        # The last key counts first; equals stay in their order.
        return np.lexsort((-np.tile(self.alphas, len(self.members)), -shrinkage))


def average_weights(searches: Sequence[Search]) -> list[Array]:
    """Weights of the candidates of all searches in one average, (members, alphas, 1 or p) of each search.

    The searches must have the same splits.
    """
    orders = [search.preference() for search in searches]
    sorted_tables = []
    for search, order in zip(searches, orders, strict=True):
        table = search.tables()  # (splits, members, alphas, 1 or p)
        sorted_tables.append(table.reshape(len(table), len(order), -1)[:, order])
    joined = np.concatenate(sorted_tables, axis=1)
    columns = [bootstrap_weights(errors, searches[0].n_repeats) for errors in np.moveaxis(joined, 2, 0)]
    ends = np.cumsum([len(order) for order in orders])[:-1]
    weights = []
    for search, order, own in zip(searches, orders, np.split(np.stack(columns, axis=1), ends), strict=True):
        unsorted = np.empty_like(own)
        unsorted[order] = own
        weights.append(unsorted.reshape(len(search.members), len(search.alphas), -1))
    return weights


def member_parameters(member: Member) -> dict[str, Any]:
    """Parameters of `EntangledKernelRidge` that make it this member."""
    parameters = {name: getattr(member, name) for name in MEMBER_PARAMETERS}
    return parameters if member.n_steps is None else parameters | {"max_iter": member.n_steps}


def _choose(errors: Array, rule: str) -> int:
    return choose(errors, one_standard_error(errors) if rule == "one_se" else None)
