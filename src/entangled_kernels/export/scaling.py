"""Transformers of scikit-learn that work on every column, or every row, by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from .columns import Columns, matrix_columns
from .graph import DOUBLE, Graph
from .writer import Step, Writer

__all__ = ["FUNCTIONS", "TRANSFORMERS", "cosine", "standardise", "yeo_johnson"]


def standardise(columns: Columns, centre: ArrayLike | None, scale: ArrayLike | None) -> Columns:
    """Columns less their centre, over their scale; None leaves either out."""
    graph, tensor = columns.graph, columns.matrix()
    columns.spread_like(0.0 if centre is None else centre, 1.0 if scale is None else scale)
    tensor = tensor if centre is None else graph.add("Sub", tensor, centre)
    tensor = tensor if scale is None else graph.add("Div", tensor, scale)
    return matrix_columns(graph, tensor, columns.width)


def _arcsinh(graph: Graph, x: str) -> str:
    """The tensor sign(x) log(|x| + sqrt(x^2 + 1)); onnxruntime has arcsinh of float32 only."""
    size = graph.add("Abs", x)
    root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", x, x), 1.0))
    return graph.add("Mul", graph.add("Sign", x), graph.add("Log", graph.add("Add", size, root)))


def cosine(graph: Graph, x: str) -> str:
    """The tensor cos(x), as a sine: onnxruntime 1.18 has cosines of float32 only."""
    return graph.add("Sin", graph.add("Add", x, 0.5 * np.pi))


def _standard_scaler(writer: Writer, step: Any, columns: Columns) -> Columns:
    centre = step.mean_ if step.with_mean else None
    return standardise(columns, centre, step.scale_)


def _robust_scaler(writer: Writer, step: Any, columns: Columns) -> Columns:
    return standardise(columns, step.center_, step.scale_)


def _min_max_scaler(writer: Writer, step: Any, columns: Columns) -> Columns:
    graph = writer.graph
    columns.spread_like(0.5 * (step.data_min_ + step.data_max_), 0.25 * step.data_range_)
    tensor = graph.add("Add", graph.add("Mul", columns.matrix(), step.scale_), step.min_)
    if step.clip:
        low, high = step.feature_range
        tensor = graph.add("Min", graph.add("Max", tensor, float(low)), float(high))
    return matrix_columns(graph, tensor, columns.width)


def _max_abs_scaler(writer: Writer, step: Any, columns: Columns) -> Columns:
    if getattr(step, "clip", False):
        raise writer.refuse("there is no graph for clip=True", "use clip=False")
    return standardise(columns, None, step.scale_)


def _normalizer(writer: Writer, step: Any, columns: Columns) -> Columns:
    graph, x = writer.graph, columns.matrix()
    size = graph.add("Abs", x)
    if step.norm == "max":
        norm = graph.add("ReduceMax", size, axes=(1,), keepdims=1)
    elif step.norm == "l1":
        norm = graph.add("ReduceSum", size, [1], keepdims=1)
    else:
        norm = graph.add("Sqrt", graph.add("ReduceSum", graph.add("Mul", x, x), [1], keepdims=1))
    # Rows of zeros stay zeros.
    norm = graph.add("Max", norm, np.finfo(np.float64).tiny)
    return matrix_columns(graph, graph.add("Div", x, norm), columns.width)


def _binarizer(writer: Writer, step: Any, columns: Columns) -> Columns:
    graph = writer.graph
    above = graph.add("Greater", columns.matrix(), float(step.threshold))
    return matrix_columns(graph, graph.add("Cast", above, to=DOUBLE), columns.width)


def _power_transformer(writer: Writer, step: Any, columns: Columns) -> Columns:
    graph, x, powers = writer.graph, columns.matrix(), np.asarray(step.lambdas_)
    tensor = _box_cox(graph, x, powers) if step.method == "box-cox" else yeo_johnson(graph, x, powers)
    done = matrix_columns(graph, tensor, columns.width)
    return writer.features(step._scaler, done) if step.standardize else done


def yeo_johnson(graph: Graph, x: str, powers: Any) -> str:
    """Box-Cox of 1 + x above zero, and of 1 - x with the power 2 - lambda, mirrored, below."""
    above = _box_cox(graph, graph.add("Add", graph.add("Max", x, 0.0), 1.0), powers)
    below = _box_cox(graph, graph.add("Sub", 1.0, graph.add("Min", x, 0.0)), 2.0 - powers)
    return graph.add("Sub", above, below)


def _box_cox(graph: Graph, x: str, powers: Any) -> str:
    """(x^power - 1) / power of every column, its logarithm where the power is zero."""
    none = np.abs(powers) < np.finfo(np.float64).eps
    some = np.where(none, 1.0, powers)
    power = graph.add("Div", graph.add("Sub", graph.add("Pow", x, some), 1.0), some)
    if not none.any():
        return power
    # A product with 0 or 1 chooses, and spares a constant of truth values.
    log = graph.add("Mul", graph.add("Log", x), none.astype(float))
    return graph.add("Add", graph.add("Mul", power, 1.0 - none), log)


def _function_transformer(writer: Writer, step: Any, columns: Columns) -> Columns:
    if step.func is None:
        return columns
    if step.kw_args or step.func not in FUNCTIONS:
        name = getattr(step.func, "__name__", repr(step.func))
        raise writer.refuse(
            f"there is no graph for func={name}" + (" with kw_args" if step.kw_args else ""),
            f"use one of numpy's {', '.join(sorted(own.__name__ for own in FUNCTIONS))}",
        )
    graph, x = writer.graph, columns.matrix()
    function = FUNCTIONS[step.func]
    tensor = graph.add(function, x) if isinstance(function, str) else function(graph, x)
    return matrix_columns(graph, tensor, columns.width)


# Functions of numpy that a FunctionTransformer may have: the name of an operation, or what writes several.
FUNCTIONS: dict[Any, Any] = {
    np.abs: "Abs",
    np.arcsinh: _arcsinh,
    np.cbrt: lambda graph, x: graph.add(
        "Mul", graph.add("Sign", x), graph.add("Pow", graph.add("Abs", x), 1.0 / 3.0)
    ),
    np.cos: cosine,
    np.exp: "Exp",
    np.expm1: lambda graph, x: graph.add("Sub", graph.add("Exp", x), 1.0),
    np.log: "Log",
    np.log10: lambda graph, x: graph.add("Div", graph.add("Log", x), np.log(10.0)),
    np.log1p: lambda graph, x: graph.add("Log", graph.add("Add", x, 1.0)),
    np.log2: lambda graph, x: graph.add("Div", graph.add("Log", x), np.log(2.0)),
    np.negative: "Neg",
    np.reciprocal: "Reciprocal",
    np.sin: "Sin",
    np.sqrt: "Sqrt",
    np.square: lambda graph, x: graph.add("Mul", x, x),
    np.tanh: "Tanh",
}

TRANSFORMERS: dict[type, Step] = {
    StandardScaler: _standard_scaler,
    RobustScaler: _robust_scaler,
    MinMaxScaler: _min_max_scaler,
    MaxAbsScaler: _max_abs_scaler,
    Normalizer: _normalizer,
    Binarizer: _binarizer,
    PowerTransformer: _power_transformer,
    FunctionTransformer: _function_transformer,
}
