"""Predictions of held-out rows by the model that a search ends with, each fold's fitted without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..learning.moments import sample_size
from ..learning.posterior import fit_unit_posterior
from ..learning.solvers import SolverOptions
from ..linalg import Array
from ..threads import SMALL_MATRIX, one_thread
from ..uncertainty import Residuals, without_rounding
from .decision import Decision, decide
from .errors import member_factors, weighted_coefficients
from .fold import Fold
from .search import Choice, Search

__all__ = ["HeldOutPredictions", "ModelPredictions", "measured_rows", "predict_held_out"]


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Predictions of rows by models that have not seen them; a row comes once for every repeat of the folds.

    Attributes
    ----------
    index : ndarray of shape (N,)
        Places of the rows in the table.
    values : ndarray of shape (N, p)
    relative_variance : ndarray of shape (N,)
        Of a new observation in units of the noise, in the Gaussian-process view of the best candidate.
    """

    index: NDArray[np.intp]
    values: Array
    relative_variance: Array

    def residuals(self, Y: Array, weight: Array | None = None) -> Residuals:
        """Residuals of targets (n, p), NaN where blank, with weights of rows (n,) or of cells (n, p)."""
        Y, row_weight = measured_rows(self.index, Y, weight)
        errors = without_rounding(Y - self.values, Y)
        counted = (row_weight > 0.0) & ~np.isnan(errors).all(axis=1)
        return Residuals(
            errors[counted],
            row_weight[counted],
            self.index[counted],
            self.relative_variance[counted],
        )


def measured_rows(index: NDArray[np.intp], Y: Array, weight: Array | None) -> tuple[Array, Array]:
    """Targets (N, p) at these places, NaN where blank, and weights (N,), which copies of a row share."""
    Y = Y[index]
    row_weight = np.ones(len(Y)) if weight is None else weight[index]
    if row_weight.ndim == 2:
        Y, row_weight = np.where(row_weight > 0.0, Y, np.nan), row_weight.max(axis=1)
    return Y, row_weight / np.bincount(index)[index]


@dataclass(frozen=True, eq=False)
class ModelPredictions:
    """Predictions of held-out rows by several models.

    Attributes
    ----------
    index : ndarray of shape (N,)
        Places of the rows in the table.
    split : ndarray of shape (N,)
        The split that held out the row.
    values : ndarray of shape (K, N, p)
        Of the average of every ballot, or of the one candidate that is kept.
    relative_variance : ndarray of shape (N,)
        As in `HeldOutPredictions`.
    """

    index: NDArray[np.intp]
    split: NDArray[np.intp]
    values: Array
    relative_variance: Array

    def combined(self, shares: Callable[[NDArray[np.intp]], Array]) -> HeldOutPredictions:
        """Predictions of the sum of all, with shares (K, 1 or p) that are found without the given rows."""
        total = np.empty(self.values.shape[1:])
        for split in np.unique(self.split):
            rows = self.split == split
            total[rows] = np.einsum("kno,ko->no", self.values[:, rows], shares(self.index[rows]))
        return HeldOutPredictions(self.index, total, self.relative_variance)


def predict_held_out(
    searches: Sequence[Search], decision: Decision, rule: str, options: SolverOptions
) -> ModelPredictions | None:
    """Predict the held-out rows of every split with the average of each ballot; None without such rows.

    What a split's own rows had a say in is decided anew without it: the weights of an average come from the
    draws of the bootstrap in which the split hardly counts, and a single candidate is chosen by the other
    splits. With repeated folds other splits have held out the same rows, so a little of the choice remains.

    Of many rows, no more are predicted than a `RowSample` holds, for every time that all are held out. Time
    is that of the candidates with weight, once for every split.
    """
    best = searches[decision.place]
    folds_of_a_round = max(1.0, len(best.folds) / best.n_repeats)
    most = int(sample_size(len(best.output_weights)) / folds_of_a_round)
    found = []
    for split, fold in enumerate(best.folds):
        if fold.rows is None or len(fold.rows.index) == 0:
            continue
        kept = _kept_without(split, searches, decision, rule)
        index = _spaced(_common_rows([fold, *(search.folds[split] for search, _ in kept)]), max(1, most))
        with one_thread(max(fold.problem.targets.shape) <= SMALL_MATRIX):
            values = [
                _predict_fold(search, search.folds[split].only(index), own, options) for search, own in kept
            ]
            spread = _relative_variance(fold.only(index), decision.choice, options)
        found.append((index, np.full(len(index), split), np.stack(values), spread))
    if not found:
        return None
    indices, splits, parts, spreads = zip(*found, strict=True)
    return ModelPredictions(
        np.concatenate(indices),
        np.concatenate(splits),
        np.concatenate(parts, axis=1),
        np.concatenate(spreads),
    )


def _spaced(index: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """No more than so many places, evenly spaced."""
    if len(index) <= most:
        return index
    return np.asarray(index[np.linspace(0, len(index) - 1, most).astype(np.intp)])


def _common_rows(folds: Sequence[Fold]) -> NDArray[np.intp]:
    """Places of the held-out rows that all folds of a split have: some have but a sample of them."""
    first, *others = (np.zeros(0, dtype=np.intp) if fold.rows is None else fold.rows.index for fold in folds)
    for other in others:
        first = first if np.array_equal(first, other) else first[np.isin(first, other)]
    return first


def _kept_without(
    split: int, searches: Sequence[Search], decision: Decision, rule: str
) -> list[tuple[Search, Array]]:
    """Searches with weights of their candidates, (members, alphas, 1 or p), from the other splits.

    There is a pair for every ballot, or one for a single candidate.
    """
    if decision.ballots is not None:
        return [(searches[own.search], own.weights(without=split)) for own in decision.ballots]
    others = [
        replace(search, target_errors=np.delete(search.target_errors, split, axis=0)) for search in searches
    ]
    if len(others[0].target_errors) > 0:
        decision = decide(others, rule)
    best = searches[decision.place]
    return [(best, _one_hot(best, decision.choice))]


def _one_hot(search: Search, choice: Choice) -> Array:
    """All weight on one candidate."""
    weights = np.zeros((search.n_candidates, 1))
    weights[choice.place] = 1.0
    return weights.reshape(*search.grid.shape, 1)


def _predict_fold(search: Search, fold: Fold, weights: Array, options: SolverOptions) -> Array:
    """Weighted sum of the predictions of all candidates of a search, (t, p)."""
    # With weights that targets share, rows are predicted in the fold's own coordinates of the outputs first.
    apart = weights.shape[-1] > 1
    basis = fold.basis if apart else fold.problem.outputs
    total = weighted_coefficients(fold.problem, basis, search.grid, weights, options)
    return fold.predictions(total, weights.sum(axis=(0, 1)), None if apart else fold.outputs)


def _relative_variance(fold: Fold, choice: Choice, options: SolverOptions) -> Array:
    if fold.rows is None:
        raise ValueError("the fold was made of moments alone, without its held-out rows")
    (_, factor), *_ = member_factors(fold.problem, [choice.member], options)
    return fit_unit_posterior(factor, choice.alpha).relative_variance(fold.rows.Phi)
