"""Sentences and tables about models and errors, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.tables import counted, quoted
from ..plotting.cells import PageTable

if TYPE_CHECKING:
    from ..linalg import Array
    from ..model import Explanation
    from .tables import MissingTargets

__all__ = [
    "baselines_in_words",
    "change_in_words",
    "error_in_words",
    "error_table",
    "explanation_in_words",
    "far_in_words",
    "information_in_words",
    "input_table",
    "listed",
    "measures_in_words",
    "missing_in_words",
    "scales_in_words",
    "settings_in_words",
]

# Sentences about pairs of targets: at most this many, and none on smaller shares of uncertainty.
PAIRS, LEAST_SHARE = 5, 0.05
# The largest numbers of names, inputs, and targets with missing values that are listed.
MOST_NAMES, MOST_INPUTS, MOST_MISSING = 12, 12, 5


def settings_in_words(settings: dict[str, Any]) -> str:
    """The settings in one line."""
    penalty = f"alpha {settings['alpha']:.3g}"
    if settings["prediction"] == "reduced_rank" and settings.get("rank") is not None:
        penalty += f", predictions of rank {settings['rank']:g}"
    if settings["shrinkage"] == 1.0:
        return f"{settings['features']}; kernel ridge, {penalty}"
    shared = settings["prediction"] != "entangled"
    kind = "learned kernel that all targets share," if shared else "learned kernel"
    return (
        f"{settings['features']}; {kind} with shrinkage {settings['shrinkage']:g}, alignment mix "
        f"{settings['alignment_mix']:g}, target alpha {settings['target_alpha']:g}; {penalty}"
    )


def measures_in_words(measures: dict[str, Any]) -> dict[str, str]:
    """Measures with names and values to show; a negative zero is a zero."""
    words = {}
    for name, value in measures.items():
        shown = "PPT" if name == "ppt" else name.replace("_", " ").replace("schmidt", "Schmidt")
        truth = "holds" if value else "fails"
        words[shown] = truth if isinstance(value, bool) else f"{value + 0.0:.4g}"
    return words


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


def baselines_in_words(error: float, plain: float | None, baselines: dict[str, float]) -> str:
    """Errors of other methods on the same folds, and which is lowest.

    Examples
    --------
    >>> print(baselines_in_words(0.4, 0.5, {"ridge": 0.8, "PLS": 0.5}))
    On the same folds: ridge 0.8, PLS 0.5. This model has the lowest error, 20.0% less error than
    PLS, the next best. Kernel ridge on the same features: 0.5.
    """
    words = []
    if baselines:
        best = min(baselines, key=baselines.__getitem__)
        listed = ", ".join(f"{name} {value:.4g}" for name, value in baselines.items())
        words.append(f"On the same folds: {listed}.")
        if error < baselines[best]:
            change = change_in_words(error, baselines[best], f"{best}, the next best")
            words.append(f"This model has the lowest error, {change}.")
        else:
            change = change_in_words(error, baselines[best])
            words.append(f"{best} has the lowest error; this model has {change}.")
    if plain is not None:
        words.append(f"Kernel ridge on the same features: {plain:.4g}.")
    return " ".join(words)


def error_table(scores: list[dict[str, Any]]) -> PageTable:
    """Held-out errors of every target, and their difference from those of kernel ridge."""
    columns = ["target", "nMSE", "R2", "RMSE", "kernel ridge", "change"]
    rows = []
    for row in scores:
        error, plain = row["nmse"], row["kernel_ridge_nmse"]
        change = change_in_words(error, plain)
        rows.append([row["target"], error, row.get("r2"), row.get("rmse"), plain, change])
    caption = (
        "Held-out errors of each target, RMSE in its unit, and the nMSE of kernel ridge on the same "
        "features"
    )
    return PageTable(columns, rows, caption)


def listed(names: list[str]) -> str:
    """Names with commas, in quotes where they hold one; only the first of many.

    Examples
    --------
    >>> listed(["load", "flow, l/s"])
    "load, 'flow, l/s'"
    """
    if not names:
        return "without names"
    names = [f"'{name}'" if "," in name else name for name in names]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def information_in_words(information: Array | None, names: list[str]) -> list[str]:
    """Sentences on how much measuring a target tells about another, the strongest pairs first.

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
    larger = np.maximum(information, information.T)[rows, columns]
    order = [k for k in np.argsort(-larger, kind="stable") if larger[k] >= LEAST_SHARE]
    if not order:
        return [
            "Targets tell little about each other: beyond the inputs, measuring one removes no "
            f"more than {larger.max():.0%} of the uncertainty of any other."
        ]
    sentences = []
    for a, b in zip(rows[order[:PAIRS]], columns[order[:PAIRS]], strict=True):
        a, b = (a, b) if information[a, b] >= information[b, a] else (b, a)
        share, reverse = f"{information[a, b]:.0%}", f"{information[b, a]:.0%}"
        both = ", and the other way round" if share == reverse else ""
        sentences.append(
            f"Measuring '{names[a]}' removes {share} of the uncertainty of '{names[b]}'{both}."
        )
    if (more := len(order) - PAIRS) > 0:
        verb, rest = "tells" if more == 1 else "tell", counted(more, "further pair")
        sentences.append(f"{rest} {verb} less about each other, but at least {LEAST_SHARE:.0%}.")
    return sentences


