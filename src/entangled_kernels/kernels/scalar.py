"""Scalar kernels: whatever scikit-learn accepts, evaluated on matrices.

There are three kinds: a name or a function of two rows
(`sklearn.metrics.pairwise.pairwise_kernels`), a `sklearn.gaussian_process.kernels.Kernel`, and a
`MatrixKernel`, which is called once with two matrices.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, KernelOperator
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import gen_batches

from ..linalg import Array, psd_factor

__all__ = [
    "ExponentialDot",
    "FeatureKernel",
    "MatrixKernel",
    "ScalarKernel",
    "check_scalar_kernel",
    "feature_rows",
    "is_guaranteed_psd",
    "scalar_diagonal",
    "scalar_gram",
]

# scikit-learn's names whose Gram matrix is psd on every sample ("sigmoid" and "additive_chi2" are
# not; "poly" depends on its parameters and is decided in `is_guaranteed_psd`).
PSD_NAMES = frozenset({"linear", "rbf", "laplacian", "chi2", "cosine"})
DIAGONAL_CHUNK = 256


class MatrixKernel:
    """Base class of scalar kernels that are called with two matrices; a subclass defines `gram`.

    Examples
    --------
    >>> import numpy as np
    >>> class Minimum(MatrixKernel):
    ...     guaranteed_psd = True
    ...     def gram(self, X, Z):
    ...         return np.minimum(X, Z.T)
    >>> Minimum().gram(np.array([[1.0], [2.0]]), np.array([[1.5]]))
    array([[1. ],
           [1.5]])
    """

    guaranteed_psd = False

    def gram(self, X: Array, Z: Array) -> Array:
        """Gram matrix of shape (n, t)."""
        raise NotImplementedError("A MatrixKernel must write gram(X, Z), an array of shape (n, t).")


class ExponentialDot(MatrixKernel):
    """The kernel exp(<x, z>).

    Examples
    --------
    >>> import numpy as np
    >>> ExponentialDot().gram(np.zeros((1, 2)), np.ones((1, 2)))
    array([[1.]])
    """

    guaranteed_psd = True

    def gram(self, X: Array, Z: Array) -> Array:
        """Gram matrix of shape (n, t)."""
        return np.exp(X @ Z.T)


class FeatureKernel(MatrixKernel):
    """The kernel phi(x)^T A phi(z) of a fitted feature map, with psd A; A = None is the identity.

    Parameters
    ----------
    feature_map : fitted transformer or None
        None means phi(x) = x.
    metric : array of shape (m, m), optional

    Examples
    --------
    >>> import numpy as np
    >>> FeatureKernel(None, np.diag([1.0, 2.0])).gram(np.eye(2), np.ones((1, 2)))
    array([[1.],
           [2.]])
    """

    guaranteed_psd = True

    def __init__(self, feature_map: Any = None, metric: Array | None = None) -> None:
        self.feature_map = feature_map
        self.metric = metric
        self.root = None if metric is None else psd_factor(metric, "metric")

    def factors(self, X: Array, Z: Array | None) -> tuple[Array, Array]:
        """Thin factors of the Gram matrix, shapes (n, m) and (t, m)."""
        left = self._rows(X)
        return left, left if Z is None else self._rows(Z)

    def _rows(self, X: Array) -> Array:
        Phi = feature_rows(self.feature_map, X)
        return Phi if self.root is None else np.asarray(Phi @ self.root)

    def gram(self, X: Array, Z: Array) -> Array:
        """Gram matrix of shape (n, t)."""
        Phi, Psi = self.factors(X, Z)
        return Phi @ Psi.T


# str | MatrixKernel | GaussianProcessKernel | Callable[..., float]; scikit-learn has no types.
ScalarKernel = Any


def feature_rows(feature_map: Any, X: Array) -> Array:
    """Rows phi(x_i) of a fitted transformer, or X itself when there is none."""
    if feature_map is None:
        return np.asarray(X, dtype=np.float64)
    if not hasattr(feature_map, "transform"):
        raise TypeError(f"feature_map must be None or a fitted transformer, got {feature_map!r}")
    Phi = feature_map.transform(X)
    return np.asarray(Phi.toarray() if hasattr(Phi, "toarray") else Phi, dtype=np.float64)


def check_scalar_kernel(kernel: Any, params: dict[str, Any]) -> None:
    """Raise an error that names the argument when the kernel or its parameters cannot be used."""
    if isinstance(kernel, str):
        if kernel not in PAIRWISE_KERNEL_FUNCTIONS:
            names = ", ".join(sorted(PAIRWISE_KERNEL_FUNCTIONS))
            raise ValueError(
                f"kernel={kernel!r} is not a scalar kernel; use one of {names}, a kernel of "
                "sklearn.gaussian_process.kernels, a MatrixKernel, or a function of two rows."
            )
    elif not isinstance(kernel, MatrixKernel) and not callable(kernel):
        raise TypeError(
            f"kernel must be a name, a kernel object or a function of two rows, got {kernel!r}."
        )
    elif params and isinstance(kernel, MatrixKernel | GaussianProcessKernel):
        raise TypeError(
            f"{type(kernel).__name__} takes its own parameters; got also {sorted(params)}."
        )
    for name in {"gamma", "coef0", "degree"} & set(params):
        if not (params[name] is None or isinstance(params[name], Real)):
            raise TypeError(f"{name} must be a number, got {params[name]!r}")


def is_guaranteed_psd(kernel: ScalarKernel, params: dict[str, Any]) -> bool:
    """Whether theory promises a psd Gram matrix on every sample; False means unknown."""
    if isinstance(kernel, MatrixKernel):
        return bool(kernel.guaranteed_psd)
    if isinstance(kernel, Exponentiation):
        whole = float(kernel.exponent).is_integer() and kernel.exponent >= 0
        return whole and is_guaranteed_psd(kernel.kernel, {})
    if isinstance(kernel, KernelOperator):
        return is_guaranteed_psd(kernel.k1, {}) and is_guaranteed_psd(kernel.k2, {})
    if isinstance(kernel, GaussianProcessKernel):
        return True
    positive = params.get("gamma") is None or params["gamma"] >= 0
    if kernel in ("poly", "polynomial"):
        degree = float(params.get("degree", 3))
        return positive and degree.is_integer() and degree >= 0 and params.get("coef0", 1) >= 0
    return isinstance(kernel, str) and kernel in PSD_NAMES and positive


def scalar_gram(kernel: ScalarKernel, X: Array, Z: Array | None, params: dict[str, Any]) -> Array:
    """Gram matrix k(x_i, z_j) of shape (n, t); Z = None means X."""
    if isinstance(kernel, MatrixKernel):
        return np.asarray(kernel.gram(X, X if Z is None else Z), dtype=np.float64)
    if isinstance(kernel, GaussianProcessKernel):
        # The call with one argument adds white noise to the diagonal. With two arguments there is
        # none, because distinct samples are independent even at equal inputs.
        return np.asarray(kernel(X) if Z is None else kernel(X, Z), dtype=np.float64)
    return np.asarray(pairwise_kernels(X, Z, metric=kernel, **params), dtype=np.float64)


def scalar_diagonal(kernel: ScalarKernel, X: Array, params: dict[str, Any]) -> Array:
    """Values k(x_i, x_i), shape (n,), without the n x n Gram matrix."""
    if isinstance(kernel, GaussianProcessKernel):
        return np.asarray(kernel.diag(X), dtype=np.float64)
    if isinstance(kernel, str) and kernel in ("rbf", "laplacian"):
        return np.ones(len(X))
    if kernel == "linear":
        return np.asarray(np.einsum("ij,ij->i", X, X))
    chunks = (X[rows] for rows in gen_batches(len(X), DIAGONAL_CHUNK))
    grams = (scalar_gram(kernel, chunk, None, params) for chunk in chunks)
    return np.concatenate([np.diagonal(K) for K in grams])
