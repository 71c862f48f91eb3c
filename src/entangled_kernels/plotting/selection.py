"""What a search over settings saw: cross-validated error over alpha and shrinkage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..linalg import Array
from .display import INK, AxesDisplay, integer_ticks, whole_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SelectionDisplay"]

# Errors of more than this many times the least are drawn alike.
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
    """Least cross-validated error for every alpha and shrinkage, over all other settings; the choice marked.

    Parameters
    ----------
    alphas : array of shape (a,)
        Ridge penalties, in increasing order.
    shrinkages : array of shape (s,)
        In increasing order; 1 is kernel ridge.
    errors : array of shape (s, a)
        NaN where there was no candidate.
    chosen : sequence of (alpha, shrinkage)
        What was kept; several where every target has an alpha of its own.
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
            raise ValueError(f"errors must have shape {shape}, shrinkages by alphas, got {self.errors.shape}")
        if not np.isfinite(self.errors).any():
            raise ValueError("errors must hold at least one finite number")
        self.chosen = [(float(alpha), float(shrinkage)) for alpha, shrinkage in chosen]
        self.scoring = scoring

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None) -> Self:
        """Draw the search of a fitted `EntangledKernelRidgeCV`, for the feature map that it chose."""
        check_is_fitted(model)
        if hasattr(model, "solve"):
            model.solve()
        if "param_shrinkage" not in getattr(model, "cv_results_", {}):
            raise TypeError(f"model must be a fitted EntangledKernelRidgeCV, got {type(model).__name__}")
        results, best = model.cv_results_, model.best_params_
        errors = np.asarray(results["mean_test_score"], dtype=np.float64)
        keep = np.ones(len(errors), dtype=bool)
        if "feature_map" in best and "param_feature_map" in results:
            keep = np.array([place == best["feature_map"] for place in results["param_feature_map"]])
        alphas, shrinkages = (
            np.asarray(results[name], dtype=np.float64)[keep] for name in ("param_alpha", "param_shrinkage")
        )
        columns, column = np.unique(alphas, return_inverse=True)
        rows, row = np.unique(shrinkages, return_inverse=True)
        surface = np.full((len(rows), len(columns)), np.nan)
        np.fmin.at(surface, (row, column), errors[keep])
        chosen = [(alpha, best["shrinkage"]) for alpha in np.unique(best["alpha"])]
        return cls(columns, rows, surface, chosen, scoring=getattr(model, "scoring", "nmse")).plot(ax)

    def _draw(self, ax: Axes) -> None:
        # The colours tell small differences apart near the least error.
        from matplotlib.colors import PowerNorm

        least, largest = float(np.nanmin(self.errors)), float(np.nanmax(self.errors))
        cut = min(largest, CUT * least) if least > 0 else largest
        image = ax.pcolormesh(
            _edges(np.log10(self.alphas)),
            np.arange(len(self.shrinkages) + 1) - 0.5,
            np.ma.masked_invalid(self.errors),
            cmap="cividis",
            norm=PowerNorm(0.5, vmin=least, vmax=cut),
        )
        for alpha, shrinkage in self.chosen:
            ax.plot(np.log10(alpha), np.abs(self.shrinkages - shrinkage).argmin(), **STAR)
        whole_figure(ax).colorbar(
            image,
            ax=ax,
            extend="max" if cut < largest else "neither",
            label=SCORINGS.get(self.scoring, self.scoring),
        ).outline.set_visible(False)
        names = [f"{value:g}" + ("\nkernel ridge" if value == 1.0 else "") for value in self.shrinkages]
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
