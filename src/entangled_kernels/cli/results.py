"""Results of experiments as tables and sentences, for the terminal and for pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.stats import t

from ..experiments.agreement import (
    AGREES,
    CLAIMS,
    NOT_JUDGED,
    TOO_FEW,
    VARIANTS,
    Claim,
    Finding,
    judge_cells,
    judge_claim,
)
from ..experiments.agreement import METRICS as PUBLISHED_METRICS
from ..experiments.methods import REFERENCES
from ..experiments.partly_measured import OURS
from ..io import ExperimentResults
from ..plotting.cells import PageTable, Table, format_cell
from .screen import Screen
from .words import change_in_words

__all__ = [
    "SETTINGS",
    "Runs",
    "agreement_in_words",
    "cell_tables",
    "claims_of",
    "claims_table",
    "far_off_splits",
    "finding",
    "measured_in_words",
    "method_table",
    "metric_table",
    "metrics_of",
    "pivot",
    "show_tables",
    "summaries",
    "summary_of_ours",
    "sure_leads",
    "winner_in_words",
]

# Metrics and settings of records, with the names to show.
METRICS = {
    "nmse": "nMSE",
    "ni": "normalised improvement over kernel ridge (nI)",
    "accuracy": "accuracy",
    "digit_accuracy": "share of right digits",
    "balanced_accuracy": "accuracy, both sides of a task weighing alike",
    "separation": "share on the right side of a line in the plane of the task",
    "fit_seconds": "seconds to fit",
    "predict_seconds": "seconds to predict",
}
SETTINGS = {
    "task": "task",
    "variant": "variant",
    "rank": "Kraus rank",
    "p": "outputs p",
    "n": "training rows n",
    "known": "targets measured",
}
LEARNED = ("EKL", "ptrEKL", "entangled")
# Errors above this multiple of the median of the other partitions are reported.
FAR_OFF = 3.0
MINUS = "\N{MINUS SIGN}"
Runs = Mapping[str, Mapping[str, ExperimentResults]]


def show_tables(screen: Screen, tables: Iterable[PageTable]) -> None:
    """Print tables."""
    for table in tables:
        digits = Table(table.columns, table.rows, table.digits).digits
        rows = [
            [
                format_cell(cell, own) if isinstance(cell, float | tuple) else cell
                for cell, own in zip(row, digits, strict=True)
            ]
            for row in table.rows
        ]
        screen.table(table.columns, rows, title=table.caption)


# Every metric, by setting and method.


def pivot(results: ExperimentResults, metric: str) -> tuple[list[str], list[list[Any]], bool]:
    """Columns, rows (a row for each setting, a (mean, deviation) for each method), and a flag.

    Methods with published numbers come first, each followed by its number; the flag tells whether
    there are any.
    """
    keys = _setting_keys(results)
    summary = results.summary(metric, (*keys, "method"))
    methods = dict.fromkeys(entry["method"] for entry in summary)
    if metric == "ni":
        methods.pop(_reference(methods) or "", None)
    published = {entry["method"] for entry in summary if entry["paper"] is not None}
    quoted = [name for name in methods if name in published]
    columns = [column for name in quoted for column in (name, f"{name} (paper)")]
    columns += [name for name in methods if name not in quoted]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in summary:
        row = rows.setdefault(tuple(entry[key] for key in keys), {})
        mean, deviation = entry["mean"], entry["std"]
        row[entry["method"]] = (mean, deviation) if entry["count"] > 1 else mean
        row[f"{entry['method']} (paper)"] = entry["paper"]
    table = [[*setting, *(row.get(column) for column in columns)] for setting, row in rows.items()]
    return [*(SETTINGS[key] for key in keys), *columns], table, bool(quoted)


def metric_table(results: ExperimentResults, metric: str) -> PageTable:
    """The table of one metric, with one more digit if there are published numbers."""
    columns, rows, quoted = pivot(results, metric)
    note = "Mean ± standard deviation over partitions."
    note += " Columns with (paper) are the published numbers." if quoted else ""
    note += " Above 0 is better than kernel ridge." if metric == "ni" else ""
    headers = max(1, len(_setting_keys(results)))
    caption = f"{results.title}: {METRICS[metric]}"
    return PageTable(columns, rows, caption, note, 4 if quoted else 3, headers)


def metrics_of(results: ExperimentResults) -> list[str]:
    """Metrics in the records; seconds to predict only if there are no errors."""
    has = {
        name for record in results.records for name, value in record.items() if value is not None
    }
    return [
        metric
        for metric in METRICS
        if metric in has and (metric != "predict_seconds" or "nmse" not in has)
    ]


def summaries(results: ExperimentResults) -> dict[str, list[dict[str, Any]]]:
    """Mean, deviation, count and published number of all metrics, for JSON."""
    by = (*_setting_keys(results), "method")
    return {metric: results.summary(metric, by) for metric in metrics_of(results)}


def _setting_keys(results: ExperimentResults) -> list[str]:
    return [key for key in SETTINGS if any(key in record for record in results.records)]


def _reference(methods: Iterable[str]) -> str | None:
    """Kernel ridge, with which methods are compared, or None if it is not among them."""
    names = set(methods)
    return next((name for name in REFERENCES if name in names), None)


# Errors of partitions, and which methods lead.

Errors = dict[Any, float]


def errors_by_split(
    results: ExperimentResults, metric: str = "nmse"
) -> dict[tuple[Any, ...], dict[str, Errors]]:
    """A metric by setting, in the order of `pivot`, by method and by partition."""
    keys = _setting_keys(results)
    settings: dict[tuple[Any, ...], dict[str, Errors]] = {}
    for record in results.records:
        if record.get(metric) is not None:
            methods = settings.setdefault(tuple(record.get(key) for key in keys), {})
            errors = methods.setdefault(record["method"], {})
            errors[record.get("split")] = float(record[metric])
    return settings


def sure_leads(results: ExperimentResults, metric: str = "nmse") -> set[tuple[int, str]]:
    """Rows of `pivot` and methods whose lead over every other is beyond chance.

    Differences are paired by partition and tested by Student's t at 5%. With a single partition no
    lead is beyond chance.
    """
    sign, leads = (1.0 if metric == "nmse" else -1.0), set()
    for row, methods in enumerate(errors_by_split(results, metric).values()):
        first = min(methods, key=lambda name: sign * _mean(methods[name]))
        others = [errors for name, errors in methods.items() if name != first]
        if all(_leads(methods[first], other, sign) for other in others):
            leads.add((row, first))
    return leads


def _leads(first: Errors, other: Errors, sign: float) -> bool:
    leads = sign * np.array([other[split] - first[split] for split in first if split in other])
    if len(leads) < 2:
        return False
    error = leads.std(ddof=1) / np.sqrt(len(leads))
    return bool(leads.mean() > t.ppf(0.95, len(leads) - 1) * error)


def _mean(errors: Errors) -> float:
    return float(np.mean(list(errors.values())))


def winner_in_words(results: ExperimentResults) -> str:
    """A sentence on the method with the lowest error at the largest size; empty without sizes."""
    settings = errors_by_split(results)
    if not settings or "n" not in results.records[0]:
        return ""
    setting, methods = list(settings.items())[-1]
    means = {name: _mean(errors) for name, errors in methods.items()}
    first, *others = sorted(means, key=means.__getitem__)
    words = f"Best with {setting[-1]} training rows: {first}, nMSE {means[first]:.3f}"
    if others:
        sure = (len(settings) - 1, first) in sure_leads(results)
        lead = change_in_words(means[first], means[others[0]], f"the next best, {others[0]}")
        words += f"; {lead}, {'more than chance would give' if sure else 'which may be chance'}"
    reference = _reference(others[1:])
    if reference is not None:
        words += f", and {change_in_words(means[first], means[reference], reference)}"
    return f"{words}."


def method_table(results: ExperimentResults) -> tuple[PageTable, set[tuple[int, str]]]:
    """A row for each method, the best at the largest size first, and cells with a lead beyond chance.

    Columns are the errors at every size, and at the largest one the difference from kernel ridge
    and the seconds to fit.
    """
    errors, times = errors_by_split(results), errors_by_split(results, "fit_seconds")
    last = list(errors)[-1]
    largest, seconds = errors[last], times.get(last, {})
    names = list(dict.fromkeys(name for methods in errors.values() for name in methods))
    names.sort(key=lambda name: _mean(largest.get(name, {0: np.inf})))
    columns = ["method", *(f"nMSE, {setting[-1]} rows" for setting in errors)]
    reference = _reference(largest)
    rows: list[list[Any]] = [
        [name, *(_mean_and_deviation(methods.get(name, {})) for methods in errors.values())]
        for name in names
    ]
    if reference is not None:
        columns.append(f"against {reference}")
        ridge = _mean(largest[reference])
        for name, row in zip(names, rows, strict=True):
            has = name in largest
            row.append(change_in_words(_mean(largest[name]), ridge) if has else None)
    if times:
        columns.append("seconds to fit")
        for name, row in zip(names, rows, strict=True):
            row.append(_mean(seconds[name]) if name in seconds else None)
    sure = {(names.index(name), columns[1 + row]) for row, name in sure_leads(results)}
    note = "Mean ± standard deviation over partitions; the method with the lowest error first."
    note += " ★ lowest error of its column, by more than chance would give." if sure else ""
    return PageTable(columns, rows, "Errors of the methods", note), sure


def _mean_and_deviation(errors: Errors) -> Any:
    if len(errors) < 2:
        return _mean(errors) if errors else None
    return _mean(errors), float(np.std(list(errors.values()), ddof=1))


def far_off_splits(results: ExperimentResults) -> list[str]:
    """Sentences on partitions whose error is far above the others of their method and size."""
    sentences = []
    for setting, methods in errors_by_split(results).items():
        for name, errors in methods.items():
            worst = max(errors, key=errors.__getitem__)
            others = [value for split, value in errors.items() if split != worst]
            if len(others) > 1 and errors[worst] > FAR_OFF * float(np.median(others)):
                sentences.append(
                    f"{name}, {setting[-1]} rows: partition {worst} has nMSE {errors[worst]:.3g}, "
                    f"the median of the others is {np.median(others):.3g}."
                )
    return sentences


def finding(results: ExperimentResults) -> str:
    """A sentence on learned kernels against kernel ridge; empty without both."""
    keys, ratios = _setting_keys(results), dict[str, dict[str, float]]()
    for setting, methods in errors_by_split(results).items():
        where = ", ".join(
            f"{SETTINGS[key]} {value}" for key, value in zip(keys, setting, strict=True)
        )
        if (reference := _reference(methods)) is not None:
            for name in LEARNED:
                if name in methods:
                    ratio = _mean(methods[name]) / _mean(methods[reference])
                    ratios.setdefault(name, {})[where] = ratio
    words = [f"{name} has {_ratios_in_words(ratios[name])}" for name in LEARNED if name in ratios]
    return f"Against kernel ridge: {'; '.join(words)}." if words else ""


def _ratios_in_words(ratios: dict[str, float]) -> str:
    """Geometric mean of ratios of errors, the smallest and the largest."""
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    words = change_in_words(mean, 1.0)
    if len(ratios) == 1:
        return words
    ends = [pick(ratios, key=ratios.__getitem__) for pick in (min, max)]
    first, last = (f"{change_in_words(ratios[where], 1.0)} at {where}" for where in ends)
    return f"{words} on average (from {first} to {last})"


# Numbers and claims of the paper, compared with ours.


def cell_tables(results: ExperimentResults) -> Iterator[PageTable]:
    """A table for each metric and each table of the paper, with our numbers and verdicts."""
    judged = judge_cells(results, np.random.default_rng(0))
    for table, where in {"over n": "", "over rank": ", over Kraus rank"}.items():
        for metric, words in PUBLISHED_METRICS.items():
            found = [one for one in judged if one.cell.table == table and one.metric == metric]
            if not found:
                continue
            cell = found[0].cell
            keys = [key for key in SETTINGS if key in cell.keys]
            rows = [
                [
                    *(one.cell.keys[key] for key in keys),
                    one.method,
                    one.paper if one.deviation is None else (one.paper, one.deviation),
                    (one.verdict.ours, one.verdict.deviation),
                    one.verdict.in_errors,
                    one.verdict.percentile,
                    one.verdict.word,
                ]
                for one in found
            ]
            names = ["method", "paper", "ours", "difference / error", "percentile", "verdict"]
            yield PageTable(
                [*(SETTINGS[key] for key in keys), *names],
                rows,
                f"{results.title}{where}: {words}, the paper's and ours",
                f"Mean ± standard deviation over partitions, {cell.partitions} in the paper. Paper "
                "less ours, in units of its standard error; where the paper's mean lies among "
                f"means of {cell.partitions} of our partitions; it agrees within the central 95%.",
                {
                    "paper": cell.digits,
                    "ours": cell.digits,
                    "difference / error": 1,
                    "percentile": 1,
                },
                len(keys) + 1,
            )


def agreement_in_words(results: ExperimentResults) -> str:
    """How many of the paper's means agree, for every form of the methods; empty without figures."""
    judged = [
        one
        for one in judge_cells(results, np.random.default_rng(0))
        if one.metric == "nmse" and one.verdict.word != NOT_JUDGED
    ]
    plain = "of the fair protocol" if results.meta.get("protocol") == "fair" else "as published"
    names, words = (plain, "stopped early", "with lambda 1"), []
    for variant, name in zip(VARIANTS, names, strict=True):
        suffix = variant.partition(",")[1:]
        found = [one.verdict.word for one in judged if one.method.partition(",")[1:] == suffix]
        if found and set(found) == {TOO_FEW}:
            return "Too few partitions: nothing is said of whether the paper's figures agree with ours."
        if found:
            words.append(f"{found.count(AGREES)} of {len(found)} with methods {name}")
    return f"Means that agree with the paper's: {', '.join(words)}." if words else ""


