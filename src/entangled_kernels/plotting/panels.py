"""Curves in panels side by side for the values of one key of the records, with one legend for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .display import Display, house_style, legend_entry, new_figure, whole_figure
from .series import METRICS, SETTINGS, Series
from .style import GREY, Look, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PanelsDisplay", "draw_series"]

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
