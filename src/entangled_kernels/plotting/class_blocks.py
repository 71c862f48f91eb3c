"""A few samples of every class in the block Gram matrix, within classes and between each two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from .display import Display, house_style, new_figure, whole_figure
from .style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["ClassBlocksDisplay"]


class ClassBlocksDisplay(Display):
    """Blocks of the first samples of every class, with lines between samples; one panel to a pair of classes.

    Parameters
    ----------
    gram : array of shape (n*p, n*p)
        Row index ``sample * p + output``.
    labels : array of shape (n,)
        Class of each sample.
    n_outputs : int
        Number p of outputs.
    n_samples : int, default=3
        Samples of each class.
    title : str

    Attributes
    ----------
    figure_ : Figure
    axes_ : ndarray of Axes
        Of the pairs (first, first), (first, second), ..., (last, last), row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.plotting import ClassBlocksDisplay
    >>> display = ClassBlocksDisplay(np.eye(12), ["a"] * 3 + ["b"] * 3, n_outputs=2).plot()
    >>> len(display.axes_)
    3
    """

    def __init__(
        self,
        gram: ArrayLike,
        labels: ArrayLike,
        *,
        n_outputs: int,
        n_samples: int = 3,
        title: str = "Samples within and between classes",
    ) -> None:
        self.gram, self.labels = np.asarray(gram, dtype=np.float64), np.asarray(labels)
        self.n_outputs, self.n_samples, self.title = n_outputs, n_samples, title
        size = len(self.labels) * n_outputs
        if self.gram.shape != (size, size):
            raise ValueError(
                f"gram must have shape ({size}, {size}), {n_outputs} outputs for each of the labels, got "
                f"{self.gram.shape}"
            )

    def plot(self, figure: Figure | SubFigure | None = None) -> Self:
        """Draw in a figure without axes, a new one by default."""
        classes = list(dict.fromkeys(self.labels.tolist()))
        count, p = len(classes), self.n_outputs
        places = {name: np.flatnonzero(self.labels == name)[: self.n_samples] for name in classes}
        rows = {
            name: (own[:, None] * p + np.arange(p)).reshape(-1) for name, own in places.items()
        }  # (samples * p,)
        shown = np.concatenate(list(rows.values()))
        limit = float(np.abs(self.gram[np.ix_(shown, shown)]).max()) or 1.0
        with house_style():
            figure = new_figure(1.75 * count, 1.75 * count + 0.7) if figure is None else figure
            grid, axes = figure.add_gridspec(count, count), []
            for i, first in enumerate(classes):
                for j, second in enumerate(classes[i:], start=i):
                    ax = figure.add_subplot(grid[i, j])
                    block = self.gram[np.ix_(rows[first], rows[second])]
                    image = ax.imshow(block, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
                    for edge in range(p, max(block.shape), p):
                        if edge < block.shape[0]:
                            ax.axhline(edge - 0.5, color=INK, linewidth=0.6)
                        if edge < block.shape[1]:
                            ax.axvline(edge - 0.5, color=INK, linewidth=0.6)
                    ax.set(xticks=[], yticks=[])
                    ax.spines[:].set(visible=True, color=INK)
                    name = f"class {first}" if i == j else f"{first} with {second}"
                    ax.set_title(name, fontsize=8.5, fontweight="normal")
                    axes.append(ax)
            figure.suptitle(self.title, fontsize=10.0, fontweight="bold")
            figure.colorbar(
                image, ax=axes, label="kernel value", location="bottom", shrink=0.5, aspect=40, pad=0.02
            ).outline.set_visible(False)
        self.axes_, self.figure_ = np.array(axes, dtype=object), whole_figure(figure)
        return self
