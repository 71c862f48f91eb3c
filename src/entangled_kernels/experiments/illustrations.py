"""The paper's pictures of kernel classes, drawn from kernels that are computed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..io import ExperimentResults, Record
from ..kernels import (
    EntangledKernel,
    FeatureKernel,
    OperatorValuedKernel,
    PartialTraceKernel,
    SeparableKernel,
    TransformableKernel,
    entanglement_report,
)
from ..linalg import Array
from ..plotting.display import BLUE, GREY, INK, ORANGE, VERMILION, house_style, new_figure
from .protocol import Experiment, Figures, PageTable, Setup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = [
    "KERNELS",
    "REGIONS",
    "Witness",
    "draw_class_blocks",
    "draw_kernel_classes",
    "draw_matrices",
    "examine",
    "witnesses",
]

# Centre, width and height of each class in units of the figure, position of its name, colour.
REGIONS = {
    "partial trace": ((5.0, 3.0), 9.8, 5.8, (5.0, 5.45), GREY),
    "entangled": ((6.6, 3.2), 5.2, 3.6, (7.9, 4.15), VERMILION),
    "transformable": ((5.9, 1.75), 6.2, 2.5, (6.9, 1.15), ORANGE),
    "sum of separable": ((3.0, 3.2), 4.4, 3.4, (2.6, 4.4), BLUE),
    "separable": ((2.6, 3.0), 2.2, 1.3, (2.6, 3.25), BLUE),
}


def draw_matrices(
    matrices: Mapping[str, ArrayLike], blocks: Mapping[str, int] | None = None, title: str = ""
) -> Figure:
    """Draw matrices side by side, with colours centred at zero, and lines between their blocks.

    ``blocks`` has the size of the blocks, by the title of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> [ax.get_title() for ax in draw_matrices({"T": np.eye(2), "G": np.eye(4)}, {"G": 2}).axes]
    ['T', 'G']
    """
    with house_style():
        figure = new_figure(2.4 * len(matrices), 2.9)
        axes = figure.subplots(1, len(matrices), squeeze=False).ravel()
        for ax, (name, values) in zip(axes, matrices.items(), strict=True):
            matrix = np.asarray(values, dtype=np.float64)
            _draw_blocks(ax, matrix, (blocks or {}).get(name), float(np.abs(matrix).max()) or 1.0)
            ax.set(title=name, xlabel=f"{matrix.shape[0]} by {matrix.shape[1]}")
        if title:
            figure.suptitle(title, fontsize=10.0, fontweight="bold")
    return figure


def draw_class_blocks(gram: Array, labels: ArrayLike, n_outputs: int, n_samples: int = 3) -> Figure:
    """Draw the blocks of a Gram matrix for the first samples of each class and pair of classes.

    Row ``sample * n_outputs + output`` of ``gram`` belongs to an output of a sample.

    Examples
    --------
    >>> import numpy as np
    >>> figure = draw_class_blocks(np.eye(12), ["a"] * 3 + ["b"] * 3, n_outputs=2)
    >>> [ax.get_title() for ax in figure.axes[:3]]
    ['class a', 'a with b', 'class b']
    """
    label_of = np.asarray(labels)
    classes = list(dict.fromkeys(label_of.tolist()))
    rows = []
    for name in classes:
        samples = np.flatnonzero(label_of == name)[:n_samples]
        # (samples * p,)
        rows.append((samples[:, None] * n_outputs + np.arange(n_outputs)).ravel())
    shown = np.concatenate(rows)
    limit = float(np.abs(gram[np.ix_(shown, shown)]).max()) or 1.0
    count, axes = len(classes), []
    with house_style():
        figure = new_figure(1.75 * count, 1.75 * count + 0.7)
        grid = figure.add_gridspec(count, count)
        for i, j in combinations_with_replacement(range(count), 2):
            ax = figure.add_subplot(grid[i, j])
            image = _draw_blocks(ax, gram[np.ix_(rows[i], rows[j])], n_outputs, limit)
            name = f"class {classes[i]}" if i == j else f"{classes[i]} with {classes[j]}"
            ax.set_title(name, fontsize=8.5, fontweight="normal")
            axes.append(ax)
        figure.suptitle("Samples within and between classes", fontsize=10.0, fontweight="bold")
        figure.colorbar(
            image, ax=axes, label="kernel value", location="bottom", shrink=0.5, aspect=40, pad=0.02
        ).outline.set_visible(False)
    return figure


def draw_kernel_classes(witnesses: Mapping[str, str]) -> Figure:
    """Draw an ellipse for each class of kernels, a key of `REGIONS`, with a text in it.

    Examples
    --------
    >>> len(draw_kernel_classes({"separable": "Schmidt rank 1"}).axes[0].texts)
    6
    """
    from matplotlib.patches import Ellipse

    with house_style():
        figure = new_figure(7.6, 4.8)
        ax = figure.add_subplot()
        for name, (centre, width, height, position, color) in REGIONS.items():
            face = Ellipse(centre, width, height, facecolor=color, alpha=0.08, edgecolor="none")
            edge = Ellipse(centre, width, height, fill=False, edgecolor=color, linewidth=1.4)
            face.set_gid(name)
            edge.set_clip_on(False)
            ax.add_artist(face)
            ax.add_patch(edge)
            ax.text(*position, name, ha="center", va="bottom", fontweight="bold", color=INK)
            if witnesses.get(name):
                ax.text(*position, witnesses[name], ha="center", va="top", fontsize=7.5, color=INK)
        ax.set(xlim=(0, 10), ylim=(0, 6))
        ax.set_axis_off()
    return figure


def _draw_blocks(ax: Axes, matrix: Array, step: int | None, limit: float) -> AxesImage:
    """Draw a matrix with lines between blocks of ``step`` rows and columns."""
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    if step is not None:
        for edge in range(step, matrix.shape[0], step):
            ax.axhline(edge - 0.5, color=INK, linewidth=0.6)
        for edge in range(step, matrix.shape[1], step):
            ax.axvline(edge - 0.5, color=INK, linewidth=0.6)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color=INK)
    return image


# Rows of the kernels that are drawn, and outputs of the witnesses.
N_SAMPLES, N_OUTPUTS = 6, 2


class Witness(NamedTuple):
    """A kernel that is in a class but in no smaller class, the reason, and test points."""

    kernel: OperatorValuedKernel
    proof: str
    X: Array


def _indefinite(Phi: Array, Psi: Array) -> Array:
    """P = kron(J, phi(x) phi(z)^T), where J swaps two outputs: the partial trace is k(x, z) J."""
    pairs = np.einsum("ia,jb->ijab", Phi, Psi)  # (n, t, m, m)
    return np.asarray(np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), pairs))


def witnesses() -> dict[str, Witness]:
    """One kernel for each class, with two outputs and two features.

    At the two unit vectors the block Gram matrix of a linear kernel is its D, and in 2 x 2
    dimensions the partial transpose test is exact.
    """
    unit = np.eye(2)
    T = np.array([[1.0, 0.6], [0.6, 1.0]])
    first = SeparableKernel(FeatureKernel(None, np.diag([1.0, 0.2])), T)
    second = SeparableKernel(FeatureKernel(None, np.diag([0.2, 1.0])), np.diag([1.0, 0.3]))
    # A partial swap of outputs and features, which is no Kronecker product.
    entangler = np.eye(4) + 0.5 * np.eye(4)[[0, 2, 1, 3]]
    return {
        "separable": Witness(first, "operator-Schmidt rank one", unit),
        "sum of separable": Witness(
            first + second, "Schmidt rank above one, partial transpose psd", unit
        ),
        "transformable": Witness(
            TransformableKernel("linear", [lambda X: X, lambda X: X**2]),
            "entries k(S_l x, S_m z), partial transpose not psd",
            np.array([[0.5], [1.5]]),
        ),
        "entangled": Witness(
            EntangledKernel(entangler, np.diag([1.0, 0.4])), "psd, partial transpose not psd", unit
        ),
        "partial trace": Witness(
            PartialTraceKernel(_indefinite, N_OUTPUTS), "not psd, so in none of the others", unit
        ),
    }


def examine(witness: Witness) -> Record:
    """Results of the library's tests for a witness: psd, Schmidt rank, partial transpose."""
    gram = witness.kernel(witness.X).to_dense()
    lowest = float(np.linalg.eigvalsh(gram)[0])
    record: Record = {"lowest eigenvalue": lowest, "psd": lowest > -1e-10}
    if not record["psd"]:
        verdict = "Indefinite: a kernel of a Krein space, which has no entanglement verdict."
        return record | {
            "schmidt_rank": None,
            "transpose": None,
            "entangled": None,
            "verdict": verdict,
        }
    report = entanglement_report(gram, (len(witness.X), N_OUTPUTS))
    return record | {
        "schmidt_rank": report.schmidt_rank,
        "transpose": report.lowest_eigenvalue,
        "entangled": report.entangled,
        "verdict": report.verdict,
    }


