"""Methods compared in panels: errors with their intervals, and running times with their growth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

__all__ = ["ComparisonDisplay", "PanelsDisplay", "RunningTimeDisplay", "Series", "series_of"]

Spread = tuple[float, float, float]

# Labels of axes for the keys of records.
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
    "split": "split",
}
# Panels in a row.
COLUMNS = 3


class Series(NamedTuple):
    """The curve of one method.

    Attributes
    ----------
    name : str
    x : list
        Settings, numbers in increasing order.
    centre, low, high : ndarray
        The metric at each setting.
    paper : dict
        Published values by setting.
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
    facet: str | None,
    spread: Callable[[Array], Spread],
) -> dict[Any, list[Series]]:
    """Curves of all methods for each value of ``facet`` (None without one).

    Records without the metric or the setting are left out. Panels and curves are in the order of
    their first record.
    """
    shown = _with_both(results.records, x, metric)
    if not shown:
        raise ValueError(f"no record has both the metric {metric!r} and the setting {x!r}")
    for key in ("method", *([] if facet is None else [facet])):
        if lacking := next((record for record in shown if key not in record), None):
            raise ValueError(f"records have no {key!r}; they have {sorted(lacking)}")
    curves = _curves(shown, x, metric, facet)
    published = _curves(_with_both(results.paper, x, metric), x, metric, facet)
    panels: dict[Any, list[Series]] = {}
    for (panel, name), curve in curves.items():
        paper = {
            setting: values[-1] for setting, values in published.get((panel, name), {}).items()
        }
        settings = _in_order(curve)
        centre, low, high = np.array([spread(np.asarray(curve[setting])) for setting in settings]).T
        panels.setdefault(panel, []).append(Series(name, settings, centre, low, high, paper))
    return panels


def _curves(
    records: list[Record], x: str, metric: str, facet: str | None
) -> dict[tuple[Any, str], dict[Any, list[float]]]:
    """Values of the metric by setting, for every panel and method."""
    curves: dict[tuple[Any, str], dict[Any, list[float]]] = {}
    for record in records:
        panel = None if facet is None else record.get(facet)
        curve = curves.setdefault((panel, str(record.get("method"))), {})
        curve.setdefault(record[x], []).append(float(record[metric]))
    return curves


def _with_both(records: list[Record], x: str, metric: str) -> list[Record]:
    return [
        record for record in records if record.get(metric) is not None and record.get(x) is not None
    ]


def _in_order(settings: Iterable[Any]) -> list[Any]:
    """Distinct settings, numbers in increasing order."""
    distinct = list(dict.fromkeys(settings))
    return sorted(distinct) if _are_numbers(distinct) else distinct


def _are_numbers(settings: list[Any]) -> bool:
    return all(isinstance(setting, int | float) for setting in settings)


def mean_interval(values: Array) -> Spread:
    """Mean and its 95% confidence interval (Student's t); a single value is repeated three times.

    Examples
    --------
    >>> [round(value, 3) for value in mean_interval(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.484, 4.484]
    """
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return mean, mean, mean
    half = float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def median_range(values: Array) -> Spread:
    """Median, smallest and largest value."""
    return float(np.median(values)), float(values.min()), float(values.max())


