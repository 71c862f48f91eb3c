"""Small tables in the place of the real ones, so that every experiment can be run."""

from dataclasses import replace

import matplotlib as mpl
import pytest

from entangled_kernels.datasets import make_bilinear
from entangled_kernels.experiments import (
    EXPERIMENTS,
    Setup,
    digits,
    methods,
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
        small_table = replace(table, fetch=fetch, train_sizes=(6, 8), ranks=ranks)
        monkeypatch.setitem(tables.TABLES, name, small_table)
    monkeypatch.setattr(methods, "GRID", methods.SMALL_GRID)
    for module, settings in (
        (digits, {"N_EACH": 10}),
        (tables, {"N": 6, "P": 4, "OVER_N": (6, 8), "OVER_P": (2, 4)}),
        (running_times, {"N": 4, "P": 2, "OVER_N": (4, 8), "OVER_P": (2, 3), "N_TIMINGS": 1}),
    ):
        for name, value in settings.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture
def run_and_draw(small, tmp_path):
    """A function that runs an experiment, checks what all have in common, and draws its figures."""

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
