"""Methods compared in panels: errors with their intervals, and running times with their growth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from ..linalg import Array
from .display import (
    GREY,
    Display,
    Look,
    house_style,
    legend_entry,
    looks,
    new_figure,
    shortened,
    whole_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..io import ExperimentResults, Record

__all__ = [
    "ComparisonDisplay",
    "PanelsDisplay",
    "RunningTimeDisplay",
    "Series",
    "draw_series",
    "fitted_slope",
    "in_order",
    "mean_interval",
    "median_range",
    "series_of",
]

Spread = tuple[float, float, float]

# What axes say of the keys of records.
METRICS = {
    "nmse": "nMSE (share of the variance missed)",
    "ni": "nI (improvement over kernel ridge)",
    "accuracy": "accuracy (share of samples)",
    "alignment": "alignment with the targets (0 to 1)",
    "fit_seconds": "time to fit (seconds)",
    "predict_seconds": "time to predict (seconds)",
}
SETTINGS = {
    "n": "training samples, n",
    "p": "outputs, p",
    "m": "features, m",
    "rank": "Kraus rank, r",
    "known": "targets measured",
    "task": "task",
    "method": "method",
    "split": "split",
}


class Series(NamedTuple):
    """One curve.

    Attributes
    ----------
    name : str
    x : list
        Settings, numbers in increasing order.
    centre, low, high : ndarray
        The metric at each of them.
    paper : dict
        Published figures by setting.
    """

    name: str
    x: list[Any]
    centre: Array
    low: Array
    high: Array
    paper: dict[Any, float]


def series_of(
    results: ExperimentResults,
    x: str,
    metric: str,
    hue: str | None,
    facet: str | None,
    spread: Callable[[Array], Spread],
) -> dict[Any, list[Series]]:
    """Curves of results: for each value of ``facet`` (None without one), one for each value of ``hue``.

    Records without the metric or the setting are left out. Panels and curves come in the order of
    their first record.
    """
    shown = _with_both(results.records, x, metric)
    if not shown:
        raise ValueError(f"no record has both the metric {metric!r} and the setting {x!r}")
    for key in (key for key in (hue, facet) if key is not None):
        lacking = [record for record in shown if key not in record]
        if lacking:
            raise ValueError(f"records have no {key!r}; they have {sorted(lacking[0])}")
    published = _curves(_with_both(results.paper, x, metric), x, metric, hue, facet)
    panels: dict[Any, list[Series]] = {}
    for (panel, name), curve in _curves(shown, x, metric, hue, facet).items():
        paper = {
            setting: values[-1] for setting, values in published.get((panel, name), {}).items()
        }
        settings = in_order(curve)
        centre, low, high = np.array([spread(np.asarray(curve[setting])) for setting in settings]).T
        panels.setdefault(panel, []).append(Series(name, settings, centre, low, high, paper))
    return panels


def in_order(settings: Iterable[Any]) -> list[Any]:
    """Distinct settings, numbers in increasing order."""
    distinct = list(dict.fromkeys(settings))
    return (
        sorted(distinct)
        if all(isinstance(setting, int | float) for setting in distinct)
        else distinct
    )


def mean_interval(values: Array, level: float = 0.95) -> Spread:
    """Mean and Student's confidence interval of it; of a single value just that.

    Examples
    --------
    >>> [round(value, 3) for value in mean_interval(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.484, 4.484]
    """
    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean, mean
    half = float(
        t.ppf((1.0 + level) / 2.0, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    )
    return mean, mean - half, mean + half


def median_range(values: Array) -> Spread:
    """Median, least and largest."""
    return float(np.median(values)), float(values.min()), float(values.max())


def _curves(
    records: list[Record], x: str, metric: str, hue: str | None, facet: str | None
) -> dict[tuple[Any, str], dict[Any, list[float]]]:
    """Values of the metric by setting, for every panel and name of a curve."""
    curves: dict[tuple[Any, str], dict[Any, list[float]]] = {}
    for record in records:
        panel = None if facet is None else record.get(facet)
        name = metric if hue is None else str(record.get(hue))
        curves.setdefault((panel, name), {}).setdefault(record[x], []).append(float(record[metric]))
    return curves


def _with_both(records: list[Record], x: str, metric: str) -> list[Record]:
    return [
        record for record in records if record.get(metric) is not None and record.get(x) is not None
    ]


# Panels in a row.
COLUMNS = 3


class PanelsDisplay(Display):
    """Base of displays of `Series`, as `series_of` gives them, in one panel for each value of a facet."""

    def __init__(
        self, panels: dict[Any, list[Series]], *, x: str, metric: str, facet: str | None, title: str
    ) -> None:
        self.panels, self.x, self.metric = panels, x, metric
        self.facet, self.title = facet, title

    @property
    def curves(self) -> list[Series]:
        """Those of all panels."""
        return [series for curves in self.panels.values() for series in curves]

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in axes, one for each panel; those of a new figure by default."""
        chosen = looks(list(dict.fromkeys(series.name for series in self.curves)))
        with house_style():
            axes = _make_panels(len(self.panels), ax)
            for panel, (value, curves) in zip(axes, self.panels.items(), strict=True):
                self._draw_panel(panel, value, curves, chosen)
                title = _panel_title(self.facet, value, self.title)
                panel.set(title=title, xlabel=SETTINGS.get(self.x, self.x))
                panel.grid(axis="y")
            axes[0].set_ylabel(METRICS.get(self.metric, self.metric))
            if ax is None and self.facet is not None and self.title:
                axes[0].figure.suptitle(self.title, fontsize=11, fontweight="bold")
            _place_legend(axes, self._finish(axes, chosen, own=ax is None), own=ax is None)
        self.axes_, self.ax_, self.figure_ = axes, axes[0], whole_figure(axes[0])
        return self

    def _legend_of_marks(self, interval: str) -> list[Any]:
        """Entries for the paper's figures, and for intervals, where there are any."""
        handles = []
        if any(series.paper for series in self.curves):
            handles.append(legend_entry("open: the paper's figure", GREY, "o", open_marker=True))
        if any((series.high > series.low).any() for series in self.curves):
            handles.append(legend_entry(interval, GREY, "|"))
        return handles

    def _draw_panel(
        self, ax: Axes, value: Any, curves: list[Series], chosen: dict[str, Look]
    ) -> None:
        raise NotImplementedError

    def _finish(
        self, axes: NDArray[np.object_], chosen: dict[str, Look], *, own: bool
    ) -> list[Any]:
        """Do what concerns all panels, and give the entries of the legend; ``own``: in a figure made here."""
        raise NotImplementedError


def draw_series(
    ax: Axes, series: Series, look: Look, place: Callable[[Any], float], *, line: Any, **more: Any
) -> None:
    """Centres with their intervals, and the paper's figures as open marks, where ``place`` puts settings."""
    ax.errorbar(
        np.array([place(setting) for setting in series.x]),
        series.centre,
        yerr=np.stack([series.centre - series.low, series.high - series.centre]),
        color=look.color,
        marker=look.marker,
        linestyle=line,
        markersize=5.5,
        elinewidth=1.2,
        zorder=3,
        **more,
    )
    if series.paper:
        ax.plot(
            [place(setting) for setting in series.paper],
            list(series.paper.values()),
            linestyle="none",
            marker=look.marker,
            markersize=8,
            markerfacecolor="none",
            markeredgecolor=look.color,
            zorder=4,
        )


def _make_panels(n_panels: int, ax: Axes | Sequence[Axes] | None) -> NDArray[np.object_]:
    """The axes to draw in: those given, or those of a new figure with a common scale."""
    if ax is not None:
        given = np.array(ax, dtype=object, ndmin=1).ravel()
        if len(given) != n_panels:
            raise ValueError(f"ax must hold {n_panels} axes, one for each panel, got {len(given)}")
        return given
    columns = min(COLUMNS, n_panels)
    rows = -(-n_panels // columns)
    width = 6.0 if columns == 1 else 0.8 + 2.75 * columns
    figure = new_figure(width, 3.6 if rows == 1 else 0.6 + 2.7 * rows)
    axes: NDArray[np.object_] = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for spare in axes[n_panels:]:
        spare.remove()
    return axes[:n_panels]


def _panel_title(facet: str | None, value: Any, title: str) -> str:
    """Title of a panel: the whole title where there is one panel, else what tells it from the others."""
    if facet is None:
        return title
    return f"{SETTINGS.get(facet, facet).split(',')[0]} {value}"


def _place_legend(axes: NDArray[np.object_], handles: list[Any], *, own: bool) -> None:
    """One legend: under the panels of a figure of our own, inside the last of the axes of someone else's."""
    if not handles:
        return
    if own:
        columns = len(handles) if len(handles) <= 4 or len(axes) > 1 else 3
        axes[0].figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    else:
        axes[-1].legend(handles=handles)


# Up to so many settings stand side by side at equal distances; more make an axis of numbers.
SIDE_BY_SIDE = 6
# Where the largest mean is so many times the least, the metric has a logarithmic axis.
WIDE = 30.0
# Share of the distance between settings over which methods are spread.
DODGE = 0.4
# Metrics that may be negative.
SIGNED = ("ni",)
# Where the simplest predictor stands, drawn as a line when it is in sight.
REFERENCES = {"nmse": (1.0, "predicting the mean"), "ni": (0.0, "no better than kernel ridge")}

DOTS: dict[str, Any] = {"color": GREY, "linewidth": 0.9, "linestyle": (0, (2, 2)), "zorder": 1}


class ComparisonDisplay(PanelsDisplay):
    """Mean of a metric for every method and setting with a confidence interval; open markers are the paper's.

    Parameters
    ----------
    panels : dict of list of Series
        Curves by panel, as `series_of` gives them.
    x, metric : str
        Keys of the records that the axes show.
    facet : str, optional
        Key that tells the panels apart.
    title : str
    level : float, default=0.95
        Of the intervals.

    Attributes
    ----------
    figure_ : Figure
    axes_ : ndarray of Axes
        One for each panel.
    ax_ : Axes
        The first.

    Examples
    --------
    >>> from entangled_kernels.plotting import ComparisonDisplay
    >>> from entangled_kernels.io import ExperimentResults
    >>> records = [
    ...     {"method": method, "n": n, "split": split, "nmse": (0.4 + 0.01 * split) / n**0.5}
    ...     for method in ("KRR", "EKL")
    ...     for n in (10, 20)
    ...     for split in range(3)
    ... ]
    >>> display = ComparisonDisplay.from_results(ExperimentResults("toy", "A toy", records))
    >>> display.ax_.get_title()
    'A toy'
    """

    def __init__(
        self,
        panels: dict[Any, list[Series]],
        *,
        x: str = "n",
        metric: str = "nmse",
        facet: str | None = None,
        title: str = "",
        level: float = 0.95,
    ) -> None:
        super().__init__(panels, x=x, metric=metric, facet=facet, title=title)
        self.level = level

    @classmethod
    def from_results(
        cls,
        results: ExperimentResults,
        *,
        x: str = "n",
        metric: str = "nmse",
        hue: str | None = "method",
        facet: str | None = None,
        level: float = 0.95,
        title: str | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the records of results.

        Parameters
        ----------
        results : ExperimentResults
        x, metric : str
            Keys of the records for the axes.
        hue, facet : str or None
            Keys that tell curves and panels apart. Whatever else varies is averaged over.
        level : float, default=0.95
            Of Student's confidence intervals of the means.
        title : str, optional
            That of the results by default.
        ax : Axes or sequence of Axes, optional
            One for each panel.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        panels = series_of(results, x, metric, hue, facet, partial(mean_interval, level=level))
        title = results.title if title is None else title
        return cls(panels, x=x, metric=metric, facet=facet, title=title, level=level).plot(ax)

    def _draw_panel(
        self, ax: Axes, value: Any, curves: list[Series], chosen: dict[str, Look]
    ) -> None:
        settings = in_order(place for series in curves for place in (*series.x, *series.paper))
        numeric = all(isinstance(setting, int | float) for setting in settings)
        in_a_row = len(settings) <= SIDE_BY_SIDE or not numeric
        place = {
            setting: float(row if in_a_row else setting) for row, setting in enumerate(settings)
        }
        step = DODGE * (1.0 if in_a_row else float(np.diff(settings).min())) / max(4, len(curves))
        for rank, series in enumerate(curves):
            shift = step * (rank - (len(curves) - 1) / 2)
            places = {setting: place[setting] + shift for setting in settings}
            look = chosen[series.name]
            draw_series(ax, series, look, places.__getitem__, line="none")
            if numeric:
                x = [places[setting] for setting in series.x]
                ax.plot(
                    x,
                    series.centre,
                    color=look.color,
                    linestyle=look.line,
                    linewidth=1.0,
                    alpha=0.7,
                )
        if in_a_row:
            ax.set_xticks(
                range(len(settings)), [shortened(str(setting), 14) for setting in settings]
            )
            ax.set_xlim(-0.5, len(settings) - 0.5)

    def _finish(
        self, axes: NDArray[np.object_], chosen: dict[str, Look], *, own: bool
    ) -> list[Any]:
        self._set_scale(axes)
        return self._legend(chosen) + self._draw_reference(axes)

    def _set_scale(self, axes: NDArray[np.object_]) -> None:
        """One scale for all panels, logarithmic where the means need it, made for the means.

        Intervals from two or three splits may be many times as long as the means differ, and run
        out of it.
        """
        curves = self.curves
        means = np.concatenate([[*series.centre, *series.paper.values()] for series in curves])
        logarithmic = means.min() > 0 and means.max() > WIDE * means.min()
        low, high = (
            min(series.low.min() for series in curves),
            max(series.high.max() for series in curves),
        )
        if logarithmic:
            limits = max(low, means.min() / 3) / 1.2, min(high, 3 * means.max()) * 1.2
        else:
            span = float(np.ptp(means)) or 0.5 * abs(float(means[0])) or 1.0
            bottom = max(min(low, means.min()), means.min() - span)
            top = min(max(high, means.max()), means.max() + span)
            margin = 0.05 * max(top - bottom, span)
            limits = bottom - margin, top + margin
            if means.min() >= 0 and self.metric not in SIGNED:
                limits = max(0.0, limits[0]), limits[1]
        for ax in axes:
            ax.set_yscale("log" if logarithmic else "linear")
            ax.set_ylim(*limits)

    def _draw_reference(self, axes: NDArray[np.object_]) -> list[Any]:
        """A line for the simplest predictor where it is in sight, and its entry for the legend."""
        if self.metric not in REFERENCES:
            return []
        value, name = REFERENCES[self.metric]
        low, high = axes[0].get_ylim()
        if not low <= value <= high:
            return []
        for ax in axes:
            ax.axhline(value, **DOTS)
        return [legend_entry(name, DOTS["color"], "", line=DOTS["linestyle"])]

    def _legend(self, chosen: dict[str, Look]) -> list[Any]:
        named = {} if list(chosen) == [self.metric] else chosen
        handles = [
            legend_entry(name, look.color, look.marker, line=look.line)
            for name, look in named.items()
        ]
        return handles + self._legend_of_marks(f"{self.level:.0%} interval of the mean")


# Below so many times the least, times between powers of ten are named too.
NARROW = 100.0


class RunningTimeDisplay(PanelsDisplay):
    """Median running time of every method on logarithmic axes, its range over repeats, and its growth.

    The power in the legend is the slope of a straight line through the logarithms of all medians of
    a method.

    Parameters
    ----------
    panels : dict of list of Series
        Curves by panel, as `series_of` gives them.
    x, metric : str
        Keys of the records that the axes show.
    facet : str, optional
        Key that tells the panels apart.
    title : str

    Attributes
    ----------
    figure_ : Figure
    axes_ : ndarray of Axes
        One for each panel.
    ax_ : Axes
        The first.

    Examples
    --------
    >>> from entangled_kernels.plotting import RunningTimeDisplay
    >>> from entangled_kernels.io import ExperimentResults
    >>> records = [{"method": "EKL", "n": n, "split": 0, "fit_seconds": 1e-5 * n**2} for n in (100, 200, 400)]
    >>> display = RunningTimeDisplay.from_results(ExperimentResults("toy", "A toy", records))
    >>> round(display.slopes_[None]["EKL"], 6)
    2.0
    """

    def __init__(
        self,
        panels: dict[Any, list[Series]],
        *,
        x: str = "n",
        metric: str = "fit_seconds",
        facet: str | None = None,
        title: str = "",
    ) -> None:
        super().__init__(panels, x=x, metric=metric, facet=facet, title=title)
        for series in self.curves:
            numbers = all(isinstance(setting, int | float) and setting > 0 for setting in series.x)
            if not numbers or not (series.low > 0).all():
                raise ValueError(f"{x} and {metric} must be positive numbers for logarithmic axes")
        self.slopes_ = {
            value: {series.name: fitted_slope(series.x, series.centre) for series in curves}
            for value, curves in panels.items()
        }

    @classmethod
    def from_results(
        cls,
        results: ExperimentResults,
        *,
        x: str = "n",
        metric: str = "fit_seconds",
        hue: str | None = "method",
        facet: str | None = None,
        title: str | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the records of results.

        Parameters
        ----------
        results : ExperimentResults
        x, metric : str
            Keys of the records for the axes.
        hue, facet : str or None
            Keys that tell curves and panels apart. The median is over whatever else varies.
        title : str, optional
            That of the results by default.
        ax : Axes or sequence of Axes, optional
            One for each panel.
        """
        panels = series_of(results, x, metric, hue, facet, median_range)
        title = results.title if title is None else title
        return cls(panels, x=x, metric=metric, facet=facet, title=title).plot(ax)

    def _draw_panel(
        self, ax: Axes, value: Any, curves: list[Series], chosen: dict[str, Look]
    ) -> None:
        for series in curves:
            look, label = (
                chosen[series.name],
                _label(series.name, self.slopes_[value][series.name], self.x),
            )
            draw_series(ax, series, look, float, line=look.line, label=label)
        _logarithmic(ax, curves)

    def _finish(
        self, axes: NDArray[np.object_], chosen: dict[str, Look], *, own: bool
    ) -> list[Any]:
        # Legends stand beside a single panel of our own, else within the panels and above their
        # curves.
        if own and len(axes) == 1:
            axes[0].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
        else:
            for ax in axes:
                ax.legend(loc="upper left", fontsize=7.5)
            _make_room(axes, max(len(curves) for curves in self.panels.values()), shared=own)
        return self._legend_of_marks("least to largest of the repeats")


def fitted_slope(x: Sequence[float], y: Array) -> float:
    """Least-squares power b in y = c x^b; NaN for fewer than three sizes, of which two tell no power.

    Examples
    --------
    >>> import numpy as np
    >>> round(fitted_slope([1, 10, 100], np.array([2.0, 2000.0, 2e6])), 12)
    3.0
    """
    if len(x) < 3:
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _label(name: str, slope: float, x: str) -> str:
    """Name of a curve, with the power of x that its times grow with."""
    power = f"{round(slope, 1) + 0.0:.1f}"
    growth = f"$\\propto {x}^{{{power}}}$" if len(x) == 1 else f"power {power}"
    return name if np.isnan(slope) else f"{name}  {growth}"


def _logarithmic(ax: Axes, curves: list[Series]) -> None:
    """Logarithmic axes, with the sizes themselves as ticks where they are few."""
    from matplotlib.ticker import LogLocator

    ax.set(xscale="log", yscale="log")
    low, high = ax.get_ylim()
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    few = high < NARROW * low
    ax.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0) if few else tuple(range(2, 10))))
    ax.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if few else "")
    sizes = sorted({size for series in curves for size in (*series.x, *series.paper)})
    if len(sizes) <= 8:
        ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
        ax.set_xticks([], minor=True)


def _make_room(axes: NDArray[np.object_], n_lines: int, *, shared: bool) -> None:
    """Raise the upper limits so that the legends stand above the curves."""
    for ax in axes[:1] if shared else axes:
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * (high / low) ** (0.1 * n_lines))
