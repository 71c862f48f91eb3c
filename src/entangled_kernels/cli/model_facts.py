"""Facts about a model as plain values: what was chosen, its errors, how its targets relate, entanglement."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer

from ..estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OperatorKernelVAR,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from ..linalg import Array
from .explanations import explain_rows
from .training_table import TrainingTable

__all__ = [
    "correlations_of",
    "describe",
    "entanglement_of",
    "map_in_words",
    "output_relations",
    "settings_of",
]


def describe(model: EntangledKernelRidgeCV, table: TrainingTable) -> dict[str, Any]:
    """Facts about a model fitted to a table, as plain values.

    Errors are those of the model that is kept, on held-out rows. Of a table read in batches, relations
    between targets are those of the first rows.
    """
    return {
        "rows": model.n_samples_seen_ - table.blanks.empty_rows if table.Y is None else len(table.Y),
        "blank_cells": table.blanks.cells,
        "rows_without_targets": table.blanks.empty_rows,
        "inputs": table.inputs,
        "targets": table.targets,
        "text": table.text,
        "chosen": settings_of(model.best_estimator_),
        # Those that share in the average, of small weight for less; over all targets that weigh them apart.
        "candidates": float(1.0 / np.mean(np.sum(model.average_weights_**2, axis=0))),
        "nmse": float(model.cv_score_),
        "kernel_ridge_nmse": float(model.kernel_ridge_score_),
        "target_scores": _target_scores(model, table.targets),
        "relations": output_relations(model.best_estimator_, table.X).round(6).tolist(),
        "target_correlations": _target_correlations(model),
        "explanation": explain_rows(model, table.X),
    }


def _target_correlations(model: EntangledKernelRidgeCV) -> list[list[float]]:
    """Correlations of the targets over rows where both were measured, zero where that says nothing."""
    import pandas as pd

    found = pd.DataFrame(model.held_out_predictions().measured).corr().fillna(0.0)
    return found.round(6).to_numpy().tolist()  # type: ignore[no-any-return]


def _target_scores(model: EntangledKernelRidgeCV, targets: list[str]) -> list[dict[str, Any]]:
    """Held-out errors of every target beside kernel ridge's; no nMSE and R2 of one that is constant."""
    columns = model.cv_target_score_, model.kernel_ridge_target_score_, model.cv_rmse_
    return [
        {
            "target": name,
            "nmse": finite(own),
            "kernel_ridge_nmse": finite(plain),
            "r2": finite(1.0 - own),
            "rmse": float(rmse),
        }
        for name, own, plain, rmse in zip(targets, *columns, strict=True)
    ]


def finite(error: float) -> float | None:
    """An error as a plain number, None where there is none."""
    return float(error) if np.isfinite(error) else None


def settings_of(model: EntangledKernelRidge) -> dict[str, Any]:
    """Feature map and parameters of a fitted model that say what it is, as plain values."""
    names = ("shrinkage", "alignment_mix", "target_alpha", "prediction")
    return {
        "features": map_in_words(model.feature_map_),
        **{n: getattr(model, n) for n in names},
        **{n: np.asarray(getattr(model, n)).tolist() for n in ("alpha", "gain")},
    }


def map_in_words(feature_map: Any) -> str:
    """A feature map by the names of its steps."""
    if feature_map is None:
        return "inputs as they are"
    return " + ".join(_step_in_words(step) for _, step in getattr(feature_map, "steps", [("", feature_map)]))


def _step_in_words(step: Any) -> str:
    if isinstance(step, ColumnTransformer):
        return " and ".join(type(part).__name__ for _, part, _ in step.transformers)
    fourier = getattr(step, "approximation", None) == "fourier"
    return f"{type(step).__name__}{' (fourier)' if fourier else ''}"


# The test works on matrices of this many rows, features times targets, and takes the third power of it.
LARGEST = 3000
MEASURES = ("ppt", "lowest_eigenvalue", "negativity", "realignment", "schmidt_entropy", "separable_share")


def entanglement_of(model: Any) -> dict[str, Any]:
    """Verdict, and the numbers behind it where the kernel is small enough to be tested."""
    facts: dict[str, Any] = {"entangled": None, "verdict": "", "entanglement": None}
    if isinstance(model, OutputKernelRidge | OutputKernelRidgeCV):
        return facts | {
            "entangled": False,
            "verdict": "Separable: one scalar kernel times one learned output matrix.",
        }
    if isinstance(model, MultipleKernelRidge | MultiViewKernelRidge):
        return facts | {
            "entangled": False,
            "verdict": "Separable: a sum of scalar kernels, each times an output matrix.",
        }
    if not isinstance(model, EntangledKernelRidge):
        learned = isinstance(model, OperatorKernelVAR)
        why = "the test is for kernels of features" if learned else "the kernel was given, not learned"
        return facts | {"verdict": f"Not tested: {why}."}
    if (size := model.coef_.size) > LARGEST:
        return facts | {
            "verdict": f"Not tested: features times targets are {size}, and the test is for up to {LARGEST}."
        }
    found = model.kernel_.entanglement()
    numbers = {name: getattr(found, name) for name in MEASURES}
    return {"entangled": found.entangled, "verdict": found.verdict, "entanglement": numbers}


def output_relations(model: EntangledKernelRidge, X: Any) -> Array:
    """Correlations (p, p) between targets in the kernel's mean over the rows, K(x, x) about their centre.

    One where two targets are the same to the kernel, zero where they have nothing in common.
    """
    p = len(model.coef_)
    shared = np.zeros((p, p))
    if model.kraus_.shape[0]:
        Z = model.project(X)  # (n, p, r)
        Z = Z - Z.mean(axis=0)
        shared += np.einsum("nor,nqr->oq", Z, Z) / len(Z)
    if model.metric_ is not None:
        Phi = np.asarray(X if model.feature_map_ is None else model.feature_map_.transform(X), dtype=float)
        Phi = Phi - Phi.mean(axis=0)
        shared += np.eye(p) * np.einsum("ni,ij,nj->", Phi, model.metric_, Phi, optimize=True) / len(Phi)
    return correlations_of(shared)


def correlations_of(covariances: Array) -> Array:
    """Covariances scaled to a diagonal of ones; what does not vary has no correlation."""
    size = np.sqrt(np.diag(covariances))
    scale = np.where(size > 0.0, size, 1.0)
    correlations: Array = covariances / np.outer(scale, scale)
    np.fill_diagonal(correlations, 1.0)
    return correlations
