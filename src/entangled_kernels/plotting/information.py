"""What tells what: how much of the uncertainty of one target the measurement of another removes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..linalg import Array, Index
from .display import INK, PALE, AxesDisplay, fitted_estimator, whole_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["InformationDisplay", "shortened"]

# Of more targets those that tell or are told most are drawn; numbers stand in the cells of up to so many.
MOST_TARGETS, MOST_NUMBERED = 40, 15
# Characters of a name.
LONGEST = 26


class InformationDisplay(AxesDisplay):
    """Share of the uncertainty of each target that measuring another removes, as a matrix.

    Targets that tell much about each other stand side by side.

    Parameters
    ----------
    information : array of shape (p, p)
        Share of the variance of the target of a column that measuring the target of a row removes, between 0
        and 1. The diagonal is not drawn.
    names : sequence of str, optional
        Of the targets.

    Attributes
    ----------
    order_ : ndarray of int
        Targets that were drawn, from top to bottom and from left to right.
    figure_ : Figure
    ax_ : Axes

    Notes
    -----
    The order is that of the leaves of a hierarchical clustering (average linkage) with the distance
    1 - information, its branches turned so that neighbours are near (scipy's ``optimal_ordering``). Time
    p^2 for up to 40 targets, and p^2 to find the 40 of more.

    Examples
    --------
    >>> from entangled_kernels.plotting import InformationDisplay
    >>> information = [[1.0, 0.3, 0.6], [0.3, 1.0, 0.1], [0.6, 0.1, 1.0]]
    >>> display = InformationDisplay(information, ["zinc", "tin", "cadmium"]).plot()
    >>> [display.names[place] for place in display.order_]
    ['tin', 'zinc', 'cadmium']
    """

    def __init__(self, information: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.information: Array = np.asarray(information, dtype=np.float64)
        p = len(self.information)
        if p == 0 or self.information.shape != (p, p):
            raise ValueError(f"information must be a square matrix, got shape {self.information.shape}")
        self.names = [f"output{place}" for place in range(p)] if names is None else list(map(str, names))
        if len(self.names) != p:
            raise ValueError(f"names must hold {p} names, one for each target, got {len(self.names)}")
        self.order_ = arranged(self.information)
        side = float(np.clip(0.42 * len(self.order_), 2.4, 8.0))
        self._size = (side + 2.9, side + 1.6)

    @classmethod
    def from_estimator(
        cls, model: Any, *, names: Sequence[str] | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the `information_` of a fitted `EntangledKernelRidge` or `EntangledKernelRidgeCV`.

        Parameters
        ----------
        model : estimator, or search over settings
        names : sequence of str, optional
            Of the targets; those of the training table by default.
        ax : Axes, optional
        """
        best = fitted_estimator(model)
        # The errors of a search with averages are those of the search, not of its best candidate.
        source = model if hasattr(model, "information_") else best
        names = getattr(source, "target_names_", None) if names is None else names
        return cls(source.information_, names).plot(ax)

    def _draw(self, ax: Axes) -> None:
        shown = self.information[np.ix_(self.order_, self.order_)]
        labels = [shortened(self.names[place]) for place in self.order_]
        cells = np.ma.masked_array(shown, mask=np.eye(len(shown), dtype=bool))
        image = ax.imshow(cells, cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
        ax.set_facecolor(PALE)
        if len(labels) <= MOST_NUMBERED:
            _write_numbers(ax, shown)
        ax.set_xticks(range(len(labels)), labels, rotation=90)
        ax.set_yticks(range(len(labels)), labels)
        ax.tick_params(length=0, labelsize=8.5 if len(labels) <= 25 else 6.5)
        ax.spines[:].set_visible(False)
        ax.set_ylabel("measuring this ...")
        ax.set_xlabel("... removes so much of the uncertainty of this")
        whole_figure(ax).colorbar(
            image, ax=ax, format=lambda value, _: f"{value:.0%}", shrink=0.8
        ).outline.set_visible(False)
        more = f" (the {len(labels)} strongest of {len(self.names)})"
        ax.set_title("What tells what" + (more if len(labels) < len(self.names) else ""))


def arranged(information: Array, most: int = MOST_TARGETS) -> Index:
    """Places of the targets, neighbours near each other; of many those with the largest values.

    Examples
    --------
    >>> arranged(np.array([[1.0, 0.3, 0.6], [0.3, 1.0, 0.1], [0.6, 0.1, 1.0]])).tolist()
    [1, 0, 2]
    """
    both = (information + information.T) / 2.0
    np.fill_diagonal(both, 0.0)
    strongest = np.argsort(-both.max(axis=1), kind="stable")[:most]
    chosen = np.sort(strongest)
    if len(chosen) < 3:
        return chosen
    distance = 1.0 - both[np.ix_(chosen, chosen)]
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return np.asarray(chosen[leaves_list(tree)])


def shortened(name: str) -> str:
    """A name without its middle where it is long: names of targets often differ at their ends."""
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[:half].rstrip()}…{name[-half + 1 :].lstrip()}"


def _write_numbers(ax: Axes, shown: Array) -> None:
    """Percent in the cells, light on dark."""
    for row, column in np.ndindex(shown.shape):
        if row != column:
            value = shown[row, column]
            color = "white" if value > 0.55 else INK
            ax.text(column, row, f"{100 * value:.0f}", ha="center", va="center", color=color, fontsize=7.5)
