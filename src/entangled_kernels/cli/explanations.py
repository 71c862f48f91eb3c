"""Explanations as plain values that a model file can hold, and in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..explanation import Explanation
from ..linalg import Array
from ..tables.phrases import quoted
from .screen import Screen

__all__ = ["explain_rows", "explanation_in_words", "explanation_of", "input_rows", "show_inputs"]

# Rows that are explained; with more inputs than this permutations take longer than fitting.
ROWS, MOST_INPUTS = 200, 200
# Inputs that are listed.
SHOWN = 12
COLUMNS = ["input", "importance", "of noise", "strongest on", "effect there"]


def explain_rows(model: Any, X: Any) -> dict[str, Any] | None:
    """What a model explains of evenly spaced rows, as plain values; None where inputs are very many."""
    if X.shape[1] > MOST_INPUTS or len(X) < 2:
        return None
    places = np.unique(np.linspace(0, len(X) - 1, ROWS).astype(int))
    found = model.explain(X.iloc[places])
    arrays = ("effect", "size", "noise", "importance_noise", "target_deviation")
    return {
        "method": found.method,
        "inputs": found.inputs,
        "targets": found.targets,
        **{name: _plain(getattr(found, name)) for name in arrays},
    }


def explanation_of(values: dict[str, Any] | None) -> Explanation | None:
    """The explanation that a model file holds; None where it holds none, or one that cannot be read."""
    if not values:
        return None
    try:
        found = Explanation(**{name: _array(value) for name, value in values.items()})
        d, p = len(found.inputs), len(found.targets)
        fits = all(one.shape == (d, p) for one in (found.effect, found.size, found.noise))
        fits = fits and found.importance_noise.shape == (d,) and found.target_deviation.shape == (p,)
    except (TypeError, ValueError, AttributeError):
        return None
    return found if fits else None


def input_rows(found: Explanation, most: int = SHOWN) -> list[list[Any]]:
    """Rows of a table of the most important inputs, under COLUMNS; the effect in deviations of its target."""
    unit = np.where(found.target_deviation > 0.0, found.target_deviation, np.nan)
    relative, rows = found.size / unit, list[list[Any]]()
    for place in found.order[:most]:
        strongest = int(np.argmax(np.nan_to_num(relative[place])))
        effect = float(found.effect[place, strongest] / unit[strongest])
        name = found.inputs[place]
        numbers = float(found.importance[place]), float(found.importance_noise[place])
        rows.append([name, *numbers, found.targets[strongest], effect])
    return rows


def explanation_in_words(found: Explanation) -> list[str]:
    """Sentences on which inputs matter."""
    important = [found.inputs[place] for place in found.order if found.important[place]]
    rest = len(found.inputs) - len(important)
    if not important:
        return ["No input stands out from what noise alone would show."]
    matter = "matters" if len(important) == 1 else "matter"
    sentences = [f"{quoted(important, most=SHOWN)} {matter}, the most important first."]
    if rest:
        sentences.append(
            f"{'One input is' if rest == 1 else f'{rest} inputs are'} no more important than noise would be."
        )
    return sentences


def show_inputs(screen: Screen, found: Explanation) -> None:
    """Print which inputs matter."""
    screen.points("Which inputs matter:", explanation_in_words(found))
    title = "Change of the predictions, in deviations of the targets, as the input grows by one of its own"
    screen.table(COLUMNS, input_rows(found), title=title)


def _plain(values: Array) -> Any:
    """Lists with six digits, None where there is no number, as JSON needs it."""
    if values.ndim > 1:
        return [_plain(row) for row in values]
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]


def _array(value: Any) -> Any:
    """Lists of numbers as arrays, None as NaN; lists of text as they are."""
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        return np.array(value, dtype=np.float64)
    return value
