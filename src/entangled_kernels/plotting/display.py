"""What all displays share: colours, looks, names and classes of samples."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, whose colours differ under all common kinds of colour blindness. Brown,
# and grey below, are for figures with many curves.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, BLACK, BROWN = "#56B4E9", "#CC79A7", "#000000", "#7A4A1E"
INK, GREY, PALE = "#222222", "#767676", "#C4C4C4"

RC: dict[Any, Any] = {
    "font.size": 9.0,
    "font.family": "sans-serif",
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6.0,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 150.0,
    "figure.dpi": 100.0,
}


class Look(NamedTuple):
    """How a method is drawn. No two methods share a value of any field."""

    color: str
    marker: str
    line: Any


_LOOKS = (
    Look(BLUE, "o", "-"),
    Look(VERMILION, "s", "--"),
    Look(GREEN, "^", "-."),
    Look(PURPLE, "D", ":"),
    Look(ORANGE, "v", (0, (5, 1, 1, 1, 1, 1))),
    Look(SKY, "P", (0, (8, 2))),
    Look(BLACK, "X", (0, (1, 1))),
    Look(GREY, "*", (0, (3, 1, 1, 1))),
    Look(BROWN, "h", (0, (1, 3))),
)
# Methods of the experiments look the same in every figure.
_METHODS = ("EKL", "ptrEKL", "OKL", "entangled", "PLS", "extra-trees", "KRR", "kernel-ridge")


def looks(names: list[str]) -> dict[str, Look]:
    """A look for each name. Methods of the experiments look the same in all figures.

    Examples
    --------
    >>> looks(["KRR", "mine"])["KRR"].color
    '#000000'
    """
    fixed = {name: look for name, look in zip(_METHODS, _LOOKS, strict=False) if name in names}
    free = [look for look in _LOOKS if look not in fixed.values()] or list(_LOOKS)
    rest = [name for name in names if name not in fixed]
    chosen = fixed | {name: free[i % len(free)] for i, name in enumerate(rest)}
    return {name: chosen[name] for name in names}


class Display:
    """Base of the displays.

    Figures made here do not belong to pyplot and need not be closed. Save a figure with
    ``display.figure_.savefig(...)``. A notebook shows a display that is the last line of a cell. To
    draw in a figure of pyplot, pass its axes, or the figure if there are several panels.

    Attributes
    ----------
    figure_ : matplotlib Figure
        Set when drawn.
    """

    figure_: Figure

    def _repr_png_(self) -> bytes | None:
        if not hasattr(self, "figure_"):
            return None
        file = io.BytesIO()
        self.figure_.savefig(file, format="png", bbox_inches="tight")
        return file.getvalue()


class AxesDisplay(Display):
    """Base of the displays in one pair of axes: a subclass draws them in ``_draw``.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : Axes
    """

    _size: tuple[float, float]
    ax_: Axes

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw in axes, those of a new figure by default."""
        with house_style():
            ax = new_figure(*self._size).add_subplot() if ax is None else ax
            self._draw(ax)
        self.ax_, self.figure_ = ax, whole_figure(ax)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with the settings of this package; the settings of matplotlib do not change."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib; install it with pip install "entangled-kernels[plot]"'
        ) from error
    with mpl.rc_context(RC):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, outside of pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def whole_figure(part: Any) -> Figure:
    """The figure that axes or a subfigure belong to."""
    figure: Figure = part.figure.figure
    return figure


def add_colorbar(ax: Axes, image: Any, **options: Any) -> None:
    """A colour bar without frame."""
    ax.figure.colorbar(image, ax=ax, **options).outline.set_visible(False)


def integer_ticks(ax: Axes) -> None:
    """Use whole numbers only as ticks of the horizontal axis."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def legend_entry(
    label: str, color: str, marker: str, *, line: Any = "none", open_marker: bool = False
) -> Any:
    """An entry of a legend that belongs to no curve."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        label=label,
        color=color,
        marker=marker,
        markersize=11 if marker == "|" else 6,
        markerfacecolor="none" if open_marker else color,
        linestyle=line,
    )


def fitted_estimator(model: Any) -> Any:
    """The solved entangled estimator, or the best one of a search over settings."""
    check_is_fitted(model)
    if hasattr(model, "solve"):
        model.solve()
    if getattr(model, "refit", True) is False:
        raise ValueError("model is a search without a fitted model to draw; fit it with refit=True")
    estimator = getattr(model, "best_estimator_", model)
    if not hasattr(estimator, "kernel_"):
        raise TypeError(
            "model must be an EntangledKernelRidge, or a search over its settings, got "
            f"{type(estimator).__name__}{last_step_advice(model)}"
        )
    return estimator


def last_step_advice(model: Any) -> str:
    """Advice for an error about a model that may be a pipeline."""
    return (
        "; give its last step, model[-1], and transformed rows" if hasattr(model, "steps") else ""
    )


def class_labels(y: Any, names: list[str] | None = None) -> NDArray[Any]:
    """Label of each sample, from labels (n,) or from one target per class (n, p).

    Examples
    --------
    >>> class_labels([[1, -1], [-1, 1], [1, -1]])
    array([0, 1, 0])
    """
    array = np.asarray(y)
    if array.ndim == 1:
        return array
    if not one_per_class(array):
        raise ValueError(
            "y must hold one label per sample, or one column per class with a single high value in "
            f"each row; got shape {array.shape} of other values. Pass the labels, or y=None."
        )
    columns = array.argmax(axis=1)
    return np.asarray(columns if names is None else np.asarray(names)[columns])


def one_per_class(Y: NDArray[Any]) -> bool:
    """Whether targets (n, p) have two values, with the higher one in exactly one column of each row."""
    if Y.ndim != 2 or Y.shape[1] < 2 or Y.dtype.kind not in "biuf":
        return False
    values = np.unique(Y)
    return len(values) == 2 and bool(((values[1] == Y).sum(axis=1) == 1).all())


def kernel_names(estimator: Any, n_outputs: int) -> Any:
    """Names of the targets of a model; None if its kernel has other outputs than the targets."""
    names = getattr(estimator, "target_names_", None)
    return None if names is None or len(names) != n_outputs else names


def output_names(names: Any, n_outputs: int) -> list[str]:
    """Names of the outputs as text; numbered from 0 when there are none."""
    if names is None:
        return [str(output) for output in range(n_outputs)]
    words = [str(name) for name in names]
    if len(words) != n_outputs:
        raise ValueError(f"names must hold {n_outputs} names, one per output, got {len(words)}")
    return words


def shortened(name: str, length: int = 26) -> str:
    """A name of at most ``length`` letters; the middle of a longer name is left out.

    Examples
    --------
    >>> shortened("strength of concrete", 12)
    'streng…crete'
    """
    if len(name) <= length:
        return name
    half = length // 2
    return f"{name[:half].rstrip()}…{name[len(name) - (length - half - 1) :].lstrip()}"


def write_numbers(ax: Axes, values: Any, write: Callable[[float], str], limit: float) -> None:
    """Write finite numbers in the cells of an image, light on dark ones; `limit` is the darkest."""
    for row, column in zip(*np.nonzero(np.isfinite(values)), strict=True):
        value = values[row, column]
        color = "white" if abs(value) > 0.6 * limit else INK
        ax.text(column, row, write(value), color=color, ha="center", va="center", fontsize=7.0)
