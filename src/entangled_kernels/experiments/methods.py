"""The methods that are compared, each with everything it has to choose chosen on the same folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, NamedTuple

from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GridSearchCV

from ..estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from ..linalg import Array
from ..selection import Split
from .learners import LEARNERS, build_learner
from .paper_cells import SHARED
from .published import LAMBDAS, Ascent, fit_published

__all__ = ["EARLY", "FIXED", "METHODS", "PAPER_METHODS", "Fitted", "Plan", "fit_methods"]

METHODS = {
    "KRR": "kernel ridge regression, one alpha for all outputs",
    "OKL": "output kernel learning: one relation between outputs, learned with the model",
    "EKL": "entangled kernel learning, predicting with the operator-valued kernel",
    "ptrEKL": "entangled kernel learning, predicting with the scalar kernel of its partial trace",
    "selected": "EntangledKernelRidgeCV as it comes: base kernel, learned kernel and alpha all selected",
    "KRR-selected": "kernel ridge regression with the same choice of features as selected",
    "PLS": "partial least squares, number of components selected",
    "extra-trees": "200 extremely randomised trees",
}
# With the paper's protocol EKL and ptrEKL are the published algorithm to the letter, and these its safe form:
# they start at the plain kernel, select where to stop, and keep a share of it, without which a first step
# that suits the folds may be far too long for all rows.
EARLY = {
    "EKL, early": "EKL from the plain kernel, stopped early, a share of the plain kernel kept",
    "ptrEKL, early": "ptrEKL from the plain kernel, stopped early, a share of the plain kernel kept",
}
FIXED = {
    f"{method}, lambda 1": f"{method} of the paper's protocol with lambda 1, nothing selected"
    for method in ("KRR", "OKL", "EKL", "ptrEKL")
}
PICKED = {
    SHARED: "EKL or ptrEKL, whichever has the lower cross-validated error on the training rows",
    f"{SHARED}, early": "the same of their forms that are stopped early",
}
# Where the path from the plain kernel ends, and what is mixed into it: further on, or without, it overfits.
EARLY_STEPS, SHRINKAGES = 20, (0.25, 0.75)
FIXED_LAMBDA = 1.0
PAPER_METHODS = ("KRR", "OKL", "EKL", "ptrEKL")
# With a bound on the rank there are hundreds of Kraus operators to a candidate, so there are fewer of these.
FEW = {"alignment_mixes": (0.5,), "shrinkages": (0.0, 0.5, 1.0), "target_alphas": (0.1, 1.0)}
PREDICTIONS = {"EKL": "entangled", "ptrEKL": "partial_trace"}


@dataclass(frozen=True)
class Plan:
    """How methods are to be fitted.

    Attributes
    ----------
    protocol : {"fair", "paper"}
    methods : sequence of str
        Keys of `METHODS` or `LEARNERS`.
    rank : float or None
        Share of the full Kraus rank that EKL and ptrEKL may use.
    ascent : Ascent
        Of the paper's protocol.
    early, fixed : bool
        Whether the variants of `EARLY` and of `FIXED` come with their methods; with the paper's protocol.
    picked : bool
        Whether the one of EKL and ptrEKL that cross-validation picks stands beside them.
    input_groups : dict of list of int, optional
        Columns by group of inputs, for learners with several kernels; every column is one without.
    """

    protocol: str = "fair"
    methods: tuple[str, ...] = PAPER_METHODS
    rank: float | None = None
    ascent: Ascent = field(default_factory=Ascent)
    early: bool = True
    fixed: bool = False
    picked: bool = False
    input_groups: Mapping[str, Sequence[int]] | None = None

    def labels(self) -> dict[str, str]:
        """Methods by the names in the records, and what they are."""
        own = {name: (METHODS | LEARNERS)[name] for name in self.methods}
        if self.protocol == "paper":
            variants = (EARLY if self.early else {}) | (FIXED if self.fixed else {})
            own |= {label: text for label, text in variants.items() if label.partition(",")[0] in own}
        if self.picked:
            own |= {label: text for label, text in PICKED.items() if label.replace(SHARED, "EKL") in own}
        return own


class Fitted(NamedTuple):
    """A method after fitting: its label, ``predict``, whether that takes inputs or features, and the time.

    The cross-validated error, where there is one, is for comparison of EKL and ptrEKL.
    """

    label: str
    predict: Callable[[Array], Any]
    takes_inputs: bool
    fit_seconds: float
    cv_error: float | None = None


def fit_methods(
    plan: Plan, X: Array, Phi: Array, Y: Array, folds: Sequence[Split], seed: int
) -> Iterator[Fitted]:
    """Fit every method of a plan; kernels are linear in the features Phi (n, m) of the inputs X (n, d)."""
    pairs: dict[str, list[Fitted]] = {}
    for fitted in _fit_each(plan, X, Phi, Y, folds, seed):
        yield fitted
        name, comma, form = fitted.label.partition(",")
        if name in PREDICTIONS and fitted.cv_error is not None:
            pairs.setdefault(SHARED + comma + form, []).append(fitted)
    for label in (label for label in PICKED if label in plan.labels()):
        best = min(pairs[label], key=lambda one: float(one.cv_error or 0.0))
        # The published ascent is one for both.
        seconds = [one.fit_seconds for one in pairs[label]]
        yield best._replace(
            label=label, fit_seconds=max(seconds) if plan.protocol == "paper" else sum(seconds)
        )


def _fit_each(
    plan: Plan, X: Array, Phi: Array, Y: Array, folds: Sequence[Split], seed: int
) -> Iterator[Fitted]:
    for method in plan.labels():
        if method in PICKED or (plan.protocol == "paper" and method.partition(",")[0] in PREDICTIONS):
            continue
        several = method in LEARNERS and not method.startswith("OKL")
        inputs = several or method in ("selected", "KRR-selected", "extra-trees")
        start = process_time()
        # Features that are the inputs themselves stand for linear kernels of groups.
        model = _estimator(plan, method, X if inputs else Phi, "linear" if Phi is X else "rbf", folds, seed)
        model.fit(X if inputs else Phi, Y)
        seconds = process_time() - start
        yield Fitted(method, model.predict, inputs, seconds, getattr(model, "cv_score_", None))
    if plan.protocol == "paper":
        yield from _fit_published(plan, Phi, Y, folds, seed)


def _fit_published(plan: Plan, Phi: Array, Y: Array, folds: Sequence[Split], seed: int) -> Iterator[Fitted]:
    """EKL and ptrEKL share their ascents, and the time these take."""
    names = {PREDICTIONS[name]: name for name in plan.methods if name in PREDICTIONS}
    if not names:
        return
    published = replace(plan.ascent, rank=plan.rank)
    ascents = {"": published}
    if plan.early:
        ascents[", early"] = replace(
            published,
            init="identity",
            early=True,
            n_steps=min(EARLY_STEPS, published.n_steps),
            shrinkages=SHRINKAGES,
        )
    for suffix, ascent in ascents.items():
        start = process_time()
        fixed = FIXED_LAMBDA if plan.fixed and not suffix else None
        models = fit_published(Phi, Y, folds, ascent, tuple(names), seed, fixed)
        seconds = process_time() - start
        for (prediction, kind), model in models.items():
            label = names[prediction] + (suffix if kind == "chosen" else ", lambda 1")
            yield Fitted(label, model.predict, False, seconds, model.cv_error)


def _estimator(plan: Plan, method: str, Phi: Array, kernel: str, folds: Sequence[Split], seed: int) -> Any:
    fair = plan.protocol == "fair"
    if method == "KRR, lambda 1":
        return EntangledKernelRidge(shrinkage=1.0, alpha=FIXED_LAMBDA, fit_intercept=False)
    if method == "OKL, lambda 1":
        return OutputKernelRidge("linear", alpha=FIXED_LAMBDA, fit_intercept=False)
    if method in LEARNERS:
        return build_learner(method, Phi, kernel, plan.input_groups, folds, seed, fit_intercept=fair)
    if method == "OKL":
        return OutputKernelRidgeCV("linear", cv=folds, fit_intercept=fair)
    if method == "PLS":
        most = max(1, min(Phi.shape[1], 15, *(len(train) - 1 for train, _ in folds)))
        grid = {"n_components": list(range(1, most + 1))}
        return GridSearchCV(PLSRegression(scale=False), grid, cv=folds, scoring="neg_mean_squared_error")
    if method == "extra-trees":
        return ExtraTreesRegressor(200, random_state=seed)
    if method in ("selected", "KRR-selected"):
        plain: dict[str, Any] = {"shrinkages": (1.0,)} if method == "KRR-selected" else {}
        return EntangledKernelRidgeCV(cv=folds, random_state=seed, **plain)
    settings: dict[str, Any] = {
        "feature_map": None,
        "cv": folds,
        "selection": "best",
        "random_state": seed,
        "alphas": None if fair else LAMBDAS,
        "gains": (1.0,),
        "fit_intercept": fair,
    }
    if method == "KRR":
        settings |= {"shrinkages": (1.0,)}
    else:
        settings |= {"predictions": (PREDICTIONS[method],)}
        settings |= {} if plan.rank is None else {"ranks": (plan.rank,)} | FEW
    return EntangledKernelRidgeCV(**settings)
