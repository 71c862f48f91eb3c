"""Facts about a model in words: its settings, its errors, what its targets share, its entanglement."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg import Array
from ..tables.phrases import counted, quoted
from .screen import Screen

__all__ = [
    "change_in_words",
    "error_columns",
    "error_rows",
    "listed",
    "measures_in_words",
    "settings_in_words",
    "sharing_in_words",
    "show_target_errors",
    "strongest_pairs",
    "verdict_kind",
]

# Correlations below this are not worth a sentence, above the second they are strong.
WEAK, STRONG = 0.1, 0.5
PAIRS = 5
# Names that are listed of many.
LISTED = 12


def settings_in_words(settings: dict[str, Any]) -> str:
    """The settings in one line."""
    if "shrinkage" not in settings:
        return ", ".join(_setting_in_words(name, value) for name, value in settings.items())
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


def _setting_in_words(name: str, value: Any) -> str:
    if name == "features":
        return str(value)
    return f"{name.replace('_', ' ')} {value:.3g}" if isinstance(value, float) else f"{name} {value}"


def _range_in_words(name: str, value: Any) -> str:
    """One number, or from which to which several go."""
    values = np.asarray(value)
    return f"{name} {values:.3g}" if values.ndim == 0 else f"{name} {values.min():.3g} to {values.max():.3g}"


def measures_in_words(measures: dict[str, Any]) -> dict[str, str]:
    """Measures with names and values to show; a negative zero is a zero."""
    return {
        "PPT" if name == "ppt" else name.replace("_", " ").replace("schmidt", "Schmidt"): (
            "holds" if value else "fails"
        )
        if isinstance(value, bool)
        else f"{value + 0.0:.4g}"
        for name, value in measures.items()
    }


def verdict_kind(entangled: bool | None) -> str:
    """Which sign a verdict gets on a page."""
    return {True: "entangled", False: "separable", None: "plain"}[entangled]


def strongest_pairs(correlations: Array, names: list[str]) -> list[tuple[str, str, float]]:
    """Pairs of targets with their correlation, the strongest first."""
    rows, columns = np.triu_indices(len(names), 1)
    values = correlations[rows, columns]
    order = np.argsort(-np.abs(values), kind="stable")
    return [(names[rows[i]], names[columns[i]], float(values[i])) for i in order]


def sharing_in_words(settings: dict[str, Any], correlations: Array | None, names: list[str]) -> list[str]:
    """Sentences about what the targets share, from the parameters of the model and `output_relations`."""
    if len(names) == 1:
        return [f"There is one target, '{names[0]}', and nothing to share."]
    if settings.get("shrinkage") == 1.0:
        return ["Plain kernel ridge: each target is predicted on its own, from the same features."]
    if settings.get("prediction") == "partial_trace":
        return [
            "All targets share one learned measure of which rows are alike; with it each target is "
            "predicted on its own (partial trace)."
        ]
    if correlations is None:
        return ["The kernel relates the targets to each other; how, depends on the inputs."]
    pairs = [pair for pair in strongest_pairs(correlations, names) if abs(pair[2]) >= WEAK]
    if not pairs:
        return ["The kernel hardly relates the targets to each other."]
    sentences = [_pair_in_words(*pair) for pair in pairs[:PAIRS]]
    if len(pairs) > PAIRS:
        rest = counted(len(pairs) - PAIRS, "further pair")
        sentences.append(f"{rest} {'is' if rest.startswith('1 ') else 'are'} related more weakly than these.")
    alone = [
        name for place, name in enumerate(names) if np.abs(np.delete(correlations[place], place)).max() < WEAK
    ]
    if alone:
        sentences.append(
            f"{quoted(alone, most=PAIRS)} {'keeps to itself' if len(alone) == 1 else 'keep to themselves'}."
        )
    return sentences


def _pair_in_words(first: str, second: str, value: float) -> str:
    strength = "strongly" if abs(value) >= STRONG else "somewhat"
    way = "move together" if value > 0 else "move against each other"
    return f"'{first}' and '{second}' {strength} {way} (correlation {value:+.2f} in the kernel)."


def change_in_words(error: float | None, reference: float | None) -> str:
    """How much less one error is than another.

    Examples
    --------
    >>> change_in_words(0.9, 1.0), change_in_words(1.5, 1.0), change_in_words(None, 1.0)
    ('10.0% less error', '50.0% more error', '-')
    """
    if error is None or reference is None or not reference > 0.0:
        return "-"
    if error > 10.0 * reference:
        return f"{error / reference:.3g} times the error"
    change = 100.0 * (1.0 - error / reference)
    if abs(change) < 0.05:
        return "the same error"
    return f"{abs(change):.1f}% {'less' if change > 0 else 'more'} error"


def error_columns(scores: list[dict[str, Any]]) -> list[str]:
    """Names of the columns of `error_rows`."""
    units = ["R2", "RMSE"] if scores and "rmse" in scores[0] else []
    return ["target", "nMSE", *units, "nMSE of kernel ridge", "change"]


def error_rows(scores: list[dict[str, Any]]) -> list[list[Any]]:
    """Rows of a table: target, error, in other units where known, error of kernel ridge, change."""
    rows = []
    for row in scores:
        own, ridge = row["nmse"], row["kernel_ridge_nmse"]
        units = [row["r2"], row["rmse"]] if "rmse" in row else []
        rows.append([row["target"], own, *units, ridge, change_in_words(own, ridge)])
    return rows


def show_target_errors(screen: Screen, scores: list[dict[str, Any]]) -> None:
    """Print the table, if there is anything to show."""
    if scores:
        title = "Held-out errors of the model, target by target; RMSE in the unit of the target"
        if "rmse" not in scores[0]:
            title = "Held-out error of each target with the settings chosen"
        screen.table(error_columns(scores), error_rows(scores), title=title)


def listed(names: list[str]) -> str:
    """Names with commas; of many only the first ones."""
    if not names:
        return "without names"
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
