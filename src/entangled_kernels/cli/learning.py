"""From a table to a model: the search, kernel ridge beside it, and what is worth keeping of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from ..estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from .columns import LearningTable
from .features import feature_maps
from .relations import output_relations
from .words import settings_of

__all__ = ["best_kernel_ridge", "describe", "effective_candidates", "search", "searcher", "target_scores"]

Array = NDArray[np.float64]


def search(
    data: LearningTable,
    features: str,
    *,
    folds: int,
    seed: int,
    jobs: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> EntangledKernelRidgeCV:
    """The model that cross-validation chooses."""
    maps = feature_maps(features, data.X, folds=folds, seed=seed)
    return searcher(maps, folds=folds, seed=seed, jobs=jobs).fit(data.X, data.Y, progress=progress)


def searcher(maps: Any, *, folds: int, seed: int, jobs: int | None) -> EntangledKernelRidgeCV:
    """The search, not fitted yet."""
    return EntangledKernelRidgeCV(maps, cv=folds, n_jobs=jobs, random_state=seed)


def describe(model: EntangledKernelRidgeCV, data: LearningTable, *, folds: int, seed: int) -> dict[str, Any]:
    """What is kept beside the model: names of columns, what was chosen, and how well it does."""
    plain, plain_score = best_kernel_ridge(model)
    scores = target_scores(model, data.targets)
    if not scores:
        both = (model.best_estimator_, plain)
        errors = [target_errors(each, data, folds=folds, seed=seed) for each in both]
        scores = _listed(data.targets, *errors)
    return {
        "rows": len(data.Y),
        "inputs": data.inputs,
        "targets": data.targets,
        "categories": data.categories,
        "chosen": settings_of(model.best_estimator_),
        "candidates": effective_candidates(model),
        "nmse": float(model.best_score_),
        "kernel_ridge_nmse": plain_score,
        "target_scores": scores,
        "relations": output_relations(model.best_estimator_, data.X).round(6).tolist(),
    }


def best_kernel_ridge(model: EntangledKernelRidgeCV) -> tuple[EntangledKernelRidge, float]:
    """The best of the candidates that are kernel ridge, not fitted, and its cross-validated error."""
    results, place = model.cv_results_, _place_of_kernel_ridge(model)
    maps = model.feature_map if isinstance(model.feature_map, list) else [model.feature_map]
    estimator = clone(model.best_estimator_).set_params(
        feature_map=maps[int(results["param_feature_map"][place])],
        shrinkage=1.0,
        prediction="entangled",
        gain=1.0,
        alpha=float(results["param_alpha"][place]),
    )
    return estimator, float(results["mean_test_score"][place])


def target_scores(model: EntangledKernelRidgeCV, targets: list[str]) -> list[dict[str, Any]]:
    """Held-out nMSE of every target beside kernel ridge's, if the search has kept them apart."""
    scores = getattr(model, "cv_target_scores_", None)
    if scores is None:
        return []
    pair = scores[[model.best_index_, _place_of_kernel_ridge(model)]]
    return _listed(targets, *([None if np.isnan(one) else float(one) for one in own] for own in pair))


def _listed(targets: list[str], own: list[float | None], ridge: list[float | None]) -> list[dict[str, Any]]:
    rows = zip(targets, own, ridge, strict=True)
    return [{"target": name, "nmse": mine, "kernel_ridge_nmse": plain} for name, mine, plain in rows]


def _place_of_kernel_ridge(model: EntangledKernelRidgeCV) -> int:
    """Place of the best candidate that is kernel ridge."""
    results = model.cv_results_
    plain = np.flatnonzero((results["param_shrinkage"] == 1.0) & (results["param_gain"] == 1.0))
    return int(plain[np.argmin(results["mean_test_score"][plain])])


def target_errors(
    estimator: EntangledKernelRidge, data: LearningTable, *, folds: int, seed: int
) -> list[float | None]:
    """Held-out nMSE of every target with these settings; None for one that is constant."""
    Y = data.Y.to_numpy()
    splits = KFold(folds, shuffle=True, random_state=seed)
    held_out = np.asarray(cross_val_predict(clone(estimator), data.X, Y, cv=splits)).reshape(Y.shape)
    squares, variances = np.mean((Y - held_out) ** 2, axis=0), Y.var(axis=0)
    return [float(s / v) if v > 0.0 else None for s, v in zip(squares, variances, strict=True)]


def effective_candidates(model: EntangledKernelRidgeCV) -> float | None:
    """How many candidates share in an average, counting those of small weight for less; None without one."""
    if model.selection != "average":
        return None
    # Where targets weigh candidates apart, over all of them.
    return float(1.0 / np.mean(np.sum(model.average_weights_**2, axis=0)))
