"""The methods that are compared; each selects its settings on the same folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold

from ..estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from ..learning import FitSettings, LearnedKernel, Moments, Problem, Progress, reduce_moments
from ..learning.problem import compress_rows
from ..learning.ridge import KernelRidgeFactor
from ..learning.solvers import solve
from ..linalg import Array
from ..selection import PATH_STEPS, Split
from ..selection.folds import ScoredTargets, fold_of_rows
from .agreement import SHARED

__all__ = [
    "COMMON_METHODS",
    "DESCRIPTIONS",
    "EARLY",
    "LAMBDAS",
    "LAMBDA_ONE",
    "METHODS",
    "NEED_COMPLETE_TARGETS",
    "N_FOLDS",
    "PAPER_METHODS",
    "PICKED",
    "REFERENCES",
    "Fitted",
    "Plan",
    "PublishedModel",
    "fit_methods",
    "fit_published",
    "shuffled_folds",
    "tuned_learner",
]

# Largest first, so that among equal errors the largest is chosen.
LAMBDAS = 10.0 ** np.arange(8, -9, -1)
# The early variant stops after at most this many steps and mixes in one of these shares of the
# plain kernel: with more steps, or without a share, it overfits.
EARLY_STEPS, SHRINKAGES = 20, (0.25, 0.75)


class Candidate(NamedTuple):
    """A way to learn the kernel: steps of the ascent, and share of the plain kernel mixed in."""

    n_steps: int
    shrinkage: float


class PublishedModel(NamedTuple):
    """The linear model f(x) = coef @ phi(x), how its kernel was learned, and its lambda.

    Cross-validated errors of one call of `fit_published` can be compared; the error is None if
    lambda was fixed.
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
    predictions: Sequence[str] = ("entangled", "partial_trace"),
    seed: int = 0,
    *,
    n_steps: int = 200,
    rank: float | None = None,
    early: bool = False,
    fixed: float | None = None,
) -> dict[tuple[str, str], PublishedModel]:
    """Fit the published algorithm, with lambda chosen by cross-validation for each prediction.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
    folds : sequence of (training rows, held-out rows)
    predictions : sequence of {"entangled", "partial_trace"}
    seed : int
        Of random starts.
    n_steps : int
        Steps of the ascent.
    rank : float or None
        Number of Kraus operators as a share of the full rank; None for all of it.
    early : bool
        Start at the plain kernel in place of a random one, and choose the step and a share of the
        plain kernel too.
    fixed : float, optional
        A further lambda, without cross-validation.

    Returns
    -------
    dict of PublishedModel
        By prediction and kind: ``"chosen"``, and ``"fixed"`` with the same kernel and that lambda.

    Notes
    -----
    Kernels are not rescaled: Q has unit norm, so that tr D = 1, and partial traces are not divided
    by p. A lambda is far stronger for them than for the plain kernel, whose D is the identity.
    """
    ascend = partial(_learn_kernels, n_steps=n_steps, rank=rank, early=early, seed=seed)
    variance = np.var(Y, axis=0)
    varies = variance > 0.0
    weights = np.where(varies, 1.0, 0.0) / np.where(varies, variance, 1.0) / Y.shape[1]
    errors: dict[str, dict[Candidate, Array]] = {prediction: {} for prediction in predictions}
    targets = ScoredTargets.of(Y, None, weights)
    for split in folds:
        features = Phi[split[0]], Phi[split[1]]
        fold = fold_of_rows(
            targets, split, features, centred=False, iterative=True, ridge_only=False
        )
        for candidate, kernel in ascend(fold.problem).items():
            for prediction, scores in errors.items():
                path = _factor(fold.problem, kernel, prediction).coefficients(LAMBDAS)
                scores[candidate] = scores.get(candidate, 0.0) + fold.errors(path).sum(axis=1)
    rows = compress_rows(Phi, Y, centred=False)
    moments = Moments.from_arrays(rows.Phi, rows.Y)
    problem = reduce_moments(moments, centred=False, rows=rows)
    kernels, models = ascend(problem), {}
    for prediction, scores in errors.items():
        candidate = min(scores, key=lambda candidate: float(scores[candidate].min()))
        alphas = {"chosen": float(LAMBDAS[scores[candidate].argmin()])}
        alphas |= {} if fixed is None else {"fixed": fixed}
        path = _factor(problem, kernels[candidate], prediction).coefficients(list(alphas.values()))
        for (kind, alpha), coef in zip(alphas.items(), path, strict=True):
            error = float(scores[candidate].min()) if kind == "chosen" else None
            coef = problem.outputs @ coef.T @ problem.features.T
            models[prediction, kind] = PublishedModel(coef, candidate, alpha, error)
    return models


