"""Canadian weather: a year of precipitation from a year of temperature, at few stations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..datasets import fetch_canadian_weather
from ..storage import ExperimentResults, Record
from .compare import error_figures, run_table
from .setup import Experiment, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["WEATHER"]

TRAIN_SIZES = (5, 10, 15)

# The paper's figures for this table are not at hand in a form that can be quoted with certainty.
PAPER: list[Record] = []


def run(setup: Setup) -> ExperimentResults:
    """Random partitions of the 35 stations; linear kernel."""
    table = fetch_canadian_weather(data_home=setup.data_home, return_X_y=True)
    return run_table(WEATHER, table, TRAIN_SIZES, 2 if setup.quick else 10, setup, PAPER)


def figures(results: ExperimentResults) -> dict[str, Figure]:
    """Errors and improvements over kernel ridge."""
    return error_figures(results)


WEATHER = Experiment(
    name="weather",
    title="Canadian weather: precipitation on 365 days",
    about=(
        "The logarithm of precipitation on every day of the year from the temperatures of the year, with the "
        "linear kernel. The paper does not say which of the two series is the input. 35 stations are split "
        "at random; the outputs are far more than the training rows."
    ),
    run=run,
    figures=figures,
)