def _judged_claims(runs: Runs) -> Iterator[tuple[Claim, dict[str, Finding | None]]]:
    """Claims that some run tests, with the finding of every protocol."""
    for claim in CLAIMS:
        judged = {own: judge_claim(claim, done.get(claim.experiment)) for own, done in runs.items()}
        if any(judged.values()):
            yield claim, judged


def claims_table(runs: Runs, *, experiment: str | None = None) -> PageTable | None:
    """Claims of the summary, or of one experiment, with our findings; None without claims."""
    rows = []
    for claim, judged in _judged_claims(runs):
        if claim.experiment == experiment or (experiment is None and claim.summary):
            row: list[Any] = [claim.text, claim.published()]
            for found in judged.values():
                percent = claim.other is not None
                row += [None, None] if found is None else [_effects(found, percent), found.verdict]
            rows.append(row)
    if not rows:
        return None
    names = [name for own in runs for name in (f"ours ({own})", f"verdict ({own} protocol)")]
    return PageTable(
        ["claim", "paper", *names],
        rows,
        "What the paper claims, and what our runs say",
        "Differences in percent of what the methods are compared with, ± the standard error of the "
        "mean over partitions. A claim holds or fails where the 95% interval of the mean says so.",
        {"paper": 1},
        1,
    )


