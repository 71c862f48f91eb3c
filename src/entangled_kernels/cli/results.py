"""Results of experiments: run and saved, as tables on the screen, and what they say of methods."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from ..storage import ExperimentResults
from .model_words import change_in_words
from .screen import Screen

__all__ = [
    "DIGITS",
    "METRICS",
    "PAPER_DIGITS",
    "SETTINGS",
    "errors_by_split",
    "finding",
    "metrics_of",
    "pivot",
    "run_experiment",
    "show_results",
    "summaries",
    "sure_leads",
]

# What a record may hold, with the name to show.
METRICS = {
    "nmse": "nMSE",
    "ni": "normalised improvement over kernel ridge (nI)",
    "accuracy": "accuracy",
    "balanced_accuracy": "accuracy, both sides of a task weighing alike",
    "separation": "share on the right side of a line in the plane of the task",
    "fit_seconds": "seconds to fit",
    "predict_seconds": "seconds to predict",
}
# Times of predicting are told where they were asked for, beside times of nothing else.
TIMES_ALONE = "predict_seconds"
# After the point; the paper's figures ask for more.
DIGITS, PAPER_DIGITS = 3, 4
SETTINGS = {
    "task": "task",
    "variant": "variant",
    "rank": "Kraus rank",
    "p": "outputs p",
    "n": "training rows n",
    "known": "targets measured",
}
REFERENCE = "KRR"
OWN = ("EKL", "ptrEKL", "selected")


def pivot(results: ExperimentResults, metric: str) -> tuple[list[str], list[list[Any]], bool]:
    """Columns and rows: one row to a setting, a (mean, spread) to a method, the paper's figure beside it.

    Methods that the paper has figures for come first; the last value tells whether there are any.
    """
    keys = _setting_keys(results)
    summary = results.summary(metric, (*keys, "method"))
    methods = dict.fromkeys(entry["method"] for entry in summary)
    if metric == "ni":
        methods.pop(REFERENCE, None)
    quoted = [
        name for name in methods if any(e["paper"] is not None and e["method"] == name for e in summary)
    ]
    columns = [column for name in quoted for column in (name, f"{name} (paper)")]
    columns += [name for name in methods if name not in quoted]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in summary:
        row = rows.setdefault(tuple(entry[key] for key in keys), {})
        row[entry["method"]] = (entry["mean"], entry["std"]) if entry["count"] > 1 else entry["mean"]
        row[f"{entry['method']} (paper)"] = entry["paper"]
    table = [[*setting, *(row.get(column) for column in columns)] for setting, row in rows.items()]
    return [*(SETTINGS[key] for key in keys), *columns], table, bool(quoted)


def _setting_keys(results: ExperimentResults) -> list[str]:
    """Settings that the records have."""
    return [key for key in SETTINGS if any(key in record for record in results.records)]


def summaries(results: ExperimentResults) -> dict[str, list[dict[str, Any]]]:
    """For machines: mean, spread, count and the paper's figure of every metric, setting and method."""
    by = (*_setting_keys(results), "method")
    return {metric: results.summary(metric, by) for metric in metrics_of(results)}


def metrics_of(results: ExperimentResults) -> list[str]:
    """Metrics that the records have; seconds to predict only where there are no errors to show."""
    found = [
        metric for metric in METRICS if any(record.get(metric) is not None for record in results.records)
    ]
    return [metric for metric in found if metric != TIMES_ALONE or "nmse" not in found]


def sure_leads(results: ExperimentResults, metric: str) -> set[tuple[int, str]]:
    """Rows of `pivot` and methods whose lead over every other is beyond chance.

    Differences are paired by partition and judged by Student's t at 5%; of a single partition nothing is
    sure.
    """
    settings = errors_by_split(results, metric)
    sign = -1.0 if metric == "nmse" else 1.0
    found = set()
    for row, methods in enumerate(settings.values()):
        first = max(methods, key=lambda name: sign * float(np.mean(list(methods[name].values()))))
        if all(_leads(methods[first], other, sign) for name, other in methods.items() if name != first):
            found.add((row, first))
    return found