def _learn_kernels(
    problem: Problem, *, n_steps: int, rank: float | None, early: bool, seed: int
) -> dict[Candidate, LearnedKernel]:
    """The kernel, of trace one, for every candidate."""
    last = min(EARLY_STEPS, n_steps) if early else n_steps
    steps = [*(step for step in PATH_STEPS if early and step < last), last]
    kernels = {}

    def keep(progress: Progress) -> None:
        if progress.n_iter in steps:
            kernels[progress.n_iter] = LearnedKernel.from_operators(progress.Q)

    settings = FitSettings(
        "ascent", rank, init="identity" if early else "random", max_iter=last, seed=seed
    )
    end = solve(problem, settings, keep).kernel
    m, p = problem.n_features, problem.n_outputs
    return {
        Candidate(step, shrinkage): kernels.get(step, end).mixed(
            shrinkage / (m * p), 1.0 - shrinkage
        )
        for step in steps
        for shrinkage in (SHRINKAGES if early else (0.0,))
    }


def _factor(problem: Problem, kernel: LearnedKernel, prediction: str) -> KernelRidgeFactor:
    if prediction == "partial_trace":
        kernel = kernel.partial_trace(problem.n_outputs).mixed(0.0, problem.n_outputs)
    return KernelRidgeFactor(problem, kernel)


# Methods that users know. They get the inputs and select features themselves.
COMMON_METHODS = {
    "mean": "the mean of the training rows",
    "ridge": "linear ridge regression, an alpha for every output",
    "kernel-ridge": "kernel ridge regression, features and alpha selected as in entangled",
    "PLS": "partial least squares, number of components selected",
    "gaussian-process": "a Gaussian process for each output, kernel and noise by likelihood",
    "extra-trees": "100 extremely randomised trees",
    "entangled": "EntangledKernelRidgeCV with its defaults: features, kernel and alpha selected",
}
# Methods of the paper. Their kernels are linear in the features of the experiment.
METHODS = COMMON_METHODS | {
    "KRR": "kernel ridge regression, one alpha for all outputs",
    "OKL": "output kernel learning: one relation between outputs, learned with the model",
    "EKL": "entangled kernel learning, predicting with the operator-valued kernel",
    "ptrEKL": "entangled kernel learning, predicting with the scalar kernel of its partial trace",
}
# In the paper's protocol EKL and ptrEKL are the published algorithm to the letter, and these are
# its safe form: without a share of the plain kernel, a first step that suits the folds may be far
# too long for all rows.
EARLY = {
    "EKL, early": "EKL from the plain kernel, stopped early, a share of it kept",
    "ptrEKL, early": "ptrEKL from the plain kernel, stopped early, a share of it kept",
}
LAMBDA_ONE = {
    f"{method}, lambda 1": f"{method} of the paper's protocol with lambda 1, nothing selected"
    for method in ("KRR", "OKL", "EKL", "ptrEKL")
}
PICKED = {
    SHARED: "EKL or ptrEKL, whichever has the lower cross-validated error on the training rows",
    f"{SHARED}, early": "the same of their forms that are stopped early",
}
DESCRIPTIONS = METHODS | EARLY | LAMBDA_ONE | PICKED
PAPER_METHODS = ("KRR", "OKL", "EKL", "ptrEKL")
PREDICTIONS = {"EKL": "entangled", "ptrEKL": "partial_trace"}
# Kernel ridge, the reference of improvements: the first of these that was fitted.
REFERENCES = ("KRR", "kernel-ridge")
# These need complete targets, so they are fitted to each target separately if any is missing.
NEED_COMPLETE_TARGETS = ("mean", "ridge", "PLS", "extra-trees")
RIDGE_ALPHAS = np.logspace(-3, 5, 33)
# Candidates, from plain kernel ridge to the learned kernel alone. With a bound on the rank each has
# hundreds of Kraus operators, so there are fewer of them.
GRID: dict[str, Any] = {
    "alignment_mix": (0.0, 0.5, 1.0),
    "shrinkage": (0.0, 0.25, 0.5, 0.75, 1.0),
    "target_alpha": (0.01, 0.1, 1.0, 10.0),
}
SMALL_GRID: dict[str, Any] = {
    "alignment_mix": (0.5,),
    "shrinkage": (0.0, 0.5, 1.0),
    "target_alpha": (0.1, 1.0),
}


class Plan(NamedTuple):
    """Which methods are fitted, and how.

    Attributes
    ----------
    protocol : {"fair", "paper"}
    methods : tuple of str
        Keys of `DESCRIPTIONS`; those of `EARLY` and `LAMBDA_ONE` only in the paper's protocol, and
        those of `PICKED` after both methods that they pick from.
    rank : float or None
        Share of the full Kraus rank that EKL and ptrEKL may use.
    n_steps : int
        Steps of the published ascent, in the paper's protocol.
    """

    protocol: str = "fair"
    methods: tuple[str, ...] = PAPER_METHODS
    rank: float | None = None
    n_steps: int = 200

    def descriptions(self) -> dict[str, str]:
        """A description of each method."""
        return {name: DESCRIPTIONS[name] for name in self.methods}


