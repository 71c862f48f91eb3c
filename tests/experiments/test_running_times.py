"""Running times: both protocols run over n and p, and the times are drawn."""

import pytest

from entangled_kernels.experiments import PROTOCOLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    results, figures = run_and_draw("running-times", protocol)
    assert figures == ["running-times-n", "running-times-p"]
    varied = {(record["task"], record["n"], record["p"]) for record in results.records}
    assert varied == {("over n", 10, 2), ("over n", 20, 2), ("over p", 12, 2), ("over p", 12, 3)}
    assert all(record["fit_seconds"] >= 0.0 for record in results.records)
    assert all(record["predict_seconds"] >= 0.0 for record in results.records)


def test_repeats_measure_the_same_model(run_and_draw):
    results, _ = run_and_draw("running-times", "paper")
    errors = {}
    for record in results.records:
        key = tuple(record[name] for name in ("method", "task", "n", "p"))
        errors.setdefault(key, set()).add(record["nmse"])
    assert all(len(values) == 1 for values in errors.values())
