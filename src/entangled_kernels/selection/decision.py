"""From searches with several feature maps to what is kept: one candidate, or an average of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learning.fit import Fit, FitSettings, LinearModel, fit_problem
from ..learning.problem import Problem
from ..learning.solvers import SolverOptions
from .search import Choice, Search
from .weights import bootstrap_weights

__all__ = ["Decision", "average_candidates", "average_weights", "decide", "refit"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decision:
    """What is to be kept of searches, one for each feature map.

    Attributes
    ----------
    choice : Choice
        The best candidate.
    place : int
        Of its feature map.
    index : int or None
        Of the candidate in the table of all; None where targets chose apart.
    table : dict of ndarray
        Parameters and errors of all candidates of all feature maps, column by column.
    target_scores : ndarray of shape (candidates, p) or None
    weights : list of ndarray or None
        Of the candidates of every search in the average, (members, gains, alphas, 1 or p); None without one.
    """

    choice: Choice
    place: int
    index: int | None
    table: dict[str, NDArray[Any]]
    target_scores: Array | None
    weights: list[Array] | None

    def used(self) -> list[int]:
        """Places of the feature maps that are needed to predict."""
        if self.weights is None:
            return [self.place]
        return [place for place, own in enumerate(self.weights) if own.any() or place == self.place]

    def flat_weights(self) -> Array | None:
        """Weights in the order of the table, (candidates, p), or (candidates,) where targets weigh alike."""
        if self.weights is None:
            return None
        flat = np.concatenate([own.reshape(-1, own.shape[-1]) for own in self.weights])
        return flat[:, 0] if self.target_scores is None else flat


def decide(searches: Sequence[Search], rule: str) -> Decision:
    """Choose a candidate, and weigh all of them where the rule is "average"."""
    choices = [search.choose(rule) for search in searches]
    place = int(np.argmin([choice.error for choice in choices]))
    choice = choices[place]
    tables = [
        search.table() | {"param_feature_map": np.full(search.n_candidates, number)}
        for number, search in enumerate(searches)
    ]
    scores = [search.target_scores() for search in searches] if searches[0].by_target else None
    earlier = sum(search.n_candidates for search in searches[:place])
    return Decision(
        choice=choice,
        place=place,
        index=None if choice.place is None else earlier + choice.place,
        table={name: np.concatenate([table[name] for table in tables]) for name in tables[0]},
        target_scores=None if scores is None else np.concatenate(scores),
        weights=average_weights(searches) if rule == "average" else None,
    )


def refit(
    searches: Sequence[Search],
    decision: Decision,
    problems: Sequence[Problem],
    settings: FitSettings,
    options: SolverOptions,
) -> tuple[Fit, LinearModel]:
    """Fit what was decided on all rows: the best candidate, and the model to predict with.

    Parameters
    ----------
    searches : list of Search
    decision : Decision
    problems : list of Problem
        Of all rows, with every feature map.
    settings : FitSettings
        Of the best candidate.
    options : SolverOptions
        Of the candidates in an average.
    """
    fit = fit_problem(problems[decision.place], settings)
    if decision.weights is None:
        return fit, fit.linear
    used = {place: problems[place] for place in decision.used()}
    return fit, average_candidates(searches, decision.weights, used, options)


def average_weights(searches: Sequence[Search]) -> list[Array]:
    """Weights of the candidates of all searches in one average.

    Those of a search are (members, gains, alphas, 1 or p). The searches must have the same splits.
    """
    orders = [search.grid.preference() for search in searches]
    sorted_votes = []
    for search, order in zip(searches, orders, strict=True):
        votes = search.votes()
        sorted_votes.append(votes.reshape(len(votes), len(order), -1)[:, order])
    joined = np.concatenate(sorted_votes, axis=1)
    columns = [bootstrap_weights(errors, searches[0].n_repeats) for errors in np.moveaxis(joined, 2, 0)]
    ends = np.cumsum([len(order) for order in orders])[:-1]
    weights = []
    for search, order, own in zip(searches, orders, np.split(np.stack(columns, axis=1), ends), strict=True):
        unsorted = np.empty_like(own)
        unsorted[order] = own
        weights.append(unsorted.reshape(*search.grid.shape, -1))
    return weights


def average_candidates(
    searches: Sequence[Search],
    weights: Sequence[Array],
    problems: dict[int, Problem],
    options: SolverOptions,
) -> LinearModel:
    """The weighted mean of all candidates, with the features of the searches side by side.

    Parameters
    ----------
    searches : list of Search
    weights : list of ndarray
        As `average_weights` gives them.
    problems : dict of Problem
        Of all rows, by the place of the search; a search without any weight needs none.
    options : SolverOptions
    """
    coefs, intercept = [], np.zeros(1)
    for place, problem in sorted(problems.items()):
        own = weights[place]
        coefs.append(searches[place].average(problem, own, options))
        intercept = intercept + own.sum(axis=(0, 1, 2)) * problem.mean_y - coefs[-1] @ problem.mean_phi
    return LinearModel(np.hstack(coefs), intercept)
