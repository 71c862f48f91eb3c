"""Entangled kernel learning as published: ascent on raw data, kernels of unit-norm Q, no scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..learning import LearnedKernel, Moments, Problem, Progress, SolverOptions, reduce_moments
from ..learning.problem import compress_rows
from ..learning.ridge import KernelRidgeFactor
from ..learning.solvers import solve
from ..linalg import Array
from ..selection import PATH_STEPS, RowFolds, Split

__all__ = ["LAMBDAS", "Ascent", "PublishedModel", "fit_published"]

# Largest first, so that of equals the largest is chosen.
LAMBDAS = 10.0 ** np.arange(8, -9, -1)


@dataclass(frozen=True)
class Ascent:
    """How the kernel is learned.

    Attributes
    ----------
    init : {"random", "identity"}
        Start of the ascent: a random Q, as published, or the plain kernel.
    n_steps : int
        Steps taken.
    early : bool
        Whether earlier places on the path are candidates too.
    mixes : tuple of float
        Weights of the full alignment to choose from.
    shrinkages : tuple of float
        Shares of the plain kernel of trace one to choose from, mixed into the learned one.
    rank : float or None
        Number of Kraus operators as a share of the full rank; None for all of it.
    """

    init: str = "random"
    n_steps: int = 200
    early: bool = False
    mixes: tuple[float, ...] = (0.5,)
    shrinkages: tuple[float, ...] = (0.0,)
    rank: float | None = None

    def steps(self) -> list[int]:
        """Places on the path that are candidates."""
        return [*(step for step in PATH_STEPS if self.early and step < self.n_steps), self.n_steps]

    def kernels(self, problem: Problem, mix: float, seed: int) -> dict[Candidate, LearnedKernel]:
        """The kernel, of trace one, at every such place and with every shrinkage."""
        wanted, kernels = set(self.steps()), {}

        def keep(progress: Progress) -> None:
            if progress.n_iter in wanted:
                kernels[progress.n_iter] = LearnedKernel.from_operators(progress.Q)

        options = SolverOptions(
            rank=problem.resolve_rank(self.rank),
            init=self.init,
            max_iter=self.n_steps,
            rng=np.random.default_rng(seed),
            callback=keep,
        )
        last = solve("ascent", problem.with_mix(mix), options).kernel
        m, p = problem.n_features, problem.n_outputs
        return {
            Candidate(mix, step, shrinkage): kernels.get(step, last).shrunk(shrinkage, m, p)
            for step in self.steps()
            for shrinkage in self.shrinkages
        }


class Candidate(NamedTuple):
    """A way to learn the kernel: weight of the full alignment, steps, share of the plain kernel."""

    mix: float
    n_steps: int
    shrinkage: float


class PublishedModel(NamedTuple):
    """The linear model f(x) = coef @ phi(x), how its kernel was learned, its lambda, and its error on folds.

    The error is in units that all models of one call share, and None where lambda was not chosen.
    """

    coef: Array
    candidate: Candidate
    alpha: float
    cv_error: float | None = None

    def predict(self, Phi: Array) -> Array:
        """Predictions (n, p) for features (n, m)."""
        return np.asarray(Phi @ self.coef.T)


def fit_published(
    Phi: Array,
    Y: Array,
    folds: Sequence[Split],
    ascent: Ascent,
    predictions: Sequence[str] = ("entangled", "partial_trace"),
    seed: int = 0,
    fixed: float | None = None,
) -> dict[tuple[str, str], PublishedModel]:
    """Choose mix, step, shrinkage and lambda for each kind of prediction by cross-validation, then fit all.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
    folds : sequence of (training rows, held-out rows)
    ascent : Ascent
    predictions : sequence of {"entangled", "partial_trace"}
    seed : int
        Of random starts.
    fixed : float, optional
        A lambda that is not chosen.

    Returns
    -------
    dict of PublishedModel
        By prediction and kind: ``"chosen"``, and ``"fixed"`` with the same kernel and that lambda.

    Notes
    -----
    Kernels are used as the ascent leaves them, of unit-norm Q, so that tr D = 1, and partial traces are not
    divided by p: a lambda is far stronger for them than for the plain kernel, whose D is the identity.
    """
    variance = np.var(Y, axis=0)
    weights = np.where(variance > 0.0, 1.0, 0.0) / np.where(variance > 0.0, variance, 1.0) / Y.shape[1]
    errors: dict[str, dict[Candidate, Array]] = {prediction: {} for prediction in predictions}
    for fold in RowFolds(Phi, Y, None, folds, centred=False).folds(weights):
        for mix in ascent.mixes:
            for candidate, kernel in ascent.kernels(fold.problem, mix, seed).items():
                for prediction, own in errors.items():
                    path = _factor(fold.problem, kernel, prediction).coefficients(LAMBDAS)
                    own[candidate] = own.get(candidate, 0.0) + fold.error(path) / fold.weight
    rows = compress_rows(Phi, Y, centred=False)
    moments = Moments.from_arrays(rows.Phi, rows.Y)
    problem = reduce_moments(moments, centred=False, rows=rows).restored(rows, moments)
    best = {prediction: min(own, key=lambda one: float(own[one].min())) for prediction, own in errors.items()}
    kernels: dict[Candidate, LearnedKernel] = {}
    for mix in {candidate.mix for candidate in best.values()}:
        kernels |= ascent.kernels(problem, mix, seed)
    models = {}
    for prediction, candidate in best.items():
        alphas = {"chosen": float(LAMBDAS[errors[prediction][candidate].argmin()])}
        alphas |= {} if fixed is None else {"fixed": fixed}
        path = _factor(problem, kernels[candidate], prediction).coefficients(list(alphas.values()))
        for (kind, alpha), coef in zip(alphas.items(), path, strict=True):
            error = float(errors[prediction][candidate].min()) if kind == "chosen" else None
            models[prediction, kind] = PublishedModel(problem.expand_coef(coef), candidate, alpha, error)
    return models


def _factor(problem: Problem, kernel: LearnedKernel, prediction: str) -> KernelRidgeFactor:
    if prediction == "partial_trace":
        kernel = kernel.partial_trace(problem.n_outputs).scaled(problem.n_outputs)
    return KernelRidgeFactor(problem, kernel)
