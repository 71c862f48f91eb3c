"""Panels side by side for the values of one key of the records, with one legend for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .display import new_figure
from .series import SETTINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["make_panels", "panel_title", "place_legend"]

# Panels in a row.
COLUMNS = 3


def make_panels(n_panels: int, ax: Axes | Sequence[Axes] | None) -> NDArray[np.object_]:
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


def panel_title(facet: str | None, value: Any, title: str) -> str:
    """Title of a panel: the whole title where there is one panel, else what tells it from the others."""
    if facet is None:
        return title
    return f"{SETTINGS.get(facet, facet).split(',')[0]} {value}"


def place_legend(axes: NDArray[np.object_], handles: list[Any], *, own: bool) -> None:
    """One legend: under the panels of a figure of our own, inside the last of the axes of someone else's."""
    if not handles:
        return
    if own:
        columns = len(handles) if len(handles) <= 4 or len(axes) > 1 else 3
        axes[0].figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    else:
        axes[-1].legend(handles=handles)
