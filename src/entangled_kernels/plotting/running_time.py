"""Running times against the size of the problem, with the powers at which they grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array
from .display import Look
from .panels import PanelsDisplay, Series, draw_series, median_range, series_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..io import ExperimentResults

__all__ = ["RunningTimeDisplay", "fitted_slope"]

# Below so many times the least, times between powers of ten are named too.
NARROW = 100.0


class RunningTimeDisplay(PanelsDisplay):
    """Median running time of every method on logarithmic axes, its range over repeats, and its growth.

    The power in the legend is the slope of a straight line through the logarithms of all medians of a method.

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

    def _draw_panel(self, ax: Axes, value: Any, curves: list[Series], chosen: dict[str, Look]) -> None:
        for series in curves:
            look, label = chosen[series.name], _label(series.name, self.slopes_[value][series.name], self.x)
            draw_series(ax, series, look, float, line=look.line, label=label)
        _logarithmic(ax, curves)

    def _finish(self, axes: NDArray[np.object_], chosen: dict[str, Look], *, own: bool) -> list[Any]:
        # Legends stand beside a single panel of our own, else within the panels and above their curves.
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
