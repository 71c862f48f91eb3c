"""Predictions with operator-valued kernels: sum_j K(x, z_j) c_j over constant rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels import KrausKernel, SeparableKernel, SumKernel
from ..kernels.scalar import feature_rows
from ..linalg import Array
from .columns import Columns, Products
from .kernels import gram_columns
from .writer import Writer

__all__ = ["OPERATOR_KERNELS", "kernel_predictions"]


def kernel_predictions(writer: Writer, kernel: Any, columns: Columns, Z: Array, C: Array) -> Products:
    """The columns sum_j K(x, z_j) c_j, (n, p), of rows Z (m, d) and coefficients C (m, p)."""
    if type(kernel) not in OPERATOR_KERNELS:
        raise writer.refuse(f"there is no graph for the kernel {type(kernel).__name__}")
    return OPERATOR_KERNELS[type(kernel)](writer, kernel, columns, Z, C)


def _separable(writer: Writer, kernel: Any, columns: Columns, Z: Array, C: Array) -> Products:
    # K(x, z) = k(x, z) T with a symmetric T.
    return gram_columns(writer, kernel.kernel, columns, Z, kernel.params).into(C @ kernel.T)


def _sum(writer: Writer, kernel: Any, columns: Columns, Z: Array, C: Array) -> Products:
    parts = [
        kernel_predictions(writer, own, columns, Z, weight * C)
        for weight, own in zip(kernel.weights, kernel.kernels, strict=True)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def _kraus(writer: Writer, kernel: Any, columns: Columns, Z: Array, C: Array) -> Products:
    # sum_i M_i phi(x) s_i, s_i = sum_j <M_i phi(z_j), c_j>, is linear in phi(x).
    Psi = feature_rows(kernel.feature_map, Z)
    shares = np.einsum("ipm,jm,jp->i", kernel.kraus, Psi, C, optimize=True)
    W = np.einsum("i,ipm->mp", shares, kernel.kraus)
    if kernel.metric is not None:
        W = W + kernel.metric @ Psi.T @ C
    features = writer.features(kernel.feature_map, columns, "feature_map")
    return Products(writer.graph, W.shape[1], [(features.times(W), 1.0)])


OPERATOR_KERNELS: dict[type, Callable[[Writer, Any, Columns, Array, Array], Products]] = {
    SeparableKernel: _separable,
    SumKernel: _sum,
    KrausKernel: _kraus,
}
