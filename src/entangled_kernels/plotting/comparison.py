"""Methods compared: means over splits with their intervals, the published figures beside them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .classes import shortened
from .display import GREY, Look, legend_entry
from .panels import PanelsDisplay, Series, draw_series, in_order, mean_interval, series_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..io import ExperimentResults

__all__ = ["ComparisonDisplay"]

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

    def _draw_panel(self, ax: Axes, value: Any, curves: list[Series], chosen: dict[str, Look]) -> None:
        settings = in_order(place for series in curves for place in (*series.x, *series.paper))
        numeric = all(isinstance(setting, int | float) for setting in settings)
        in_a_row = len(settings) <= SIDE_BY_SIDE or not numeric
        place = {setting: float(row if in_a_row else setting) for row, setting in enumerate(settings)}
        step = DODGE * (1.0 if in_a_row else float(np.diff(settings).min())) / max(4, len(curves))
        for rank, series in enumerate(curves):
            shift = step * (rank - (len(curves) - 1) / 2)
            places = {setting: place[setting] + shift for setting in settings}
            look = chosen[series.name]
            draw_series(ax, series, look, places.__getitem__, line="none")
            if numeric:
                x = [places[setting] for setting in series.x]
                ax.plot(x, series.centre, color=look.color, linestyle=look.line, linewidth=1.0, alpha=0.7)
        if in_a_row:
            ax.set_xticks(range(len(settings)), [shortened(str(setting), 14) for setting in settings])
            ax.set_xlim(-0.5, len(settings) - 0.5)

    def _finish(self, axes: NDArray[np.object_], chosen: dict[str, Look], *, own: bool) -> list[Any]:
        self._set_scale(axes)
        return self._legend(chosen) + self._draw_reference(axes)

    def _set_scale(self, axes: NDArray[np.object_]) -> None:
        """One scale for all panels, logarithmic where the means need it, made for the means.

        Intervals from two or three splits may be many times as long as the means differ, and run out of it.
        """
        curves = self.curves
        means = np.concatenate([[*series.centre, *series.paper.values()] for series in curves])
        logarithmic = means.min() > 0 and means.max() > WIDE * means.min()
        low, high = min(series.low.min() for series in curves), max(series.high.max() for series in curves)
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
            legend_entry(name, look.color, look.marker, line=look.line) for name, look in named.items()
        ]
        return handles + self._legend_of_marks(f"{self.level:.0%} interval of the mean")
