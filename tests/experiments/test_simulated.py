"""The bilinear simulation: both protocols run over n, p and rank, each with draws of its own."""

import pytest

from entangled_kernels.experiments import PROTOCOLS
from entangled_kernels.experiments.tables import simulated_settings


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    results, figures = run_and_draw("simulated", protocol)
    assert figures == ["simulated-p", "simulated-n", "simulated-rank"]
    varied = [{key: record[key] for key in ("task", "n", "p", "rank")} for record in results.records]
    assert all(keys in varied for keys in simulated_settings())
    assert all(keys in simulated_settings() for keys in varied)
    assert len(simulated_settings()) == 9
