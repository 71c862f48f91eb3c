import numpy as np
import pytest
from scipy.stats import t

from entangled_kernels.plotting.comparison import (
    mean_interval,
    median_range,
    series_of,
)
from entangled_kernels.storage import ExperimentResults


def test_interval_is_students(rng):
    values = rng.normal(size=7)
    mean, low, high = mean_interval(values, level=0.9)
    expected = t.interval(0.9, 6, loc=values.mean(), scale=values.std(ddof=1) / np.sqrt(7))
    assert (low, high) == pytest.approx(expected)
    assert mean == pytest.approx(values.mean())
    assert mean_interval(np.array([2.0])) == (2.0, 2.0, 2.0)


def test_median_and_range():
    assert median_range(np.array([3.0, 1.0, 7.0])) == (3.0, 1.0, 7.0)


def test_curves_by_panel_and_method(results):
    panels = series_of(results, "n", "nmse", "method", "task", mean_interval)
    assert list(panels) == [1, 2]
    assert [series.name for series in panels[1]] == ["KRR", "EKL", "mine"]
    series = panels[1][1]
    assert series.x == [50, 200, 1000]
    summary = {
        (row["n"], row["method"], row["task"]): row for row in results.summary(by=("n", "method", "task"))
    }
    np.testing.assert_allclose(series.centre, [summary[n, "EKL", 1]["mean"] for n in series.x])
    assert series.paper == {50: 0.2, 400: 0.2}
    assert panels[2][1].paper == {}


def test_records_without_metric_or_setting_are_left_out():
    records = [
        {"method": "a", "n": 1, "nmse": 0.5},
        {"method": "a", "n": 2, "nmse": None},
        {"method": "b", "n": 1},
        {"method": "c", "n": None, "nmse": 0.5},
    ]
    panels = series_of(ExperimentResults("x", "X", records), "n", "nmse", "method", None, mean_interval)
    assert [series.name for series in panels[None]] == ["a"]
    assert panels[None][0].x == [1]


def test_errors_name_the_key(results):
    with pytest.raises(ValueError, match="no record has both the metric 'other' and the setting 'n'"):
        series_of(results, "n", "other", "method", None, mean_interval)
    with pytest.raises(ValueError, match="records have no 'colour'"):
        series_of(results, "n", "nmse", "colour", None, mean_interval)