def _effects(found: Finding, percent: bool) -> str:
    """Effects of all methods in a few words."""
    digits, unit = (1, "%") if percent else (3, "")
    words = {
        method: f"{effect.mean:+.{digits}f} ± {effect.error:.{digits}f}{unit}".replace("-", MINUS)
        for method, effect in found.effects.items()
    }
    if len(words) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{method} {text}" for method, text in words.items())


def claims_of(runs: Runs) -> list[dict[str, Any]]:
    """Claims with effects and verdicts by protocol, for JSON."""
    return [
        {
            "claim": claim.text,
            "published": claim.published(),
            "runs": {
                own: {
                    "verdict": found.verdict,
                    "effects": {name: one._asdict() for name, one in found.effects.items()},
                }
                for own, found in judged.items()
                if found is not None
            },
        }
        for claim, judged in _judged_claims(runs)
    ]


# The demonstration: some targets of new rows are measured.


def summary_of_ours(
    results: ExperimentResults, metric: str, *, ours: bool = True
) -> list[dict[str, Any]]:
    """Rows of a summary by number of measured targets, of our model or of the others."""
    summary = results.summary(metric, ("known", "method"))
    return [row for row in summary if (row["method"] == OURS) == ours]


def measured_in_words(results: ExperimentResults) -> list[str]:
    """Sentences on the results of `compare_partly_measured`."""
    ours = {row["known"]: row["mean"] for row in summary_of_ours(results, "nmse")}
    others = summary_of_ours(results, "nmse", ours=False)
    last, p = max(ours), len(results.meta["targets"])
    errors = ", ".join(f"{error:.3f}" for error in ours.values())
    sentences = [
        f"Error with 0 to {last} of {p} targets measured: {errors}. Measuring {last} takes "
        f"{1.0 - ours[last] / ours[0]:.0%} off the error of the others."
    ]
    for known in (0, last):
        best = min((row for row in others if row["known"] == known), key=lambda row: row["mean"])
        other = f"the best of the other methods, {best['method']} ({best['mean']:.3f})"
        change = change_in_words(ours[known], best["mean"], other)
        sentences.append(f"With {known} measured: {change}.")
    inside, jointly = (
        _range([row["mean"] for row in summary_of_ours(results, metric)])
        for metric in ("coverage", "joint_coverage")
    )
    sentences.append(
        f"{inside} of the {results.meta['coverage']:.0%} intervals contain the true value; joint "
        f"intervals contain all targets of a row in {jointly} of rows."
    )
    return sentences


def _range(shares: list[float]) -> str:
    """The smallest and the largest of some shares in percent, or one number if they are equal."""
    least, largest = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return least if least == largest else f"{least} to {largest}"
