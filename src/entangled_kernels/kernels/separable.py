"""Separable kernels: one scalar kernel times one matrix over the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import (
    Array,
    BlockOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    separable_kraus,
)
from .base import OperatorValuedKernel, as_points, frozen_array
from .scalar import (
    FeatureKernel,
    ScalarKernel,
    check_scalar_kernel,
    is_guaranteed_psd,
    scalar_diagonal,
    scalar_gram,
)

if TYPE_CHECKING:
    from .kraus import KrausKernel

__all__ = ["SeparableKernel"]


class SeparableKernel(OperatorValuedKernel):
    """K(x, z) = k(x, z) T.

    Parameters
    ----------
    kernel : str, kernel object or callable
        Scalar kernel k: a name or a function of two rows as in
        `sklearn.metrics.pairwise.pairwise_kernels`, a kernel of `sklearn.gaussian_process.kernels`,
        or a `MatrixKernel`.
    T : array of shape (p, p)
        Symmetric. The kernel is psd when k and T are.
    **params
        Parameters of a named or function kernel, such as ``gamma=0.5``.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = SeparableKernel("rbf", [[1.0, 0.5], [0.5, 1.0]], gamma=0.5)
    >>> X = np.array([[0.0], [1.0]])
    >>> kernel(X).shape
    (4, 4)
    >>> kernel.blocks(X)[0, 0]
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def __init__(self, kernel: ScalarKernel, T: ArrayLike, **params: Any) -> None:
        check_scalar_kernel(kernel, params)
        self.T = frozen_array(T, "T", 2)
        if self.T.shape[0] != self.T.shape[1] or not np.allclose(self.T, self.T.T):
            raise ValueError(
                f"T must be square and symmetric, got shape {self.T.shape}; pass (T + T.T) / 2."
            )
        self.n_outputs = len(self.T)
        self.kernel, self.params = kernel, dict(params)

    def __repr__(self) -> str:
        params = "".join(f", {name}={value!r}" for name, value in self.params.items())
        return f"SeparableKernel({self.kernel!r}, T of shape {self.T.shape}{params})"

    @property
    def guaranteed_psd(self) -> bool:
        """Whether theory promises a psd Gram matrix: k is known to be psd, and so is T."""
        eigenvalues = np.linalg.eigvalsh(self.T)
        T_is_psd = eigenvalues[0] >= -1e-10 * np.abs(eigenvalues).max()
        return bool(T_is_psd) and is_guaranteed_psd(self.kernel, self.params)

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix: a Kronecker product, of low rank if k has a feature map."""
        X = as_points(X)
        Z = None if Z is None else as_points(Z, "Z")
        if self.kernel == "linear" and not self.params:
            return LowRankKroneckerOperator(X, X if Z is None else Z, self.T)
        if isinstance(self.kernel, FeatureKernel):
            return LowRankKroneckerOperator(*self.kernel.factors(X, Z), self.T)
        return KroneckerOperator(scalar_gram(self.kernel, X, Z, self.params), self.T)

    def diag(self, X: ArrayLike) -> Array:
        """Values K(x_i, x_i), shape (n, p, p)."""
        return scalar_diagonal(self.kernel, as_points(X), self.params)[:, None, None] * self.T

    def is_psd(self, X: ArrayLike, tol: float = 1e-9) -> bool:
        """Whether the Gram matrix on X is psd, from the n x n and p x p factors: O(n^3 + p^3)."""
        K = scalar_gram(self.kernel, as_points(X), None, self.params)
        products = np.multiply.outer(
            np.linalg.eigvalsh(K)[[0, -1]], np.linalg.eigvalsh(self.T)[[0, -1]]
        )
        return bool(products.min() >= -tol * np.abs(products).max())

    def to_kraus(self, feature_map: Any = None, n_features: int | None = None) -> KrausKernel:
        """Kraus form <phi(x), phi(z)> T with operators t_j e_k^T, where T = sum_j t_j t_j^T.

        Parameters
        ----------
        feature_map : fitted transformer, optional
            Features whose inner product is k. May be left out for the linear kernel and for a
            `FeatureKernel` without metric. The result equals this kernel as far as the features
            reproduce k.
        n_features : int, optional
            Number m of features, for the linear kernel or a transformer without
            `get_feature_names_out`.
        """
        from .kraus import KrausKernel

        root = None
        if feature_map is None and isinstance(self.kernel, FeatureKernel):
            feature_map, root = self.kernel.feature_map, self.kernel.root
        elif feature_map is None and self.kernel != "linear":
            raise ValueError(
                f"feature_map is needed: the kernel {self.kernel!r} has no finite features. Pass a "
                "fitted transformer that approximates it, such as sklearn's Nystroem."
            )
        if root is not None:
            return KrausKernel(separable_kraus(self.T, root.shape[1]) @ root.T, feature_map)
        if n_features is None:
            if not hasattr(feature_map, "get_feature_names_out"):
                raise ValueError(
                    "n_features is needed: the feature map has no get_feature_names_out."
                )
            n_features = len(feature_map.get_feature_names_out())
        return KrausKernel(separable_kraus(self.T, n_features), feature_map)
