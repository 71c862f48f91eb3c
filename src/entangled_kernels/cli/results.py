"""Results of experiments and comparisons: run and saved, as tables, and what they say of methods."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from ..io import ExperimentResults
from ..plotting.cells import PageTable, Table, format_cell
from .screen import Screen
from .words import change_in_words

__all__ = [
    "DIGITS",
    "METRICS",
    "PAPER_DIGITS",
    "SETTINGS",
    "agreement_in_words",
    "cell_tables",
    "claims_of",
    "claims_table",
    "errors_by_split",
    "far_off_splits",
    "finding",
    "method_table",
    "metrics_of",
    "pivot",
    "run_experiment",
    "show_cells",
    "show_results",
    "summaries",
    "sure_leads",
    "winner_in_words",
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
OWN = ("EKL", "ptrEKL", "entangled")
# A partition whose error is so many times the median of the others is far off.
FAR_OFF = 3.0
NMSE, SECONDS = "nmse", "fit_seconds"
Runs = Mapping[str, Mapping[str, ExperimentResults]]
MINUS = "\N{MINUS SIGN}"
TITLES = {"over n": "", "over rank": ", over Kraus rank"}


def pivot(results: ExperimentResults, metric: str) -> tuple[list[str], list[list[Any]], bool]:
    """Columns and rows: one row to a setting, a (mean, spread) to a method, the paper's figure beside it.

    Methods that the paper has figures for come first; the last value tells whether there are any.
    """
    keys = _setting_keys(results)
    summary = results.summary(metric, (*keys, "method"))
    methods = dict.fromkeys(entry["method"] for entry in summary)
    if metric == "ni":
        methods.pop(_reference(methods) or "", None)
    quoted = [
        name
        for name in methods
        if any(e["paper"] is not None and e["method"] == name for e in summary)
    ]
    columns = [column for name in quoted for column in (name, f"{name} (paper)")]
    columns += [name for name in methods if name not in quoted]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in summary:
        row = rows.setdefault(tuple(entry[key] for key in keys), {})
        row[entry["method"]] = (
            (entry["mean"], entry["std"]) if entry["count"] > 1 else entry["mean"]
        )
        row[f"{entry['method']} (paper)"] = entry["paper"]
    table = [[*setting, *(row.get(column) for column in columns)] for setting, row in rows.items()]
    return [*(SETTINGS[key] for key in keys), *columns], table, bool(quoted)


def _reference(methods: Iterable[str]) -> str | None:
    """Kernel ridge among the methods, which the others are compared with; None where it is missing."""
    from ..experiments.methods import REFERENCES

    return next((name for name in REFERENCES if name in set(methods)), None)


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
        metric
        for metric in METRICS
        if any(record.get(metric) is not None for record in results.records)
    ]
    return [metric for metric in found if metric != TIMES_ALONE or "nmse" not in found]


def sure_leads(results: ExperimentResults, metric: str) -> set[tuple[int, str]]:
    """Rows of `pivot` and methods whose lead over every other is beyond chance.

    Differences are paired by partition and judged by Student's t at 5%; of a single partition
    nothing is sure.
    """
    settings = errors_by_split(results, metric)
    sign = -1.0 if metric == "nmse" else 1.0
    found = set()
    for row, methods in enumerate(settings.values()):
        first = max(methods, key=lambda name: sign * float(np.mean(list(methods[name].values()))))
        if all(
            _leads(methods[first], other, sign) for name, other in methods.items() if name != first
        ):
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
    return bool(
        leads.mean() > t.ppf(0.95, len(leads) - 1) * leads.std(ddof=1) / np.sqrt(len(leads))
    )


def show_results(
    screen: Screen, results: ExperimentResults, metrics: Iterable[str] | None = None
) -> None:
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
    words, reference = list[str](), _reference(columns)
    for method in OWN:
        ratios = {}
        for row in rows:
            values = dict(zip(columns, row, strict=True))
            if reference and values.get(method) is not None and values.get(reference) is not None:
                where = ", ".join(f"{name} {values[name]}" for name in settings)
                ratios[where] = _first(values[method]) / _first(values[reference])
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


def _first(cell: Any) -> float:
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
            kept.meta.get(key) == settings[key]
            for key in ("protocol", "quick", "seed")
            if key in settings
        ):
            return kept

    with screen.progress() as report:
        setup = Setup(
            **settings, progress=lambda done, total, what: report(done, total, f"{name} {what}")
        )
        results = EXPERIMENTS[name].run(setup)
    return ExperimentResults.load(results.save(out)[0])


def winner_in_words(results: ExperimentResults) -> str:
    """One sentence on the method with the least error at the largest size, whatever it is; empty without."""
    settings = errors_by_split(results, NMSE)
    if not settings or not results.records or "n" not in results.records[0]:
        return ""
    place, (setting, methods) = list(enumerate(settings.items()))[-1]
    means = {name: float(np.mean(list(errors.values()))) for name, errors in methods.items()}
    order = sorted(means, key=means.__getitem__)
    first, size = order[0], setting[-1]
    words = f"Best with {size} training rows: {first}, nMSE {means[first]:.3f}"
    if len(order) > 1:
        second = order[1]
        sure = (place, first) in sure_leads(results, NMSE)
        lead = change_in_words(means[first], means[second], f"the next, {second}")
        words += f"; {lead}, {'more than chance would give' if sure else 'which may be chance'}"
    reference = _reference(means)
    if reference is not None and reference not in order[:2]:
        words += f", and {change_in_words(means[first], means[reference], reference)}"
    return f"{words}."


def method_table(
    results: ExperimentResults,
) -> tuple[list[str], list[list[Any]], set[tuple[int, str]], dict[str, int]]:
    """Columns, a row for every method, cells whose lead is no chance, and digits of the columns.

    Errors at every size, the change against kernel ridge and the seconds to fit at the largest one;
    the method with the least error there stands first.
    """
    errors, times = errors_by_split(results, NMSE), errors_by_split(results, SECONDS)
    last = list(errors)[-1]
    names = list(dict.fromkeys(name for methods in errors.values() for name in methods))
    names.sort(key=lambda name: float(np.mean(list(errors[last].get(name, {0: np.inf}).values()))))
    columns = ["method", *(f"nMSE, {_size(setting)}" for setting in errors)]
    reference = _reference(errors[last])
    ridge = None if reference is None else errors[last][reference]
    columns += [f"against {reference}"] * (ridge is not None) + ["seconds to fit"] * bool(times)
    rows = []
    for name in names:
        row: list[Any] = [
            name,
            *(_mean_and_spread(methods.get(name)) for methods in errors.values()),
        ]
        if ridge is not None:
            own = errors[last].get(name)
            row.append(None if own is None else change_in_words(_mean(own), _mean(ridge)))
        if times:
            own = times.get(last, {}).get(name)
            row.append(None if own is None else _mean(own))
        rows.append(row)
    sure = {(names.index(name), columns[1 + place]) for place, name in sure_leads(results, NMSE)}
    return columns, rows, sure, dict.fromkeys(columns, 3)


def far_off_splits(results: ExperimentResults) -> list[str]:
    """A sentence on every method and size with a partition whose error is far from the others."""
    sentences = []
    for setting, methods in errors_by_split(results, NMSE).items():
        for name, errors in methods.items():
            worst = max(errors, key=errors.__getitem__)
            others = [value for split, value in errors.items() if split != worst]
            if len(others) > 1 and errors[worst] > FAR_OFF * float(np.median(others)):
                sentences.append(
                    f"{name}, {_size(setting)}: partition {worst} has nMSE {errors[worst]:.3g}, the median "
                    f"of the others is {np.median(others):.3g}."
                )
    return sentences


def _size(setting: tuple[Any, ...]) -> str:
    return f"{setting[-1]} rows"


def _mean(errors: dict[Any, float]) -> float:
    return float(np.mean(list(errors.values())))


def _mean_and_spread(errors: dict[Any, float] | None) -> Any:
    """Mean and standard deviation over partitions; a number where there is one partition."""
    if not errors:
        return None
    values = np.array(list(errors.values()))
    return (
        (float(values.mean()), float(values.std(ddof=1))) if len(values) > 1 else float(values[0])
    )


def cell_tables(results: ExperimentResults) -> Iterator[PageTable]:
    """One table to a metric and a table of the paper: paper, ours, difference in its errors, verdict."""
    from ..experiments.agreement import METRICS, judge_cells

    found = judge_cells(results, np.random.default_rng(0))
    for table, where in TITLES.items():
        for metric, words in METRICS.items():
            own = [one for one in found if one.cell.table == table and one.metric == metric]
            if not own:
                continue
            keys = [key for key in SETTINGS if key in own[0].cell.keys]
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
                for one in own
            ]
            count = own[0].cell.partitions
            yield PageTable(
                [
                    *(SETTINGS[key] for key in keys),
                    "method",
                    "paper",
                    "ours",
                    "difference / error",
                    "percentile",
                    "verdict",
                ],
                rows,
                f"{results.title}{where}: {words}, the paper's and ours",
                f"Mean ± standard deviation over partitions, {count} in the paper. Paper less ours, in units "
                f"of its standard error; where the paper's mean lies among means of {count} of our "
                "partitions; it agrees within the central 95%.",
                dict.fromkeys(("paper", "ours"), own[0].cell.digits)
                | {"difference / error": 1, "percentile": 1},
                len(keys) + 1,
            )


def agreement_in_words(results: ExperimentResults) -> str:
    """How many of the paper's means agree, for every form of the methods; empty without figures."""
    from ..experiments.agreement import AGREES, BESIDE, TOO_FEW, VARIANTS, judge_cells

    found = judge_cells(results, np.random.default_rng(0))
    judged = [one for one in found if one.metric == "nmse" and one.verdict.word != BESIDE]
    words = []
    plain = "of the fair protocol" if results.meta.get("protocol") == "fair" else "as published"
    names = (plain, "stopped early", "with lambda 1")
    for variant, name in zip(VARIANTS, names, strict=True):
        own = [one for one in judged if one.method.partition(",")[1:] == variant.partition(",")[1:]]
        if own and all(one.verdict.word == TOO_FEW for one in own):
            return "Too few partitions: nothing is said of whether the paper's figures agree with ours."
        if own:
            agreeing = sum(one.verdict.word == AGREES for one in own)
            words.append(f"{agreeing} of {len(own)} with methods {name}")
    return f"Means that agree with the paper's: {', '.join(words)}." if words else ""


