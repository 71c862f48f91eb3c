"""Model files as the commands use them: with the names of their columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..storage import ModelFileError, SavedModel, open_model
from .files import check_input

__all__ = ["inputs_of", "open_named_model", "targets_of"]


def open_named_model(path: Path) -> SavedModel:
    """Read a model file; models saved from Python have names too when they were fitted on data frames."""
    check_input(path)
    return open_model(path)


def inputs_of(saved: SavedModel, path: Path) -> list[str]:
    """Names of the columns that the model predicts from."""
    if "inputs" in saved.info:
        return list(saved.info["inputs"])
    names = getattr(saved.model, "feature_names_in_", None)
    if names is None:
        raise ModelFileError(
            f"{path} does not know the names of its inputs; fit it on a data frame, or with the fit command"
        )
    return [str(name) for name in names]


def targets_of(saved: SavedModel) -> list[str]:
    """Names of the targets, made up where there are none."""
    if "targets" in saved.info:
        return list(saved.info["targets"])
    names = getattr(saved.model, "target_names_", None)
    if names is not None:
        return [str(name) for name in names]
    return [f"output{place}" for place in range(n_outputs(saved.model))]


def n_outputs(model: Any) -> int:
    """Number of targets of a fitted model."""
    if hasattr(model, "coef_"):
        return len(model.coef_)
    shape = model.dual_coef_.shape
    return int(shape[1]) if len(shape) == 2 else 1
