"""Displays of the importance of inputs, and of the information between targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..linalg import Array, Index
from ..model import Explanation
from .display import (
    BLUE,
    INK,
    PALE,
    AxesDisplay,
    Display,
    add_colorbar,
    fitted_estimator,
    house_style,
    last_step_advice,
    new_figure,
    shortened,
    whole_figure,
    write_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ExplanationDisplay", "InformationDisplay"]

# The largest numbers of inputs and targets that are drawn, and of targets for numbers in cells.
MOST_INPUTS, MOST_EFFECTS, NUMBERED_EFFECTS = 12, 24, 8


class ExplanationDisplay(Display):
    """Importance of inputs as bars, with the importance by chance, and effects on targets.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    figure_ : Figure
    bar_ax_, matrix_ax_ : Axes
    order_ : ndarray of int
        Inputs that were drawn, from top to bottom.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidge
    >>> from entangled_kernels.plotting import ExplanationDisplay
    >>> X, Y = load_linnerud(return_X_y=True, as_frame=True)
    >>> display = ExplanationDisplay.from_estimator(EntangledKernelRidge().fit(X, Y), X)
    >>> [display.explanation.inputs[j] for j in display.order_]
    ['Situps', 'Jumps', 'Chins']
    """

    bar_ax_: Axes
    matrix_ax_: Axes

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation
        self.order_ = explanation.order[:MOST_INPUTS]

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, given: Any = None, figure: Figure | None = None, **options: Any
    ) -> Self:
        """Draw the explanation of a fitted `EntangledKernelRidge` or `EntangledKernelRidgeCV`.

        Parameters
        ----------
        model : estimator
        X, given, **options : arguments of its ``explain``
        figure : Figure, optional
            A figure, or subfigure, to draw in.
        """
        if not hasattr(model, "explain"):
            raise TypeError(
                "model must have a method explain, as EntangledKernelRidge has, got "
                f"{type(model).__name__}{last_step_advice(model)}"
            )
        return cls(model.explain(X, given, **options)).plot(figure)

    def plot(self, figure: Figure | None = None) -> Self:
        """Draw in a figure, a new one by default."""
        explanation, order = self.explanation, self.order_
        targets = explanation.targets[:MOST_EFFECTS]
        deviation = np.where(
            explanation.target_deviation > 0.0, explanation.target_deviation, np.nan
        )
        relative = (explanation.effect[order] / deviation)[:, : len(targets)]
        with house_style():
            width = float(np.clip(0.45 * len(targets), 1.0, 5.0))
            figure = new_figure(4.6 + width, 1.5 + 0.32 * len(order)) if figure is None else figure
            ratio = [2.4, width]
            self.bar_ax_, self.matrix_ax_ = figure.subplots(1, 2, sharey=True, width_ratios=ratio)
            self._draw_bars(self.bar_ax_)
            self._draw_matrix(self.matrix_ax_, relative, targets)
        self.figure_ = whole_figure(self.bar_ax_)
        return self

    def _draw_bars(self, ax: Axes) -> None:
        explanation, order = self.explanation, self.order_
        rows = np.arange(len(order))
        colors = np.where(explanation.important[order], BLUE, PALE)
        ax.barh(rows, explanation.importance[order], color=colors.tolist(), height=0.62)
        noise = explanation.importance_noise[order]
        mark: dict[str, Any] = {"marker": "|", "markersize": 13, "markeredgewidth": 2, "color": INK}
        ax.plot(noise, rows, linestyle="none", label="by chance", **mark)
        ax.set_yticks(rows, [shortened(explanation.inputs[i]) for i in order])
        ax.set_ylim(len(order) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
        ax.set_xlim(left=0.0)
        ax.set_xlabel(
            "change of the predictions, in deviations of the\ntargets, if the input changes by one of its own"
        )
        more = f" (the first {len(order)} of {len(explanation.inputs)} inputs)"
        ax.set_title("Importance" + (more if len(order) < len(explanation.inputs) else ""))
        if np.isfinite(noise).any():
            ax.legend(loc="lower right")

    def _draw_matrix(self, ax: Axes, relative: Any, targets: list[str]) -> None:
        limit = float(np.nanmax(np.abs(relative), initial=0.0)) or 1.0
        image = ax.imshow(relative, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
        ax.set_facecolor(PALE)
        ax.set_xticks(range(len(targets)), [shortened(name) for name in targets], rotation=90)
        ax.tick_params(length=0)
        ax.tick_params(axis="y", labelleft=False)
        ax.spines[:].set_visible(False)
        ax.set_title("Effect")
        if len(targets) <= NUMBERED_EFFECTS:
            write_numbers(ax, relative, "{:+.2f}".format, limit)
        else:
            add_colorbar(ax, image, shrink=0.8)


# The largest number of targets that are drawn, those with the largest values, and the largest number
# for numbers in cells.
MOST_TARGETS, MOST_NUMBERED = 40, 15


class InformationDisplay(AxesDisplay):
    """Share of the uncertainty of each target that measuring another removes, as a matrix.

    Targets with much information about each other are neighbours.

    Parameters
    ----------
    information : array of shape (p, p)
        Share of the variance of the target of a column that measuring the target of a row removes,
        between 0 and 1. The diagonal is not drawn.
    names : sequence of str, optional
        Names of the targets.

    Attributes
    ----------
    order_ : ndarray of int
        Targets that were drawn, from top to bottom and from left to right.
    figure_ : Figure
    ax_ : Axes

    Notes
    -----
    The order is that of the leaves of a hierarchical clustering (average linkage) with the distance
    1 - information, its branches turned so that neighbours are near (scipy's ``optimal_ordering``).
    Time p^2 for up to 40 targets, and p^2 to find the 40 of more.

    Examples
    --------
    >>> from entangled_kernels.plotting import InformationDisplay
    >>> information = [[1.0, 0.3, 0.6], [0.3, 1.0, 0.1], [0.6, 0.1, 1.0]]
    >>> display = InformationDisplay(information, ["zinc", "tin", "cadmium"]).plot()
    >>> [display.names[j] for j in display.order_]
    ['tin', 'zinc', 'cadmium']
    """

    def __init__(self, information: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.information: Array = np.asarray(information, dtype=np.float64)
        p = len(self.information)
        if p == 0 or self.information.shape != (p, p):
            raise ValueError(
                f"information must be a square matrix, got shape {self.information.shape}"
            )
        self.names = [f"output{j}" for j in range(p)] if names is None else list(map(str, names))
        if len(self.names) != p:
            raise ValueError(f"names must be {p} names, one for each target, got {len(self.names)}")
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
        # A search that averages candidates has its own errors.
        source = model if hasattr(model, "information_") else best
        names = getattr(source, "target_names_", None) if names is None else names
        return cls(source.information_, names).plot(ax)

    def _draw(self, ax: Axes) -> None:
        shown = self.information[np.ix_(self.order_, self.order_)]
        labels = [shortened(self.names[j]) for j in self.order_]
        shown[np.eye(len(shown), dtype=bool)] = np.nan
        cells = np.ma.masked_invalid(shown)
        image = ax.imshow(cells, cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
        ax.set_facecolor(PALE)
        if len(labels) <= MOST_NUMBERED:
            write_numbers(ax, shown, lambda value: f"{100 * value:.0f}", 1.0)
        ax.set_xticks(range(len(labels)), labels, rotation=90)
        ax.set_yticks(range(len(labels)), labels)
        ax.tick_params(length=0, labelsize=8.5 if len(labels) <= 25 else 6.5)
        ax.spines[:].set_visible(False)
        ax.set_ylabel("measuring this ...")
        ax.set_xlabel("... removes this share of the uncertainty of this")
        add_colorbar(ax, image, format=lambda value, _: f"{value:.0%}", shrink=0.8)
        more = f" (the {len(labels)} strongest of {len(self.names)})"
        ax.set_title(
            "Information between targets" + (more if len(labels) < len(self.names) else "")
        )


def arranged(information: Array, most: int = MOST_TARGETS) -> Index:
    """Order of the targets by hierarchical clustering; at most ``most``, those with the largest values.

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
