"""Which inputs matter: importance of every input beside that of noise, and its effect on every target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..explanation import Explanation
from .display import BLUE, GREY, INK, PALE, Display, house_style, new_figure, whole_figure
from .information import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ExplanationDisplay"]

# Of more inputs and targets the first ones are drawn; numbers stand in the cells of so many targets.
MOST_INPUTS, MOST_TARGETS, MOST_NUMBERED = 12, 24, 8


class ExplanationDisplay(Display):
    """Importance of inputs as bars, with that of noise marked, and effects on targets as a matrix.

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
    >>> [display.explanation.inputs[place] for place in display.order_]
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
        """Draw what a fitted `EntangledKernelRidge` or `EntangledKernelRidgeCV` explains.

        Parameters
        ----------
        model : estimator
        X, given, **options : arguments of its ``explain``
        figure : Figure, optional
            A figure, or subfigure, to draw in.
        """
        if not hasattr(model, "explain"):
            last = "; give its last step, model[-1], and transformed rows" if hasattr(model, "steps") else ""
            raise TypeError(
                f"model must have explain, as EntangledKernelRidge has, got {type(model).__name__}{last}"
            )
        return cls(model.explain(X, given, **options)).plot(figure)

    def plot(self, figure: Figure | None = None) -> Self:
        """Draw in a figure, a new one by default."""
        found, order = self.explanation, self.order_
        targets = found.targets[:MOST_TARGETS]
        relative = (
            found.effect[order][:, : len(targets)]
            / np.where(found.target_deviation > 0.0, found.target_deviation, np.nan)[: len(targets)]
        )
        with house_style():
            width = 4.6 + float(np.clip(0.45 * len(targets), 1.0, 5.0))
            figure = new_figure(width, 1.5 + 0.32 * len(order)) if figure is None else figure
            ratio = [2.4, float(np.clip(0.45 * len(targets), 1.0, 5.0))]
            self.bar_ax_, self.matrix_ax_ = figure.subplots(1, 2, sharey=True, width_ratios=ratio)
            self._draw_bars(self.bar_ax_)
            self._draw_matrix(self.matrix_ax_, relative, targets)
        self.figure_ = whole_figure(self.bar_ax_)
        return self

    def _draw_bars(self, ax: Axes) -> None:
        found, order = self.explanation, self.order_
        rows = np.arange(len(order))
        colors = np.where(found.important[order], BLUE, PALE)
        ax.barh(rows, found.importance[order], color=colors.tolist(), height=0.62)
        noise = found.importance_noise[order]
        ax.plot(
            noise,
            rows,
            linestyle="none",
            marker="|",
            markersize=13,
            markeredgewidth=2,
            color=INK,
            label="noise",
        )
        ax.set_yticks(rows, [shortened(found.inputs[place]) for place in order])
        ax.set_ylim(len(order) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
        ax.set_xlim(left=0.0)
        ax.set_xlabel("change of the predictions, in deviations\nof the targets, for one of the input")
        more = len(found.inputs) - len(order)
        ax.set_title(
            "Importance" + (f" (the first {len(order)} of {len(found.inputs)} inputs)" if more > 0 else "")
        )
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
        if len(targets) <= MOST_NUMBERED:
            for row, column in zip(*np.nonzero(np.isfinite(relative)), strict=True):
                value = relative[row, column]
                shade = "white" if abs(value) > 0.6 * limit else INK if abs(value) > 0.1 * limit else GREY
                ax.text(column, row, f"{value:+.2f}", ha="center", va="center", color=shade, fontsize=7.5)
        else:
            whole_figure(ax).colorbar(image, ax=ax, shrink=0.8).outline.set_visible(False)
