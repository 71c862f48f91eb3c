"""What is kept beside a model: names of columns, what was chosen, and its errors beside kernel ridge's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from ..estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from .settings import settings_of
from .target_relations import output_relations
from .training_table import TrainingTable

__all__ = ["describe"]


def describe(model: EntangledKernelRidgeCV, table: TrainingTable, *, folds: int, seed: int) -> dict[str, Any]:
    """Facts about a model fitted to a table, as plain values.

    Of a table that was read in batches, relations between targets are those of the first rows, and there are
    no errors of single targets where the search has not kept them apart.
    """
    ridge = _place_of_kernel_ridge(model)
    return {
        "rows": model.n_samples_seen_ - table.blanks.empty_rows if table.Y is None else len(table.Y),
        "blank_cells": table.blanks.cells,
        "rows_without_targets": table.blanks.empty_rows,
        "inputs": table.inputs,
        "targets": table.targets,
        "text": table.text,
        "chosen": settings_of(model.best_estimator_),
        "candidates": _effective_candidates(model),
        "nmse": float(model.best_score_),
        "kernel_ridge_nmse": float(model.cv_results_["mean_test_score"][ridge]),
        "target_scores": _target_scores(model, ridge, table, folds=folds, seed=seed),
        "relations": output_relations(model.best_estimator_, table.X).round(6).tolist(),
    }


def _place_of_kernel_ridge(model: EntangledKernelRidgeCV) -> int:
    """Place of the best candidate that is kernel ridge."""
    results = model.cv_results_
    plain = np.flatnonzero((results["param_shrinkage"] == 1.0) & (results["param_gain"] == 1.0))
    return int(plain[np.argmin(results["mean_test_score"][plain])])


def _effective_candidates(model: EntangledKernelRidgeCV) -> float:
    """How many candidates share in the average, counting those of small weight for less."""
    # Where targets weigh candidates apart, over all of them.
    return float(1.0 / np.mean(np.sum(model.average_weights_**2, axis=0)))


def _target_scores(
    model: EntangledKernelRidgeCV, ridge: int, table: TrainingTable, *, folds: int, seed: int
) -> list[dict[str, Any]]:
    """Held-out nMSE of every target beside kernel ridge's, None for one that is constant."""
    kept = getattr(model, "cv_target_scores_", None)
    if kept is not None:
        pair = kept[[model.best_index_, ridge]]
    elif table.Y is not None:
        both = (model.best_estimator_, _kernel_ridge(model, ridge))
        pair = np.array([_held_out_errors(one, table, folds=folds, seed=seed) for one in both])
    else:
        return []
    return [
        {"target": name, "nmse": _finite(own), "kernel_ridge_nmse": _finite(plain)}
        for name, own, plain in zip(table.targets, *pair, strict=True)
    ]


def _finite(error: float) -> float | None:
    return float(error) if np.isfinite(error) else None


def _kernel_ridge(model: EntangledKernelRidgeCV, place: int) -> EntangledKernelRidge:
    """The candidate at this place, which is kernel ridge, not fitted."""
    results = model.cv_results_
    ridge: EntangledKernelRidge = clone(model.best_estimator_)
    return ridge.set_params(  # type: ignore[no-any-return]
        feature_map=model.feature_map[int(results["param_feature_map"][place])],
        shrinkage=1.0,
        prediction="entangled",
        gain=1.0,
        alpha=float(results["param_alpha"][place]),
    )


def _held_out_errors(estimator: EntangledKernelRidge, table: TrainingTable, *, folds: int, seed: int) -> Any:
    """The nMSE of every target over its measured cells with these settings, not finite for a constant one."""
    Y = table.Y.to_numpy()
    splits = KFold(min(folds, len(Y)), shuffle=True, random_state=seed)
    held_out = np.asarray(cross_val_predict(clone(estimator), table.X, Y, cv=splits)).reshape(Y.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nanmean((Y - held_out) ** 2, axis=0) / np.nanvar(Y, axis=0)
