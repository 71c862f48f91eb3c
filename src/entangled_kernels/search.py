"""What a search over candidates found, and what to make of it: the best, a wary choice, or an average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .choice import bootstrap_weights, choose, one_standard_error
from .reduction import Problem
from .selection import Fold, Member, fold_errors, member_paths
from .solvers import SolverOptions
from .threads import SMALL_MATRIX, one_thread

__all__ = ["Choice", "Search", "Task", "average_weights", "candidate_errors"]

Array = NDArray[np.float64]

# Members, alphas, options of the solvers, gains, and whether errors of every target are asked for.
Task = tuple[list[Member], Array, SolverOptions, Array, bool]

# How much the error of all targets counts beside a target's own where it votes for candidates.
SHARED = 2.0
# A share of its error that is added to a candidate with a gain other than one, where candidates are weighed.
HANDICAP = 0.05

MEMBER_PARAMETERS = ("solver", "alignment_mix", "shrinkage", "target_alpha", "rank", "prediction")


def candidate_errors(
    fold: Fold, members: list[Member], alphas: Array, options: SolverOptions, gains: Array, per_target: bool
) -> Array:
    """Errors of all candidates on one split, (members, gains, alphas, p or 1): of every target, or means."""
    with one_thread(max(fold.problem.targets.shape) <= SMALL_MATRIX):
        errors = fold_errors(fold, members, alphas, options, gains, per_target=per_target)
        return errors if per_target else errors[..., None]


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
        return _member_parameters(self.member) | {"gain": self.gain, "alpha": self.alpha}


@dataclass(frozen=True, eq=False)
class Search:
    """Held-out errors of all candidates with one feature map.

    Attributes
    ----------
    members : list of Member
    gains, alphas : ndarray
        A candidate is a member, a gain and an alpha.
    target_errors : ndarray of shape (splits, members, gains, alphas, p or 1)
        Of every target, or weighted means over targets.
    output_weights : ndarray of shape (p,)
        Weights of the targets in the mean.
    n_repeats : float
        How often a row was held out.
    alpha_per_target : bool
        Whether targets choose apart.
    """

    members: list[Member]
    gains: Array
    alphas: Array
    target_errors: Array
    output_weights: Array
    n_repeats: float
    alpha_per_target: bool = False

    @property
    def by_target(self) -> bool:
        """Whether the errors of every target are there."""
        return self.alpha_per_target or self.target_errors.shape[-1] > 1

    @cached_property
    def errors(self) -> Array:
        """Weighted means over targets, (splits, members, gains, alphas)."""
        return self.target_errors @ self.output_weights if self.by_target else self.target_errors[..., 0]

    @property
    def n_candidates(self) -> int:
        """Number of members times gains times alphas."""
        return int(self.errors[0].size)

    def choose(self, rule: str) -> Choice:
        """The candidate to keep.

        Of candidates that are as good as the best, to four digits or, with the rule "one_se", within a
        standard error, the one with the largest shrinkage, then the least gain, then the largest alpha.
        """
        order = self.preference()
        _, n_gains, n_alphas = shape = self.errors.shape[1:]
        if not self.alpha_per_target:
            errors = self.errors.reshape(len(self.errors), -1)
            place = int(order[_choose(errors[:, order], rule)])
            row, gain, alpha = (int(index) for index in np.unravel_index(place, shape))
            settings = (float(self.gains[gain]), float(self.alphas[alpha]))
            return Choice(self.members[row], *settings, float(errors.mean(axis=0)[place]), place)
        # Every member with the best gain and alpha for every target.
        least = self.target_errors.mean(axis=0).min(axis=(1, 2)) @ self.output_weights  # (members,)
        by_preference = np.array(list(dict.fromkeys(order // (n_gains * n_alphas))))
        best = int(by_preference[choose(least[None, by_preference])])
        by_target = self.target_errors[:, best].reshape(len(self.errors), n_gains * n_alphas, -1)
        own = order[order // (n_gains * n_alphas) == best] % (n_gains * n_alphas)
        targets = range(len(self.output_weights))
        columns = np.array([own[_choose(by_target[:, own, target], rule)] for target in targets])
        mean = float(by_target.mean(axis=0)[columns, targets] @ self.output_weights)
        gains, alphas = self.gains[columns // n_alphas], self.alphas[columns % n_alphas]
        return Choice(self.members[best], gains, alphas, mean, None)

    def average(self, problem: Problem, weights: Array, options: SolverOptions) -> Array:
        """Weighted sum of the coefficients of all candidates, (p, m) of the original features.

        ``weights`` is (members, gains, alphas, 1), or (members, gains, alphas, p) where targets have weights
        of their own.
        """
        scaled = np.einsum("g,mgao->mao", self.gains, weights)
        used = [member for member, own in zip(self.members, scaled, strict=True) if own.any()]
        paths = member_paths(problem, used, self.alphas, options)
        if scaled.shape[2] == 1:
            total = np.zeros_like(problem.targets)
            for member, path in paths:
                total += np.tensordot(scaled[self.members.index(member), :, 0], path, axes=1)
            return problem.expand_coef(total)
        total = np.zeros((len(problem.scale), problem.n_outputs))
        for member, path in paths:
            for own, coef in zip(scaled[self.members.index(member)], path, strict=True):
                places = np.flatnonzero(own)
                total[:, places] += own[places] * (coef @ problem.outputs[places].T)
        return total.T @ problem.features.T

    def table(self) -> dict[str, NDArray[Any]]:
        """Parameters and errors of all candidates, column by column."""
        each = len(self.gains) * len(self.alphas)
        settings = [_member_parameters(member) for member in self.members]
        columns: dict[str, NDArray[Any]] = {}
        for name in settings[0]:
            kind = object if name == "rank" else None
            columns[f"param_{name}"] = np.repeat(np.array([own[name] for own in settings], dtype=kind), each)
        columns["param_gain"] = np.tile(np.repeat(self.gains, len(self.alphas)), len(self.members))
        columns["param_alpha"] = np.tile(self.alphas, len(self.members) * len(self.gains))
        errors = self.errors.reshape(len(self.errors), -1)
        columns |= {f"split{i}_test_score": own for i, own in enumerate(errors)}
        return columns | {"mean_test_score": errors.mean(axis=0), "std_test_score": errors.std(axis=0)}

    def tables(self) -> Array:
        """Errors (splits, members, gains, alphas, 1 or p) by which candidates are weighed.

        Where targets do not choose apart, each one weighs its own error and `SHARED` times that of all.
        """
        errors = self.target_errors
        if self.by_target and not self.alpha_per_target:
            errors = self._relative() + SHARED * self.errors[..., None]
        handicap = np.where(self.gains == 1.0, 1.0, 1.0 + HANDICAP)
        return errors * handicap[:, None, None]

    def target_scores(self) -> Array:
        """Mean over splits of the error of every candidate and target, (candidates, p); NaN for constants."""
        mean = self._relative().mean(axis=0)
        return np.where(self.output_weights > 0.0, mean, np.nan).reshape(-1, len(self.output_weights))

    def _relative(self) -> Array:
        """Errors of all targets in units in which their mean is the score."""
        return self.target_errors * (self.output_weights * np.count_nonzero(self.output_weights))

    def preference(self) -> NDArray[np.intp]:
        """Places of all candidates, the largest shrinkage, the least gain, the largest alpha first."""
        shrinkages = [member.shrinkage for member in self.members]
        shrinkage, gain, alpha = np.meshgrid(shrinkages, self.gains, self.alphas, indexing="ij")
        # The last key counts first; equals stay in their order.
        return np.lexsort((-alpha.ravel(), gain.ravel(), -shrinkage.ravel()))


def average_weights(searches: Sequence[Search]) -> list[Array]:
    """Weights of the candidates of all searches in one average.

    Those of a search are (members, gains, alphas, 1 or p). The searches must have the same splits.
    """
    orders = [search.preference() for search in searches]
    sorted_tables = []
    for search, order in zip(searches, orders, strict=True):
        table = search.tables()  # (splits, members, gains, alphas, 1 or p)
        sorted_tables.append(table.reshape(len(table), len(order), -1)[:, order])
    joined = np.concatenate(sorted_tables, axis=1)
    columns = [bootstrap_weights(errors, searches[0].n_repeats) for errors in np.moveaxis(joined, 2, 0)]
    ends = np.cumsum([len(order) for order in orders])[:-1]
    weights = []
    for search, order, own in zip(searches, orders, np.split(np.stack(columns, axis=1), ends), strict=True):
        unsorted = np.empty_like(own)
        unsorted[order] = own
        weights.append(unsorted.reshape(*search.errors.shape[1:], -1))
    return weights


def _member_parameters(member: Member) -> dict[str, Any]:
    """Parameters of `EntangledKernelRidge` that make it this member."""
    parameters = {name: getattr(member, name) for name in MEMBER_PARAMETERS}
    return parameters if member.n_steps is None else parameters | {"max_iter": member.n_steps}


def _choose(errors: Array, rule: str) -> int:
    return choose(errors, one_standard_error(errors) if rule == "one_se" else None)
