"""Scalar kernels between rows and constant rows: those of scikit-learn, by name or as objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.gaussian_process import kernels as gp

from ..kernels.scalar import ExponentialDot, FeatureKernel
from ..linalg import Array
from .columns import Columns, Products, matrix_columns
from .graph import Graph
from .writer import Writer

__all__ = ["KERNELS", "NAMES", "gram_columns"]


def gram_columns(
    writer: Writer, kernel: Any, columns: Columns, Z: Any, params: Mapping[str, Any] | None = None
) -> Products:
    """Kernel values k(x, z_j) of rows with constant rows, as columns (n, number of rows of Z).

    Parameters
    ----------
    writer : Writer
    kernel : str or kernel object
    columns : Columns
    Z : array or sparse matrix of shape (m, d)
    params : mapping, optional
        Of a kernel that is named; None stands for scikit-learn's default.

    Notes
    -----
    A linear part stays a product x Z^T, which later becomes a product with a matrix (d, p).
    """
    Z = np.asarray(Z.toarray() if issparse(Z) else Z, dtype=np.float64)
    if isinstance(kernel, str):
        if kernel not in NAMES:
            raise writer.refuse(f"there is no graph for kernel={kernel!r}")
        given = {name: value for name, value in (params or {}).items() if value is not None}
        settings = {"gamma": 1.0 / Z.shape[1], "degree": 3, "coef0": 1} | given
        return NAMES[kernel](writer.graph, columns.matrix(), Z, settings)
    if type(kernel) not in KERNELS:
        raise writer.refuse(f"there is no graph for the kernel {type(kernel).__name__}")
    return KERNELS[type(kernel)](writer, kernel, columns, Z)


def half_squares(graph: Graph, x: str, Z: Array, widths: Any) -> str:
    """The tensor -|x - z_j|^2 / 2, (n, m), of columns in units of their widths.

    Rows are centred first, which leaves distances as they are and keeps the digits of columns that are far
    from zero.
    """
    centre = Z.mean(axis=0)
    x = graph.add("Div", graph.add("Sub", x, centre), widths)
    Z = (Z - centre) / widths
    own = graph.add("Mul", graph.add("ReduceSum", graph.add("Mul", x, x), [1], keepdims=1), -0.5)
    return graph.add("Add", graph.add("Gemm", x, Z.T, -0.5 * np.sum(Z**2, axis=1)), own)


def distances(graph: Graph, x: str, Z: Array, widths: Any) -> str:
    """The tensor of distances |x - z_j|, (n, m), of columns in units of their widths."""
    squares = graph.add("Mul", half_squares(graph, x, Z, widths), -2.0)
    return graph.add("Sqrt", graph.add("Max", squares, 0.0))


# Kernels as objects: functions of the writer, the kernel, the columns and the constant rows.


def _rbf(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    graph = writer.graph
    halves = half_squares(graph, columns.matrix(), Z, kernel.length_scale)
    return matrix_columns(graph, graph.add("Exp", halves), len(Z))


def _matern(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    graph, nu = writer.graph, kernel.nu
    if nu == np.inf:
        return _rbf(writer, kernel, columns, Z)
    if nu not in (0.5, 1.5, 2.5):
        raise writer.refuse(f"there is no graph for Matern kernels of nu={nu}, only of 0.5, 1.5, 2.5 and inf")
    # With s = sqrt(2 nu) distance: exp(-s), (1 + s) exp(-s), (1 + s + s^2 / 3) exp(-s).
    scale = np.asarray(kernel.length_scale) / np.sqrt(2.0 * nu)
    s = distances(graph, columns.matrix(), Z, scale)
    decay = graph.add("Exp", graph.add("Neg", s))
    if nu == 0.5:
        return matrix_columns(graph, decay, len(Z))
    bend = graph.add("Add", s, 1.0)
    if nu == 2.5:
        bend = graph.add("Add", bend, graph.add("Mul", graph.add("Mul", s, s), 1.0 / 3.0))
    return matrix_columns(graph, graph.add("Mul", bend, decay), len(Z))


def _rational(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    graph = writer.graph
    halves = half_squares(graph, columns.matrix(), Z, kernel.length_scale)
    base = graph.add("Sub", 1.0, graph.add("Mul", halves, 1.0 / kernel.alpha))
    return matrix_columns(graph, graph.add("Pow", base, -kernel.alpha), len(Z))


def _constant(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    graph, width = writer.graph, len(Z)
    # A column of zeros says how many rows there are.
    nothing = graph.add("Mul", graph.add("Gather", columns.matrix(), [0], axis=1), 0.0)
    return Products(graph, width, [(nothing, np.zeros((1, width)))], np.full(width, kernel.constant_value))


def _white(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    # Noise is shared by a row with itself alone, and new rows are others.
    return _constant(writer, gp.ConstantKernel(0.0), columns, Z)


def _dot(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    offset = np.full(len(Z), float(kernel.sigma_0) ** 2) if kernel.sigma_0 else None
    return Products(writer.graph, len(Z), [(columns.matrix(), Z.T)], offset)


def _sum(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    return gram_columns(writer, kernel.k1, columns, Z).plus(gram_columns(writer, kernel.k2, columns, Z))


def _product(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    graph = writer.graph
    for first, second in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
        if type(first) is gp.ConstantKernel:
            return gram_columns(writer, second, columns, Z).scaled(float(first.constant_value))
    factors = (gram_columns(writer, own, columns, Z).matrix() for own in (kernel.k1, kernel.k2))
    return matrix_columns(graph, graph.add("Mul", *factors), len(Z))


def _power(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    graph, base = writer.graph, gram_columns(writer, kernel.kernel, columns, Z).matrix()
    return matrix_columns(graph, graph.add("Pow", base, float(kernel.exponent)), len(Z))


def _exponential_dot(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    graph = writer.graph
    return matrix_columns(graph, graph.add("Exp", graph.add("Gemm", columns.matrix(), Z.T)), len(Z))


def _feature_kernel(writer: Writer, kernel: Any, columns: Columns, Z: Array) -> Products:
    Psi = np.asarray(kernel.factors(Z, None)[0])
    right = Psi.T if kernel.root is None else kernel.root @ Psi.T
    features = writer.features(kernel.feature_map, columns)
    return Products(writer.graph, len(Z), [(features.matrix(), right)])


KERNELS: dict[type, Callable[[Writer, Any, Columns, Array], Products]] = {
    gp.RBF: _rbf,
    gp.Matern: _matern,
    gp.RationalQuadratic: _rational,
    gp.ConstantKernel: _constant,
    gp.WhiteKernel: _white,
    gp.DotProduct: _dot,
    gp.Sum: _sum,
    gp.Product: _product,
    gp.Exponentiation: _power,
    ExponentialDot: _exponential_dot,
    FeatureKernel: _feature_kernel,
}


# Kernels by name: functions of the graph, the tensor of the rows, the constant rows and the settings.

Settings = Mapping[str, Any]


def _named_linear(graph: Graph, x: str, Z: Array, settings: Settings) -> Products:
    return Products(graph, len(Z), [(x, Z.T)])


def _named_rbf(graph: Graph, x: str, Z: Array, settings: Settings) -> Products:
    width = 1.0 / np.sqrt(2.0 * float(settings["gamma"]))
    return matrix_columns(graph, graph.add("Exp", half_squares(graph, x, Z, width)), len(Z))


def _scaled_dot(graph: Graph, x: str, Z: Array, settings: Settings) -> str:
    offset = np.full(len(Z), float(settings["coef0"]))
    return graph.add("Gemm", x, Z.T * float(settings["gamma"]), offset)


def _named_poly(graph: Graph, x: str, Z: Array, settings: Settings) -> Products:
    power = graph.add("Pow", _scaled_dot(graph, x, Z, settings), float(settings["degree"]))
    return matrix_columns(graph, power, len(Z))


def _named_sigmoid(graph: Graph, x: str, Z: Array, settings: Settings) -> Products:
    return matrix_columns(graph, graph.add("Tanh", _scaled_dot(graph, x, Z, settings)), len(Z))


def _named_cosine(graph: Graph, x: str, Z: Array, settings: Settings) -> Products:
    sizes = np.linalg.norm(Z, axis=1, keepdims=True)
    squares = graph.add("ReduceSum", graph.add("Mul", x, x), [1], keepdims=1)
    # Rows of zeros have a cosine of zero with all others.
    own = graph.add("Max", graph.add("Sqrt", squares), np.finfo(np.float64).tiny)
    return Products(graph, len(Z), [(graph.add("Div", x, own), (Z / np.where(sizes > 0.0, sizes, 1.0)).T)])


def _named_laplacian(graph: Graph, x: str, Z: Array, settings: Settings) -> Products:
    apart = graph.add("Sub", graph.add("Unsqueeze", x, [1]), Z[None])  # (n, m, d)
    sums = graph.add("ReduceSum", graph.add("Abs", apart), [2], keepdims=0)
    decay = graph.add("Exp", graph.add("Mul", sums, -float(settings["gamma"])))
    return matrix_columns(graph, decay, len(Z))


NAMES: dict[str, Callable[[Graph, str, Array, Settings], Products]] = {
    "linear": _named_linear,
    "rbf": _named_rbf,
    "poly": _named_poly,
    "polynomial": _named_poly,
    "sigmoid": _named_sigmoid,
    "cosine": _named_cosine,
    "laplacian": _named_laplacian,
}
