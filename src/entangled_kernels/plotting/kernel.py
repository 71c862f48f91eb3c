"""Displays of a kernel: its block Gram matrix, and its entanglement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import KrausKernel
from ..kernels.scalar import feature_rows
from ..linalg import Array
from .display import (
    BLUE,
    GREY,
    INK,
    VERMILION,
    Display,
    add_colorbar,
    class_labels,
    fitted_estimator,
    house_style,
    integer_ticks,
    kernel_names,
    new_figure,
    output_names,
    shortened,
    whole_figure,
    write_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


__all__ = ["EntanglementSpectrumDisplay", "GramDisplay"]

# The largest numbers of samples for lines between them, of outputs for numbers in cells, of outputs
# for names beside blocks, and of letters in names.
SEPARATED, NUMBERED, NAMED, LETTERS = 20, 6, 12, 12

COLORBAR: dict[str, Any] = {
    "location": "bottom",
    "shrink": 0.6,
    "aspect": 40,
    "pad": 0.01,
    "extend": "both",
}


class GramDisplay(Display):
    """Block Gram matrix with lines between classes (or samples), and some of its blocks enlarged.

    Parameters
    ----------
    gram : array of shape (n*p, n*p) or (n, n, p, p)
        A matrix with row index ``sample * p + output``, or the blocks K(x_i, x_j) of
        `OperatorValuedKernel.blocks`.
    n_outputs : int, optional
        Number p of outputs; needed for a matrix.
    labels : array of shape (n,), optional
        Class of each sample. Lines are drawn where the class changes from a sample to the next.
    names : sequence of str, optional
        Names of the outputs.
    zoom : "auto", None or sequence of (i, j)
        Pairs of samples whose blocks are enlarged. "auto" is a block within the first class, a
        block between the first and the last class, and a block within the last class; none for a
        single output.

    Attributes
    ----------
    figure_ : Figure
    axes_ : ndarray of Axes
        The matrix first, then the enlarged blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.plotting import GramDisplay
    >>> display = GramDisplay(np.eye(6), n_outputs=2, labels=["a", "a", "b"]).plot()
    >>> len(display.axes_)
    4
    """

    def __init__(
        self,
        gram: ArrayLike,
        n_outputs: int | None = None,
        *,
        labels: ArrayLike | None = None,
        names: Sequence[Any] | None = None,
        zoom: Any = "auto",
    ) -> None:
        self.gram, self.n_outputs = _as_matrix(gram, n_outputs)
        n = len(self.gram) // self.n_outputs
        self.labels = None if labels is None else np.asarray(labels)
        if self.labels is not None and self.labels.shape != (n,):
            raise ValueError(
                f"labels must have shape ({n},), one per sample, got {self.labels.shape}"
            )
        self.names = output_names(names, self.n_outputs)
        self.zoom = _pairs(zoom, n, self.n_outputs, self.labels)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        names: Sequence[Any] | None = None,
        zoom: Any = "auto",
        figure: Figure | SubFigure | None = None,
    ) -> Self:
        """Draw the learned kernel of a fitted model on some samples.

        Parameters
        ----------
        model : fitted estimator with a ``kernel_``, or a search
            Of a search the best estimator is drawn.
        X : array-like or data frame of shape (n, n_features)
            All n*p rows and columns are drawn: use at most about a hundred samples.
        y : array-like of shape (n,) or (n, p), optional
            Labels, or one target per class. Samples are sorted by class, and pairs in ``zoom`` are
            positions in this order.
        names, zoom : as in the class
            Names default to those of the targets that the model was fitted with.
        figure : Figure or SubFigure, optional
        """
        estimator = fitted_estimator(model)
        blocks = _blocks(estimator.kernel_, X)  # (n, n, p, p)
        n, p = blocks.shape[0], blocks.shape[2]
        if names is None:
            names = kernel_names(estimator, p)
        labels = None if y is None else class_labels(y, output_names(names, p))
        if labels is not None and len(labels) != n:
            raise ValueError(f"y must have {n} samples as X has, got {len(labels)}")
        if labels is not None:
            order = np.argsort(labels, kind="stable")
            blocks, labels = blocks[np.ix_(order, order)], labels[order]
        return cls(blocks, labels=labels, names=names, zoom=zoom).plot(figure)

    def plot(self, figure: Figure | SubFigure | None = None) -> Self:
        """Draw the block Gram matrix, and its enlarged blocks beside it.

        Parameters
        ----------
        figure : Figure or SubFigure, optional
            One without axes; a new one by default.
        """
        with house_style():
            shape = (7.2, 5.6) if self.zoom else (5.2, 5.8)
            figure = new_figure(*shape) if figure is None else figure
            grid = figure.add_gridspec(
                max(1, len(self.zoom)),
                2 if self.zoom else 1,
                width_ratios=[3.1, 1] if self.zoom else [1],
            )
            ax = figure.add_subplot(grid[:, 0])
            limit = _limit(self.gram)
            image = ax.imshow(
                self.gram, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest"
            )
            self._draw_lines(ax)
            ax.set_title("Block Gram matrix of the learned kernel")
            add_colorbar(ax, image, label="kernel value", **COLORBAR)
            axes = [ax]
            for row, pair in enumerate(self.zoom):
                axes.append(figure.add_subplot(grid[row, 1]))
                self._draw_block(axes[-1], pair, "abcdefghijklmnopqrstuvwxyz"[row % 26], limit)
                _connect(ax, axes[-1], pair, self.n_outputs)
        self.axes_, self.figure_ = np.array(axes, dtype=object), whole_figure(figure)
        return self

    def _draw_lines(self, ax: Axes) -> None:
        p, n = self.n_outputs, len(self.gram) // self.n_outputs
        ax.spines[["top", "right"]].set_visible(True)
        each = f" ({p} outputs each)" if p > 1 else ""
        if self.labels is None and n > SEPARATED:
            ax.set(xticks=[], yticks=[], xlabel=f"{n} samples{each}")
            return
        if self.labels is None:
            starts = np.arange(n + 1)
            ticks = [str(sample) for sample in range(n)]
            ax.set_xlabel(f"sample{each}")
        else:
            starts = np.concatenate(
                [[0], np.flatnonzero(self.labels[1:] != self.labels[:-1]) + 1, [n]]
            )
            ticks = [shortened(str(self.labels[start]), LETTERS) for start in starts[:-1]]
            ax.set_xlabel(f"class of the sample{each}")
        for edge in starts[1:-1] * p - 0.5:
            ax.axhline(edge, color=INK, linewidth=0.8)
            ax.axvline(edge, color=INK, linewidth=0.8)
        centres = (starts[:-1] + starts[1:]) * p / 2 - 0.5
        ax.set_xticks(centres, ticks)
        ax.set_yticks(centres, ticks)
        ax.tick_params(length=0)

    def _draw_block(self, ax: Axes, pair: tuple[int, int], letter: str, limit: float) -> None:
        last = pair is self.zoom[-1]
        p, (i, j) = self.n_outputs, pair
        block = self.gram[i * p : (i + 1) * p, j * p : (j + 1) * p]
        ax.imshow(block, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        ax.spines[:].set(visible=True, color=INK)
        ax.tick_params(length=0, labelsize=7.5)
        ax.set_title(f"{letter}  {self._pair_name(pair)}", fontsize=8.5, fontweight="normal")
        if p <= NAMED:
            names = [shortened(name, LETTERS) for name in self.names]
            turned = max(len(name) for name in names) > 2
            ax.set_xticks(range(p), names if last else [""] * p, rotation=90 if turned else 0)
            # On the far side, where no lines from the matrix end.
            ax.set_yticks(range(p), names)
            ax.yaxis.tick_right()
        else:
            ax.set(xticks=[], yticks=[])
        if last:
            ax.set_xlabel("output")
        if p <= NUMBERED:
            write_numbers(ax, block, partial(_short, limit=limit), limit)

    def _pair_name(self, pair: tuple[int, int]) -> str:
        if self.labels is None:
            return f"sample {pair[0]}" if pair[0] == pair[1] else f"samples {pair[0]} and {pair[1]}"
        labels = self.labels[list(pair)]
        first, second = (label if isinstance(label, str) else f"class {label}" for label in labels)
        if pair[0] == pair[1]:
            return f"{first}, one sample"
        return f"{first}, two samples" if first == second else f"{first} with {second}"


def _blocks(kernel: Any, X: Any) -> Array:
    """Values K(x_i, x_j) of a kernel; data frames are passed to its feature map unchanged."""
    if isinstance(kernel, KrausKernel):
        return KrausKernel(kernel.kraus, metric=kernel.metric).blocks(
            feature_rows(kernel.feature_map, X)
        )
    return np.asarray(kernel.blocks(X))


def _as_matrix(gram: ArrayLike, n_outputs: int | None) -> tuple[Array, int]:
    """The (n*p, n*p) matrix and p."""
    G = np.asarray(gram, dtype=np.float64)
    if G.ndim == 4 and G.shape[0] == G.shape[1] and G.shape[2] == G.shape[3]:
        n, p = G.shape[0], G.shape[2]
        if n_outputs not in (None, p):
            raise ValueError(f"n_outputs is {n_outputs}, but the blocks have {p} outputs")
        return G.transpose(0, 2, 1, 3).reshape(n * p, n * p), p  # (n, p, n, p)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or not G.size:
        raise ValueError(f"gram must have shape (n*p, n*p) or (n, n, p, p), got {G.shape}")
    if n_outputs is None:
        raise ValueError(
            "n_outputs is needed to find the blocks of a matrix; or pass blocks (n, n, p, p)"
        )
    if n_outputs < 1 or len(G) % n_outputs:
        raise ValueError(f"n_outputs must divide the size of gram, {len(G)}, got {n_outputs}")
    return G, int(n_outputs)


def _pairs(zoom: Any, n: int, p: int, labels: NDArray[Any] | None) -> list[tuple[int, int]]:
    if zoom is None:
        return []
    if isinstance(zoom, str):
        if zoom != "auto":
            raise ValueError(f"zoom must be 'auto', None or pairs of samples, got {zoom!r}")
        if p == 1:
            return []
        first, last = _middles(n, labels)
        return list(dict.fromkeys([(first, first), (first, last), (last, last)]))
    pairs = [(int(i), int(j)) for i, j in zoom]
    outside = [pair for pair in pairs if not all(0 <= i < n for i in pair)]
    if outside:
        raise ValueError(f"zoom must be pairs of samples from 0 to {n - 1}, got {outside[0]}")
    return pairs


def _middles(n: int, labels: NDArray[Any] | None) -> tuple[int, int]:
    """A sample in the middle of the first class, and one in the middle of the last class."""
    if labels is None:
        return n // 4, (3 * n) // 4
    first = np.flatnonzero(labels == labels[0])
    last = np.flatnonzero(labels == labels[-1])
    return int(first[len(first) // 2]), int(last[len(last) // 2])


def _limit(G: Array) -> float:
    """Half-width of the colour scale; the most extreme 0.5% of the values are cut off."""
    return float(np.quantile(np.abs(G), 0.995)) or float(np.abs(G).max()) or 1.0


def _short(value: float, limit: float) -> str:
    """Two digits, without the zero before the point."""
    digits = max(0, 1 - int(np.floor(np.log10(limit))))
    if round(value, digits) == 0:
        return "0"
    text = f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _connect(ax: Axes, panel: Axes, pair: tuple[int, int], p: int) -> None:
    """Frame a block in the matrix, and draw two lines from it to the panel that enlarges it."""
    from matplotlib.patches import ConnectionPatch, Rectangle

    top, left = pair[0] * p - 0.5, pair[1] * p - 0.5
    ax.add_patch(Rectangle((left, top), p, p, fill=False, edgecolor=INK, linewidth=1.2))
    for end, corner in ((top, (0, 1)), (top + p, (0, 0))):
        line = ConnectionPatch(
            xyA=(left + p, end),
            coordsA=ax.transData,
            xyB=corner,
            coordsB=panel.transAxes,
            color=GREY,
            linewidth=0.7,
        )
        line.set_in_layout(False)
        ax.figure.add_artist(line)


# Eigenvalues below this share of the largest are treated as zero.
TOLERANCE = 1e-10
# Largest number of Schmidt values that are drawn.
SHOWN = 24


class EntanglementSpectrumDisplay(Display):
    """Eigenvalues of the partial transpose of D / tr(D), and operator-Schmidt values of D.

    Negative eigenvalues are marked: one of them proves that the kernel is entangled. A single
    Schmidt value means that the kernel is separable, one scalar kernel times one output matrix.

    Parameters
    ----------
    eigenvalues : array
        Those of the partial transpose of D / tr(D).
    schmidt_values : array
        Operator-Schmidt values of D, in any scale.
    verdict : str, optional
        Addition to the title, such as "Entangled".

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

    def __init__(
        self, eigenvalues: ArrayLike, schmidt_values: ArrayLike, *, verdict: str = ""
    ) -> None:
        self.eigenvalues: Array = np.sort(np.asarray(eigenvalues, dtype=np.float64), axis=None)
        values = np.sort(np.asarray(schmidt_values, dtype=np.float64), axis=None)
        self.schmidt_values: Array = values[::-1]
        if not self.eigenvalues.size or not values.max(initial=0.0) > 0:
            raise ValueError("eigenvalues and schmidt_values must not be empty or zero")
        self.verdict = verdict

    @classmethod
    def from_estimator(cls, model: Any, *, figure: Figure | SubFigure | None = None) -> Self:
        """Draw for the learned kernel of a fitted model, or of the best estimator of a search."""
        return cls.from_kernel(fitted_estimator(model).kernel_, figure=figure)

    @classmethod
    def from_kernel(cls, kernel: KrausKernel, *, figure: Figure | SubFigure | None = None) -> Self:
        """Draw for a kernel in Kraus form."""
        verdict = kernel.entanglement().verdict.split(":")[0]
        return cls(
            kernel.partial_transpose_eigenvalues(), kernel.schmidt_values(), verdict=verdict
        ).plot(figure)

    def plot(self, figure: Figure | SubFigure | None = None) -> Self:
        """Draw the eigenvalues of the partial transpose, and the operator-Schmidt values.

        Parameters
        ----------
        figure : Figure or SubFigure, optional
            One without axes; a new one by default.
        """
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
        positions = np.arange(1, len(values) + 1)
        negative = values < 0
        size = 5.0 if len(values) <= 40 else 3.0
        ax.axhline(0, color=GREY, linewidth=0.8)
        total = f"negative: {negative.sum()}, their sum {values[negative].sum():.3g}"
        for part, color, marker, label in (
            (~negative, BLUE, "o", f"positive: {(~negative).sum()}"),
            (negative, VERMILION, "v", total),
        ):
            if part.any():
                x, y = positions[part], values[part]
                ax.vlines(x, 0, y, color=color, linewidth=1.2)
                ax.plot(x, y, marker, color=color, markersize=size, label=label)
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
        rest = f" ({len(kept)} in all)"
        if len(kept) > SHOWN:
            rest = f", the first {SHOWN} of {len(kept)}"
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