def run(setup: Setup) -> ExperimentResults:
    """Witnesses of all classes, and the Gram matrices that are drawn, for any protocol."""
    rng = np.random.default_rng(setup.seed)
    X = np.sort(rng.standard_normal((N_SAMPLES, 1)), axis=0)
    T = np.array([[1.0, 0.7, -0.3], [0.7, 1.0, 0.1], [-0.3, 0.1, 0.6]])
    separable = SeparableKernel("rbf", T, gamma=0.5)
    transformable = TransformableKernel(
        "rbf", [lambda X: X, lambda X: X + 0.8, lambda X: -X], gamma=0.5
    )
    plain = SeparableKernel("rbf", np.eye(1), gamma=0.5)
    arrays: dict[str, Array] = {
        "scalar": plain(X).to_dense(),
        "output": T,
        "separable": separable(X).to_dense(),
        "nonseparable": transformable(X).to_dense(),
    }
    cases = witnesses()
    records = []
    for done, (name, witness) in enumerate(cases.items()):
        setup.report(done, len(cases), name)
        records.append({"method": name, "n": len(witness.X), "split": 0, **examine(witness)})
    setup.report(len(cases), len(cases), "done")
    meta = setup.meta(methods={name: witness.proof for name, witness in cases.items()})
    return ExperimentResults(KERNELS.name, KERNELS.title, records, meta=meta, arrays=arrays)