def claims_table(runs: Runs, *, experiment: str | None = None) -> PageTable | None:
    """Claims of the summary, or all of one experiment, with what every protocol says; None without any."""
    from ..experiments.agreement import CLAIMS, judge_claim

    rows = []
    for claim in CLAIMS:
        if claim.experiment != experiment and not (experiment is None and claim.summary):
            continue
        findings = {
            protocol: judge_claim(claim, done.get(claim.experiment))
            for protocol, done in runs.items()
        }
        if not any(findings.values()):
            continue
        percent = claim.other is not None
        row = [claim.text, claim.published()]
        for protocol in runs:
            finding = findings[protocol]
            row += (
                [None, None] if finding is None else [_effects(finding, percent), finding.verdict]
            )
        rows.append(row)
    if not rows:
        return None
    names = [
        name
        for protocol in runs
        for name in (f"ours ({protocol})", f"verdict ({protocol} protocol)")
    ]
    return PageTable(
        ["claim", "paper", *names],
        rows,
        "What the paper claims, and what our runs say",
        "Differences in percent of what the methods are compared with, ± the standard error of the mean over "
        "partitions. A claim holds or fails where the 95% interval of the mean says so.",
        {"paper": 1},
        1,
    )


def _effects(finding: Any, percent: bool) -> str:
    """Effects of all methods in a few words."""
    digits, unit = (1, "%") if percent else (3, "")
    words = {
        method: f"{effect.mean:+.{digits}f} ± {effect.error:.{digits}f}{unit}".replace("-", MINUS)
        for method, effect in finding.effects.items()
    }
    if len(words) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{method} {text}" for method, text in words.items())


def claims_of(runs: Runs) -> list[dict[str, Any]]:
    """For machines: every claim with effects and verdicts by protocol."""
    from ..experiments.agreement import CLAIMS, judge_claim

    listed = []
    for claim in CLAIMS:
        findings = {
            protocol: judge_claim(claim, done.get(claim.experiment))
            for protocol, done in runs.items()
        }
        own = {
            protocol: {
                "verdict": finding.verdict,
                "effects": {name: effect._asdict() for name, effect in finding.effects.items()},
            }
            for protocol, finding in findings.items()
            if finding is not None
        }
        if own:
            listed.append({"claim": claim.text, "published": claim.published(), "runs": own})
    return listed


def show_cells(screen: Screen, tables: Iterable[PageTable]) -> None:
    """Print tables of cells or claims."""
    for table in tables:
        digits = Table(table.columns, table.rows, table.digits).digits
        cells = [
            [
                format_cell(cell, own) if isinstance(cell, float | tuple) else cell
                for cell, own in zip(row, digits, strict=True)
            ]
            for row in table.rows
        ]
        screen.table(table.columns, cells, title=table.caption)
