"""Settings and errors in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators import EntangledKernelRidge

__all__ = ["change_in_words", "chosen_in_words", "counted", "settings_of"]


def settings_of(model: EntangledKernelRidge) -> dict[str, Any]:
    """Feature map and parameters of a fitted model that say what it is, as plain values."""
    names = ("shrinkage", "alignment_mix", "target_alpha", "prediction")
    return {
        "features": _map_in_words(model.feature_map_),
        **{n: getattr(model, n) for n in names},
        **{n: np.asarray(getattr(model, n)).tolist() for n in ("alpha", "gain")},
    }


def _map_in_words(feature_map: Any) -> str:
    """A feature map by the names of its steps."""
    if feature_map is None:
        return "inputs as they are"
    steps = getattr(feature_map, "steps", [("", feature_map)])
    return " + ".join(type(step).__name__ for _, step in steps)


def chosen_in_words(chosen: dict[str, Any]) -> str:
    """The chosen settings in one line."""
    penalty = _range_in_words("alpha", chosen["alpha"])
    # Those of models saved before there was a gain have none.
    if np.any(np.asarray(gain := chosen.get("gain", 1.0)) != 1.0):
        penalty += f", {_range_in_words('gain', gain)}"
    if chosen["shrinkage"] == 1.0:
        return f"{chosen['features']}; kernel ridge, {penalty}"
    kind = "entangled kernel" if chosen["prediction"] == "entangled" else "partial-trace kernel"
    return (
        f"{chosen['features']}; {kind} with shrinkage {chosen['shrinkage']:g}, alignment mix "
        f"{chosen['alignment_mix']:g}, target alpha {chosen['target_alpha']:g}; {penalty}"
    )


def _range_in_words(name: str, value: Any) -> str:
    """One number, or from which to which several go."""
    values = np.asarray(value)
    return f"{name} {values:.3g}" if values.ndim == 0 else f"{name} {values.min():.3g} to {values.max():.3g}"


def change_in_words(nmse: float | None, plain: float | None) -> str:
    """How much less one error is than another."""
    if nmse is None or plain is None or not plain > 0.0:
        return "-"
    change = 100.0 * (1.0 - nmse / plain)
    return (
        "the same" if abs(change) < 0.05 else f"{abs(change):.1f}% {'less' if change > 0 else 'more'} error"
    )


def counted(number: int, thing: str) -> str:
    """1 target, 2 targets."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