def tables(results: ExperimentResults) -> list[PageTable]:
    """The results of the tests for each witness."""
    names = ["lowest eigenvalue", "schmidt_rank", "transpose", "verdict"]
    rows = [[record["method"], *(record[name] for name in names)] for record in results.records]
    columns = [
        "class",
        "lowest eigenvalue",
        "Schmidt rank",
        "lowest of the partial transpose",
        "verdict",
    ]
    return [PageTable(columns, rows, "One kernel in each class, and what the library's tests find")]


def figures(results: ExperimentResults) -> Figures:
    """K, T and G of a separable kernel, separable and other blocks, and the classes."""
    p = len(results.array("output"))
    separable, other = results.array("separable"), results.array("nonseparable")
    words = {record["method"]: _words(record) for record in results.records}
    return {
        "kernels-separable": draw_matrices(
            {"K": results.array("scalar"), "T": results.array("output"), "G = K kron T": separable},
            {"G = K kron T": p},
            "A separable kernel: every block is a multiple of T",
        ),
        "kernels-blocks": draw_matrices(
            {"separable": separable, "not separable": other},
            {"separable": p, "not separable": p},
            "Blocks of one pattern, and blocks that change with the inputs",
        ),
        "kernels-classes": draw_kernel_classes(words),
    }


def _words(record: Record) -> str:
    if not record["psd"]:
        return f"lowest eigenvalue {record['lowest eigenvalue']:.2f}: indefinite"
    ppt = "psd" if record["transpose"] > -1e-10 else f"{record['transpose']:.2f}"
    return f"Schmidt rank {record['schmidt_rank']}\npartial transpose {ppt}"


KERNELS = Experiment(
    name="kernels",
    title="Classes of kernels, and one in each",
    about=(
        "A separable kernel is one matrix K of inputs and one matrix T of outputs. Others have "
        "blocks that change with the inputs. Separable kernels are sums of separable ones, and "
        "these are partial traces, as transformable and entangled kernels are. A kernel was "
        "computed in each class that is in none of the smaller ones, and the library's tests say "
        "why."
    ),
    run=run,
    figures=figures,
    tables=tables,
    one_protocol=True,
)
