"""The methods that are compared, each with everything it has to choose chosen on the same folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
    "EARLY",
    "FIXED",
    "LAMBDAS",
    "METHODS",
    "PAPER_METHODS",
    "REFERENCES",
    "Fitted",
    "Plan",
    "PublishedModel",
    "fit_methods",
    "fit_published",
    "tuned_learner",
]

# Largest first, so that among equal errors the largest is chosen.
LAMBDAS = 10.0 ** np.arange(8, -9, -1)
# The early form stops after at most this many steps and mixes in one of these shares of the plain
# kernel: with more steps, or without a share, it overfits.
EARLY_STEPS, SHRINKAGES = 20, (0.25, 0.75)


class Candidate(NamedTuple):
    """A way to learn the kernel: steps of the ascent, and share of the plain kernel mixed in."""

    n_steps: int
    shrinkage: float


class PublishedModel(NamedTuple):
    """The linear model f(x) = coef @ phi(x), how its kernel was learned, and its lambda.

    The cross-validated error is in units that all models of one call share, and None if lambda was
    fixed.
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
        A lambda that is not chosen.

    Returns
    -------
    dict of PublishedModel
        By prediction and kind: ``"chosen"``, and ``"fixed"`` with the same kernel and that lambda.

    Notes
    -----
    Kernels are used as the ascent leaves them, of unit-norm Q, so that tr D = 1, and partial traces
    are not divided by p: a lambda is far stronger for them than for the plain kernel, whose D is
    the identity.
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
    problem = reduce_moments(moments, centred=False, rows=rows).restored(rows, moments)
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
    """The kernel, of trace one, at every candidate step and with every candidate share."""
    last = min(EARLY_STEPS, n_steps) if early else n_steps
    steps = [*(step for step in PATH_STEPS if early and step < last), last]
    kernels = {}

    def keep(progress: Progress) -> None:
        if progress.n_iter in steps:
            kernels[progress.n_iter] = LearnedKernel.from_operators(progress.Q)

    settings = FitSettings(
        "ascent", rank, init="identity" if early else "random", max_iter=last, seed=seed
    )
    end = solve(problem.with_mix(0.5), settings, keep).kernel
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


# Methods that users know. They get the inputs and choose features by themselves.
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
# Kernel ridge, which improvements are measured against: the first one that was fitted.
REFERENCES = ("KRR", "kernel-ridge")
# These take missing targets; the others are fitted to each target separately if any is missing.
TAKE_MISSING = ("entangled", "gaussian-process", "kernel-ridge", "KRR", "EKL", "ptrEKL", "OKL")
RIDGE_ALPHAS = np.logspace(-3, 5, 33)
# With the paper's protocol EKL and ptrEKL are the published algorithm to the letter, and these are
# its safe form: without a share of the plain kernel, a first step that suits the folds may be far
# too long for all rows.
EARLY = {
    "EKL, early": "EKL from the plain kernel, stopped early, a share of it kept",
    "ptrEKL, early": "ptrEKL from the plain kernel, stopped early, a share of it kept",
}
FIXED = {
    f"{method}, lambda 1": f"{method} of the paper's protocol with lambda 1, nothing selected"
    for method in ("KRR", "OKL", "EKL", "ptrEKL")
}
PICKED = {
    SHARED: "EKL or ptrEKL, whichever has the lower cross-validated error on the training rows",
    f"{SHARED}, early": "the same of their forms that are stopped early",
}
FIXED_LAMBDA = 1.0
PAPER_METHODS = ("KRR", "OKL", "EKL", "ptrEKL")
# Candidates, from plain kernel ridge to the learned kernel alone. With a bound on the rank each has
# hundreds of Kraus operators, so there are fewer of them.
GRID: dict[str, Any] = {
    "alignment_mix": (0.0, 0.5, 1.0),
    "shrinkage": (0.0, 0.25, 0.5, 0.75, 1.0),
    "target_alpha": (0.01, 0.1, 1.0, 10.0),
}
FEW: dict[str, Any] = {
    "alignment_mix": (0.5,),
    "shrinkage": (0.0, 0.5, 1.0),
    "target_alpha": (0.1, 1.0),
}
PREDICTIONS = {"EKL": "entangled", "ptrEKL": "partial_trace"}


@dataclass(frozen=True)
class Plan:
    """Which methods are fitted, and how.

    Attributes
    ----------
    protocol : {"fair", "paper"}
    methods : sequence of str
        Keys of `METHODS`.
    rank : float or None
        Share of the full Kraus rank that EKL and ptrEKL may use.
    n_steps : int
        Steps of the published ascent, in the paper's protocol.
    early, fixed : bool
        Whether the variants of `EARLY` and of `FIXED` are fitted too, in the paper's protocol.
    picked : bool
        Whether the variants of `PICKED` are added.
    """

    protocol: str = "fair"
    methods: tuple[str, ...] = PAPER_METHODS
    rank: float | None = None
    n_steps: int = 200
    early: bool = True
    fixed: bool = False
    picked: bool = False

    def labels(self) -> dict[str, str]:
        """Names of the methods in the records, with a description of each."""
        labels = {name: METHODS[name] for name in self.methods}
        if self.protocol == "paper":
            variants = (EARLY if self.early else {}) | (FIXED if self.fixed else {})
            labels |= {
                name: text for name, text in variants.items() if name.partition(",")[0] in labels
            }
        if self.picked:
            picked = {
                name: text for name, text in PICKED.items() if name.replace(SHARED, "EKL") in labels
            }
            labels |= picked
        return labels


