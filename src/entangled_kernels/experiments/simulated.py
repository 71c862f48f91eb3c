"""The bilinear simulation: errors over the number of outputs, of training rows, and over Kraus rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..datasets import make_bilinear
from ..io import ExperimentResults, Record
from .compare import varied_figures
from .methods import Plan
from .protocol import Case, Rows, run_cases
from .published import Ascent
from .setup import Experiment, Figures, Setup

__all__ = ["SIMULATED"]

N, P = 20, 100
OVER_P = (5, 20, 50, 100)
OVER_N = (10, 20, 40, 80)
RANKS = {"100%": None, "80%": 0.8, "60%": 0.6, "40%": 0.4, "20%": 0.2}
NOISE = 0.5


def settings() -> list[Record]:
    """What is varied, and n, p and rank."""
    plain = {"task": "", "n": N, "p": P, "rank": "100%"}
    varied = {"p": OVER_P, "n": OVER_N, "rank": RANKS}
    return [plain | {"task": f"over {name}", name: value} for name, own in varied.items() for value in own]


def run(setup: Setup) -> ExperimentResults:
    """Fresh draws of the simulation for every setting; linear kernel."""
    ascent = Ascent(n_steps=10 if setup.quick else 200)
    plan = Plan(setup.protocol, ascent=ascent)
    n_splits = 2 if setup.quick else 20
    cases = [
        _case(setup, replace(plan, rank=RANKS[keys["rank"]]), keys, split)
        for keys in settings()
        for split in range(n_splits)
    ]
    records = run_cases(cases, setup)
    meta = setup.meta(methods=plan.labels(), draws=n_splits, steps=ascent.n_steps, noise=NOISE)
    # The paper shows these results as curves, without figures to quote.
    return ExperimentResults(SIMULATED.name, SIMULATED.title, records, meta=meta)


def _case(setup: Setup, plan: Plan, keys: dict[str, Any], split: int) -> Case:
    n, p = keys["n"], keys["p"]
    seed = int(np.random.SeedSequence([setup.seed, n, p, split]).generate_state(1)[0]) % 2**31
    table = make_bilinear(n, p, noise=NOISE, random_state=seed)
    rows = Rows(table.data, table.target, table.data_test, table.target_test)
    return Case({**keys, "split": split}, rows, plan, seed)


def figures(results: ExperimentResults) -> Figures:
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
        "deviation), so that the true kernel is a sum of two separable ones. Fresh draws over the number of "
        "outputs at n = 20, over training rows at p = 100, and over Kraus rank at n = 20, p = 100; 200 test "
        "rows each. Targets have unit variance before the noise, so the mean squared error is the nMSE times "
        "1.25, the variance of the noisy targets."
    ),
    run=run,
    figures=figures,
)
