"""The classes of operator-valued kernels as regions, each with a computed kernel in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .display import AxesDisplay
from .style import BLUE, GREY, INK, ORANGE, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["REGIONS", "KernelClassesDisplay"]

# Centre, width and height of every class, in the unit of the figure, and where its name and witness stand.
REGIONS = {
    "partial trace": ((5.0, 3.0), 9.8, 5.8, (5.0, 5.45), GREY),
    "entangled": ((6.6, 3.2), 5.2, 3.6, (7.9, 4.15), VERMILION),
    "transformable": ((5.9, 1.75), 6.2, 2.5, (6.9, 1.15), ORANGE),
    "sum of separable": ((3.0, 3.2), 4.4, 3.4, (2.6, 4.4), BLUE),
    "separable": ((2.6, 3.0), 2.2, 1.3, (2.6, 3.25), BLUE),
}


class KernelClassesDisplay(AxesDisplay):
    """Ellipses for the classes, and in each the words on one kernel that lies there and in no smaller class.

    Parameters
    ----------
    witnesses : dict of str
        What was computed of the witness, by the name of its class, a key of `REGIONS`.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from entangled_kernels.plotting import KernelClassesDisplay
    >>> display = KernelClassesDisplay({"separable": "Schmidt rank 1"}).plot()
    >>> len(display.ax_.patches)
    10
    """

    _size = (7.6, 4.8)

    def __init__(self, witnesses: Mapping[str, str]) -> None:
        unknown = [name for name in witnesses if name not in REGIONS]
        if unknown:
            raise ValueError(f"witnesses must be named by {', '.join(REGIONS)}, got {unknown[0]!r}")
        self.witnesses = dict(witnesses)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.patches import Ellipse

        for name, (centre, width, height, place, color) in REGIONS.items():
            face = Ellipse(centre, width, height, facecolor=color, alpha=0.08, edgecolor="none")
            edge = Ellipse(centre, width, height, fill=False, edgecolor=color, linewidth=1.4)
            face.set_gid(name)
            edge.set_clip_on(False)
            ax.add_artist(face)
            ax.add_patch(edge)
            ax.text(*place, name, ha="center", va="bottom", fontweight="bold", color=INK)
            words = self.witnesses.get(name)
            if words:
                ax.text(*place, words, ha="center", va="top", fontsize=7.5, color=INK)
        ax.set(xlim=(0, 10), ylim=(0, 6))
        ax.set_axis_off()