class Fitted(NamedTuple):
    """A fitted method.

    Attributes
    ----------
    label : str
    predict : callable
    takes_inputs : bool
        Whether `predict` takes inputs, or features.
    fit_seconds : float
    cv_error : float or None
        Cross-validated error, by which one of EKL and ptrEKL is picked.
    """

    label: str
    predict: Callable[[Array], Any]
    takes_inputs: bool
    fit_seconds: float
    cv_error: float | None = None


def fit_methods(
    plan: Plan,
    X: Array,
    Phi: Array,
    Y: Array,
    folds: Sequence[Split],
    seed: int,
    *,
    rows_together: bool = False,
) -> Iterator[Fitted]:
    """Fit all methods of a plan; kernels are linear in features Phi (n, m) of inputs X (n, d).

    ``rows_together`` is that of `tuned_learner`.
    """
    labels, pairs = plan.labels(), dict[str, Fitted]()
    published = [name for name in plan.methods if plan.protocol == "paper" and name in PREDICTIONS]
    for method in labels:
        if method in PICKED or method.partition(",")[0] in published:
            continue
        inputs = method in COMMON_METHODS
        start = process_time()
        rows = X if inputs else Phi
        model = tuned_learner(method, rows, Y, folds, seed, plan, rows_together=rows_together)
        model.fit(X if inputs else Phi, Y)
        seconds = process_time() - start
        fitted = Fitted(method, model.predict, inputs, seconds, getattr(model, "cv_score_", None))
        pairs[method] = fitted
        yield fitted
    for fitted in _fit_published(plan, published, Phi, Y, folds, seed):
        pairs[fitted.label] = fitted
        yield fitted
    for label in PICKED:
        if label in labels:
            names = [label.replace(SHARED, name) for name in PREDICTIONS]
            both = [pairs[name] for name in names if name in pairs]
            best = min(both, key=lambda fitted: float(fitted.cv_error or 0.0))
            # The published EKL and ptrEKL share their ascents.
            times = [fitted.fit_seconds for fitted in both]
            total = max(times) if plan.protocol == "paper" else sum(times)
            yield best._replace(label=label, fit_seconds=total)


def _fit_published(
    plan: Plan, methods: Sequence[str], Phi: Array, Y: Array, folds: Sequence[Split], seed: int
) -> Iterator[Fitted]:
    """EKL and ptrEKL share their ascents, and the time that these take."""
    names = {PREDICTIONS[name]: name for name in methods}
    for early in (False, True) if plan.early else (False,):
        if not names:
            return
        start = process_time()
        fixed = FIXED_LAMBDA if plan.fixed and not early else None
        settings: dict[str, Any] = {"n_steps": plan.n_steps, "rank": plan.rank, "early": early}
        models = fit_published(Phi, Y, folds, tuple(names), seed, fixed=fixed, **settings)
        seconds = process_time() - start
        for (prediction, kind), model in models.items():
            suffix = ", lambda 1" if kind == "fixed" else ", early" if early else ""
            yield Fitted(names[prediction] + suffix, model.predict, False, seconds, model.cv_error)


def tuned_learner(
    method: str,
    X: Array,
    Y: Array,
    folds: Sequence[Split],
    seed: int,
    plan: Plan | None = None,
    *,
    rows_together: bool = False,
) -> Any:
    """A learner by name, not fitted, that chooses its settings on the folds.

    Parameters
    ----------
    method : str
        A key of `METHODS`, or of `FIXED`.
    X : ndarray of shape (n, d)
        Standardised inputs; for the methods of the paper, features.
    Y : ndarray of shape (n, p)
        NaN where a target is missing.
    folds : sequence of splits
    seed : int
    plan : Plan, optional
        Protocol and rank of the methods of the paper.
    rows_together : bool, default=False
        Whether the folds hold out groups or later rows. Ridge then chooses its alpha on the folds,
        because leaving out single rows would look at others of their group.
    """
    if method == "ridge" and rows_together:
        return _TargetByTarget(RidgeCV(RIDGE_ALPHAS, cv=folds))
    if method in COMMON_METHODS:
        learner = _common_learner(method, X, folds, seed)
    else:
        learner = _paper_learner(method, folds, seed, Plan() if plan is None else plan)
    return learner if method in TAKE_MISSING or np.isfinite(Y).all() else _TargetByTarget(learner)


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


def _paper_learner(method: str, folds: Sequence[Split], seed: int, plan: Plan) -> Any:
    fair = plan.protocol == "fair"
    if method == "KRR, lambda 1":
        return EntangledKernelRidge(shrinkage=1.0, alpha=FIXED_LAMBDA, fit_intercept=False)
    if method == "OKL, lambda 1":
        return OutputKernelRidge("linear", alpha=FIXED_LAMBDA, fit_intercept=False)
    if method == "OKL":
        return OutputKernelRidgeCV("linear", cv=folds, fit_intercept=fair)
    settings: dict[str, Any] = {
        "feature_map": None,
        "cv": folds,
        "selection": "best",
        "random_state": seed,
        "alphas": None if fair else LAMBDAS,
        "fit_intercept": fair,
    }
    if method == "KRR":
        settings["param_grid"] = {"shrinkage": [1.0]}
    else:
        grid = GRID if plan.rank is None else FEW
        settings["param_grid"] = {**grid, "prediction": [PREDICTIONS[method]], "rank": [plan.rank]}
    return EntangledKernelRidgeCV(**settings)


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
