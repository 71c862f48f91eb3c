"""Methods compared in panels, and their running times."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import t

from entangled_kernels.io import ExperimentResults
from entangled_kernels.plotting import ComparisonDisplay, RunningTimeDisplay
from entangled_kernels.plotting.comparison import (
    mean_interval,
    series_of,
)


def test_interval_is_students(rng):
    values = rng.normal(size=7)
    mean, low, high = mean_interval(values)
    expected = t.interval(0.95, 6, loc=values.mean(), scale=values.std(ddof=1) / np.sqrt(7))
    assert (low, high) == pytest.approx(expected)
    assert mean == pytest.approx(values.mean())
    assert mean_interval(np.array([2.0])) == (2.0, 2.0, 2.0)


def test_curves_by_panel_and_method(results):
    panels = series_of(results, "n", "nmse", "task", mean_interval)
    assert list(panels) == [1, 2]
    assert [series.name for series in panels[1]] == ["KRR", "EKL", "mine"]
    series = panels[1][1]
    assert series.x == [50, 200, 1000]
    summary = {
        (row["n"], row["method"], row["task"]): row
        for row in results.summary(by=("n", "method", "task"))
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
    paper = [{"n": 1, "nmse": 0.4}]  # published values may lack keys
    results = ExperimentResults("x", "X", records, paper)
    panels = series_of(results, "n", "nmse", None, mean_interval)
    assert [series.name for series in panels[None]] == ["a"]
    assert panels[None][0].x == [1]


def test_errors_name_the_key(results):
    with pytest.raises(
        ValueError, match="no record has both the metric 'other' and the setting 'n'"
    ):
        series_of(results, "n", "other", None, mean_interval)
    with pytest.raises(ValueError, match="records have no 'colour'"):
        series_of(results, "n", "nmse", "colour", mean_interval)


def legend(display):
    return [text.get_text() for text in display.figure_.legends[0].get_texts()]


def open_markers(ax):
    return [line for line in ax.get_lines() if line.get_markerfacecolor() == "none"]


def test_means_are_drawn_for_every_method_and_setting(results):
    display = ComparisonDisplay.from_results(results, facet="task")
    assert [ax.get_title() for ax in display.axes_] == ["task 1", "task 2"]
    for task, ax in zip((1, 2), display.axes_, strict=True):
        means = {
            (row["n"], row["method"], row["task"]): row["mean"]
            for row in results.summary(by=("n", "method", "task"))
        }
        drawn = [container.lines[0].get_ydata() for container in ax.containers]
        expected = [
            [means[n, method, task] for n in (50, 200, 1000)] for method in ("KRR", "EKL", "mine")
        ]
        np.testing.assert_allclose(drawn, expected)


def test_figures_of_the_paper_are_open_markers(results):
    display = ComparisonDisplay.from_results(results, facet="task")
    (paper,) = open_markers(display.axes_[0])
    assert list(paper.get_ydata()) == [0.2, 0.2]
    assert not open_markers(display.axes_[1])
    assert "open: the paper's figure" in legend(display)
    # A setting that only the paper has gets a place too.
    assert [tick.get_text() for tick in display.axes_[0].get_xticklabels()] == [
        "50",
        "200",
        "400",
        "1000",
    ]


def test_legend_names_what_is_there_and_nothing_else(results):
    alone = ExperimentResults(
        "x", "X", [{"method": m, "n": n, "nmse": 0.1 * n} for m in ("a", "b") for n in (1, 2)]
    )
    assert legend(ComparisonDisplay.from_results(alone)) == ["a", "b"]
    assert (
        legend(ComparisonDisplay.from_results(results, metric="ni"))[-1]
        == "no better than kernel ridge"
    )


def test_errors_name_the_argument(results):
    with pytest.raises(ValueError, match="ax must hold 2 axes, one for each panel, got 1"):
        ComparisonDisplay.from_results(results, facet="task", ax=Figure().add_subplot())


def test_axis_is_made_for_the_means_and_never_shows_negative_errors():
    records = [
        {"method": "a", "n": n, "nmse": e} for n, e in [(5, 0.2), (5, 0.9), (10, 0.4), (10, 0.5)]
    ]
    display = ComparisonDisplay.from_results(ExperimentResults("x", "X", records))
    series = display.panels[None][0]
    low, high = display.ax_.get_ylim()
    assert series.low.min() < -1  # two splits: the interval is longer than anything worth seeing
    assert 0 <= low < series.centre.min()
    assert series.centre.max() < high < series.high.max()


def test_powers_are_found_and_told(results):
    display = RunningTimeDisplay.from_results(results)
    assert display.slopes_[None] == pytest.approx({"KRR": 3.0, "EKL": 2.0, "mine": 1.0})
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == [
        r"KRR  $\propto n^{3.0}$",
        r"EKL  $\propto n^{2.0}$",
        r"mine  $\propto n^{1.0}$",
    ]


def test_medians_ranges_and_the_paper():
    records = [
        {"method": "a", "n": n, "fit_seconds": s * n} for n in (1, 10) for s in (1.0, 2.0, 9.0)
    ]
    paper = [{"method": "a", "n": 1, "fit_seconds": 4.0}]
    ax = RunningTimeDisplay.from_results(ExperimentResults("x", "X", records, paper)).ax_
    np.testing.assert_allclose(ax.containers[0].lines[0].get_ydata(), [2.0, 20.0])
    (bars,) = ax.containers[0].lines[2]
    np.testing.assert_allclose(
        [segment[:, 1] for segment in bars.get_segments()], [[1.0, 9.0], [10.0, 90.0]]
    )
    assert any(list(line.get_ydata()) == [4.0] for line in ax.get_lines())


@pytest.mark.parametrize("record", [{"n": 0, "fit_seconds": 1.0}, {"n": 1, "fit_seconds": 0.0}])
def test_errors_of_running_times_name_the_argument(record):
    with pytest.raises(ValueError, match="n and fit_seconds must be positive numbers"):
        RunningTimeDisplay.from_results(ExperimentResults("x", "X", [{"method": "a"} | record]))
