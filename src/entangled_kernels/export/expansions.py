"""Transformers of scikit-learn that make new columns of all columns together."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import PolynomialFeatures

from .columns import Columns, Products, matrix_columns
from .kernels import gram_columns
from .scaling import cosine, standardise
from .writer import Step, Writer

__all__ = ["TRANSFORMERS"]


def _pca(writer: Writer, step: Any, columns: Columns) -> Columns:
    right = step.components_.T
    if step.whiten:
        scale = np.sqrt(step.explained_variance_)
        right = right / np.maximum(scale, np.finfo(scale.dtype).eps)
    columns = standardise(columns, step.mean_, None)
    return Products(writer.graph, right.shape[1], [(columns.matrix(), right)])


def _truncated_svd(writer: Writer, step: Any, columns: Columns) -> Columns:
    return Products(writer.graph, len(step.components_), [(columns.matrix(), step.components_.T)])


def _pls(writer: Writer, step: Any, columns: Columns) -> Columns:
    columns = standardise(columns, step._x_mean, step._x_std)
    return Products(writer.graph, step.x_rotations_.shape[1], [(columns.matrix(), step.x_rotations_)])


def _polynomial(writer: Writer, step: Any, columns: Columns) -> Columns:
    graph, x, powers = writer.graph, columns.matrix(), step.powers_  # powers (m, d)
    degree = int(powers.sum(axis=1).max())
    # A product of so many columns, a column of ones among them.
    first = graph.add("Gather", x, [0], axis=1)
    ones = graph.add("Add", graph.add("Mul", first, 0.0), 1.0)
    extended = graph.add("Concat", x, ones, axis=1)
    factors = np.full((degree, len(powers)), columns.width)
    for term, own in enumerate(powers):
        used = np.repeat(np.arange(columns.width), own)
        factors[: len(used), term] = used
    product = ones if not degree else graph.add("Gather", extended, factors[0], axis=1)
    for more in factors[1:]:
        product = graph.add("Mul", product, graph.add("Gather", extended, more, axis=1))
    return matrix_columns(graph, product, len(powers))


def _nystroem(writer: Writer, step: Any, columns: Columns) -> Columns:
    if callable(step.kernel):
        raise writer.refuse(f"there is no graph for kernel={step.kernel!r}")
    params = {name: getattr(step, name) for name in ("gamma", "degree", "coef0")}
    gram = gram_columns(writer, step.kernel, columns, step.components_, params)
    return gram.into(step.normalization_.T)


def _rbf_sampler(writer: Writer, step: Any, columns: Columns) -> Columns:
    graph, m = writer.graph, len(step.random_offset_)
    angles = graph.add("Add", columns.times(step.random_weights_), step.random_offset_)
    return Products(graph, m, [(cosine(graph, angles), np.sqrt(2.0 / m))])


def _kernel_pca(writer: Writer, step: Any, columns: Columns) -> Columns:
    if callable(step.kernel) or step.kernel == "precomputed":
        raise writer.refuse(f"there is no graph for kernel={step.kernel!r}")
    params = {"gamma": step.gamma_, "degree": step.degree, "coef0": step.coef0}
    gram = gram_columns(writer, step.kernel, columns, step.X_fit_, params)
    scale, centre = np.sqrt(step.eigenvalues_), step._centerer
    used = scale > 0.0
    right = np.zeros(step.eigenvectors_.shape)
    right[:, used] = step.eigenvectors_[:, used] / scale[used]
    # The kernel is centred: less the mean of its row, less the means of training, plus their mean.
    n = len(right)
    centring = np.eye(n) - np.full((n, n), 1.0 / n)
    offset = (centre.K_fit_all_ - centre.K_fit_rows_) @ right
    centred = gram.into(centring @ right)
    return centred.plus(Products(writer.graph, centred.width, [], offset))


TRANSFORMERS: dict[type, Step] = {
    PCA: _pca,
    IncrementalPCA: _pca,
    KernelPCA: _kernel_pca,
    TruncatedSVD: _truncated_svd,
    PLSRegression: _pls,
    PolynomialFeatures: _polynomial,
    Nystroem: _nystroem,
    RBFSampler: _rbf_sampler,
}
