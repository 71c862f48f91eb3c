"""The bilinear simulation: both protocols run over n, p and rank, each with draws of its own."""

import numpy as np
import pytest

from entangled_kernels.experiments import PROTOCOLS, Setup, simulated
from entangled_kernels.experiments.methods import Plan


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    results, figures = run_and_draw("simulated", protocol)
    assert figures == ["simulated-p", "simulated-n", "simulated-rank"]
    varied = [{key: record[key] for key in ("task", "n", "p", "rank")} for record in results.records]
    assert all(keys in varied for keys in simulated.settings())
    assert all(keys in simulated.settings() for keys in varied)
    assert len(simulated.settings()) == 9


def test_draws_differ_between_splits():
    first, second = (simulated._case(Setup(), Plan(), {"n": 6, "p": 3}, split).rows.Y for split in range(2))
    assert not np.allclose(first, second)


def test_draws_do_not_depend_on_the_rank():
    keys = [{"n": 6, "p": 3, "rank": rank} for rank in simulated.RANKS]
    tables = [simulated._case(Setup(), Plan(), key, 0).rows.Y for key in keys]
    for table in tables[1:]:
        np.testing.assert_array_equal(table, tables[0])
