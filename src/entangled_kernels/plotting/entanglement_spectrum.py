"""How entangled a kernel is: eigenvalues of the partial transpose, and operator-Schmidt values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import Array
from .display import (
    BLUE,
    GREY,
    VERMILION,
    Display,
    fitted_estimator,
    house_style,
    integer_ticks,
    new_figure,
    whole_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ..kernels import KrausKernel

__all__ = ["EntanglementSpectrumDisplay"]

# An eigenvalue counts as negative, and a value as different from zero, beyond this share of the largest.
TOLERANCE = 1e-10
# So many Schmidt values are drawn at most.
SHOWN = 24


class EntanglementSpectrumDisplay(Display):
    """Eigenvalues of the partial transpose of D / tr(D), and shares of the operator-Schmidt values of D.

    A negative eigenvalue proves that the kernel is entangled; they are marked. A single Schmidt value means
    that the kernel is separable, one scalar kernel times one output matrix.

    Parameters
    ----------
    eigenvalues : array
        Of the partial transpose of D / tr(D).
    schmidt_values : array
        Operator-Schmidt values of D, in any scale.
    verdict : str, optional
        What is proven, in a word or two, for the title.

    Attributes
    ----------
    figure_ : Figure
    axes_ : ndarray of two Axes

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.kernels import KrausKernel
    >>> from entangled_kernels.plotting import EntanglementSpectrumDisplay
    >>> display = EntanglementSpectrumDisplay.from_kernel(KrausKernel(np.eye(2)[None]))
    >>> display.eigenvalues.round(12)
    array([-0.5, 0.5, 0.5, 0.5])
    """

    def __init__(self, eigenvalues: ArrayLike, schmidt_values: ArrayLike, *, verdict: str = "") -> None:
        self.eigenvalues: Array = np.sort(np.asarray(eigenvalues, dtype=np.float64), axis=None)
        self.schmidt_values: Array = np.sort(np.asarray(schmidt_values, dtype=np.float64), axis=None)[::-1]
        if not self.eigenvalues.size or not self.schmidt_values.size or not self.schmidt_values[0] > 0:
            raise ValueError("eigenvalues and schmidt_values must not be empty or zero")
        self.verdict = verdict

    @classmethod
    def from_estimator(cls, model: Any, *, figure: Figure | SubFigure | None = None) -> Self:
        """Draw for the learned kernel of a fitted model; a search is asked for its best estimator."""
        return cls.from_kernel(fitted_estimator(model).kernel_, figure=figure)

    @classmethod
    def from_kernel(cls, kernel: KrausKernel, *, figure: Figure | SubFigure | None = None) -> Self:
        """Draw for a kernel in Kraus form."""
        verdict = kernel.entanglement().verdict.split(":")[0]
        return cls(kernel.partial_transpose_eigenvalues(), kernel.schmidt_values(), verdict=verdict).plot(
            figure
        )

    def plot(self, figure: Figure | SubFigure | None = None) -> Self:
        """Draw in a figure, a new one by default."""
        with house_style():
            figure = new_figure(7.2, 3.3) if figure is None else figure
            self.axes_ = figure.subplots(1, 2, width_ratios=[1.25, 1])
            self._draw_eigenvalues(self.axes_[0])
            self._draw_schmidt(self.axes_[1])
        self.figure_ = whole_figure(figure)
        return self

    def _draw_eigenvalues(self, ax: Axes) -> None:
        magnitude = np.abs(self.eigenvalues)
        values = self.eigenvalues[magnitude > TOLERANCE * magnitude.max()]
        places = np.arange(1, len(values) + 1)
        negative = values < 0
        size = 5.0 if len(values) <= 40 else 3.0
        ax.axhline(0, color=GREY, linewidth=0.8)
        for own, color, marker, label in (
            (~negative, BLUE, "o", f"positive: {(~negative).sum()}"),
            (negative, VERMILION, "v", f"negative: {negative.sum()}, their sum {values[negative].sum():.3g}"),
        ):
            if own.any():
                ax.vlines(places[own], 0, values[own], color=color, linewidth=1.2)
                ax.plot(places[own], values[own], marker, color=color, markersize=size, label=label)
        ax.legend(loc="upper left")
        ax.set(
            title="Partial transpose" + (f": {self.verdict.lower()}" if self.verdict else ""),
            xlabel="nonzero eigenvalue, in increasing order",
            ylabel="eigenvalue (share of the trace)",
        )
        ax.margins(x=0.03, y=0.12)
        ax.grid(axis="y")

    def _draw_schmidt(self, ax: Axes) -> None:
        shares = self.schmidt_values**2 / np.sum(self.schmidt_values**2)
        kept = shares[self.schmidt_values > 1e-9 * self.schmidt_values[0]]
        shown = kept[:SHOWN]
        ax.bar(np.arange(1, len(shown) + 1), shown, color=BLUE, width=0.7)
        ax.axhline(0, color=GREY, linewidth=0.8)
        rest = f", the first {SHOWN} of {len(kept)}" if len(kept) > SHOWN else f" ({len(kept)} in all)"
        note = f"first: nearest separable kernel, {shares[0]:.0%}"
        ax.text(0.98, 0.97, note, transform=ax.transAxes, ha="right", va="top", fontsize=8.5)
        ax.set(
            title="Operator-Schmidt values",
            xlabel="value" + rest,
            ylabel=r"share of $\|D\|_F^2$",
            xlim=(0.2, max(len(shown), 4) + 0.8),
            ylim=(0, min(1.15, 1.25 * shares[0])),
        )
        integer_ticks(ax)
        ax.grid(axis="y")
