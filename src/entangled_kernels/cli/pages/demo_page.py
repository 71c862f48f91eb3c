"""The page of the demonstration: some targets measured, the others predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...report import Report
from ...storage import ExperimentResults
from ...tables.phrases import counted
from ..model_words import change_in_words
from ..results import pivot
from .results_pages import write_with_command

__all__ = ["measured_in_words", "write_demo_page"]

PAIRS = 8
ABOUT = {
    "breast-cancer": "Images of cells from 569 tumours gave thirty measurements: of ten properties, such as "
    "radius and texture, the mean over the cells of an image, its standard error, and the worst of all "
    "cells. The ten worst values are predicted from the other twenty.",
    "wine": "178 wines from one region of Italy, thirteen constituents. Four kinds of phenols, the "
    "OD280/OD315 ratio and proline are predicted from the other seven: alcohol, malic acid, ash and its "
    "alkalinity, magnesium, colour intensity and hue.",
}


def write_demo_page(found: list[ExperimentResults], command: str, out: Path) -> Path:
    """The page, from results of `compare_partly_measured`."""
    page = Report(
        "Measure some, predict the rest",
        lead="Several numbers are wanted of every sample. Some are measured, and the others predicted: from "
        "the inputs, and from the measured ones.",
    )
    meta = found[0].meta
    draws = meta["repeats"]
    page.section("What was done")
    page.text(
        f"From two tables that come with scikit-learn {meta['train_rows']} rows were drawn to learn from, "
        f"{draws} times. All errors are those of the other rows, which no model has seen: means ± standard "
        f"deviations over the {draws} draws. Error is nMSE: 0 is perfect, 1 is predicting the mean.\n\n"
        "Then one, two and three targets of the new rows are measured, and the error is that of the targets "
        "that are not. Which ones are measured is drawn at random, every target as often as any other, so "
        "that errors with more and with fewer measured ones are of the same targets."
    )
    page.points(f"{name}: {words}." for name, words in meta["methods"].items())
    for results in found:
        _add_table(page, results)
    return write_with_command(page, command, found[0], out / "index.html")


def measured_in_words(results: ExperimentResults) -> list[str]:
    """What a run has shown, whoever did best."""
    ours = {row["known"]: row["mean"] for row in _summary(results, "nmse", ours=True)}
    others = _summary(results, "nmse", ours=False)
    last, p = max(ours), len(results.meta["targets"])
    errors = ", ".join(f"{error:.3f}" for error in ours.values())
    sentences = [
        f"Error with 0 to {last} of {p} targets measured: {errors}. Measuring {last} takes "
        f"{1.0 - ours[last] / ours[0]:.0%} off the error of the rest."
    ]
    for known in (0, last):
        best = min((row for row in others if row["known"] == known), key=lambda row: row["mean"])
        change = change_in_words(ours[known], best["mean"])
        change += " as" if change == "the same error" else " than"
        sentences.append(
            f"With {known} measured: {change} the best of the other methods, {best['method']} "
            f"({best['mean']:.3f})."
        )
    inside = [row["mean"] for row in _summary(results, "coverage", ours=True)]
    jointly = [row["mean"] for row in _summary(results, "joint_coverage", ours=True)]
    sentences.append(
        f"Of the {results.meta['coverage']:.0%} intervals {_range(inside)} hold the true value; joint ones "
        f"hold all targets of a row at once in {_range(jointly)} of rows."
    )
    return sentences


def _add_table(page: Report, results: ExperimentResults) -> None:
    """The sections of one table."""
    from ...plotting import ComparisonDisplay, InformationDisplay

    place = results.title.partition(":")[0]
    page.section(results.title)
    page.text(ABOUT.get(results.name, ""))
    page.figure(
        ComparisonDisplay.from_results(results, x="known").figure_,
        caption="Error of the targets that are not measured, on unseen rows.",
        alt=f"{results.title}: error over the number of measured targets, a curve for each method",
    )
    columns, rows, _ = pivot(results, "nmse")
    page.table(columns, rows, caption=f"{place}: nMSE of the targets that are not measured", best="min")
    sentences = measured_in_words(results)
    page.verdict(" ".join(sentences[:-1]))
    page.text(sentences[-1])
    _add_intervals(page, results, place)
    _add_work(page, results, place)
    page.section(f"{place}: what tells what")
    page.text(
        "Beyond what the inputs say, how much of the uncertainty of a target does measuring another remove? "
        f"The model finds it from held-out errors of its {results.meta['train_rows']} training rows. The "
        "table has beside it what came of it on rows that the model has not seen."
    )
    page.figure(
        InformationDisplay(results.array("information"), results.meta["targets"]).plot().figure_,
        caption=f"{place}: what tells what, mean of {counted(results.meta['repeats'], 'model')}.",
        alt="Matrix of targets, groups that tell about each other side by side; the table below has the "
        "pairs",
    )
    page.table(
        ["Measuring", "removes of", "the model says, %", "unseen rows, %"],
        _strongest_pairs(results),
        caption=f"{place}: share of the uncertainty removed, the {PAIRS} strongest pairs by the model",
        digits=0,
        row_headers=2,
        note="Of few rows the model draws what it finds towards zero.",
    )
    _add_plan(page, results, place)


def _add_intervals(page: Report, results: ExperimentResults, place: str) -> None:
    metrics = {
        "coverage": "inside intervals",
        "joint_coverage": "rows inside joint intervals",
        "width": "width (deviations of the target)",
    }
    page.table(
        ["targets measured", *metrics.values()],
        _by_known(results, metrics),
        caption=f"{place}: {results.meta['coverage']:.0%} intervals of the targets that are not measured",
        note="Mean ± standard deviation over draws.",
    )


def _add_work(page: Report, results: ExperimentResults, place: str) -> None:
    """How many fits each method needed, and their time."""
    work: dict[str, Any] = {}
    for record in results.records:
        fits, seconds = work.get(record["method"], (0, 0.0))
        work[record["method"]] = (fits + record["fits"], seconds + record["fit_seconds"])
    draws = results.meta["repeats"]
    rows = [[method, fits // draws, seconds / draws] for method, (fits, seconds) in work.items()]
    page.table(
        ["Method", "fits for one draw", "seconds for one draw"],
        rows,
        caption=f"{place}: work for all sets of measured targets",
        digits={"fits for one draw": 0, "seconds for one draw": 2},
        note="Processor time. One fit of EntangledKernelRidgeCV serves all sets.",
    )


def _add_plan(page: Report, results: ExperimentResults, place: str) -> None:
    """Targets measured as the model suggests, beside any."""
    page.text(
        "The model also says what to measure first (suggest_measurements, or the command plan). Here the "
        "error is that of all targets, where a measured one has none."
    )
    page.table(
        ["targets measured", "any of them", "those the model suggests"],
        _by_known(results, ["left", "left_suggested"]),
        caption=f"{place}: nMSE left in all targets",
        best="min",
        note="Mean ± standard deviation over draws.",
    )


def _by_known(results: ExperimentResults, metrics: Any) -> list[list[Any]]:
    """A row for each number of measured targets: mean and spread of some metrics."""
    columns = [_summary(results, metric, ours=True) for metric in metrics]
    return [
        [rows[0]["known"], *((row["mean"], row["std"]) for row in rows)]
        for rows in zip(*columns, strict=True)
    ]


def _strongest_pairs(results: ExperimentResults) -> list[list[Any]]:
    """Pairs of targets with percent removed, by the model and on unseen rows, each pair one way."""
    information, removed = results.array("information"), results.array("removed")
    names = results.meta["targets"]
    rows, columns = np.triu_indices(len(names), 1)
    order = np.argsort(-information[rows, columns], kind="stable")[:PAIRS]
    return [
        [names[a], names[b], 100.0 * information[a, b], 100.0 * removed[a, b]]
        for a, b in zip(rows[order], columns[order], strict=True)
    ]


def _summary(results: ExperimentResults, metric: str, *, ours: bool) -> list[dict[str, Any]]:
    from ...experiments.partly_measured import OURS

    return [row for row in results.summary(metric, ("known", "method")) if (row["method"] == OURS) == ours]


def _range(shares: list[float]) -> str:
    """One share, or from which to which several go, in percent."""
    least, largest = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return least if least == largest else f"{least} to {largest}"
