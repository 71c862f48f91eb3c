"""Kernels of vector fields without curl or without divergence, from derivatives of a Gaussian."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import Array, BlockOperator, FunctionOperator
from ..parameters import check_integer, check_positive
from .base import OperatorValuedKernel, as_points

__all__ = ["CurlFreeKernel", "DivergenceFreeKernel"]


class _GaussianFieldKernel(OperatorValuedKernel):
    """A kernel of vector fields on R^d, so that there are as many outputs as columns."""

    # The kernel is a mean of cos(w, x - z) B(w) B(w)^T over Gaussian frequencies w.
    guaranteed_psd = True

    def __init__(self, n_outputs: int, gamma: float = 1.0) -> None:
        check_integer("n_outputs", n_outputs, low=1)
        check_positive("gamma", gamma)
        self.n_outputs, self.gamma = int(n_outputs), float(gamma)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_outputs}, gamma={self.gamma:g})"

    @abstractmethod
    def _matrices(self, outer: Array, square: Array) -> Array:
        """What multiplies 2 gamma exp(-gamma |delta|^2), from delta delta^T (n, t, p, p) and |delta|^2."""

    def _between(self, X: Array, Z: Array) -> Array:
        delta = X[:, None, :] - Z[None, :, :]  # (n, t, p)
        outer = delta[..., :, None] * delta[..., None, :]
        square = np.einsum("ntp,ntp->nt", delta, delta)
        weight = 2.0 * self.gamma * np.exp(-self.gamma * square)
        return np.asarray(weight[..., None, None] * self._matrices(outer, square))

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix without structure, computed some rows at a time."""
        A = self._points(X, "X")
        B = A if Z is None else self._points(Z, "Z")
        return FunctionOperator(self._between, A, B, self.n_outputs)

    def diag(self, X: ArrayLike) -> Array:
        """Values K(x_i, x_i), shape (n, p, p): the same for all points."""
        origin = np.zeros((1, self.n_outputs))
        return np.repeat(self._between(origin, origin)[0], len(self._points(X, "X")), axis=0)

    def _points(self, X: ArrayLike, name: str) -> Array:
        points = as_points(X, name)
        if points.shape[1] != self.n_outputs:
            raise ValueError(
                f"{name} must have one column for each of {self.n_outputs} outputs, got {points.shape[1]}; "
                f"a vector field has as many outputs as inputs."
            )
        return points


class CurlFreeKernel(_GaussianFieldKernel):
    """Kernel of gradient fields: K(x, z) = 2 gamma e^(-gamma |d|^2) (I - 2 gamma d d^T), d = x - z.

    Every function in its space is the gradient of a potential, and so without curl.

    Parameters
    ----------
    n_outputs : int
        Number of outputs, and of columns of the points.
    gamma : float, default=1.0
        Of the Gaussian exp(-gamma |d|^2), whose negative Hessian this is.

    Notes
    -----
    Time n t p^2 for blocks between n and t points.

    Examples
    --------
    >>> import numpy as np
    >>> CurlFreeKernel(2, gamma=0.5).blocks(np.zeros((1, 2)), np.array([[1.0, 0.0]]))[0, 0].round(3)
    array([[0.   , 0.   ],
           [0.   , 0.607]])
    """

    def _matrices(self, outer: Array, square: Array) -> Array:
        return np.asarray(np.eye(self.n_outputs) - 2.0 * self.gamma * outer)


class DivergenceFreeKernel(_GaussianFieldKernel):
    """Kernel of incompressible fields, 2 gamma e^(-gamma |d|^2) ((p-1 - 2 gamma |d|^2) I + 2 gamma d d^T).

    d = x - z, in p dimensions. Every function in its space has no divergence.

    Parameters
    ----------
    n_outputs : int
        Number of outputs, and of columns of the points; at least 2.
    gamma : float, default=1.0
        Of the Gaussian exp(-gamma |d|^2), from whose Hessian H this is H - tr(H) I.

    Notes
    -----
    Time n t p^2 for blocks between n and t points.

    Examples
    --------
    >>> import numpy as np
    >>> DivergenceFreeKernel(2, gamma=0.5).blocks(np.zeros((1, 2)), np.array([[1.0, 0.0]]))[0, 0].round(3)
    array([[0.607, 0.   ],
           [0.   , 0.   ]])
    """

    def __init__(self, n_outputs: int, gamma: float = 1.0) -> None:
        super().__init__(n_outputs, gamma)
        if self.n_outputs < 2:
            raise ValueError("n_outputs must be at least 2: on a line only constants have no divergence.")

    def _matrices(self, outer: Array, square: Array) -> Array:
        p = self.n_outputs
        level = (p - 1.0) - 2.0 * self.gamma * square  # (n, t)
        return np.asarray(level[..., None, None] * np.eye(p) + 2.0 * self.gamma * outer)
