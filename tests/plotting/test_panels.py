import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import t

from entangled_kernels.plotting.comparison import (
    PanelsDisplay,
    Series,
    mean_interval,
    median_range,
    series_of,
)
from entangled_kernels.plotting.display import legend_entry
from entangled_kernels.storage import ExperimentResults


def curve(name, values=(1.0, 2.0)):
    values = np.array(values)
    return Series(name, list(range(len(values))), values, values, values, {})


class Lines(PanelsDisplay):
    """The least that a display of panels has to write."""

    def __init__(self, panels, *, facet="task", title="A title", x="n", metric="nmse", with_legend=True):
        self.panels, self.facet, self.title = panels, facet, title
        self.x, self.metric, self.with_legend = x, metric, with_legend

    def _draw_panel(self, ax, value, curves, chosen):
        for series in curves:
            ax.plot(series.x, series.centre, color=chosen[series.name].color, label=series.name)

    def _finish(self, axes, chosen, *, own):
        self.own = own
        shown = chosen.items() if self.with_legend else ()
        return [legend_entry(name, look.color, look.marker) for name, look in shown]


def test_one_panel_has_the_whole_title():
    display = Lines({None: [curve("a")]}, facet=None).plot()
    assert display.ax_.get_title() == "A title"
    assert display.figure_.get_suptitle() == ""
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (
        "training samples, n",
        "nMSE (share of the variance missed)",
    )


def test_panels_are_told_apart_by_the_facet():
    display = Lines({200: [curve("a")], 50: [curve("a")]}, facet="n", x="depth", metric="loss").plot()
    assert [ax.get_title() for ax in display.axes_] == ["training samples 200", "training samples 50"]
    assert display.figure_.get_suptitle() == "A title"
    assert display.ax_ is display.axes_[0]
    assert [ax.get_xlabel() for ax in display.axes_] == ["depth", "depth"]
    assert [ax.get_ylabel() for ax in display.axes_] == ["loss", ""]


@pytest.mark.parametrize(("n_panels", "rows"), [(1, 1), (3, 1), (4, 2), (7, 3)])
def test_three_panels_fill_a_row_and_no_axes_are_empty(n_panels, rows):
    display = Lines({task: [curve("a")] for task in range(n_panels)}).plot()
    assert len(display.figure_.axes) == len(display.axes_) == n_panels
    assert len({ax.get_subplotspec().rowspan.start for ax in display.axes_}) == rows
    display.axes_[0].set_ylim(-3.0, 8.0)
    assert {ax.get_ylim() for ax in display.axes_} == {(-3.0, 8.0)}


def test_a_curve_looks_the_same_in_every_panel():
    display = Lines({1: [curve("a"), curve("b")], 2: [curve("b"), curve("c")]}).plot()
    assert [series.name for series in display.curves] == ["a", "b", "b", "c"]
    looks = [{line.get_label(): line.get_color() for line in ax.get_lines()} for ax in display.axes_]
    assert looks[0]["b"] == looks[1]["b"]
    assert len({*looks[0].values(), *looks[1].values()}) == 3


def test_one_legend_for_all_panels():
    display = Lines({1: [curve("a")], 2: [curve("a"), curve("b")]}).plot()
    assert display.own
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert all(ax.get_legend() is None for ax in display.axes_)


def test_in_axes_of_someone_else_the_legend_is_in_the_last():
    figure = Figure()
    display = Lines({1: [curve("a")], 2: [curve("b")]}).plot(figure.subplots(1, 2))
    assert not display.own
    assert display.figure_ is figure
    assert not figure.legends
    assert [ax.get_legend() is None for ax in display.axes_] == [True, False]
    assert figure.get_suptitle() == ""


def test_without_entries_there_is_no_legend():
    display = Lines({1: [curve("a")]}, with_legend=False).plot()
    assert not display.figure_.legends


def test_axes_must_be_as_many_as_panels():
    display = Lines({1: [curve("a")], 2: [curve("a")]})
    with pytest.raises(ValueError, match="ax must hold 2 axes, one for each panel, got 3"):
        display.plot(Figure().subplots(1, 3))


def test_a_display_must_write_how_a_panel_is_drawn():
    class Nothing(Lines):
        _draw_panel = PanelsDisplay._draw_panel

    with pytest.raises(NotImplementedError):
        Nothing({1: [curve("a")]}).plot()


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
