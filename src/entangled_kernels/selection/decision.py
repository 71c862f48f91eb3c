"""From searches with several feature maps to what is kept: one candidate, or an average of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learning.fit import Fit, FitSettings, LinearModel, fit_problem
from ..learning.problem import Problem
from ..learning.solvers import SolverOptions
from ..linalg import Array
from .search import Choice, Search
from .weights import DRAWS, bootstrap_winners, draws_without

__all__ = ["Ballot", "Decision", "average_candidates", "decide", "refit", "vote"]

# How much a process that was tuned by evidence counts beside an average by held-out errors, before errors of
# both on the same rows have a say: its evidence comes from all rows.
PROCESS = 4.0


@dataclass(frozen=True, eq=False)
class Ballot:
    """Winners of all draws of the bootstrap among the candidates of a search.

    Attributes
    ----------
    search : int
        Place of the search.
    winners : ndarray of shape (draws, 1 or p)
        Places among the candidates, for every target that weighs them apart.
    shape : tuple
        Members and alphas of the search.
    n_splits, n_repeats : int and float
    prior : float
        How much its average counts before errors have a say, beside others.
    """

    search: int
    winners: NDArray[np.intp]
    shape: tuple[int, int]
    n_splits: int
    n_repeats: float
    prior: float = 1.0

    def weights(self, without: int | None = None) -> Array:
        """Weights of the candidates, (members, alphas, 1 or p).

        Those ``without`` a split come from the draws in which it hardly counts, so that the rows that it
        holds out have little part in them.
        """
        winners = self.winners
        if without is not None:
            winners = winners[draws_without(without, self.n_splits, self.n_repeats)]
        size, voters = int(np.prod(self.shape)), winners.shape[1]
        # One count for all voters, each with places of its own.
        places = winners * voters + np.arange(voters)
        counts = np.bincount(places.reshape(-1), minlength=size * voters)  # (draws * voters,)
        return np.asarray(counts / len(winners)).reshape(*self.shape, voters)


@dataclass(frozen=True, eq=False)
class Decision:
    """What is to be kept of searches, one for each feature map.

    Attributes
    ----------
    choice : Choice
        The best candidate.
    place : int
        Of its feature map.
    index : int
        Of the candidate in the table of all.
    table : dict of ndarray
        Parameters and errors of all candidates of all feature maps, column by column.
    target_scores : ndarray of shape (candidates, p) or None
    ballots : list of Ballot or None
        What gives the candidates their weights in averages, one of every search and one more of a search
        that knows its process; None without averages.
    shares : ndarray of shape (ballots, 1 or p)
        Of these averages in the average of all.
    """

    choice: Choice
    place: int
    index: int
    table: dict[str, NDArray[Any]]
    target_scores: Array | None
    ballots: list[Ballot] | None
    shares: Array

    @cached_property
    def weights(self) -> list[Array] | None:
        """Of the candidates of every search in the average, (members, alphas, 1 or p)."""
        if self.ballots is None:
            return None
        weights: dict[int, Array] = {}
        for ballot, share in zip(self.ballots, self.shares, strict=True):
            weights[ballot.search] = weights.get(ballot.search, 0.0) + ballot.weights() * share
        return [weights[place] for place in sorted(weights)]

    @property
    def prior(self) -> Array:
        """Shares of the averages before their errors have a say, (ballots,)."""
        counts = np.array([ballot.prior for ballot in self.ballots or ()])
        return np.asarray(counts / counts.sum())

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
    """Choose a candidate, and weigh those of every search where the rule is "average", all searches alike."""
    choices = [search.choose(rule) for search in searches]
    place = int(np.argmin([choice.error for choice in choices]))
    choice = choices[place]
    tables = [
        search.table() | {"param_feature_map": np.full(search.n_candidates, number)}
        for number, search in enumerate(searches)
    ]
    scores = [search.target_scores() for search in searches] if searches[0].by_target else None
    earlier = sum(search.n_candidates for search in searches[:place])
    ballots = _ballots(searches) if rule == "average" else None
    n_models = len(searches if ballots is None else ballots)
    shares = np.zeros((n_models, 1))
    shares[: len(searches)] = 1.0 / len(searches)
    return Decision(
        choice=choice,
        place=place,
        index=earlier + choice.place,
        table={name: np.concatenate([table[name] for table in tables]) for name in tables[0]},
        target_scores=None if scores is None else np.concatenate(scores),
        ballots=ballots,
        shares=shares,
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


def _ballots(searches: Sequence[Search]) -> list[Ballot]:
    """One of every search, and one more for the process of those that know it."""
    known = [number for number, search in enumerate(searches) if search.process is not None]
    return [
        *(vote(search, number) for number, search in enumerate(searches)),
        *(elect(searches[number], number) for number in known),
    ]


def elect(search: Search, place: int) -> Ballot:
    """All weight for the process of a search, whatever the errors are."""
    winners = np.full((DRAWS, 1), search.process, dtype=np.intp)
    return Ballot(place, winners, search.grid.shape, len(search.errors), search.n_repeats, PROCESS)


def vote(search: Search, place: int) -> Ballot:
    """Let random weights of the splits choose among the candidates of a search."""
    order, votes = search.grid.preference(), search.votes()
    ordered = votes.reshape(len(votes), len(order), -1)[:, order]
    winners = order[bootstrap_winners(ordered, search.n_repeats)]
    return Ballot(place, winners, search.grid.shape, len(votes), search.n_repeats)


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
        As a `Decision` has them.
    problems : dict of Problem
        Of all rows, by the place of the search; a search without any weight needs none.
    options : SolverOptions
    """
    coefs, intercept = [], np.zeros(1)
    for place, problem in sorted(problems.items()):
        own = weights[place]
        coefs.append(searches[place].average(problem, own, options))
        intercept = intercept + own.sum(axis=(0, 1)) * problem.mean_y - coefs[-1] @ problem.mean_phi
    return LinearModel(np.hstack(coefs), intercept)
