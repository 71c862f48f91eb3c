"""Displays of a search, of the path of a solver, and of held-out predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..linalg import Array
from ..uncertainty import HeldOut
from .display import (
    BLUE,
    GREY,
    INK,
    PALE,
    VERMILION,
    AxesDisplay,
    add_colorbar,
    fitted_estimator,
    integer_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AlignmentPathDisplay", "HeldOutDisplay", "SelectionDisplay"]

# Errors above this multiple of the smallest have the same colour.
CUT = 2.0
STAR: dict[str, Any] = {
    "marker": "*",
    "color": "white",
    "markeredgecolor": INK,
    "markersize": 14,
    "linestyle": "none",
    "clip_on": False,
}
SCORINGS = {"nmse": "cross-validated nMSE", "mse": "cross-validated mean squared error"}


class SelectionDisplay(AxesDisplay):
    """Smallest cross-validated error for every alpha and shrinkage, with the choice marked.

    Parameters
    ----------
    alphas : array of shape (a,)
        Ridge penalties, in increasing order.
    shrinkages : array of shape (s,)
        In increasing order; 1 is kernel ridge.
    errors : array of shape (s, a)
        NaN where there was no candidate.
    chosen : sequence of (alpha, shrinkage)
        The best settings; several if every target has another alpha.
    scoring : str, default="nmse"

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from entangled_kernels.plotting import SelectionDisplay
    >>> errors = [[0.5, 0.4, 0.6], [0.6, 0.5, 0.7]]
    >>> display = SelectionDisplay([0.1, 1.0, 10.0], [0.5, 1.0], errors, [(1.0, 0.5)]).plot()
    >>> display.ax_.get_ylabel()
    'shrinkage'
    """

    _size = (6.2, 3.4)

    def __init__(
        self,
        alphas: ArrayLike,
        shrinkages: ArrayLike,
        errors: ArrayLike,
        chosen: Any = (),
        *,
        scoring: str = "nmse",
    ) -> None:
        self.alphas: Array = np.asarray(alphas, dtype=np.float64)
        self.shrinkages: Array = np.asarray(shrinkages, dtype=np.float64)
        self.errors: Array = np.asarray(errors, dtype=np.float64)
        shape = (self.shrinkages.size, self.alphas.size)
        if self.errors.shape != shape:
            raise ValueError(
                f"errors must have shape {shape}, shrinkages by alphas, got {self.errors.shape}"
            )
        if not np.isfinite(self.errors).any():
            raise ValueError("errors must hold at least one finite number")
        self.chosen = [(float(alpha), float(shrinkage)) for alpha, shrinkage in chosen]
        self.scoring = scoring

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None) -> Self:
        """Draw the search of a fitted `EntangledKernelRidgeCV`, for the chosen feature map."""
        check_is_fitted(model)
        if hasattr(model, "solve"):
            model.solve()
        if "param_shrinkage" not in getattr(model, "cv_results_", {}):
            raise TypeError(
                f"model must be a fitted EntangledKernelRidgeCV, got {type(model).__name__}"
            )
        results, best = model.cv_results_, model.best_params_
        errors = np.asarray(results["mean_test_score"], dtype=np.float64)
        keep = np.ones(len(errors), dtype=bool)
        if "feature_map" in best and "param_feature_map" in results:
            keep = np.array([name == best["feature_map"] for name in results["param_feature_map"]])
        columns, column = np.unique(
            np.asarray(results["param_alpha"], dtype=np.float64)[keep], return_inverse=True
        )
        rows, row = np.unique(
            np.asarray(results["param_shrinkage"], dtype=np.float64)[keep], return_inverse=True
        )
        surface = np.full((len(rows), len(columns)), np.nan)
        np.fmin.at(surface, (row, column), errors[keep])
        chosen = [(alpha, best["shrinkage"]) for alpha in np.unique(best["alpha"])]
        return cls(columns, rows, surface, chosen, scoring=getattr(model, "scoring", "nmse")).plot(
            ax
        )

    def _draw(self, ax: Axes) -> None:
        from matplotlib.colors import PowerNorm

        least, largest = float(np.nanmin(self.errors)), float(np.nanmax(self.errors))
        cut = min(largest, CUT * least) if least > 0 else largest
        # The square root makes colours differ more near the smallest error.
        image = ax.pcolormesh(
            _edges(np.log10(self.alphas)),
            np.arange(len(self.shrinkages) + 1) - 0.5,
            np.ma.masked_invalid(self.errors),
            cmap="cividis",
            norm=PowerNorm(0.5, vmin=least, vmax=cut),
        )
        for alpha, shrinkage in self.chosen:
            ax.plot(np.log10(alpha), np.abs(self.shrinkages - shrinkage).argmin(), **STAR)
        extend, label = (
            "max" if cut < largest else "neither",
            SCORINGS.get(self.scoring, self.scoring),
        )
        add_colorbar(ax, image, extend=extend, label=label)
        names = [
            f"{value:g}" + ("\nkernel ridge" if value == 1.0 else "") for value in self.shrinkages
        ]
        ax.set_yticks(range(len(names)), names)
        title = "Least error over alpha and shrinkage" + (" (☆ chosen)" if self.chosen else "")
        ax.set(title=title, xlabel="alpha (ridge penalty)", ylabel="shrinkage")
        integer_ticks(ax)
        ax.xaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")


def _edges(centres: Array) -> Array:
    """Borders of cells about increasing centres."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middles: Array = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middles[0]], middles, [2 * centres[-1] - middles[-1]]])


# The largest number of steps that have markers.
FEW = 40


class AlignmentPathDisplay(AxesDisplay):
    """Alignment of the kernel with the targets at the start of the solver and after every step.

    Parameters
    ----------
    history : array of shape (steps + 1,)
        `EntangledKernelRidge.alignment_history_`, the alignment before shrinkage.
    maximum : float, optional
        The largest possible alignment, drawn as a line.
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
        """Draw the path of a fitted `EntangledKernelRidge`, or of the best one of a search.

        The maximum is drawn for models with an intercept, where it has a closed form.
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


# The largest number of rows that are drawn; of more rows, evenly spaced ones are drawn.
MOST_ROWS = 300


class HeldOutDisplay(AxesDisplay):
    """Held-out predictions of one target over its measured values, with their intervals.

    Parameters
    ----------
    held_out : HeldOut
        Result of `EntangledKernelRidgeCV.held_out_predictions`.
    target : int, default=0
        Column of the target.
    name : str, optional
        Name of the target.

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
        rows = np.flatnonzero(np.isfinite(measured) & np.isfinite(predicted))
        if len(rows) > MOST_ROWS:
            rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(int)]
        self.rows_ = rows
        self.measured, self.predicted = measured[self.rows_], predicted[self.rows_]
        self.lower, self.upper = (
            end[self.rows_, target] for end in (held_out.lower, held_out.upper)
        )
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