class Fitted(NamedTuple):
    """A fitted method.

    The cross-validated error decides which of EKL and ptrEKL is picked; it is None for methods that
    do not compute one.
    """

    predict: Callable[[Array], Any]
    fit_seconds: float
    cv_error: float | None = None


N_FOLDS = 5


def shuffled_folds(n: int, seed: int) -> list[Split]:
    """Five shuffled folds, or as many as there are rows."""
    return list(KFold(min(N_FOLDS, n), shuffle=True, random_state=seed).split(np.zeros((n, 1))))


def fit_methods(
    plan: Plan, X: Array, Phi: Array, Y: Array, folds: Sequence[Split] | None, seed: int
) -> dict[str, Fitted]:
    """Fit all methods of a plan, in its order.

    Methods of `COMMON_METHODS` get, and predict from, the inputs X (n, d), all others the features
    Phi (n, m). Folds are those of `tuned_learner`.
    """
    published = {}
    if plan.protocol == "paper":
        published = _fit_published(plan, Phi, Y, folds or shuffled_folds(len(Y), seed), seed)
    fitted: dict[str, Fitted] = {}
    for method in plan.methods:
        if method in published:
            fitted[method] = published[method]
        elif method in PICKED:
            both = [fitted[method.replace(SHARED, name)] for name in PREDICTIONS]
            best = min(both, key=lambda model: float(model.cv_error or 0.0))
            # The published EKL and ptrEKL share their ascents.
            total = max if plan.protocol == "paper" else sum
            fitted[method] = best._replace(fit_seconds=total(model.fit_seconds for model in both))
        else:
            features = X if method in COMMON_METHODS else Phi
            start = process_time()
            model = tuned_learner(
                method, features, Y, folds, seed, protocol=plan.protocol, rank=plan.rank
            )
            model.fit(features, Y)
            seconds = process_time() - start
            fitted[method] = Fitted(model.predict, seconds, getattr(model, "cv_score_", None))
    return fitted


def _fit_published(
    plan: Plan, Phi: Array, Y: Array, folds: Sequence[Split], seed: int
) -> dict[str, Fitted]:
    """EKL, ptrEKL and their variants; EKL and ptrEKL share their ascents, and the time of these."""
    fitted = {}
    for variants in (("", "lambda 1"), ("early",)):
        wanted = {}
        for name in plan.methods:
            method, _, variant = name.partition(", ")
            if method in PREDICTIONS and variant in variants:
                wanted[name] = (PREDICTIONS[method], "fixed" if variant == "lambda 1" else "chosen")
        if not wanted:
            continue
        start = process_time()
        models = fit_published(
            Phi,
            Y,
            folds,
            tuple(dict.fromkeys(prediction for prediction, _ in wanted.values())),
            seed,
            n_steps=plan.n_steps,
            rank=plan.rank,
            early=variants == ("early",),
            fixed=1.0 if any(kind == "fixed" for _, kind in wanted.values()) else None,
        )
        seconds = process_time() - start
        for name, key in wanted.items():
            fitted[name] = Fitted(models[key].predict, seconds, models[key].cv_error)
    return fitted


def tuned_learner(
    method: str,
    X: Array,
    Y: Array,
    folds: Sequence[Split] | None,
    seed: int,
    *,
    protocol: str = "fair",
    rank: float | None = None,
) -> Any:
    """A learner by name, not fitted, that chooses its settings on the folds.

    Parameters
    ----------
    method : str
        A key of `METHODS`, or of `LAMBDA_ONE`.
    X : ndarray of shape (n, d)
        Standardised inputs; for the methods of the paper, features.
    Y : ndarray of shape (n, p)
        NaN where a target is missing.
    folds : sequence of splits or None
        None for shuffled folds, in place of which ridge leaves out single rows. Folds that hold out
        groups or later rows are used by ridge too.
    seed : int
    protocol, rank
        Of the methods of the paper, as in `Plan`.
    """
    if method == "ridge" and folds is not None:
        return _TargetByTarget(RidgeCV(RIDGE_ALPHAS, cv=folds))
    splits = shuffled_folds(len(Y), seed) if folds is None else folds
    if method in COMMON_METHODS:
        learner = _common_learner(method, X, splits, seed)
    else:
        learner = _paper_learner(method, splits, seed, protocol == "fair", rank)
    separate = method in NEED_COMPLETE_TARGETS and not np.isfinite(Y).all()
    return _TargetByTarget(learner) if separate else learner


