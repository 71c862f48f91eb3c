"""The alignment along the steps of an iterative solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import Array
from .display import BLUE, GREY, VERMILION, AxesDisplay, fitted_estimator, integer_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AlignmentPathDisplay"]

# With no more steps than this each one has a marker.
FEW = 40


class AlignmentPathDisplay(AxesDisplay):
    """Alignment of the kernel with the targets at the start of the solver and after every step.

    Parameters
    ----------
    history : array of shape (steps + 1,)
        `EntangledKernelRidge.alignment_history_`: before shrinkage.
    maximum : float, optional
        The largest alignment that any kernel has, drawn as a line.
    reason : str, optional
        Why the solver stopped.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from entangled_kernels.plotting import AlignmentPathDisplay
    >>> display = AlignmentPathDisplay([0.2, 0.5, 0.6], maximum=0.7).plot()
    >>> display.ax_.get_xlabel()
    'step of the solver'
    """

    _size = (5.2, 3.4)

    def __init__(
        self, history: ArrayLike, *, maximum: float | None = None, reason: str | None = None
    ) -> None:
        self.history: Array = np.asarray(history, dtype=np.float64)
        if self.history.ndim != 1 or not self.history.size:
            raise ValueError(f"history must have shape (steps + 1,), got {self.history.shape}")
        self.maximum, self.reason = maximum, reason

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None) -> Self:
        """Draw the path of a fitted `EntangledKernelRidge`, or of the one that a search has chosen.

        The maximum is known in closed form for models with an intercept, and drawn for those.
        """
        estimator = fitted_estimator(model)
        maximum, reason = estimator.largest_alignment_, estimator.stop_reason_
        return cls(estimator.alignment_history_, maximum=maximum, reason=reason).plot(ax)

    def _draw(self, ax: Axes) -> None:
        steps = np.arange(len(self.history))
        marker = "o" if len(steps) <= FEW else ""
        ax.plot(steps, self.history, color=BLUE, marker=marker, markersize=4, clip_on=False)
        ax.plot(steps[-1], self.history[-1], "o", color=BLUE, clip_on=False)
        if self.maximum is not None:
            ax.axhline(self.maximum, color=VERMILION, linestyle="--", linewidth=1.2)
            ax.annotate(
                f"largest possible, {self.maximum:.3f}",
                (0.0, self.maximum),
                xycoords=ax.get_yaxis_transform(),
                xytext=(4, 4),
                textcoords="offset points",
                color=VERMILION,
                fontsize=8.5,
            )
        reason = f", stopped by {self.reason}" if self.reason else ""
        ax.annotate(
            f"{self.history[-1]:.3f}{reason if len(steps) > 1 else ' in closed form'}",
            (float(steps[-1]), self.history[-1]),
            xytext=(0, -8),
            textcoords="offset points",
            ha="right" if len(steps) > 1 else "center",
            va="top",
            color=GREY,
            fontsize=8.5,
        )
        top = max(self.history.max(), self.maximum or 0.0)
        bottom = min(self.history.min(), 0.0)
        ax.set(
            title="Alignment along the path of the solver",
            xlabel="step of the solver",
            ylabel="alignment with the targets (0 to 1)",
            xlim=(0 if len(steps) > 1 else None, None),
            ylim=(bottom, top + 0.15 * (top - bottom or 1.0)),
        )
        ax.grid(axis="y")
        integer_ticks(ax)
        if len(steps) == 1:
            ax.set_xticks([0])