def input_table(explanation: Explanation) -> PageTable:
    """The most important inputs; effects are in deviations of their targets.

    The importance by chance is left out where it is not known.
    """
    unit = np.where(explanation.target_deviation > 0.0, explanation.target_deviation, np.nan)
    relative, rows = explanation.size / unit, list[list[Any]]()
    known = bool(np.isfinite(explanation.importance_noise).any())
    for i in explanation.order[:MOST_INPUTS]:
        strongest = int(np.argmax(np.nan_to_num(relative[i])))
        effect = float(explanation.effect[i, strongest] / unit[strongest])
        numbers = [float(explanation.importance[i])]
        numbers += [float(explanation.importance_noise[i])] if known else []
        rows.append([explanation.inputs[i], *numbers, explanation.targets[strongest], effect])
    columns = ["input", "importance", *["importance by chance"] * known]
    columns += ["target most affected", "effect on it"]
    caption = (
        "Change of the predictions if an input changes by its standard deviation, in standard "
        "deviations of the targets"
    )
    return PageTable(columns, rows, caption)


def explanation_in_words(explanation: Explanation) -> list[str]:
    """Sentences on which inputs matter."""
    if not np.isfinite(explanation.importance_noise).any():
        return [
            "How important an input without any effect would seem by chance was not computed: the "
            "model rests on features that are predictions of the targets (target processes), or "
            "has no held-out errors. The inputs are in the order of their importance."
        ]
    important = [explanation.inputs[i] for i in explanation.order if explanation.important[i]]
    rest = len(explanation.inputs) - len(important)
    if not important:
        return ["No input is more important than one without any effect may be by chance."]
    matter = "matters" if len(important) == 1 else "matter"
    sentences = [f"{quoted(important, most=MOST_INPUTS)} {matter}, the most important first."]
    if rest:
        others = "One input is" if rest == 1 else f"{rest} inputs are"
        sentences.append(
            f"{others} no more important than one without any effect may be by chance."
        )
    return sentences


def error_in_words(facts: dict[str, Any] | None) -> str:
    """How the held-out rows of an error were chosen; the facts are those of `HeldOut.facts`."""
    facts = facts or {"by": "rows"}
    if facts["by"] == "groups":
        count = "" if facts["groups"] is None else f"{facts['groups']} "
        return f"Cross-validated error on new groups ({count}groups of '{facts['column']}')"
    if facts["by"] == "time":
        return "Cross-validated error on later rows, each fold predicted from the rows before it"
    return "Cross-validated error"


def scales_in_words(scales: dict[str, str], targets: Sequence[str]) -> str:
    """The targets that are learned on a scale, with the scale.

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
    """Sentences on the missing targets of a table with this number of rows."""
    sentences, read = list[str](), ""
    if missing.rows != rows:
        read = f" of the {counted(missing.rows, 'row')} read since the checkpoint"
    if missing.empty_rows:
        verb = "has no target and is" if missing.empty_rows == 1 else "have no target and are"
        sentences.append(f"{counted(missing.empty_rows, 'row')}{read} {verb} left out.")
    if missing.cells:
        most = sorted(missing.cells.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{number:,} of '{name}'" for name, number in most[:MOST_MISSING])
        if (rest := len(most) - MOST_MISSING) > 0:
            shown += f" and more of {counted(rest, 'target')}"
        total = sum(missing.cells.values())
        values, verb = counted(total, "target value"), "is" if total == 1 else "are"
        sentences.append(
            f"{values}{read} {verb} missing: {shown}; each target is learned from the rows that "
            "have it."
        )
    return sentences


def far_in_words(far: int, rows: int) -> str:
    """How many rows are far from the training rows.

    Examples
    --------
    >>> far_in_words(1, 40)
    '1 of 40 rows is far from the training rows (novelty above 1); its prediction is not reliable'
    """
    verb, reliable = "are", "their predictions are not reliable"
    if far == 1:
        verb, reliable = "is", "its prediction is not reliable"
    return f"{far} of {rows} rows {verb} far from the training rows (novelty above 1); {reliable}"