def _common_learner(method: str, X: Array, folds: Sequence[Split], seed: int) -> Any:
    if method == "mean":
        return DummyRegressor()
    if method == "ridge":
        return RidgeCV(RIDGE_ALPHAS, alpha_per_target=True)
    if method == "PLS":
        most = max(1, min(X.shape[1], 15, *(len(train) - 1 for train, _ in folds)))
        return _PartialLeastSquaresCV(most, cv=folds)
    if method == "gaussian-process":
        kernel = ConstantKernel() * RBF(float(np.sqrt(X.shape[1]))) + WhiteKernel(0.1)
        return _TargetByTarget(GaussianProcessRegressor(kernel, normalize_y=True))
    if method == "extra-trees":
        return ExtraTreesRegressor(100, random_state=seed)
    plain: dict[str, Any] = {"param_grid": {"shrinkage": [1.0]}} if method == "kernel-ridge" else {}
    return EntangledKernelRidgeCV(cv=folds, random_state=seed, **plain)


def _paper_learner(
    method: str, folds: Sequence[Split], seed: int, fair: bool, rank: float | None
) -> Any:
    if method == "KRR, lambda 1":
        return EntangledKernelRidge(shrinkage=1.0, alpha=1.0, fit_intercept=False)
    if method == "OKL, lambda 1":
        return OutputKernelRidge("linear", alpha=1.0, fit_intercept=False)
    if method == "OKL":
        return OutputKernelRidgeCV("linear", cv=folds, fit_intercept=fair)
    if method == "KRR":
        grid: dict[str, Any] = {"shrinkage": [1.0]}
    else:
        grid = GRID if rank is None else SMALL_GRID
        grid = {**grid, "prediction": [PREDICTIONS[method]], "rank": [rank]}
    return EntangledKernelRidgeCV(
        None,
        cv=folds,
        selection="best",
        random_state=seed,
        alphas=None if fair else LAMBDAS,
        fit_intercept=fair,
        param_grid=grid,
    )


class _PartialLeastSquaresCV(RegressorMixin, BaseEstimator):
    """`PLSRegression` with the number of components that has the least cross-validated error.

    Components are computed one after the other, so that one fit to the training rows of a fold
    gives the predictions with every smaller number of components.
    """

    def __init__(self, most: int, cv: Sequence[Split]) -> None:
        self.most = most
        self.cv = cv

    def fit(self, X: Array, Y: Array) -> _PartialLeastSquaresCV:
        """Choose the number of components on the folds, and fit to all rows."""
        Y = Y.reshape(len(X), -1)
        most = max(1, min(self.most, X.shape[1], *(len(train) - 1 for train, _ in self.cv)))
        errors = np.zeros(most)
        for train, test in self.cv:
            model = PLSRegression(most, scale=False).fit(X[train], Y[train])
            scores = (X[test] - X[train].mean(axis=0)) @ model.x_rotations_  # (n, k)
            parts = scores[:, :, None] * model.y_loadings_.T  # (n, k, p)
            residuals = (Y[test] - Y[train].mean(axis=0))[:, None] - np.cumsum(parts, axis=1)
            errors += np.mean(residuals**2, axis=(0, 2))
        self.n_components_ = int(np.argmin(errors)) + 1
        self.model_ = PLSRegression(self.n_components_, scale=False).fit(X, Y)
        return self

    def predict(self, X: Array) -> Array:
        """Predictions (n, p)."""
        return np.asarray(self.model_.predict(X)).reshape(len(X), -1)


class _TargetByTarget(RegressorMixin, BaseEstimator):
    """Clones of a learner, one for each target, fitted to the rows that have the target."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, X: Array, Y: Array) -> _TargetByTarget:
        """Fit a clone to every column of Y."""
        self.learners_ = []
        for y in Y.T:
            rows = np.isfinite(y)
            learner = clone(self.learner)
            if hasattr(learner, "cv") and not rows.all():
                learner.set_params(cv=_folds_within(learner.cv, rows))
            self.learners_.append(learner.fit(X[rows], y[rows]))
        return self

    def predict(self, X: Array) -> Array:
        """Predictions (n, p)."""
        return np.column_stack([np.ravel(learner.predict(X)) for learner in self.learners_])


def _folds_within(folds: Any, rows: Array) -> Any:
    """Folds of a subset of the rows, numbered within it; folds that become empty are left out."""
    if folds is None:
        return None
    number = np.cumsum(rows) - 1
    kept = [tuple(number[part[rows[part]]] for part in fold) for fold in folds]
    return [fold for fold in kept if len(fold[0]) > 1 and len(fold[1])]
