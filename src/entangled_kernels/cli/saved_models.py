"""Model files as the commands use them: with the names of their columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..storage import ModelFileError, SavedModel, open_model
from .files import check_input

__all__ = ["inputs_of", "learner_of", "open_saved_model", "require_rows", "targets_of"]


def open_saved_model(path: Path) -> SavedModel:
    """Read a model file, after a look whether there is one."""
    check_input(path)
    return open_model(path)


def learner_of(model: Any) -> Any:
    """What was learned: the model itself, the best one of a search, or the regressor behind features."""
    return getattr(model, "regressor_", getattr(model, "best_estimator_", model))


def require_rows(saved: SavedModel, path: Path) -> None:
    """Raise for a model of time series, which predicts steps and not rows."""
    if not hasattr(saved.model, "predict"):
        raise ModelFileError(
            f"{path} is a model of time series ({type(saved.model).__name__}), which predicts steps, not "
            f"rows; load it in Python, and use its forecast"
        )


def inputs_of(saved: SavedModel, path: Path) -> list[str]:
    """Names of the columns that the model predicts from; it has them when it was fitted on a data frame."""
    names = getattr(saved.model, "feature_names_in_", None)
    if names is None:
        raise ModelFileError(
            f"{path} does not know the names of its inputs; fit it on a data frame, or with the fit command"
        )
    return [str(name) for name in names]


def targets_of(saved: SavedModel) -> list[str]:
    """Names of the targets, made up where there are none."""
    names = getattr(saved.model, "target_names_", None)
    if names is not None:
        return [str(name) for name in names]
    if not hasattr(saved.model, "predict") and hasattr(saved.model, "feature_names_in_"):
        return [str(name) for name in saved.model.feature_names_in_]
    # Coefficients of features are (p, m), of rows (n, p) or (n,).
    model = learner_of(saved.model)
    coef = getattr(model, "coef_", None)
    shape = model.dual_coef_.shape if coef is None else coef.T.shape
    return [f"output{place}" for place in range(shape[1] if len(shape) == 2 else 1)]
