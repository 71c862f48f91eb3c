"""Results of experiments on a page: tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...report import Report
from ...storage import ExperimentResults
from ..result_tables import SETTINGS, metric_digits, metrics_of, pivot

__all__ = ["add_results", "add_run", "write_with_command"]

# By the last word of a figure's name.
CAPTIONS = {
    "kernel": "Block Gram matrix of the learned kernel, rows in order of class, three blocks enlarged",
    "projections": "Rows in the plane of each task: circles training, triangles test",
    "entanglement": "Eigenvalues of the partial transpose, of which a negative one proves entanglement, and "
    "operator-Schmidt values, of which a separable kernel has one",
    "nmse": "Error over training rows, means with intervals",
    "ni": "Normalised improvement over kernel ridge; above zero is better than kernel ridge",
    "times": "Seconds to choose the settings and fit, both axes logarithmic",
    "p": "Over the number of outputs",
    "n": "Over the number of training rows",
    "rank": "Over the Kraus rank",
}


def add_run(page: Report, results: ExperimentResults, **more: Any) -> None:
    """Add how the results were made, and what the methods are."""
    hidden = ("methods", "versions", "verdict")
    page.facts({name: value for name, value in results.meta.items() if name not in hidden} | more)
    page.points(f"{name}: {words}" for name, words in results.meta.get("methods", {}).items())


def write_with_command(page: Report, command: str, results: ExperimentResults, path: Path) -> Path:
    """End a page with the command that makes it again, and write it; its path."""
    page.section("How to repeat it")
    page.code(command)
    page.facts(results.meta.get("versions", {}))
    return page.write(path)


def add_results(page: Report, results: ExperimentResults, figures: dict[str, Any]) -> None:
    """Add the tables, with the paper's or the baseline's figures, and the figures."""
    for metric in metrics_of(results):
        columns, rows, paper = pivot(results, metric)
        name, digits = metric_digits(metric, paper=paper)
        settings = sum(column in SETTINGS.values() for column in columns)
        own = [column for column in columns[settings:] if not column.endswith("(paper)")]
        note = "Mean ± standard deviation over partitions."
        note += " Columns marked (paper) quote the published figures." if paper else ""
        page.table(
            columns,
            rows,
            caption=f"{results.title}: {name}",
            digits=digits,
            best={"nmse": "min", "fit_seconds": None}.get(metric, "max"),
            best_among=own,
            row_headers=max(1, settings),
            note=note,
        )
    for name, figure in figures.items():
        kind = name.rpartition("-")[2]
        words = CAPTIONS.get(kind, name)
        if kind == "nmse" and results.paper:
            words += "; open marks are the paper's"
        page.figure(figure, caption=f"{words}.", alt=f"{results.title}: {words}")
