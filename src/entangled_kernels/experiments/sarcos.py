"""SARCOS inverse dynamics: errors over the number of training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..datasets import fetch_sarcos
from ..storage import ExperimentResults, Record
from .compare import error_figures, run_table
from .setup import Experiment, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SARCOS"]

TRAIN_SIZES = (50, 100, 200, 1000)

# The paper's nMSE, with one row for EKL and ptrEKL.
PUBLISHED = {
    "KRR": (0.2418, 0.1668, 0.1441, 0.1273),
    "EKL": (0.2381, 0.1661, 0.1440, 0.1273),
    "ptrEKL": (0.2381, 0.1661, 0.1440, 0.1273),
}
PAPER: list[Record] = [
    {"method": method, "n": n, "nmse": error}
    for method, errors in PUBLISHED.items()
    for n, error in zip(TRAIN_SIZES, errors, strict=True)
]


def run(setup: Setup) -> ExperimentResults:
    """Random partitions of the 4449 rows; linear kernel."""
    table = fetch_sarcos(data_home=setup.data_home, return_X_y=True)
    return run_table(SARCOS, table, TRAIN_SIZES, 2 if setup.quick else 10, setup, PAPER)


def figures(results: ExperimentResults) -> dict[str, Figure]:
    """Errors and improvements over kernel ridge."""
    return error_figures(results)


SARCOS = Experiment(
    name="sarcos",
    title="SARCOS: seven torques of a robot arm",
    about=(
        "Torques at seven joints from their positions, velocities and accelerations, with the linear kernel. "
        "Training rows are drawn at random from the file of 4449 rows, and all others are tested on."
    ),
    run=run,
    figures=figures,
)
