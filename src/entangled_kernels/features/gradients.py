"""Gradients by the inputs of functions that are linear in features."""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ..linalg import Array
from .kernel_maps import KernelFeatures
from .operator_fourier import OperatorFourierFeatures

__all__ = ["NoGradientError", "has_gradient", "kernel_gradients", "pull_back"]

# Smoothness of Matern kernels that are differentiable everywhere, in closed form.
MATERNS = (1.5, 2.5)

SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


class NoGradientError(TypeError):
    """A feature map has no gradient in closed form, as trees and foreign transformers."""


def has_gradient(feature_map: Any, X: Any, n_features: int) -> bool:
    """Whether a fitted map with ``n_features`` has a gradient in closed form, tried on a row of X.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> X = np.array([[0.0], [1.0]])
    >>> has_gradient(None, X, 1), has_gradient(MinMaxScaler(clip=True).fit(X), X, 1)
    (True, False)
    """
    try:
        pull_back(feature_map, _safe_indexing(X, [0]), np.zeros((1, n_features)))
    except NoGradientError:
        return False
    return True


def pull_back(feature_map: Any, X: Any, weights: Array) -> Array:
    """Gradients (n, q, d), by the columns of X, of the q functions weights @ phi(x).

    Parameters
    ----------
    feature_map : fitted transformer or None
        A `NoGradientError` if it has no gradient in closed form.
    X : array-like or data frame of shape (n, d)
    weights : ndarray of shape (q, m), or of shape (n, q, m) where they differ by row

    Notes
    -----
    With J(x) (m, d) the slopes of the features, the gradients are weights @ J(x). A step of a
    pipeline turns weights on what comes out of it into weights on what goes in, the last step first
    (the chain rule), so J is never built: maps of kernels take n q R d for R rows that carry them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> scaler = StandardScaler().fit([[0.0, 1.0], [4.0, 3.0]])
    >>> pull_back(scaler, np.zeros((1, 2)), np.array([[1.0, 1.0]]))
    array([[[0.5, 1. ]]])
    """
    if isinstance(feature_map, Pipeline):
        return _pull_pipeline(feature_map, X, weights)
    if isinstance(feature_map, FeatureUnion):
        return _pull_union(feature_map, X, weights)
    if isinstance(feature_map, ColumnTransformer):
        return _pull_columns(feature_map, X, weights)
    if not _is_identity(feature_map):
        pull = next((PULLS[kind] for kind in PULLS if isinstance(feature_map, kind)), None)
        if pull is None:
            raise NoGradientError(
                f"feature_map must have a gradient in closed form, got {type(feature_map).__name__}"
            )
        rows = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
        weights = pull(feature_map, rows, weights)
    # Weights may be the same for every row.
    return np.broadcast_to(weights, (_num_samples(X), *weights.shape[-2:]))


def _pull_pipeline(feature_map: Pipeline, X: Any, weights: Array) -> Array:
    inputs = [X]
    for _, step in feature_map.steps[:-1]:
        inputs.append(inputs[-1] if _is_identity(step) else step.transform(inputs[-1]))
    for (_, step), rows in zip(reversed(feature_map.steps), reversed(inputs), strict=True):
        weights = pull_back(step, rows, weights)
    return weights


def _pull_union(feature_map: FeatureUnion, X: Any, weights: Array) -> Array:
    start, gradients, factors = 0, np.zeros(()), feature_map.transformer_weights or {}
    first_row = _safe_indexing(X, [0])
    for name, part in feature_map.transformer_list:
        if part == "drop":
            continue
        width = np.shape(first_row if _is_identity(part) else part.transform(first_row))[1]
        part_weights = weights[..., start : start + width] * factors.get(name, 1.0)
        gradients, start = gradients + pull_back(part, X, part_weights), start + width
    return np.asarray(gradients)


