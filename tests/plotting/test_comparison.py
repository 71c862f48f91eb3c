import numpy as np
import pytest
from matplotlib.figure import Figure

from entangled_kernels.plotting import ComparisonDisplay
from entangled_kernels.storage import ExperimentResults


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
        expected = [[means[n, method, task] for n in (50, 200, 1000)] for method in ("KRR", "EKL", "mine")]
        np.testing.assert_allclose(drawn, expected)


def test_intervals_grow_with_their_level(results):
    def lengths(level):
        ax = ComparisonDisplay.from_results(results, level=level).ax_
        return np.array([np.ptp(s[:, 1]) for c in ax.containers for s in c.lines[2][0].get_segments()])

    assert (lengths(0.99) > lengths(0.5)).all()


def test_figures_of_the_paper_are_open_markers(results):
    display = ComparisonDisplay.from_results(results, facet="task")
    (paper,) = open_markers(display.axes_[0])
    assert list(paper.get_ydata()) == [0.2, 0.2]
    assert not open_markers(display.axes_[1])
    assert "open: the paper's figure" in legend(display)
    # A setting that only the paper has gets a place too.
    assert [tick.get_text() for tick in display.axes_[0].get_xticklabels()] == ["50", "200", "400", "1000"]


def test_legend_names_what_is_there_and_nothing_else(results):
    alone = ExperimentResults(
        "x", "X", [{"method": m, "n": n, "nmse": 0.1 * n} for m in ("a", "b") for n in (1, 2)]
    )
    assert legend(ComparisonDisplay.from_results(alone)) == ["a", "b"]
    assert legend(ComparisonDisplay.from_results(results, metric="ni"))[-1] == "no better than kernel ridge"


def test_metrics_of_many_magnitudes_have_a_logarithmic_axis():
    records = [{"method": "a", "n": n, "nmse": 10.0**n} for n in (1, 2, 3)]
    assert ComparisonDisplay.from_results(ExperimentResults("x", "X", records)).ax_.get_yscale() == "log"


def test_errors_name_the_argument(results):
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 95"):
        ComparisonDisplay.from_results(results, level=95)
    with pytest.raises(ValueError, match="ax must hold 2 axes, one for each panel, got 1"):
        ComparisonDisplay.from_results(results, facet="task", ax=Figure().add_subplot())


def test_axis_is_made_for_the_means_and_never_shows_negative_errors():
    records = [{"method": "a", "n": n, "nmse": e} for n, e in [(5, 0.2), (5, 0.9), (10, 0.4), (10, 0.5)]]
    display = ComparisonDisplay.from_results(ExperimentResults("x", "X", records))
    series = display.panels[None][0]
    low, high = display.ax_.get_ylim()
    assert series.low.min() < -1  # two splits: the interval is longer than anything worth seeing
    assert 0 <= low < series.centre.min()
    assert series.centre.max() < high < series.high.max()
