"""The page of a comparison of methods on a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...report import Report
from ...storage import ExperimentResults
from ...tables.phrases import counted
from ..entanglement import verdict_kind
from ..result_tables import finding
from ..training_table import TrainingTable
from .results_section import add_results, add_run, write_with_command

__all__ = ["write_comparison_page"]


def write_comparison_page(
    found: ExperimentResults,
    table: Path,
    data: TrainingTable,
    whole: dict[str, Any],
    command: str,
    path: Path,
) -> None:
    """Write the page.

    Parameters
    ----------
    found : ExperimentResults
    table : path
    data : TrainingTable
    whole : dict
        Settings, sharing and verdict of the model of all rows.
    command : str
        What to type to get the same again.
    path : path
        Of the page.
    """
    from matplotlib import pyplot as plt

    from ...experiments.compare import time_figures

    lead = f"{counted(len(data.targets), 'target')} from {counted(len(data.inputs), 'input')}"
    page = Report(found.title, lead=f"{lead}, {counted(len(data.Y), 'row')}.")
    page.section("What was run")
    page.text(
        "Every method chose its settings by cross-validation on the same training rows of each partition."
    )
    add_run(page, found, table=table, targets=data.targets, inputs=data.inputs)
    page.section("Results")
    figures = time_figures(found)
    add_results(page, found, figures)
    for figure in figures.values():
        plt.close(figure)
    if finding(found):
        page.verdict(finding(found))
    page.section("The kernel on all rows")
    page.text(f"EntangledKernelRidgeCV on all rows of the table chose: {whole['settings']}.")
    page.points(whole["sharing"])
    page.verdict(whole["verdict"], verdict_kind(whole["entangled"]))
    write_with_command(page, command, found, path)
