"""Canadian weather: both protocols run, and errors and improvements are drawn."""

import pytest

from entangled_kernels.experiments import PROTOCOLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_runs_is_kept_and_is_drawn(run_and_draw, protocol):
    results, figures = run_and_draw("weather", protocol)
    assert figures == ["weather-nmse", "weather-ni"]
    assert {record["n"] for record in results.records} == {6, 8}
    assert all(record["ni"] == 0.0 for record in results.records if record["method"] == "KRR")