def _pull_columns(feature_map: ColumnTransformer, X: Any, weights: Array) -> Array:
    n, d = np.shape(X)
    gradients = np.zeros((n, weights.shape[-2], d))
    names = list(getattr(feature_map, "feature_names_in_", range(d)))
    for name, part, given in feature_map.transformers_:
        # scikit-learn 1.6 wraps the columns of the remainder in a list that warns when it is read.
        columns = given.data if isinstance(given, UserList) else given
        numbers = np.arange(d)[_number_columns(columns, names)]
        if part != "drop" and len(numbers):
            part_weights = weights[..., feature_map.output_indices_[name]]
            part_X = _safe_indexing(X, columns, axis=1)
            gradients[:, :, numbers] += pull_back(part, part_X, part_weights)
    return gradients


def _number_columns(columns: Any, names: list[Any]) -> Any:
    """An index of columns by number, where they are given by name."""
    if isinstance(columns, str):
        return [names.index(columns)]
    if isinstance(columns, slice) or len(columns) == 0 or not isinstance(columns[0], str):
        return columns
    return [names.index(name) for name in columns]


def _pull_kernel(feature_map: Any, X: Array, weights: Array) -> Array:
    slope = feature_map._column_slopes(X)[:, None, :]
    Z = (feature_map._columns(X) - feature_map.mean_) / feature_map.scale_
    R = feature_map.components_
    pulled = kernel_gradients(feature_map.kernel_, Z, R, weights @ feature_map._whitener)
    return np.asarray(pulled / feature_map.scale_ * slope)


def _pull_nystroem(feature_map: Nystroem, X: Array, weights: Array) -> Array:
    R, kernel = feature_map.components_, DotProduct(0.0)
    R = R.toarray() if issparse(R) else R
    if feature_map.kernel == "rbf":
        gamma = 1.0 / X.shape[1] if feature_map.gamma is None else feature_map.gamma
        kernel = RBF(1.0 / np.sqrt(2.0 * gamma))
    elif feature_map.kernel != "linear":
        raise NoGradientError(
            f"Nystroem must be of the kernel 'rbf' or 'linear', got {feature_map}"
        )
    return kernel_gradients(kernel, X, R, weights @ feature_map.normalization_)


def _pull_fourier(feature_map: RBFSampler, X: Array, weights: Array) -> Array:
    W = feature_map.random_weights_  # (d, m)
    turned = np.sin(X @ W + feature_map.random_offset_) * np.sqrt(2.0 / W.shape[1])
    return np.asarray(-(weights * turned[:, None, :]) @ W.T)


def _pull_operator_fourier(feature_map: OperatorFourierFeatures, X: Array, weights: Array) -> Array:
    W = feature_map.frequencies_.T  # (d, m)
    angles, m = X @ W, W.shape[1]
    slopes = np.hstack([-np.sin(angles), np.cos(angles)]) / np.sqrt(
        feature_map.n_frequencies
    )  # (n, 2 m)
    turned = weights * slopes[:, None, :]
    return np.asarray((turned[..., :m] + turned[..., m:]) @ W.T)


def _pull_scaler(feature_map: Any, X: Array, weights: Array) -> Array:
    scale = feature_map.scale_
    if isinstance(feature_map, MinMaxScaler) and feature_map.clip:
        raise NoGradientError("MinMaxScaler must have clip=False, got clip=True")
    if scale is None:
        return weights
    # `MinMaxScaler` multiplies by its scale, the others divide.
    return np.asarray(weights * scale if isinstance(feature_map, MinMaxScaler) else weights / scale)


def _pull_components(feature_map: Any, X: Array, weights: Array) -> Array:
    unit = (
        np.sqrt(feature_map.explained_variance_) if getattr(feature_map, "whiten", False) else 1.0
    )
    return np.asarray((weights / unit) @ feature_map.components_)


def _pull_polynomial(feature_map: PolynomialFeatures, X: Array, weights: Array) -> Array:
    powers = feature_map.powers_  # (m, d)
    pulled = np.zeros((len(X), weights.shape[-2], X.shape[1]))
    for column in range(X.shape[1]):
        lower = powers.copy()
        lower[:, column] = np.maximum(lower[:, column] - 1, 0)
        slopes = powers[:, column] * np.prod(X[:, None, :] ** lower, axis=2)  # (n, m)
        pulled[:, :, column] = np.sum(weights * slopes[:, None, :], axis=2)
    return pulled


