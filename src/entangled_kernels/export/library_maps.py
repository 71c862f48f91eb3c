"""Feature maps of this package."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..features import (
    ColumnWidthFeatures,
    EvidenceFeatures,
    ForestFeatures,
    OperatorFourierFeatures,
    TargetProcessFeatures,
)
from ..linalg import Array
from .columns import Beside, Columns, Products, matrix_columns
from .graph import Graph
from .kernels import gram_columns
from .scaling import cosine, standardise, yeo_johnson
from .tree_ensembles import LeafColumns
from .writer import Step, Writer

__all__ = ["TRANSFORMERS"]


def _kernel_features(writer: Writer, step: Any, columns: Columns) -> Columns:
    Z = standardise(columns, step.mean_, step.scale_)
    return gram_columns(writer, step.kernel_, Z, step.components_).into(step._whitener)


def _within(writer: Writer, columns: Columns, lower: Array, upper: Array) -> Columns:
    """Columns within limits, as they are where these are infinite."""
    if not np.isfinite(lower).all():
        return columns
    graph, x = writer.graph, columns.matrix()
    limited = graph.add("Min", graph.add("Max", x, lower), upper)
    # Adds zero to numbers, and makes NaN of what is infinite, which `predict` refuses.
    limited = graph.add("Add", limited, graph.add("Sub", x, x))
    return Products(graph, columns.width, [(limited, 1.0)], source=columns)


def _target_processes(writer: Writer, step: Any, columns: Columns) -> Columns:
    rows = _within(writer, columns, step.lower_, step.upper_)
    within = _within(writer, columns, *step.range_)
    predictions = []
    for target, dual in enumerate(step.dual_coef_.T):
        relative, kernels = step.kernels(target)
        scale, R = step.scale_ * relative, step.components_ / relative
        grams = [
            gram_columns(writer, kernel, standardise(own, step.mean_, scale), R)
            for kernel, own in zip(kernels, (rows, within), strict=True)
        ]
        predictions.append(grams[0].plus(grams[1]).into(dual[:, None]))
    return Beside(writer.graph, predictions)


def _tuned_features(writer: Writer, step: Any, columns: Columns) -> Columns:
    columns = _within(writer, columns, step.lower_, step.upper_)
    if not step.warp:
        return _kernel_features(writer, step, columns)
    spread = standardise(columns, step.column_mean_, step.column_scale_)
    warped = yeo_johnson(writer.graph, spread.matrix(), step.powers_)
    return _kernel_features(writer, step, matrix_columns(writer.graph, warped, columns.width))


def _forest_features(writer: Writer, step: Any, columns: Columns) -> Columns:
    trees, components, n_trees = step.trees_, step.components_, len(step.trees_.roots)
    carried = len(components) + step._forecasts.shape[1]
    right = np.eye(carried) if step._whitener is None else step._whitener

    def values(W: Array) -> Array:
        """What each leaf adds: of every row in it, and of its forecast, their share of the product."""
        G = right @ W  # (rows and forecasts, p)
        V = np.zeros((trees.n_nodes, W.shape[1]))
        np.add.at(V, components, G[: len(components), None, :])
        if step._forecasts.size:
            V += step._forecasts @ G[len(components) :]
        return V / n_trees

    Z = standardise(columns, step.mean_, step.scale_)
    return LeafColumns(writer.graph, Z.matrix(), trees, right.shape[1], values)


def _operator_fourier(writer: Writer, step: Any, columns: Columns) -> Columns:
    graph: Graph = writer.graph
    angles, scale = columns.times(step.frequencies_.T), 1.0 / np.sqrt(step.n_frequencies)
    waves = [cosine(graph, angles), graph.add("Sin", angles)]
    return Beside(graph, [Products(graph, len(step.frequencies_), [(wave, scale)]) for wave in waves])


TRANSFORMERS: dict[type, Step] = {
    EvidenceFeatures: _tuned_features,
    ColumnWidthFeatures: _tuned_features,
    ForestFeatures: _forest_features,
    TargetProcessFeatures: _target_processes,
    OperatorFourierFeatures: _operator_fourier,
}
