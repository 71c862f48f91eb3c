"""Concrete slump: errors and running times on a small table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..datasets import fetch_concrete_slump
from ..storage import ExperimentResults, Record
from .compare import run_table
from .setup import Experiment, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONCRETE"]

TRAIN_SIZES = (12, 20, 40)

# The one figure of the paper's table that can be quoted with certainty.
PAPER: list[Record] = [{"method": "EKL", "n": 12, "nmse": 0.796}]


def run(setup: Setup) -> ExperimentResults:
    """Random partitions of the 103 mixtures; linear kernel."""
    table = fetch_concrete_slump(data_home=setup.data_home, return_X_y=True)
    return run_table(CONCRETE, table, TRAIN_SIZES, 3 if setup.quick else 20, setup, PAPER)


def figures(results: ExperimentResults) -> dict[str, Figure]:
    """Errors, and the time that selecting and fitting took."""
    from ..plotting import ComparisonDisplay, RunningTimeDisplay

    return {
        "concrete-nmse": ComparisonDisplay.from_results(results).figure_,
        "concrete-times": RunningTimeDisplay.from_results(results).figure_,
    }


CONCRETE = Experiment(
    name="concrete",
    title="Concrete: three properties of 103 mixtures",
    about=(
        "Slump, flow and strength of concrete from seven ingredients, with the linear kernel. Mixtures are "
        "split at random. Times are those of choosing all settings by cross-validation and fitting with them."
    ),
    run=run,
    figures=figures,
)
