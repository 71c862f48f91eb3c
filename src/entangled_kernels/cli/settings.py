"""Settings of a fitted model, as plain values and in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer

from ..estimators import EntangledKernelRidge

__all__ = ["settings_in_words", "settings_of"]


def settings_of(model: EntangledKernelRidge) -> dict[str, Any]:
    """Feature map and parameters of a fitted model that say what it is, as plain values."""
    names = ("shrinkage", "alignment_mix", "target_alpha", "prediction")
    return {
        "features": _map_in_words(model.feature_map_),
        **{n: getattr(model, n) for n in names},
        **{n: np.asarray(getattr(model, n)).tolist() for n in ("alpha", "gain")},
    }


def settings_in_words(settings: dict[str, Any]) -> str:
    """The settings in one line."""
    penalty = _range_in_words("alpha", settings["alpha"])
    if np.any(np.asarray(settings["gain"]) != 1.0):
        penalty += f", {_range_in_words('gain', settings['gain'])}"
    if settings["shrinkage"] == 1.0:
        return f"{settings['features']}; kernel ridge, {penalty}"
    kind = "entangled kernel" if settings["prediction"] == "entangled" else "partial-trace kernel"
    return (
        f"{settings['features']}; {kind} with shrinkage {settings['shrinkage']:g}, alignment mix "
        f"{settings['alignment_mix']:g}, target alpha {settings['target_alpha']:g}; {penalty}"
    )


def _map_in_words(feature_map: Any) -> str:
    """A feature map by the names of its steps."""
    if feature_map is None:
        return "inputs as they are"
    steps = getattr(feature_map, "steps", [("", feature_map)])
    return " + ".join(_step_in_words(step) for _, step in steps)


def _step_in_words(step: Any) -> str:
    if isinstance(step, ColumnTransformer):
        return " and ".join(type(part).__name__ for _, part, _ in step.transformers)
    fourier = getattr(step, "approximation", None) == "fourier"
    return f"{type(step).__name__}{' (fourier)' if fourier else ''}"


def _range_in_words(name: str, value: Any) -> str:
    """One number, or from which to which several go."""
    values = np.asarray(value)
    return f"{name} {values:.3g}" if values.ndim == 0 else f"{name} {values.min():.3g} to {values.max():.3g}"
