"""From a table in memory to a model of any learner, its settings chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..estimators import (
    EntangledKernelRidgeCV,
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OperatorFourierRidge,
    OperatorKernelVARCV,
    OutputKernelRidge,
    OutputKernelRidgeCV,
    StandardizedRegressor,
)
from ..features import GaussianFeatures, OperatorFourierFeatures
from .features import feature_maps, text_encoder
from .input_groups import place_groups
from .methods import Choice
from .model_facts import finite, map_in_words
from .screen import Screen
from .training_table import TrainingTable

__all__ = ["fit_learner"]

# Targets are standardised and kernels have a mean diagonal of one, so that one grid serves all tables.
ALPHAS = tuple(10.0 ** np.arange(-3.0, 3.5, 1.0))
# Of a Gaussian kernel, in units of one over the number of standardised columns.
WIDTHS = (0.1, 0.3, 1.0, 3.0)
# The same for random features, and for views, whose ridge is a power of alpha below one.
SMALL_ALPHAS = tuple(10.0 ** np.arange(-5.0, 2.5, 1.0))


def fit_learner(
    screen: Screen,
    table: TrainingTable,
    choice: Choice,
    features: str,
    *,
    folds: int,
    seed: int,
    jobs: int | None,
) -> tuple[Any, dict[str, Any]]:
    """The model that cross-validation chooses, and facts about it as plain values.

    Parameters
    ----------
    screen : Screen
    table : TrainingTable
        In memory.
    choice : Choice
    features : str
        One of `FEATURES`.
    folds : int
        No more are made than there are rows, unless the table says which rows are held out together.
    seed, jobs : int

    Notes
    -----
    Errors are of held-out rows with the settings chosen, beside kernel ridge's with the same features.
    """
    facts = {
        "rows": len(table.Y),
        "blank_cells": table.blanks.cells,
        "rows_without_targets": table.blanks.empty_rows,
        "inputs": table.inputs,
        "targets": table.targets,
        "text": table.text,
        "candidates": 1.0,
    }
    if choice.name == "var":
        with screen.working("choosing the settings"):
            return _fit_series(table, choice, facts, folds)
    folded = table.held_out.splits(len(table.Y), folds, seed)
    with screen.working("choosing the settings"):
        found = [
            _Candidate(table, one, folded) for one in _searches(table, choice, features, folded, seed, jobs)
        ]
        best = min(found, key=lambda one: one.nmse)
        plain = min(
            (_Candidate(table, one, folded) for one in _ridges(table, features, folded, seed)),
            key=lambda one: one.nmse,
        )
    scores = [
        {"target": name, "nmse": finite(own), "kernel_ridge_nmse": finite(other)}
        for name, own, other in zip(table.targets, best.errors, plain.errors, strict=True)
    ]
    errors = {"nmse": best.nmse, "kernel_ridge_nmse": plain.nmse, "target_scores": scores}
    model = best.model
    return clone(model).fit(table.X, table.Y), facts | errors | {"chosen": _chosen(model)}


class _Candidate:
    """A model, not fitted, with its settings chosen, and its errors on held-out rows."""

    def __init__(self, table: TrainingTable, search: Any, folds: Sequence[Any]) -> None:
        Y = table.Y.to_numpy()
        search.fit(table.X, table.Y)
        self.model = getattr(search, "best_estimator_", search)
        inner: Any = getattr(self.model, "regressor_", None)
        if hasattr(inner, "penalty_"):
            # The search inside a model that searches must not be run again.
            names = OutputKernelRidge().get_params(deep=False).keys() & inner.get_params(deep=False).keys()
            settings = {name: getattr(inner, name) for name in names - {"penalty"}}
            settled = OutputKernelRidge(alpha=inner.alpha_, penalty=inner.penalty_, **settings)
            self.model = self.model.set_params(regressor=settled)
        held_out = _predict_held_out(self.model, table, folds)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.errors = np.nanmean((Y - held_out) ** 2, axis=0) / np.nanvar(Y, axis=0)
        finite = self.errors[np.isfinite(self.errors)]
        self.nmse = float(finite.mean()) if len(finite) else 0.0


def _predict_held_out(model: Any, table: TrainingTable, folds: Sequence[Any]) -> Any:
    """Predictions (n, p) of rows by models that have not seen them; NaN for those that are never held out."""
    found = np.full(table.Y.shape, np.nan)
    for train, test in folds:
        fitted = clone(model).fit(table.X.iloc[train], table.Y.iloc[train])
        found[test] = np.asarray(fitted.predict(table.X.iloc[test])).reshape(len(test), -1)
    return found


def _searches(
    table: TrainingTable, choice: Choice, features: str, folds: Any, seed: int, jobs: int | None
) -> list[Any]:
    """Searches to try, each of which fits a model with settings that suit the table."""
    if choice.name == "output-kernel":
        learner = OutputKernelRidgeCV(cv=folds, n_jobs=jobs, **choice.settings)
        maps = feature_maps(features, table.text, seed=seed)
        return [StandardizedRegressor(learner, feature_map=one) for one in maps]
    grid: dict[str, Any] = {"regressor__alpha": ALPHAS if choice.name == "multiple-kernels" else SMALL_ALPHAS}
    if choice.name == "fourier":
        settings = {"n_frequencies": 100, "random_state": seed, **choice.settings}
        learner = OperatorFourierRidge(OperatorFourierFeatures(**settings))
        # A field is without curl or divergence in the units that it was measured in.
        keeps_units = settings.get("kernel") in ("curl_free", "divergence_free")
        first = None if keeps_units else _standardised(table)
        if "gamma" not in settings:
            width = table.X.var().mean() if keeps_units else 1.0
            columns = table.X.shape[1]
            grid["regressor__features__gamma"] = [value / (columns * width) for value in WIDTHS]
    else:
        kernels = _kernels(table, choice, features, seed)
        if choice.name == "multiple-kernels":
            learner = MultipleKernelRidge(kernels, **choice.settings)
        else:
            learner = MultiViewKernelRidge(kernels, **choice.settings)
        first = _standardised(table)
    model = StandardizedRegressor(learner, feature_map=first)
    return [GridSearchCV(model, grid, cv=folds, n_jobs=jobs, error_score="raise")]


def _ridges(table: TrainingTable, features: str, folds: Any, seed: int) -> list[Any]:
    """Kernel ridge regression, to compare with."""
    maps = feature_maps(features, table.text, seed=seed)
    if table.X.isna().to_numpy().any():
        maps = [make_pipeline(SimpleImputer(), one) for one in maps]
    settings: dict[str, Any] = {"shrinkages": (1.0,), "gains": (1.0,), "selection": "best"}
    return [EntangledKernelRidgeCV(maps, cv=folds, random_state=seed, **settings)]


def _standardised(table: TrainingTable) -> Any:
    return make_pipeline(text_encoder(table.text), StandardScaler()) if table.text else StandardScaler()


def _kernels(table: TrainingTable, choice: Choice, features: str, seed: int) -> list[Any]:
    """Kernels of every group of inputs, or several of all inputs where there are no groups."""
    if not choice.groups:
        names = {"auto": ("linear", "narrow", "middle", "wide"), "rbf": ("narrow", "middle", "wide")}
        return [
            (name, _kernel(name, table.X.shape[1], seed), slice(None))
            for name in names.get(features, (features,))
        ]
    groups = place_groups(choice.groups, table)
    # Views have one kernel each; of groups both kinds are tried.
    if features != "auto":
        kinds: tuple[str, ...] = (features,)
    else:
        kinds = ("rbf",) if choice.name == "multi-view" else ("linear", "rbf")
    return [
        (name if len(kinds) == 1 else f"{name} {kind}", _kernel(kind, len(columns), seed), columns)
        for name, columns in groups.items()
        for kind in kinds
    ]


def _kernel(name: str, n_columns: int, seed: int) -> Any:
    """A kernel of standardised columns by name, as `MultipleKernelRidge` takes it."""
    widths = {"narrow": 0.5, "middle": 1.0, "wide": 2.0}
    if name in widths:
        return RBF(widths[name] * float(np.sqrt(n_columns)))
    return GaussianFeatures(approximation="fourier", random_state=seed) if name == "fourier" else name


def _fit_series(
    table: TrainingTable, choice: Choice, facts: dict[str, Any], folds: int
) -> tuple[Any, dict[str, Any]]:
    model = OperatorKernelVARCV(cv=folds, **choice.settings).fit(table.Y)
    chosen = {"kernel": model.kernel, "lags": model.lags, "alpha": float(model.alpha_)}
    errors: dict[str, Any] = {"nmse": 1.0 - model.best_score_, "kernel_ridge_nmse": None, "target_scores": []}
    return model, facts | errors | {"chosen": chosen}


def _chosen(model: Any) -> dict[str, Any]:
    """Settings that say what a model is, as plain values."""
    learner = model.regressor
    params = learner.get_params()
    names = ["penalty", "constraint", "output_kernel", "norm", "eta", "sparse"]
    names += ["features__kernel", "features__gamma"]
    settings = {name.removeprefix("features__"): params[name] for name in names if name in params}
    plain = {name: value for name, value in settings.items() if value is not None}
    return {"features": map_in_words(model.feature_map), "alpha": float(learner.alpha), **plain}
