"""Figures that only the paper has: matrices in blocks, blocks by class, and the classes of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import Array
from ..plotting.display import BLUE, GREY, INK, ORANGE, VERMILION, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["REGIONS", "draw_class_blocks", "draw_kernel_classes", "draw_matrices"]

# Centre, width and height of every class, in the unit of the figure, and where its name and witness stand.
REGIONS = {
    "partial trace": ((5.0, 3.0), 9.8, 5.8, (5.0, 5.45), GREY),
    "entangled": ((6.6, 3.2), 5.2, 3.6, (7.9, 4.15), VERMILION),
    "transformable": ((5.9, 1.75), 6.2, 2.5, (6.9, 1.15), ORANGE),
    "sum of separable": ((3.0, 3.2), 4.4, 3.4, (2.6, 4.4), BLUE),
    "separable": ((2.6, 3.0), 2.2, 1.3, (2.6, 3.25), BLUE),
}


def draw_matrices(
    matrices: Mapping[str, ArrayLike], blocks: Mapping[str, int] | None = None, title: str = ""
) -> Figure:
    """Matrices by title in panels side by side, coloured about zero, with lines between blocks of a size.

    Examples
    --------
    >>> import numpy as np
    >>> [ax.get_title() for ax in draw_matrices({"T": np.eye(2), "G": np.eye(4)}, {"G": 2}).axes]
    ['T', 'G']
    """
    with house_style():
        figure = new_figure(2.4 * len(matrices), 2.9)
        axes = figure.subplots(1, len(matrices), squeeze=False).ravel()
        for ax, (name, values) in zip(axes, matrices.items(), strict=True):
            matrix = np.asarray(values, dtype=np.float64)
            _draw_blocks(ax, matrix, (blocks or {}).get(name), float(np.abs(matrix).max()) or 1.0)
            ax.set(title=name, xlabel=f"{matrix.shape[0]} by {matrix.shape[1]}")
        if title:
            figure.suptitle(title, fontsize=10.0, fontweight="bold")
    return figure


def draw_class_blocks(gram: Array, labels: ArrayLike, n_outputs: int, n_samples: int = 3) -> Figure:
    """The first samples of every class in a Gram matrix, within classes and between each two, row by row.

    Row ``sample * n_outputs + output`` of ``gram`` belongs to an output of a sample.

    Examples
    --------
    >>> import numpy as np
    >>> figure = draw_class_blocks(np.eye(12), ["a"] * 3 + ["b"] * 3, n_outputs=2)
    >>> [ax.get_title() for ax in figure.axes[:3]]
    ['class a', 'a with b', 'class b']
    """
    of = np.asarray(labels)
    classes = list(dict.fromkeys(of.tolist()))
    places = [np.flatnonzero(of == name)[:n_samples] for name in classes]
    rows = [(own[:, None] * n_outputs + np.arange(n_outputs)).ravel() for own in places]  # (samples * p,)
    shown = np.concatenate(rows)
    limit = float(np.abs(gram[np.ix_(shown, shown)]).max()) or 1.0
    count, axes = len(classes), []
    with house_style():
        figure = new_figure(1.75 * count, 1.75 * count + 0.7)
        grid = figure.add_gridspec(count, count)
        for i, j in combinations_with_replacement(range(count), 2):
            ax = figure.add_subplot(grid[i, j])
            image = _draw_blocks(ax, gram[np.ix_(rows[i], rows[j])], n_outputs, limit)
            name = f"class {classes[i]}" if i == j else f"{classes[i]} with {classes[j]}"
            ax.set_title(name, fontsize=8.5, fontweight="normal")
            axes.append(ax)
        figure.suptitle("Samples within and between classes", fontsize=10.0, fontweight="bold")
        figure.colorbar(
            image, ax=axes, label="kernel value", location="bottom", shrink=0.5, aspect=40, pad=0.02
        ).outline.set_visible(False)
    return figure


def draw_kernel_classes(witnesses: Mapping[str, str]) -> Figure:
    """Ellipses for the classes of kernels, keys of `REGIONS`, and in each the words on a kernel of it.

    Examples
    --------
    >>> len(draw_kernel_classes({"separable": "Schmidt rank 1"}).axes[0].texts)
    6
    """
    from matplotlib.patches import Ellipse

    with house_style():
        figure = new_figure(7.6, 4.8)
        ax = figure.add_subplot()
        for name, (centre, width, height, place, color) in REGIONS.items():
            face = Ellipse(centre, width, height, facecolor=color, alpha=0.08, edgecolor="none")
            edge = Ellipse(centre, width, height, fill=False, edgecolor=color, linewidth=1.4)
            face.set_gid(name)
            edge.set_clip_on(False)
            ax.add_artist(face)
            ax.add_patch(edge)
            ax.text(*place, name, ha="center", va="bottom", fontweight="bold", color=INK)
            if witnesses.get(name):
                ax.text(*place, witnesses[name], ha="center", va="top", fontsize=7.5, color=INK)
        ax.set(xlim=(0, 10), ylim=(0, 6))
        ax.set_axis_off()
    return figure


def _draw_blocks(ax: Axes, matrix: Array, step: int | None, limit: float) -> AxesImage:
    """A matrix in colours about zero, framed, with lines between blocks of ``step`` rows and columns."""
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    if step is not None:
        for edge in range(step, matrix.shape[0], step):
            ax.axhline(edge - 0.5, color=INK, linewidth=0.6)
        for edge in range(step, matrix.shape[1], step):
            ax.axvline(edge - 0.5, color=INK, linewidth=0.6)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color=INK)
    return image
