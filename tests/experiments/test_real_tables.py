"""The real tables: both protocols run and are drawn on each, and kernel ridge gives the paper's errors."""

import os
from pathlib import Path

import pytest

from entangled_kernels.datasets import fetch_sarcos
from entangled_kernels.experiments import PROTOCOLS, Setup
from entangled_kernels.experiments.compare import table_cases
from entangled_kernels.experiments.methods import Plan
from entangled_kernels.experiments.protocol import run_cases
from entangled_kernels.experiments.real_tables import SARCOS_ERRORS, TABLES
from entangled_kernels.storage import ExperimentResults

DATA = Path(os.environ.get("ENTANGLED_KERNELS_DATA") or Path(__file__).parents[3] / "shared" / "data")
FIGURES = {
    "sarcos": ["nmse", "ni"],
    "weather": ["nmse", "ni"],
    "concrete": ["nmse", "times"],
    "uwave": ["nmse", "ni"],
}
SPLITS = {"sarcos": {0, 1}, "weather": {0, 1}, "concrete": {0, 1, 2}, "uwave": {0}}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", TABLES)
def test_runs_is_kept_and_is_drawn(run_and_draw, name, protocol):
    results, figures = run_and_draw(name, protocol)
    assert figures == [f"{name}-{kind}" for kind in FIGURES[name]]
    assert {record["n"] for record in results.records} == {6, 8}
    assert {record["split"] for record in results.records} == SPLITS[name]
    assert all(record["ni"] == 0.0 for record in results.records if record["method"] == "KRR")
    ranks = {"100%", "60%", "20%"} if name == "uwave" else {None}
    assert {record.get("rank") for record in results.records} == ranks


def test_kernel_ridge_does_not_depend_on_the_rank(run_and_draw):
    results, _ = run_and_draw("uwave", "fair")
    errors = {}
    for record in results.records:
        if record["method"] == "KRR":
            errors.setdefault((record["n"], record["split"]), set()).add(record["nmse"])
    assert errors
    assert all(len(values) == 1 for values in errors.values())


def test_the_papers_figures_belong_to_settings_that_are_run():
    assert TABLES["concrete"].paper
    for table in TABLES.values():
        assert all(record["n"] in table.train_sizes for record in table.paper)
    settings = {(method, n) for method in SARCOS_ERRORS for n in TABLES["sarcos"].train_sizes}
    assert {(record["method"], record["n"]) for record in TABLES["sarcos"].paper} == settings


def test_kernel_ridge_on_sarcos_is_the_papers():
    if not (DATA / "sarcos").is_dir():
        pytest.skip(f"the table is not in {DATA}; set ENTANGLED_KERNELS_DATA to a folder that has sarcos/")
    X, Y = fetch_sarcos(data_home=DATA, return_X_y=True)
    plan = Plan("paper", ("KRR",))
    setup = Setup("paper")
    cases = table_cases(X, Y, TABLES["sarcos"].train_sizes, 10, plan, setup)
    results = ExperimentResults("sarcos", "", run_cases(cases, setup), TABLES["sarcos"].paper)
    for row in results.summary():
        assert row["mean"] == pytest.approx(row["paper"], rel=0.04), row
