"""Small tables in the place of the real ones, so that every experiment can be run."""

from dataclasses import replace

import matplotlib as mpl
import pytest

from entangled_kernels.datasets import make_bilinear
from entangled_kernels.experiments import (
    EXPERIMENTS,
    Setup,
    running_times,
    tables,
)
from entangled_kernels.io import ExperimentResults


@pytest.fixture
def small(monkeypatch):
    """Small tables and few settings."""
    mpl.use("agg")

    def fetch(**arguments):
        return make_bilinear(24, 4, 3, random_state=0, return_X_y=True)

    for name, table in list(tables.TABLES.items()):
        ranks = {label: (share, (8,)) for label, (share, _) in table.ranks.items()}
        own = replace(table, fetch=fetch, train_sizes=(6, 8), ranks=ranks)
        monkeypatch.setitem(tables.TABLES, name, own)
    monkeypatch.setattr(tables, "N", 6)
    monkeypatch.setattr(tables, "P", 4)
    monkeypatch.setattr(tables, "OVER_N", (6, 8))
    monkeypatch.setattr(tables, "OVER_P", (2, 4))
    monkeypatch.setattr(running_times, "N", 4)
    monkeypatch.setattr(running_times, "P", 2)
    monkeypatch.setattr(running_times, "OVER_N", (4, 8))
    monkeypatch.setattr(running_times, "OVER_P", (2, 3))
    monkeypatch.setattr(running_times, "N_TIMINGS", 1)


@pytest.fixture
def run_and_draw(small, tmp_path):
    """Run an experiment and check what holds of all; its results, and the names of its figures."""

    def run(name, protocol):
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
        for figure in figures.values():
            assert figure.axes
            figure.canvas.draw()
        return results, list(figures)

    return run
