"""What every display does: make a figure when none is given, and show itself in a notebook."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from .style import RC

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "AxesDisplay",
    "Display",
    "fitted_estimator",
    "house_style",
    "integer_ticks",
    "legend_entry",
    "new_figure",
    "whole_figure",
]


class Display:
    """Base of the displays.

    A figure made here does not belong to pyplot, so nothing stays open behind it. It is `figure_`: save it
    with ``display.figure_.savefig(...)``, or leave the display as the last line of a notebook cell. To draw
    in a figure of pyplot, pass its axes (or, where there are several panels, the figure).

    Attributes
    ----------
    figure_ : matplotlib Figure
        Set when drawn.
    """

    figure_: Figure

    def _repr_png_(self) -> bytes | None:
        if not hasattr(self, "figure_"):
            return None
        file = io.BytesIO()
        self.figure_.savefig(file, format="png", bbox_inches="tight")
        return file.getvalue()


class AxesDisplay(Display):
    """Base of the displays in one pair of axes: a subclass draws them in ``_draw``.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : Axes
    """

    _size: tuple[float, float]
    ax_: Axes

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw in axes, those of a new figure by default."""
        with house_style():
            ax = new_figure(*self._size).add_subplot() if ax is None else ax
            self._draw(ax)
        self.ax_, self.figure_ = ax, whole_figure(ax)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with the house's settings, and leave the user's as they were."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib; install it with pip install "entangled-kernels[plot]"'
        ) from error
    with mpl.rc_context(RC):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, apart from pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def whole_figure(part: Any) -> Figure:
    """The figure that axes or a subfigure belong to; a figure itself."""
    figure: Figure = part.figure.figure
    return figure


def integer_ticks(ax: Axes) -> None:
    """Let the ticks of the horizontal axis be whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def legend_entry(
    label: str, color: str, marker: str, *, line: Any = "none", open_marker: bool = False
) -> Any:
    """A line of a legend that nothing drawn stands for."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        label=label,
        color=color,
        marker=marker,
        markersize=11 if marker == "|" else 6,
        markerfacecolor="none" if open_marker else color,
        linestyle=line,
    )


def fitted_estimator(model: Any) -> Any:
    """The entangled estimator itself, solved, or the one that a search over settings has chosen."""
    check_is_fitted(model)
    if hasattr(model, "solve"):
        model.solve()
    if getattr(model, "refit", True) is False:
        raise ValueError("model is a search without a fitted model to draw; fit it with refit=True")
    estimator = getattr(model, "best_estimator_", model)
    if not hasattr(estimator, "kernel_"):
        last = "; give its last step, model[-1], and transformed rows" if hasattr(model, "steps") else ""
        raise TypeError(
            f"model must be an EntangledKernelRidge, or a search over its settings, got "
            f"{type(estimator).__name__}{last}"
        )
    return estimator