class PanelsDisplay(Display):
    """Base of displays of `Series` in one panel for each value of a facet.

    A subclass summarises the values of a setting by ``_spread``, draws the curves of a panel, and
    gives the entries of the legend.
    """

    _metric: str
    _spread: Callable[[Array], Spread]

    def __init__(
        self,
        panels: dict[Any, list[Series]],
        *,
        x: str = "n",
        metric: str | None = None,
        facet: str | None = None,
        title: str = "",
    ) -> None:
        self.panels, self.x, self.metric = panels, x, metric or self._metric
        self.facet, self.title = facet, title

    @classmethod
    def from_results(
        cls,
        results: ExperimentResults,
        *,
        x: str = "n",
        metric: str | None = None,
        facet: str | None = None,
        title: str | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the records of results, one curve for each method.

        Parameters
        ----------
        results : ExperimentResults
        x : str, default="n"
            Key of the records for the horizontal axis.
        metric : str, optional
            Key of the records for the vertical axis.
        facet : str, optional
            Key with one panel for each of its values. Values are summarised over all other keys.
        title : str, optional
            That of the results by default.
        ax : Axes or sequence of Axes, optional
            One for each panel.
        """
        panels = series_of(results, x, metric or cls._metric, facet, cls._spread)
        title = results.title if title is None else title
        return cls(panels, x=x, metric=metric, facet=facet, title=title).plot(ax)

    @property
    def curves(self) -> list[Series]:
        """Curves of all panels."""
        return [series for curves in self.panels.values() for series in curves]

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in axes, one for each panel; those of a new figure by default."""
        chosen = looks(list(dict.fromkeys(series.name for series in self.curves)))
        with house_style():
            axes = _make_panels(len(self.panels), ax)
            for panel, (value, curves) in zip(axes, self.panels.items(), strict=True):
                self._draw_panel(panel, value, curves, chosen)
                name = None if self.facet is None else SETTINGS.get(self.facet, self.facet)
                title = self.title if name is None else f"{name.split(',')[0]} {value}"
                panel.set(title=title, xlabel=SETTINGS.get(self.x, self.x))
                panel.grid(axis="y")
            axes[0].set_ylabel(METRICS.get(self.metric, self.metric))
            if ax is None and self.facet is not None and self.title:
                axes[0].figure.suptitle(self.title, fontsize=11, fontweight="bold")
            handles = self._finish(axes, chosen, new=ax is None)
            if handles and ax is None:
                columns = len(handles) if len(handles) <= 4 or len(axes) > 1 else 3
                axes[0].figure.legend(handles=handles, loc="outside lower center", ncols=columns)
            elif handles:
                axes[-1].legend(handles=handles)
        self.axes_, self.ax_, self.figure_ = axes, axes[0], whole_figure(axes[0])
        return self

    def _legend_of_marks(self, interval: str) -> list[Any]:
        """Entries for values of the paper, and for intervals, if there are any."""
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

    def _finish(self, axes: NDArray[Any], chosen: dict[str, Look], *, new: bool) -> list[Any]:
        """Set the scales of all panels and return the entries of the legend.

        `new` is True in a figure made here.
        """
        raise NotImplementedError


def _draw_series(
    ax: Axes,
    series: Series,
    look: Look,
    position: Callable[[Any], float],
    *,
    line: Any,
    **more: Any,
) -> None:
    """Centres with intervals, and open marks for the paper; `position` gives x of a setting."""
    ax.errorbar(
        np.array([position(setting) for setting in series.x]),
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
            [position(setting) for setting in series.paper],
            list(series.paper.values()),
            linestyle="none",
            marker=look.marker,
            markersize=8,
            markerfacecolor="none",
            markeredgecolor=look.color,
            zorder=4,
        )


def _make_panels(n_panels: int, ax: Axes | Sequence[Axes] | None) -> NDArray[Any]:
    """Axes passed by the user, or those of a new figure with a common scale."""
    if ax is not None:
        given = np.array(ax, dtype=object, ndmin=1).ravel()
        if len(given) != n_panels:
            raise ValueError(f"ax must hold {n_panels} axes, one for each panel, got {len(given)}")
        return given
    columns = min(COLUMNS, n_panels)
    rows = -(-n_panels // columns)
    # A single panel is narrow, so that its text can be read on the screen of a phone.
    width = 4.8 if columns == 1 else 0.8 + 2.75 * columns
    figure = new_figure(width, 3.6 if rows == 1 else 0.6 + 2.7 * rows)
    axes: NDArray[Any] = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for spare in axes[n_panels:]:
        spare.remove()
    return axes[:n_panels]


# The largest number of settings that are drawn at equal distances; more settings make an axis of
# numbers.
SIDE_BY_SIDE = 6
# The ratio of the largest mean to the smallest above which the axis is logarithmic.
WIDE = 30.0
# Share of the distance between settings over which methods are spread.
DODGE = 0.4
# The simplest predictor, drawn as a line if it is in the range of the axis.
REFERENCES = {"nmse": (1.0, "predicting the mean"), "ni": (0.0, "no better than kernel ridge")}


class ComparisonDisplay(PanelsDisplay):
    """Mean and 95% interval of a metric for every method and setting; open markers are the paper's.

    Parameters
    ----------
    panels : dict of list of Series
        Curves by panel. `from_results` makes them.
    x : str, default="n"
        Setting of the horizontal axis.
    metric : str, default="nmse"
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

    _metric = "nmse"
    _spread = staticmethod(mean_interval)

    def _draw_panel(
        self, ax: Axes, value: Any, curves: list[Series], chosen: dict[str, Look]
    ) -> None:
        settings = _in_order(setting for series in curves for setting in (*series.x, *series.paper))
        numeric = _are_numbers(settings)
        in_a_row = len(settings) <= SIDE_BY_SIDE or not numeric
        position = {
            setting: float(row if in_a_row else setting) for row, setting in enumerate(settings)
        }
        step = DODGE * (1.0 if in_a_row else float(np.diff(settings).min())) / max(4, len(curves))
        for rank, series in enumerate(curves):
            shift = step * (rank - (len(curves) - 1) / 2)
            positions = {setting: position[setting] + shift for setting in settings}
            look = chosen[series.name]
            _draw_series(ax, series, look, positions.__getitem__, line="none")
            if numeric:
                line = {"color": look.color, "linestyle": look.line, "linewidth": 1.0}
                ax.plot(
                    [positions[setting] for setting in series.x], series.centre, alpha=0.7, **line
                )
        if in_a_row:
            names = [shortened(str(setting), 14) for setting in settings]
            ax.set_xticks(range(len(settings)), names)
            ax.set_xlim(-0.5, len(settings) - 0.5)

    def _finish(self, axes: NDArray[Any], chosen: dict[str, Look], *, new: bool) -> list[Any]:
        self._set_scale(axes)
        handles = [
            legend_entry(name, look.color, look.marker, line=look.line)
            for name, look in chosen.items()
        ]
        handles += self._legend_of_marks("95% interval of the mean")
        value, name = REFERENCES.get(self.metric, (np.nan, ""))
        low, high = axes[0].get_ylim()
        if low <= value <= high:
            dots = (0, (2, 2))
            for ax in axes:
                ax.axhline(value, color=GREY, linewidth=0.9, linestyle=dots, zorder=1)
            handles.append(legend_entry(name, GREY, "", line=dots))
        return handles

    def _set_scale(self, axes: NDArray[Any]) -> None:
        """One scale for all panels that fits the means; logarithmic if they differ widely.

        Intervals from two or three splits may be far longer than the differences of the means, and
        are cut off.
        """
        curves = self.curves
        means = np.concatenate([[*series.centre, *series.paper.values()] for series in curves])
        low = min(series.low.min() for series in curves)
        high = max(series.high.max() for series in curves)
        logarithmic = means.min() > 0 and means.max() > WIDE * means.min()
        if logarithmic:
            limits = max(low, means.min() / 3) / 1.2, min(high, 3 * means.max()) * 1.2
        else:
            span = float(np.ptp(means)) or 0.5 * abs(float(means[0])) or 1.0
            bottom = max(min(low, means.min()), means.min() - span)
            top = min(max(high, means.max()), means.max() + span)
            margin = 0.05 * max(top - bottom, span)
            limits = bottom - margin, top + margin
            if means.min() >= 0 and self.metric != "ni":
                limits = max(0.0, limits[0]), limits[1]
        for ax in axes:
            ax.set_yscale("log" if logarithmic else "linear")
            ax.set_ylim(*limits)


# The ratio of the largest time to the smallest below which 2 and 5 times powers of ten have labels
# too.
NARROW = 100.0


class RunningTimeDisplay(PanelsDisplay):
    """Median running time of every method with its range and growth, on logarithmic axes.

    The power in the legend is the slope of a straight line through the logarithms of all medians of
    a method.

    Parameters
    ----------
    panels : dict of list of Series
        Curves by panel. `from_results` makes them.
    x : str, default="n"
        Setting of the horizontal axis.
    metric : str, default="fit_seconds"
    facet : str, optional
        Key that tells the panels apart.
    title : str

    Attributes
    ----------
    slopes_ : dict of dict
        Powers by panel and method; NaN with fewer than three sizes.
    figure_ : Figure
    axes_ : ndarray of Axes
        One for each panel.
    ax_ : Axes
        The first.

    Examples
    --------
    >>> from entangled_kernels.plotting import RunningTimeDisplay
    >>> from entangled_kernels.io import ExperimentResults
    >>> records = [{"method": "EKL", "n": n, "fit_seconds": 1e-5 * n**2} for n in (100, 200, 400)]
    >>> display = RunningTimeDisplay.from_results(ExperimentResults("toy", "A toy", records))
    >>> round(display.slopes_[None]["EKL"], 6)
    2.0
    """

    _metric = "fit_seconds"
    _spread = staticmethod(median_range)

    def __init__(self, panels: dict[Any, list[Series]], **options: Any) -> None:
        super().__init__(panels, **options)
        for series in self.curves:
            positive = _are_numbers(series.x) and min(series.x) > 0 and min(series.low) > 0
            if not positive:
                raise ValueError(
                    f"{self.x} and {self.metric} must be positive numbers for logarithmic axes"
                )
        self.slopes_ = {
            value: {series.name: _fitted_slope(series.x, series.centre) for series in curves}
            for value, curves in panels.items()
        }

    def _draw_panel(
        self, ax: Axes, value: Any, curves: list[Series], chosen: dict[str, Look]
    ) -> None:
        for series in curves:
            look, slope = chosen[series.name], self.slopes_[value][series.name]
            power = f"{round(slope, 1) + 0.0:.1f}"
            growth = f"$\\propto {self.x}^{{{power}}}$" if len(self.x) == 1 else f"power {power}"
            label = series.name if np.isnan(slope) else f"{series.name}  {growth}"
            _draw_series(ax, series, look, float, line=look.line, label=label)
        _make_logarithmic(ax, curves)

    def _finish(self, axes: NDArray[Any], chosen: dict[str, Look], *, new: bool) -> list[Any]:
        # The legend is beside a single panel of a new figure, else within the panels.
        if new and len(axes) == 1:
            axes[0].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
        else:
            n_lines = max(len(curves) for curves in self.panels.values())
            for ax in axes:
                ax.legend(loc="upper left", fontsize=7.5)
            for ax in axes[:1] if new else axes:  # the panels of a new figure share the scale
                low, high = ax.get_ylim()
                ax.set_ylim(low, high * (high / low) ** (0.1 * n_lines))
        return self._legend_of_marks("least to largest of the repeats")


def _fitted_slope(x: Sequence[float], y: Array) -> float:
    """Least-squares power b in y = c x^b; NaN for fewer than three sizes."""
    if len(x) < 3:
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _make_logarithmic(ax: Axes, curves: list[Series]) -> None:
    """Logarithmic axes, with the sizes themselves as ticks if there are few."""
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
