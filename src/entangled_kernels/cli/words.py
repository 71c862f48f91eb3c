"""Facts about tables and models in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.tables import counted, quoted
from .screen import Screen

if TYPE_CHECKING:
    from ..linalg import Array
    from ..model import Explanation
    from .tables import MissingTargets

__all__ = [
    "INPUT_COLUMNS",
    "change_in_words",
    "error_columns",
    "error_in_words",
    "error_rows",
    "explanation_in_words",
    "far_in_words",
    "information_in_words",
    "input_rows",
    "listed",
    "measures_in_words",
    "missing_in_words",
    "scales_in_words",
    "settings_in_words",
    "sharing_in_words",
    "show_inputs",
    "show_target_errors",
    "strongest_pairs",
    "verdict_kind",
]

# Correlations below this are not worth a sentence, above the second they are strong.
WEAK, STRONG = 0.1, 0.5
# Shares of uncertainty below this are not worth a sentence.
LITTLE = 0.05
PAIRS = 5
# Names, inputs and targets with missing cells that are listed of many.
LISTED, MOST_INPUTS, MOST_BLANKS = 12, 12, 5
INPUT_COLUMNS = ["input", "importance", "of noise", "strongest on", "effect there"]


def settings_in_words(settings: dict[str, Any]) -> str:
    """The settings in one line."""
    penalty = f"alpha {settings['alpha']:.3g}"
    if settings["shrinkage"] == 1.0:
        return f"{settings['features']}; kernel ridge, {penalty}"
    shared = settings["prediction"] == "partial_trace"
    kind = "learned kernel that all targets share," if shared else "learned kernel"
    return (
        f"{settings['features']}; {kind} with shrinkage {settings['shrinkage']:g}, alignment mix "
        f"{settings['alignment_mix']:g}, target alpha {settings['target_alpha']:g}; {penalty}"
    )


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


def sharing_in_words(
    settings: dict[str, Any], correlations: Array | None, names: list[str]
) -> list[str]:
    """Sentences about what the targets share, from the parameters of the model and `output_relations`."""
    if len(names) == 1:
        return [f"There is one target, '{names[0]}': nothing can be shared."]
    if settings.get("shrinkage") == 1.0:
        return ["Plain kernel ridge: each target is predicted separately, from the same features."]
    if settings.get("prediction") == "partial_trace":
        return [
            "All targets share one learned similarity of rows; each target is predicted separately with it."
        ]
    if correlations is None:
        return ["The kernel relates the targets to each other; how, depends on the inputs."]
    pairs = [pair for pair in strongest_pairs(correlations, names) if abs(pair[2]) >= WEAK]
    if not pairs:
        return ["The kernel hardly relates the targets to each other."]
    sentences = [_pair_in_words(*pair) for pair in pairs[:PAIRS]]
    if len(pairs) > PAIRS:
        rest = counted(len(pairs) - PAIRS, "further pair")
        sentences.append(
            f"{rest} {'is' if rest.startswith('1 ') else 'are'} related more weakly than these."
        )
    alone = [
        name
        for place, name in enumerate(names)
        if np.abs(np.delete(correlations[place], place)).max() < WEAK
    ]
    if alone:
        sentences.append(
            f"{quoted(alone, most=PAIRS)} {'is' if len(alone) == 1 else 'are'} related to no other target."
        )
    return sentences


def _pair_in_words(first: str, second: str, value: float) -> str:
    strength = "strongly" if abs(value) >= STRONG else "somewhat"
    way = "move together" if value > 0 else "move against each other"
    return f"'{first}' and '{second}' {strength} {way} (correlation {value:+.2f} in the kernel)."


def change_in_words(error: float | None, reference: float | None, other: str = "") -> str:
    """How much less one error is than another, whose name may be given.

    Examples
    --------
    >>> change_in_words(0.9, 1.0), change_in_words(1.0, 1.0, "PLS"), change_in_words(None, 1.0)
    ('10.0% less error', 'the same error as PLS', '-')
    """
    if error is None or reference is None or not reference > 0.0:
        return "-"
    if error > 10.0 * reference:
        return f"{error / reference:.3g} times the error" + (f" of {other}" if other else "")
    change = 100.0 * (1.0 - error / reference)
    if abs(change) < 0.05:
        return "the same error" + (f" as {other}" if other else "")
    words = f"{abs(change):.1f}% {'less' if change > 0 else 'more'} error"
    return words + (f" than {other}" if other else "")


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
    return ", ".join(names[:LISTED]) + (
        f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    )


def information_in_words(information: Array | None, names: list[str]) -> list[str]:
    """Sentences about the strongest pairs; that nothing tells anything, where this is so.

    Examples
    --------
    >>> information_in_words(np.array([[1.0, 0.61], [0.61, 1.0]]), ["zinc", "cadmium"])
    ["Measuring 'zinc' removes 61% of the uncertainty of 'cadmium', and the other way round."]
    """
    if information is None:
        return ["Unknown: the model has no held-out errors."]
    if len(names) == 1:
        return ["There is only one target."]
    rows, columns = np.triu_indices(len(names), 1)
    values = np.maximum(information[rows, columns], information[columns, rows])
    order = np.argsort(-values, kind="stable")
    told = [place for place in order if values[place] >= LITTLE]
    if not told:
        return [
            f"Targets tell little about each other: beyond the inputs, measuring one removes no more than "
            f"{values.max():.0%} of the uncertainty of any other."
        ]
    sentences = [
        _measuring_in_words(information, names, int(rows[place]), int(columns[place]))
        for place in told[:PAIRS]
    ]
    if len(told) > PAIRS:
        rest = counted(len(told) - PAIRS, "further pair")
        verb = "tells" if rest.startswith("1 ") else "tell"
        sentences.append(f"{rest} {verb} less about each other, but at least {LITTLE:.0%}.")
    return sentences


def _measuring_in_words(information: Array, names: list[str], first: int, second: int) -> str:
    there, back = information[first, second], information[second, first]
    if back > there:
        first, second, there, back = second, first, back, there
    other = "" if round(there, 2) != round(back, 2) else ", and the other way round"
    return f"Measuring '{names[first]}' removes {there:.0%} of the uncertainty of '{names[second]}'{other}."


def input_rows(found: Explanation, most: int = MOST_INPUTS) -> list[list[Any]]:
    """Rows of a table of the most important inputs; the effect is in deviations of its target."""
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
        return ["No input is more important than noise would be."]
    matter = "matters" if len(important) == 1 else "matter"
    sentences = [f"{quoted(important, most=MOST_INPUTS)} {matter}, the most important first."]
    if rest:
        sentences.append(
            f"{'One input is' if rest == 1 else f'{rest} inputs are'} no more important than noise would be."
        )
    return sentences


def show_inputs(screen: Screen, found: Explanation) -> None:
    """Print which inputs matter."""
    screen.points("Which inputs matter:", explanation_in_words(found))
    title = "Change of the predictions, in standard deviations of the targets, for one of the input"
    screen.table(INPUT_COLUMNS, input_rows(found), title=title)


def error_in_words(facts: dict[str, Any] | None) -> str:
    """What an error on held-out rows is about; the facts are those of `HeldOut.facts`."""
    by, column = ("rows", None) if facts is None else (facts["by"], facts["column"])
    if by == "groups":
        count = "" if facts is None or facts["groups"] is None else f"{facts['groups']} "
        return f"Cross-validated error on new groups, the {count}groups of '{column}' being held out whole"
    if by == "time":
        return (
            "Cross-validated error on later rows, each fold being predicted from the rows before it"
        )
    return "Cross-validated error"


def scales_in_words(scales: dict[str, str], targets: Sequence[str]) -> str:
    """Which targets are learned on which scale.

    Examples
    --------
    >>> scales_in_words({"zinc": "log"}, ["zinc", "lead"])
    'zinc (log)'
    >>> scales_in_words({"zinc": "log", "lead": "log"}, ["zinc", "lead"])
    'all targets (log)'
    """
    if len(scales) == len(targets) and len(set(scales.values())) == 1:
        return f"all targets ({next(iter(scales.values()))})"
    return ", ".join(f"{name} ({scale})" for name, scale in scales.items())


def missing_in_words(missing: MissingTargets, rows: int) -> list[str]:
    """Sentences on the missing targets of a table of so many rows; none where none is missing."""
    sentences = []
    read = (
        ""
        if missing.rows == rows
        else f" of the {counted(missing.rows, 'row')} read since the checkpoint"
    )
    if missing.empty_rows:
        verb = "has no target and is" if missing.empty_rows == 1 else "have no target and are"
        sentences.append(f"{counted(missing.empty_rows, 'row')}{read} {verb} left out.")
    if missing.cells:
        most = sorted(missing.cells.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{number:,} of '{name}'" for name, number in most[:MOST_BLANKS])
        more = (
            f" and more of {counted(len(most) - MOST_BLANKS, 'target')}"
            if len(most) > MOST_BLANKS
            else ""
        )
        total = counted(sum(missing.cells.values()), "target value")
        verb = "is" if total.startswith("1 ") else "are"
        sentences.append(
            f"{total}{read} {verb} missing: {shown}{more}; each target is learned from the rows that have it."
        )
    return sentences


def far_in_words(far: int, rows: int) -> str:
    """How many rows are far from those of training.

    Examples
    --------
    >>> far_in_words(1, 40)
    '1 of 40 rows is far from what the model was fitted on (novelty above 1); its prediction rests
    on little'
    """
    verb, rests = ("is", "its prediction rests") if far == 1 else ("are", "their predictions rest")
    where = "far from what the model was fitted on (novelty above 1)"
    return f"{far} of {rows} rows {verb} {where}; {rests} on little"
