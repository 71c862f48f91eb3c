"""uWave gestures: both protocols run with every rank, and errors and improvements are drawn."""

import pytest

from entangled_kernels.experiments import PROTOCOLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    results, figures = run_and_draw("uwave", protocol)
    assert figures == ["uwave-nmse", "uwave-ni"]
    assert {record["rank"] for record in results.records} == {"100%", "60%", "20%"}


def test_kernel_ridge_does_not_depend_on_the_rank(run_and_draw):
    results, _ = run_and_draw("uwave", "fair")
    errors = {}
    for record in results.records:
        if record["method"] == "KRR":
            errors.setdefault((record["n"], record["split"]), set()).add(record["nmse"])
    assert errors
    assert all(len(values) == 1 for values in errors.values())