def _pull_imputer(feature_map: SimpleImputer, X: Array, weights: Array) -> Array:
    """An imputed value is constant."""
    numbers = [isinstance(value, float | np.floating) for value in feature_map.statistics_]
    if feature_map.add_indicator or not (
        all(numbers) and np.isfinite(feature_map.statistics_).all()
    ):
        raise NoGradientError("SimpleImputer must fill in numbers, without indicators")
    return np.asarray(weights * np.isfinite(X)[:, None, :])


PULLS: dict[type, Callable[[Any, Array, Array], Array]] = {
    KernelFeatures: _pull_kernel,
    OperatorFourierFeatures: _pull_operator_fourier,
    Nystroem: _pull_nystroem,
    RBFSampler: _pull_fourier,
    **dict.fromkeys(SCALERS, _pull_scaler),
    PCA: _pull_components,
    TruncatedSVD: _pull_components,
    PolynomialFeatures: _pull_polynomial,
    SimpleImputer: _pull_imputer,
}


def _is_identity(feature_map: Any) -> bool:
    if isinstance(feature_map, FunctionTransformer):
        return feature_map.func is None
    return feature_map is None or (isinstance(feature_map, str) and feature_map == "passthrough")


def kernel_gradients(
    kernel: Any, Z: Array, R: Array, weights: Array, factor: Array | float = 1.0
) -> Array:
    """Gradients (n, q, d) by z of sum_r weights[..., r] factor k(z, r).

    Parameters
    ----------
    kernel : scikit-learn Gaussian-process kernel
        A `NoGradientError` for other kernels than those below.
    Z : ndarray of shape (n, d)
    R : ndarray of shape (R, d)
    weights : ndarray of shape (q, R) or (n, q, R)
    factor : ndarray of shape (n, R), or number
        Regarded as constant.

    Notes
    -----
    With D the distance in units of the length scales l: the Gaussian exp(-D^2/2) has the slope k (r
    - z)/l^2, Matern kernels of smoothness 3/2 and 5/2 have 3 e (r - z)/l^2 with e = exp(-sqrt(3)
    D), and 5/3 (1 + sqrt(5) D) e (r - z)/l^2 with e = exp(-sqrt(5) D); the rational quadratic (1 +
    s)^-a, s = D^2/2a, has (1 + s)^(-a - 1) (r - z)/l^2. That of the inner product is r. Sums and
    products follow their rules.

    Time n q R d for every part of a kernel.
    """
    if isinstance(kernel, Sum | Product):
        factors = factor, factor
        if isinstance(kernel, Product):
            factors = factor * kernel.k2(Z, R), factor * kernel.k1(Z, R)
        return kernel_gradients(kernel.k1, Z, R, weights, factors[0]) + kernel_gradients(
            kernel.k2, Z, R, weights, factors[1]
        )
    if isinstance(kernel, Exponentiation):
        power = kernel.exponent * kernel.kernel(Z, R) ** (kernel.exponent - 1.0)
        return kernel_gradients(kernel.kernel, Z, R, weights, factor * power)
    if isinstance(kernel, ConstantKernel):
        return np.zeros((len(Z), weights.shape[-2], Z.shape[1]))
    if isinstance(kernel, DotProduct):
        return np.asarray((weights * np.broadcast_to(factor, (len(Z), len(R)))[:, None, :]) @ R)
    if isinstance(kernel, Matern) and kernel.nu in MATERNS:
        length = kernel.length_scale
        distance = np.sqrt(2.0 * kernel.nu) * cdist(Z / length, R / length)
        slope = np.exp(-distance)
        slope *= 3.0 if kernel.nu == MATERNS[0] else 5.0 / 3.0 * (1.0 + distance)
    elif isinstance(kernel, RationalQuadratic):
        slope = kernel(Z, R) ** (1.0 + 1.0 / kernel.alpha)
    elif type(kernel) is RBF:
        slope = kernel(Z, R)
    else:
        raise NoGradientError(f"the kernel must have slopes in closed form, got {kernel}")
    towards = weights * (slope * factor)[:, None, :]  # (n, q, R)
    gradients = towards @ R - towards.sum(axis=2)[:, :, None] * Z[:, None, :]
    return np.asarray(gradients * (1.0 / np.square(kernel.length_scale)))
