"""Matrices side by side, with lines between their blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .display import Display, house_style, new_figure, whole_figure
from .style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["MatricesDisplay"]


class MatricesDisplay(Display):
    """Each matrix in a panel of its own, coloured about zero by its own largest value.

    Parameters
    ----------
    matrices : dict of array
        By title.
    blocks : dict of int, optional
        Height and width of the blocks between which lines are drawn, by title.
    title : str

    Attributes
    ----------
    figure_ : Figure
    axes_ : ndarray of Axes

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.plotting import MatricesDisplay
    >>> display = MatricesDisplay({"T": np.eye(2), "G": np.eye(4)}, {"G": 2}).plot()
    >>> [ax.get_title() for ax in display.axes_]
    ['T', 'G']
    """

    def __init__(
        self, matrices: Mapping[str, ArrayLike], blocks: Mapping[str, int] | None = None, title: str = ""
    ) -> None:
        self.matrices = {name: np.asarray(one, dtype=np.float64) for name, one in matrices.items()}
        if any(one.ndim != 2 for one in self.matrices.values()):
            raise ValueError("matrices must all have two axes")
        self.blocks, self.title = dict(blocks or {}), title

    def plot(self, figure: Figure | SubFigure | None = None) -> Self:
        """Draw in a figure without axes, a new one by default."""
        count = len(self.matrices)
        with house_style():
            figure = new_figure(2.4 * count, 2.9) if figure is None else figure
            axes = np.atleast_1d(figure.subplots(1, count))
            for ax, (name, matrix) in zip(axes, self.matrices.items(), strict=True):
                limit = float(np.abs(matrix).max()) or 1.0
                ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
                step: Any = self.blocks.get(name)
                if step is not None:
                    for edge in range(step, len(matrix), step):
                        ax.axhline(edge - 0.5, color=INK, linewidth=0.6)
                        ax.axvline(edge - 0.5, color=INK, linewidth=0.6)
                ax.set(xticks=[], yticks=[], title=name)
                ax.set_xlabel(f"{matrix.shape[0]} by {matrix.shape[1]}")
                ax.spines[:].set(visible=True, color=INK)
            if self.title:
                figure.suptitle(self.title, fontsize=10.0, fontweight="bold")
        self.axes_, self.figure_ = np.asarray(axes, dtype=object), whole_figure(figure)
        return self
