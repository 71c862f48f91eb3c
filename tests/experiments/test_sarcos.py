"""SARCOS: both protocols run and are drawn, and kernel ridge gives the paper's errors."""

import os
from pathlib import Path

import pytest

from entangled_kernels.datasets import fetch_sarcos
from entangled_kernels.experiments import PROTOCOLS, Setup, sarcos
from entangled_kernels.experiments.compare import table_cases
from entangled_kernels.experiments.methods import Plan
from entangled_kernels.experiments.protocol import run_cases
from entangled_kernels.storage import ExperimentResults

DATA = Path(os.environ.get("ENTANGLED_KERNELS_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    results, figures = run_and_draw("sarcos", protocol)
    assert figures == ["sarcos-nmse", "sarcos-ni"]
    assert {record["n"] for record in results.records} == {6, 8}


def test_the_papers_figures_belong_to_settings_that_are_run():
    settings = {(method, n) for method in sarcos.PUBLISHED for n in sarcos.TRAIN_SIZES}
    assert {(record["method"], record["n"]) for record in sarcos.PAPER} == settings


def test_kernel_ridge_on_sarcos_is_the_papers():
    if not (DATA / "sarcos").is_dir():
        pytest.skip(f"the table is not in {DATA}; set ENTANGLED_KERNELS_DATA to a folder that has sarcos/")
    X, Y = fetch_sarcos(data_home=DATA, return_X_y=True)
    plan = Plan("paper", ("KRR",))
    setup = Setup("paper")
    cases = table_cases(X, Y, sarcos.TRAIN_SIZES, 10, plan, setup)
    results = ExperimentResults("sarcos", "", run_cases(cases, setup), sarcos.PAPER)
    for row in results.summary():
        assert row["mean"] == pytest.approx(row["paper"], rel=0.04), row
