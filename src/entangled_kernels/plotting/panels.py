"""Records of results as curves with spreads, drawn in panels side by side with one legend for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from ..linalg import Array
from .display import GREY, Display, Look, house_style, legend_entry, looks, new_figure, whole_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..io import ExperimentResults, Record

__all__ = [
    "PanelsDisplay",
    "Series",
    "draw_series",
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

    Records without the metric or the setting are left out. Panels and curves come in the order of their
    first record.
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
        paper = {setting: values[-1] for setting, values in published.get((panel, name), {}).items()}
        settings = in_order(curve)
        centre, low, high = np.array([spread(np.asarray(curve[setting])) for setting in settings]).T
        panels.setdefault(panel, []).append(Series(name, settings, centre, low, high, paper))
    return panels


def in_order(settings: Iterable[Any]) -> list[Any]:
    """Distinct settings, numbers in increasing order."""
    distinct = list(dict.fromkeys(settings))
    return sorted(distinct) if all(isinstance(setting, int | float) for setting in distinct) else distinct


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
    half = float(t.ppf((1.0 + level) / 2.0, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
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
    return [record for record in records if record.get(metric) is not None and record.get(x) is not None]


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

    def _draw_panel(self, ax: Axes, value: Any, curves: list[Series], chosen: dict[str, Look]) -> None:
        raise NotImplementedError

    def _finish(self, axes: NDArray[np.object_], chosen: dict[str, Look], *, own: bool) -> list[Any]:
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
