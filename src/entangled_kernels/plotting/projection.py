"""Display of samples projected by the learned kernel, one panel for each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..linalg import Array
from .display import (
    BLUE,
    GREY,
    PALE,
    Display,
    fitted_estimator,
    house_style,
    kernel_names,
    legend_entry,
    new_figure,
    one_per_class,
    output_names,
    shortened,
    whole_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["ProjectionDisplay"]

TITLE = "Samples projected by the learned kernel, one panel for each task"
LETTERS = 22
TRAIN: dict[str, Any] = {"marker": "o", "s": 34, "edgecolors": "white", "linewidths": 0.6}
TEST: dict[str, Any] = {"marker": "^", "s": 26, "edgecolors": "white", "linewidths": 0.5}


class ProjectionDisplay(Display):
    """Two coordinates of every sample for each task, circles for training samples.

    Test samples are triangles. With one target per class, samples of the class of the task are blue
    and the others grey. Otherwise the colour shows the target of the task.

    Parameters
    ----------
    Z_train : array of shape (n, p, r)
        Projections of training samples, `EntangledKernelRidge.project`; r is at least two.
    y_train : array of shape (n,) or (n, p)
        Targets, or labels: the o-th label in sorted order is the class of task o.
    Z_test, y_test : the same of other samples, optional
    names : sequence of str, optional
        Names of the tasks.
    coordinates : pair of int, default=(0, 1)
        Which of the r coordinates to draw.

    Attributes
    ----------
    figure_ : Figure
    axes_ : ndarray of Axes
        One for each task.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.plotting import ProjectionDisplay
    >>> Z = np.random.default_rng(0).normal(size=(6, 3, 2))
    >>> display = ProjectionDisplay(Z, [0, 1, 2, 0, 1, 2], names=["zero", "one", "two"]).plot()
    >>> [ax.get_title() for ax in display.axes_]
    ['zero', 'one', 'two']
    """

    def __init__(
        self,
        Z_train: ArrayLike,
        y_train: ArrayLike,
        Z_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        *,
        names: Sequence[Any] | None = None,
        coordinates: tuple[int, int] = (0, 1),
    ) -> None:
        if (Z_test is None) != (y_test is None):
            raise ValueError("Z_test and y_test belong together: give both or neither")
        self.Z_train = _projections("Z_train", Z_train)
        self.Z_test = self.Z_train[:0] if Z_test is None else _projections("Z_test", Z_test)
        n, p, r = self.Z_train.shape
        if self.Z_test.shape[1:] != (p, r):
            raise ValueError(
                f"Z_test must have shape (t, {p}, {r}) as Z_train has, got {self.Z_test.shape}"
            )
        if not all(0 <= c < r for c in coordinates):
            raise ValueError(f"coordinates must be two of 0 to {r - 1}, got {coordinates}")
        self.coordinates = coordinates
        stacked = [] if y_test is None else [np.asarray(y_test)]
        values, self.by_class = _task_values(np.concatenate([np.asarray(y_train), *stacked]), p)
        if len(values) != n + len(self.Z_test):
            raise ValueError(
                f"targets must be of {n} and {len(self.Z_test)} samples, as the projections are"
            )
        self.values_train, self.values_test = values[:n], values[n:]
        self.names = output_names(names, p)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X_train: Any,
        y_train: Any,
        X_test: Any = None,
        y_test: Any = None,
        *,
        names: Sequence[Any] | None = None,
        coordinates: tuple[int, int] = (0, 1),
        figure: Figure | SubFigure | None = None,
    ) -> Self:
        """Project samples with a fitted model and draw them.

        Parameters
        ----------
        model : fitted `EntangledKernelRidge`
            With ``rank=2`` or more. Of a search the best estimator is drawn.
        X_train, y_train, X_test, y_test : array-like or data frames
            y as in the class; test samples may be left out.
        names, coordinates : as in the class
        figure : Figure or SubFigure, optional
        """
        estimator = fitted_estimator(model)
        Z_train = _project(model, estimator, X_train, max(coordinates) + 1)
        if names is None:
            names = kernel_names(estimator, Z_train.shape[1])
        Z_test = None if X_test is None else estimator.project(X_test)
        display = cls(Z_train, y_train, Z_test, y_test, names=names, coordinates=coordinates)
        return display.plot(figure)

    def plot(self, figure: Figure | SubFigure | None = None) -> Self:
        """Draw a panel for every task, with the training and test rows in its plane.

        Parameters
        ----------
        figure : Figure or SubFigure, optional
            One without axes; a new one by default.
        """
        p = self.Z_train.shape[1]
        columns = p if p <= 4 else int(np.ceil(np.sqrt(p)))
        rows = -(-p // columns)
        with house_style():
            size = max(4.0, 2.1 * columns), 2.2 * rows + 0.9
            figure = new_figure(*size) if figure is None else figure
            grid = figure.add_gridspec(rows, columns)
            axes = [figure.add_subplot(grid[divmod(task, columns)]) for task in range(p)]
            for task, ax in enumerate(axes):
                self._draw_task(ax, task)
                if task + columns >= p:
                    ax.set_xlabel(f"Kraus operator {self.coordinates[0] + 1}")
                if task % columns == 0:
                    ax.set_ylabel(f"Kraus operator {self.coordinates[1] + 1}")
            figure.suptitle(TITLE, fontsize=11, fontweight="bold")
            self._draw_legend(figure)
        self.axes_, self.figure_ = np.array(axes, dtype=object), whole_figure(figure)
        return self

    def _draw_task(self, ax: Axes, task: int) -> None:
        ax.axhline(0, color="#E4E4E4", linewidth=0.7, zorder=0)
        ax.axvline(0, color="#E4E4E4", linewidth=0.7, zorder=0)
        train = (self.Z_train[:, task][:, self.coordinates], self.values_train[:, task])
        test = (self.Z_test[:, task][:, self.coordinates], self.values_test[:, task])
        if self.by_class:
            for inside in (False, True):
                for (Z, values), look in ((test, TEST), (train, TRAIN)):
                    ax.scatter(
                        *Z[values == inside].T,
                        facecolors=BLUE if inside else PALE,
                        zorder=2 + inside,
                        **look,
                    )
        else:
            both = np.concatenate([train[1], test[1]])
            for (Z, values), look in ((test, TEST), (train, TRAIN)):
                scale: dict[str, Any] = {"cmap": "cividis", "vmin": both.min(), "vmax": both.max()}
                points = ax.scatter(Z[:, 0], Z[:, 1], c=values, zorder=2, **scale, **look)
            ax.figure.colorbar(points, ax=ax, shrink=0.8, label="target")
        ax.set_title(shortened(self.names[task], LETTERS))
        ax.margins(0.08)
        ax.tick_params(labelsize=7.5)
        ax.locator_params(nbins=4)

    def _draw_legend(self, figure: Figure | SubFigure) -> None:
        entries = []
        kinds = {"training": TRAIN} | ({"test": TEST} if len(self.Z_test) else {})
        for word, look in kinds.items():
            if self.by_class:
                entries.append(legend_entry(f"{word}, the task's own class", BLUE, look["marker"]))
                entries.append(legend_entry(f"{word}, other classes", PALE, look["marker"]))
            else:
                entries.append(legend_entry(word, GREY, look["marker"]))
        if len(entries) > 1:
            columns = len(entries) if len(self.names) > 3 else 2
            figure.legend(handles=entries, loc="outside lower center", ncols=columns)


def _project(model: Any, estimator: Any, X: Any, needed: int) -> Array:
    """Projections (n, p, r) of some rows; for a search, the error names its best candidate."""
    n_operators = estimator.model_.fit.n_operators
    if estimator is not model and n_operators < needed:
        chosen = ", ".join(f"{name}={value!r}" for name, value in model.best_params_.items())
        raise ValueError(
            f"the candidate that the search chose ({chosen}) has {n_operators} coordinates, and "
            f"{needed} are needed; draw an EntangledKernelRidge with rank={needed} and shrinkage < 1"
        )
    return np.asarray(estimator.project(X))


def _projections(name: str, Z: ArrayLike) -> Array:
    array = np.asarray(Z, dtype=np.float64)
    if array.ndim != 3 or array.shape[2] < 2:
        raise ValueError(
            f"{name} must have shape (n, p, r) with at least r = 2 coordinates, got {array.shape}; "
            "fit with rank=2 or more"
        )
    return array


def _task_values(y: NDArray[Any], p: int) -> tuple[NDArray[Any], bool]:
    """Values (n, p) that colours show, and whether they tell the class of the sample."""
    if y.ndim == 1:
        classes = np.unique(y)
        if len(classes) != p:
            raise ValueError(
                f"y has {len(classes)} classes but there are {p} tasks; pass the targets (n, p)"
            )
        return y[:, None] == classes, True
    if y.ndim != 2 or y.shape[1] != p:
        raise ValueError(
            f"y must have shape (n,) or (n, {p}) to match the projections, got {y.shape}"
        )
    if one_per_class(y):
        return y == y.max(), True
    return y, False
