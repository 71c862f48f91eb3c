"""uWave gestures: one axis of acceleration from another, over training rows and Kraus rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..datasets import fetch_uwave
from ..storage import ExperimentResults, Record
from .compare import error_figures, table_cases
from .methods import Plan
from .protocol import run_cases
from .published import Ascent
from .setup import Experiment, Setup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["UWAVE"]

CLASSES = (1, 2, 3)
TRAIN_SIZES = (20, 30, 40)
RANKS = {"100%": None, "60%": 0.6, "20%": 0.2}

# The paper's figures for this table are not at hand in a form that can be quoted with certainty.
PAPER: list[Record] = []

# A step at full rank takes a quarter of a second with 40 rows, and there are six fits to a partition.
LONG = Ascent(n_steps=10)
SHORT = Ascent(n_steps=1)


def run(setup: Setup) -> ExperimentResults:
    """Random partitions of the gestures of classes 1 to 3, axis X to axis Y; linear kernel."""
    X, Y = fetch_uwave(classes=CLASSES, data_home=setup.data_home, return_X_y=True)
    ascent = SHORT if setup.quick else LONG
    n_splits = 1 if setup.quick else 2 if setup.protocol == "paper" else 10
    cases, plans = [], []
    for name, rank in RANKS.items():
        # Kernel ridge is fitted for every rank, as the reference of the improvement.
        plans.append(Plan(setup.protocol, rank=rank, ascent=ascent))
        cases += table_cases(X, Y, TRAIN_SIZES, n_splits, plans[-1], setup, rank=name)
    records = run_cases(cases, setup)
    meta = setup.meta(methods=plans[0].labels(), partitions=n_splits, steps=ascent.n_steps)
    return ExperimentResults(UWAVE.name, UWAVE.title, records, PAPER, meta)


def figures(results: ExperimentResults) -> dict[str, Figure]:
    """Errors and improvements over kernel ridge, a panel for each rank."""
    return error_figures(results, facet="rank")


UWAVE = Experiment(
    name="uwave",
    title="uWave: acceleration along one axis from another",
    about=(
        "315 accelerations along axis Y from those along axis X, for gestures of classes 1 to 3 together, "
        "with the linear kernel. EKL and ptrEKL may use all, 60% or 20% of the Kraus operators that the rows "
        "can support."
    ),
    run=run,
    figures=figures,
)
