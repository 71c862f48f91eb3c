"""Regressors of this package."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OperatorFourierRidge,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from ..estimators.kernel_parts import ColumnKernel
from ..estimators.target_transforms import LogTargets
from .columns import Columns, Products, matrix_columns
from .graph import DOUBLE
from .kernels import gram_columns
from .operator_kernels import kernel_predictions
from .sklearn_regressors import linear_predictions
from .writer import Step, Writer

__all__ = ["REGRESSORS"]


def _entangled(writer: Writer, model: Any, columns: Columns) -> Columns:
    model.solve()
    features = writer.features(model.feature_map_, columns, "feature_map_")
    values = linear_predictions(writer, features, model.coef_, model.intercept_)
    return values if model.target_transform_ is None else _undone(writer, model.target_transform_, values)


def _undone(writer: Writer, transform: Any, values: Columns) -> Columns:
    """Targets in their own units, of targets that were learned as logarithms."""
    if not isinstance(transform, LogTargets):
        kind = type(transform.transformer).__name__
        raise writer.refuse(
            f"its targets are transformed by {kind}", "'log', 'log1p' and None can be exported"
        )
    graph, found = writer.graph, values.matrix()
    powers = graph.add("Exp", found)
    for kind, undone in (("log", powers), ("log1p", graph.add("Max", graph.add("Sub", powers, 1.0), 0.0))):
        chosen = np.array([[float(own == kind) for own in transform.kinds]])
        if chosen.any():
            found = graph.add("Where", graph.add("Greater", chosen, 0.5), undone, found)
    return matrix_columns(graph, found, transform.n_targets)


def _output_kernel(writer: Writer, model: Any, columns: Columns) -> Columns:
    if callable(model.kernel) or model.kernel == "precomputed":
        raise writer.refuse(f"there is no graph for kernel={model.kernel!r}")
    params = {"gamma": model.gamma, **(model.kernel_params or {})}
    gram = gram_columns(writer, model.kernel, columns, model.X_fit_, params)
    coef = model.dual_coef_.reshape(len(model.dual_coef_), -1) @ model.output_kernel_  # (n, p)
    return _with_intercept(writer, gram.into(coef), model.intercept_)


def _multiple_kernels(writer: Writer, model: Any, columns: Columns) -> Columns:
    total = None
    parts = _parts(model.kernel_names_, model)
    for part, coef in zip(parts, model._coefs, strict=True):
        own = _kernel_part(writer, part, columns, model.X_fit_, coef)
        total = own if total is None else total.plus(own)
    return _with_intercept(writer, total, model.intercept_)


def _parts(names: Any, model: Any) -> list[ColumnKernel]:
    return [ColumnKernel(*entry) for entry in zip(names, model._fitted, model._columns, strict=True)]


def _kernel_part(writer: Writer, part: Any, columns: Columns, Z: Any, coef: Any) -> Products:
    """What one kernel adds: its features, or its values with the training rows, times coefficients."""
    chosen = columns.select(part.columns)
    if not part.is_features:
        return gram_columns(writer, part.kernel, chosen, Z[:, part.columns]).into(coef)
    features = writer.features(None if isinstance(part.kernel, str) else part.kernel, chosen, part.name)
    return matrix_columns(writer.graph, features.times(coef), coef.shape[1])


def _multi_view(writer: Writer, model: Any, columns: Columns) -> Columns:
    graph, p, total = writer.graph, len(model.intercept_), None
    parts = _parts(model.view_names_, model)
    for part, coef, offset in zip(parts, model._coefs, model._offsets, strict=True):
        there = model.X_fit_[~np.isnan(model.X_fit_[:, part.columns]).all(axis=1)]
        values = _kernel_part(writer, part, columns, there, coef).matrix()
        values = graph.add("Add", values, np.broadcast_to(offset, (1, p)))
        # A view that a row lacks, all of whose columns are NaN, adds nothing.
        blank = graph.add("IsNaN", columns.select(part.columns).matrix())
        blanks = graph.add("ReduceSum", graph.add("Cast", blank, to=DOUBLE), [1], keepdims=1)
        missing = graph.add("Equal", blanks, float(len(part.columns)))
        own = graph.add("Where", missing, np.zeros((1, p)), values)
        total = own if total is None else graph.add("Add", total, own)
    return _with_intercept(writer, matrix_columns(graph, str(total), p), model.intercept_)


def _operator_fourier(writer: Writer, model: Any, columns: Columns) -> Columns:
    features = writer.features(model.features_, columns, "features_")
    return linear_predictions(writer, features, model.coef_, model.intercept_)


def _operator_valued(writer: Writer, model: Any, columns: Columns) -> Columns:
    C = model.dual_coef_.reshape(len(model.X_fit_), model.kernel_.n_outputs)  # (n, p)
    values = kernel_predictions(writer, model.kernel_, columns, model.X_fit_, C)
    return _with_intercept(writer, values, model.intercept_)


def _with_intercept(writer: Writer, values: Any, intercept: Any) -> Columns:
    offset = np.broadcast_to(np.asarray(intercept, dtype=np.float64), values.width)
    with_intercept: Products = values.plus(Products(writer.graph, values.width, [], offset))
    return with_intercept


REGRESSORS: dict[type, Step] = {
    EntangledKernelRidge: _entangled,
    EntangledKernelRidgeCV: _entangled,
    OutputKernelRidge: _output_kernel,
    OutputKernelRidgeCV: _output_kernel,
    MultipleKernelRidge: _multiple_kernels,
    MultiViewKernelRidge: _multi_view,
    OperatorFourierRidge: _operator_fourier,
    OperatorValuedKernelRidge: _operator_valued,
}
