"""Every experiment runs with both protocols, on small tables in the place of the real ones, and is drawn."""

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from entangled_kernels.datasets import fetch_sarcos, make_bilinear
from entangled_kernels.experiments import (
    EXPERIMENTS,
    PROTOCOLS,
    Setup,
    concrete,
    digits,
    running_times,
    sarcos,
    simulated,
    uwave,
    weather,
)
from entangled_kernels.experiments.compare import table_cases
from entangled_kernels.experiments.methods import Plan
from entangled_kernels.experiments.protocol import run_cases
from entangled_kernels.storage import ExperimentResults

DATA = Path(os.environ.get("ENTANGLED_KERNELS_DATA") or Path(__file__).parents[3] / "shared" / "data")
FETCHERS = {
    sarcos: "fetch_sarcos",
    weather: "fetch_canadian_weather",
    concrete: "fetch_concrete_slump",
    uwave: "fetch_uwave",
}


@pytest.fixture
def small(monkeypatch):
    """Small tables and few settings."""
    mpl.use("agg")

    def fetch(**arguments):
        return make_bilinear(24, 4, 3, random_state=0, return_X_y=True)

    for module, name in FETCHERS.items():
        monkeypatch.setattr(module, name, fetch)
        monkeypatch.setattr(module, "TRAIN_SIZES", (6, 8))
    monkeypatch.setattr(simulated, "N", 6)
    monkeypatch.setattr(simulated, "P", 4)
    monkeypatch.setattr(simulated, "OVER_N", (6, 8))
    monkeypatch.setattr(simulated, "OVER_P", (2, 4))
    monkeypatch.setattr(running_times, "N", 12)
    monkeypatch.setattr(running_times, "P", 2)
    monkeypatch.setattr(running_times, "OVER_N", (10, 20))
    monkeypatch.setattr(running_times, "OVER_P", (2, 3))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_runs_is_kept_and_is_drawn(small, name, protocol, tmp_path):
    experiment = EXPERIMENTS[name]
    calls = []
    setup = Setup(protocol, quick=True, progress=lambda *call: calls.append(call))
    results = experiment.run(setup)
    assert results.name == name
    assert results.title == experiment.title
    assert results.meta["protocol"] == protocol
    assert set(results.meta["methods"]) == {record["method"] for record in results.records}
    assert {"method", "n", "split"} <= set(results.records[0])
    assert calls[-1][0] == calls[-1][1] == max(call[0] for call in calls)
    loaded = ExperimentResults.load(results.save(tmp_path)[0])
    figures = experiment.figures(loaded)
    assert figures
    for figure in figures.values():
        assert figure.axes
        figure.canvas.draw()


def test_experiments_have_names_and_descriptions():
    assert list(EXPERIMENTS) == [
        "digits",
        "simulated",
        "sarcos",
        "weather",
        "concrete",
        "uwave",
        "running-times",
    ]
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert experiment.about.endswith(".")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_digits_are_entangled_and_their_projections_separate(protocol):
    results = EXPERIMENTS["digits"].run(Setup(protocol, quick=True))
    assert results.meta["entangled"] is True
    assert results.meta["ppt"] is False
    assert results.arrays["partial_transpose_eigenvalues"].min() < -0.01
    assert results.arrays["gram"].shape == (160, 160)
    assert results.arrays["Z_train"].shape == (40, 4, digits.RANK)
    tasks = {row["task"]: row["mean"] for row in results.summary("accuracy", by=("task",))}
    assert set(tasks) == {"all", "is 0", "is 1", "is 2", "is 3"}
    assert min(tasks.values()) > 0.85


def test_paper_figures_belong_to_settings_that_are_run():
    settings = {(method, n) for method in sarcos.PUBLISHED for n in sarcos.TRAIN_SIZES}
    assert {(record["method"], record["n"]) for record in sarcos.PAPER} == settings
    assert all(record["n"] in concrete.TRAIN_SIZES for record in concrete.PAPER)


def test_kernel_ridge_on_sarcos_is_the_papers():
    if not (DATA / "sarcos").is_dir():
        pytest.skip(f"the table is not in {DATA}; set ENTANGLED_KERNELS_DATA to a folder that has sarcos/")
    X, Y = fetch_sarcos(data_home=DATA, return_X_y=True)
    plan = Plan("paper", ("KRR",))
    cases = table_cases(X, Y, sarcos.TRAIN_SIZES, 10, plan, Setup("paper"))
    results = ExperimentResults("sarcos", "", run_cases(cases, None, None), sarcos.PAPER)
    for row in results.summary():
        assert row["mean"] == pytest.approx(row["paper"], rel=0.04), row


def test_setup_refuses_another_protocol():
    with pytest.raises(ValueError, match="protocol must be 'paper' or 'fair', got 'best'"):
        Setup("best")


def test_simulated_draws_differ_between_splits():
    first, second = (simulated._case(Setup(), Plan(), {"n": 6, "p": 3}, split).rows.Y for split in range(2))
    assert not np.allclose(first, second)
