"""The page of the demonstration."""

from __future__ import annotations

from pathlib import Path

from ...report import Report
from ...storage import ExperimentResults
from ..result_tables import finding
from .experiment_page import add_experiment
from .results_section import add_results, write_with_command

__all__ = ["write_demo_page"]


def write_demo_page(compared: ExperimentResults, learned: ExperimentResults, command: str, out: Path) -> Path:
    """The page of the demonstration."""
    from matplotlib import pyplot as plt

    from ...plotting import ComparisonDisplay

    page = Report(
        "Entangled kernels on digits",
        lead="Four related tasks, is it a 0, a 1, a 2, a 3, learned together from a few small images.",
    )
    page.section("Methods side by side")
    page.text(
        "Each method predicts a number for each task, +1 for yes and -1 for no, from the same images. "
        "The error is nMSE: 0 is perfect, 1 is predicting the mean. Kernel ridge (KRR) is the baseline."
    )
    page.points(f"{name}: {words}" for name, words in compared.meta["methods"].items())
    figure = ComparisonDisplay.from_results(compared).figure_
    add_results(page, compared, {"digits-nmse": figure})
    plt.close(figure)
    page.verdict(finding(compared))
    add_experiment(page, learned.title, "digits", learned, out)
    return write_with_command(page, command, compared, out / "index.html")
