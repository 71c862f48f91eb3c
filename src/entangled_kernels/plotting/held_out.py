"""Predicted against measured, for rows that the model had not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..uncertainty import HeldOut
from .display import BLUE, GREY, INK, PALE, AxesDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HeldOutDisplay"]

# Rows that are drawn, evenly spaced over all; more would hide each other.
MOST_ROWS = 300


class HeldOutDisplay(AxesDisplay):
    """Held-out predictions of one target over what was measured, with their intervals.

    Parameters
    ----------
    held_out : HeldOut
        As `EntangledKernelRidgeCV.held_out_predictions` gives it.
    target : int, default=0
        Place of the target.
    name : str, optional
        Of the target.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes
    rows_ : ndarray of int
        Rows that are drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidgeCV
    >>> from entangled_kernels.plotting import HeldOutDisplay
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = EntangledKernelRidgeCV(None, cv=3, random_state=0).fit(X, Y)
    >>> HeldOutDisplay(model.held_out_predictions(), 1, "waist").plot().ax_.get_title()
    'waist'
    """

    _size = (3.3, 3.2)

    def __init__(self, held_out: HeldOut, target: int = 0, name: str = "") -> None:
        measured, predicted = held_out.measured[:, target], held_out.predicted[:, target]
        known = np.flatnonzero(np.isfinite(measured) & np.isfinite(predicted))
        if len(known) > MOST_ROWS:
            known = known[np.linspace(0, len(known) - 1, MOST_ROWS).astype(int)]
        self.rows_ = known
        self.measured, self.predicted = measured[self.rows_], predicted[self.rows_]
        self.lower, self.upper = (end[self.rows_, target] for end in (held_out.lower, held_out.upper))
        self.name = name

    def _draw(self, ax: Axes) -> None:
        inside = (self.lower <= self.measured) & (self.measured <= self.upper)
        ax.vlines(self.measured, self.lower, self.upper, color=PALE, linewidth=0.8, zorder=1)
        for rows, color, marker in ((inside, BLUE, "o"), (~inside, INK, "x")):
            ax.plot(self.measured[rows], self.predicted[rows], marker, color=color, markersize=3.5)
        if len(self.rows_):
            ends = [self.measured.min(), self.measured.max()]
            ax.plot(ends, ends, color=GREY, linewidth=1.0, linestyle="--", zorder=1.5)
        ax.set(xlabel="measured", ylabel="predicted, out of fold", title=self.name)
