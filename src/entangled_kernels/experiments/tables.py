"""Experiments on the paper's four real tables, and on its bilinear simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..datasets import (
    fetch_canadian_weather,
    fetch_concrete_slump,
    fetch_sarcos,
    fetch_uwave,
    make_bilinear,
)
from ..io import ExperimentResults, Record
from .agreement import SHARED, as_records
from .compare import class_figures, error_figures, table_cases, time_figures, varied_figures
from .methods import EARLY, LAMBDA_ONE, PAPER_METHODS, PICKED, Plan
from .protocol import Case, Experiment, Figures, Rows, Setup, run_cases

__all__ = ["REAL_TABLES", "SIMULATED", "TABLES", "RealTable", "run_table"]


QUICK_STEPS = 20
METHODS_BY_PROTOCOL = {"fair": PAPER_METHODS, "paper": (*PAPER_METHODS, *EARLY)}
# For tables of the paper in which EKL and ptrEKL share a row.
WITH_SHARED_ROW = {
    "fair": (*PAPER_METHODS, SHARED),
    "paper": (*METHODS_BY_PROTOCOL["paper"], *PICKED),
}


@dataclass(frozen=True)
class RealTable:
    """A table, how it is split, and what is run on it; `CELLS` has the paper's results.

    Attributes
    ----------
    title, about : str
        As in `Experiment`.
    fetch : callable
        One of `entangled_kernels.datasets`.
    train_sizes : tuple of int
    n_splits : dict of int
        Number of partitions for each protocol and for "quick".
    n_steps : int
        Of the published ascent; a quick run takes at most `QUICK_STEPS`.
    tasks : dict
        Arguments of ``fetch`` for each part of the data, by the name of the part in records.
    ranks : dict
        For ranks below the full one: share and training sizes, by the name in records.
    methods : dict
        Methods of each protocol.
    figures : callable
        As in `Experiment`.
    """

    title: str
    about: str
    fetch: Callable[..., Any]
    train_sizes: tuple[int, ...]
    n_splits: dict[str, int]
    n_steps: int = 200
    tasks: dict[str, dict[str, Any]] = field(default_factory=lambda: {"": {}})
    ranks: dict[str, tuple[float, tuple[int, ...]]] = field(default_factory=dict)
    methods: dict[str, tuple[str, ...]] = field(default_factory=METHODS_BY_PROTOCOL.copy)
    figures: Callable[[ExperimentResults], Figures] = error_figures


TABLES = {
    "sarcos": RealTable(
        title="SARCOS: seven torques of a robot arm",
        about=(
            "Torques at seven joints from their positions, velocities and accelerations, with the "
            "linear kernel. Training rows are drawn at random from the file of 4449 rows, and all "
            "others are tested on."
        ),
        fetch=fetch_sarcos,
        train_sizes=(50, 100, 200, 1000),
        n_splits={"fair": 20, "paper": 50, "quick": 2},
        methods=WITH_SHARED_ROW,
    ),
    "weather": RealTable(
        title="Canadian weather: precipitation on 365 days",
        about=(
            "The logarithm of precipitation on every day of the year from the temperatures of the "
            "year, with the linear kernel. The paper does not say which of the two series is the "
            "input. 35 stations are split at random; the outputs are far more than the training "
            "rows."
        ),
        fetch=fetch_canadian_weather,
        train_sizes=(5, 10, 15),
        n_splits={"fair": 50, "paper": 100, "quick": 2},
        methods=WITH_SHARED_ROW,
    ),
    "concrete": RealTable(
        title="Concrete: three properties of 103 mixtures",
        about=(
            "Slump, flow and strength of concrete from seven ingredients, with the linear kernel. "
            "Mixtures are split at random. Times are those of choosing all settings by "
            "cross-validation and fitting with them."
        ),
        fetch=fetch_concrete_slump,
        train_sizes=(12, 20, 40),
        n_splits={"fair": 50, "paper": 100, "quick": 3},
        figures=time_figures,
    ),
    # One step, since results with more steps no longer resemble the paper's
    # (`benchmarks/variants.py`). A step at full rank takes most of a second with 40 rows, and every
    # partition has six ascents.
    "uwave": RealTable(
        title="uWave: acceleration along one axis from another, class by class",
        about=(
            "315 accelerations along axis Y from those along axis X, for the gestures of one class "
            "at a time, with the linear kernel. EKL and ptrEKL may use all of the Kraus operators "
            "that the rows can support, or with 30 rows 60% or 20% of them. With the paper's "
            "protocol every method is shown with lambda chosen by cross-validation and with lambda "
            "1, and the ascent takes one step."
        ),
        fetch=fetch_uwave,
        train_sizes=(20, 30, 40),
        n_splits={"fair": 20, "paper": 50, "quick": 1},
        n_steps=1,
        tasks={f"class {number}": {"classes": (number,)} for number in (1, 2, 3)},
        ranks={"60%": (0.6, (30,)), "20%": (0.2, (30,))},
        methods={"fair": PAPER_METHODS, "paper": (*PAPER_METHODS, *LAMBDA_ONE)},
        figures=class_figures,
    ),
}


def run_table(name: str, setup: Setup) -> ExperimentResults:
    """All methods of the protocol on random partitions of the rows, with the linear kernel."""
    table = TABLES[name]
    n_splits = table.n_splits["quick" if setup.quick else setup.protocol]
    steps = min(table.n_steps, QUICK_STEPS) if setup.quick else table.n_steps
    plan = Plan(setup.protocol, table.methods[setup.protocol], n_steps=steps)
    # Kernel ridge and output kernel learning have no rank.
    learned = tuple(name for name in plan.methods if name.partition(",")[0] in ("EKL", "ptrEKL"))
    cases = []
    for task, arguments in table.tasks.items():
        X, Y = table.fetch(**arguments, data_home=setup.data_home, return_X_y=True)
        keys: dict[str, Any] = {"task": task} if task else {}
        full: dict[str, Any] = {"rank": "100%"} if table.ranks else {}
        cases += table_cases(X, Y, table.train_sizes, n_splits, plan, setup, **keys, **full)
        for label, (share, sizes) in table.ranks.items():
            bounded = plan._replace(methods=learned, rank=share)
            cases += table_cases(X, Y, sizes, n_splits, bounded, setup, **keys, rank=label)
    records = run_cases(cases, setup)
    meta = setup.meta(methods=plan.descriptions(), partitions=n_splits, steps=plan.n_steps)
    return ExperimentResults(name, table.title, records, as_records(name), meta)


REAL_TABLES = [
    Experiment(name, table.title, table.about, partial(run_table, name), table.figures)
    for name, table in TABLES.items()
]


N, P = 20, 100
OVER_P = (5, 20, 50, 100)
OVER_N = (10, 20, 40, 80)
RANKS = {"100%": None, "80%": 0.8, "60%": 0.6, "40%": 0.4, "20%": 0.2}
NOISE = 0.5


def simulated_settings() -> list[Record]:
    """The settings: which of n, p and rank is varied, and their values."""
    plain = {"task": "", "n": N, "p": P, "rank": "100%"}
    varied = {"p": OVER_P, "n": OVER_N, "rank": RANKS}
    return [
        plain | {"task": f"over {name}", name: value}
        for name, values in varied.items()
        for value in values
    ]


def run_simulated(setup: Setup) -> ExperimentResults:
    """Draw the simulation anew for each setting and split, with the linear kernel."""
    methods = METHODS_BY_PROTOCOL[setup.protocol]
    plan = Plan(setup.protocol, methods, n_steps=10 if setup.quick else 200)
    n_splits = 2 if setup.quick else 20
    cases = [
        _simulated_case(setup, plan._replace(rank=RANKS[keys["rank"]]), keys, split)
        for keys in simulated_settings()
        for split in range(n_splits)
    ]
    records = run_cases(cases, setup)
    meta = setup.meta(methods=plan.descriptions(), draws=n_splits, steps=plan.n_steps, noise=NOISE)
    # The paper shows these results as curves, without numbers.
    return ExperimentResults(SIMULATED.name, SIMULATED.title, records, meta=meta)


def _simulated_case(setup: Setup, plan: Plan, keys: dict[str, Any], split: int) -> Case:
    n, p = keys["n"], keys["p"]
    seed = int(np.random.SeedSequence([setup.seed, n, p, split]).generate_state(1)[0]) % 2**31
    table = make_bilinear(n, p, noise=NOISE, random_state=seed)
    rows = Rows(table.data, table.target, table.data_test, table.target_test)
    return Case({**keys, "split": split}, rows, plan, seed)


def simulated_figures(results: ExperimentResults) -> Figures:
    """Errors over p, over n and over rank."""
    from ..plotting import ComparisonDisplay

    titles = {
        "p": f"Simulated: error over outputs, n = {N}",
        "n": f"Simulated: error over training rows, p = {P}",
        "rank": f"Simulated: error over Kraus rank, n = {N}, p = {P}",
    }
    return varied_figures(ComparisonDisplay, results, titles)


SIMULATED = Experiment(
    name="simulated",
    title="Simulated: a bilinear model",
    about=(
        "Targets that solve T C A + C K = Y (make_bilinear, ten inputs, noise of half the signal's "
        "deviation), so that the true kernel is a sum of two separable ones. Fresh draws over the "
        "number of outputs at n = 20, over training rows at p = 100, and over Kraus rank at "
        "n = 20, p = 100; 200 test rows each. Targets have unit variance before the noise, so the "
        "mean squared error is the nMSE times 1.25, the variance of the noisy targets."
    ),
    run=run_simulated,
    figures=simulated_figures,
)