def errors_by_split(
    results: ExperimentResults, metric: str
) -> dict[tuple[Any, ...], dict[str, dict[Any, float]]]:
    """A metric by setting, in the order of `pivot`, by method and by partition."""
    keys = _setting_keys(results)
    settings: dict[tuple[Any, ...], dict[str, dict[Any, float]]] = {}
    for record in results.records:
        if record.get(metric) is not None:
            own = settings.setdefault(tuple(record.get(key) for key in keys), {})
            own.setdefault(record["method"], {})[record.get("split")] = float(record[metric])
    return settings


def _leads(first: dict[Any, float], other: dict[Any, float], sign: float) -> bool:
    leads = sign * np.array([first[split] - other[split] for split in first if split in other])
    if len(leads) < 2:
        return False
    # Of twenty leads that are chance, one is larger.
    return bool(leads.mean() > t.ppf(0.95, len(leads) - 1) * leads.std(ddof=1) / np.sqrt(len(leads)))


def show_results(screen: Screen, results: ExperimentResults, metrics: Iterable[str] | None = None) -> None:
    """Print the tables."""
    for metric in metrics or metrics_of(results):
        columns, rows, paper = pivot(results, metric)
        cells = [[_text(cell, PAPER_DIGITS if paper else DIGITS) for cell in row] for row in rows]
        screen.table(columns, cells, title=f"{results.title}: {METRICS[metric]}")


def _text(cell: Any, digits: int) -> Any:
    if isinstance(cell, tuple):
        return f"{cell[0]:.{digits}f} ± {cell[1]:.{digits}f}"
    return f"{cell:.{digits}f}" if isinstance(cell, float) else cell


def finding(results: ExperimentResults) -> str:
    """One sentence on how learned kernels did against kernel ridge over all settings; empty without both."""
    columns, rows, _ = pivot(results, "nmse")
    settings = [column for column in columns if column in SETTINGS.values()]
    words = []
    for method in OWN:
        ratios = {}
        for row in rows:
            values = dict(zip(columns, row, strict=True))
            if values.get(method) is not None and values.get(REFERENCE) is not None:
                where = ", ".join(f"{name} {values[name]}" for name in settings)
                ratios[where] = _mean(values[method]) / _mean(values[REFERENCE])
        if ratios:
            words.append(f"{method} has {_spread_in_words(ratios)}")
    return f"Against kernel ridge: {'; '.join(words)}." if words else ""


def _spread_in_words(ratios: dict[str, float]) -> str:
    """Geometric mean of ratios of errors, the least and the largest."""
    mean = math.exp(sum(math.log(ratio) for ratio in ratios.values()) / len(ratios))
    if len(ratios) == 1:
        return change_in_words(mean, 1.0)
    least, largest = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return (
        f"{change_in_words(mean, 1.0)} on average (from {change_in_words(ratios[least], 1.0)} at {least} to "
        f"{change_in_words(ratios[largest], 1.0)} at {largest})"
    )


def _mean(cell: Any) -> float:
    return float(cell[0] if isinstance(cell, tuple) else cell)


def run_experiment(
    screen: Screen, name: str, out: Path, settings: dict[str, Any], *, resume: bool = False
) -> ExperimentResults:
    """Run, save, and read again what was saved, from which tables and figures are made.

    Parameters
    ----------
    screen : Screen
    name : str
        A key of `entangled_kernels.experiments.EXPERIMENTS`.
    out : path
        Folder for the results.
    settings : dict
        Attributes of `entangled_kernels.experiments.Setup`.
    resume : bool
        Take results of the same settings that are there already.
    """
    from ..experiments import EXPERIMENTS, Setup

    path = out / f"{name}.json"
    if resume and path.exists():
        kept = ExperimentResults.load(path)
        if all(
            kept.meta.get(key) == settings[key] for key in ("protocol", "quick", "seed") if key in settings
        ):
            return kept

    with screen.progress() as report:
        setup = Setup(**settings, progress=lambda done, total, what: report(done, total, f"{name} {what}"))
        results = EXPERIMENTS[name].run(setup)
    return ExperimentResults.load(results.save(out)[0])
