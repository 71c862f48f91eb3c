"""Transformable kernels: one scalar kernel between transformed points, a transformation for each output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import Array, BlockOperator, FunctionOperator, psd_factor
from ..parameters import check_integer, check_positive
from .base import OperatorValuedKernel, as_points, frozen_array
from .scalar import ExponentialDot, ScalarKernel, check_scalar_kernel, is_guaranteed_psd, scalar_gram

__all__ = ["TransformableKernel"]

Map = Callable[[Array], Array] | ArrayLike


class _ScaledCopies:
    """The map x -> kron(weights, x); a class, so that kernels can be pickled."""

    def __init__(self, weights: Array) -> None:
        self.weights = weights

    def __call__(self, X: Array) -> Array:
        return np.asarray(np.kron(self.weights, X), dtype=np.float64)


class TransformableKernel(OperatorValuedKernel):
    """K(x, z)[l, m] = k(S_l x, S_m z).

    Parameters
    ----------
    kernel : str, kernel object or callable
        Scalar kernel k on the transformed points, as for `SeparableKernel`.
    maps : sequence of p callables or matrices
        S_l: a function from points (n, d) to points (n, d'), or a matrix (d', d) applied to each point.
    **params
        Parameters of a named or function kernel.

    Notes
    -----
    Psd whenever k is: the block Gram matrix is the Gram matrix of k on the n*p transformed points.

    Examples
    --------
    The kernel [[x z, x z^2], [x^2 z, x^2 z^2]]:

    >>> import numpy as np
    >>> kernel = TransformableKernel("linear", [lambda X: X, lambda X: X**2])
    >>> kernel.blocks(np.array([[2.0]]), np.array([[3.0]]))[0, 0]
    array([[ 6., 18.],
           [12., 36.]])
    """

    def __init__(self, kernel: ScalarKernel, maps: Sequence[Map], **params: Any) -> None:
        check_scalar_kernel(kernel, params)
        if not isinstance(maps, list | tuple | np.ndarray) or len(maps) == 0:
            raise ValueError(f"maps must be a list with one transformation per output, got {maps!r}")
        self.kernel, self.params = kernel, dict(params)
        self.maps = tuple(S if callable(S) else frozen_array(np.atleast_2d(S), "maps", 2) for S in maps)
        self.n_outputs = len(self.maps)

    def __repr__(self) -> str:
        return f"TransformableKernel({self.kernel!r}, {self.n_outputs} maps)"

    @classmethod
    def exponential(cls, sigma: ArrayLike) -> TransformableKernel:
        """Kernel exp(sigma[l, m] <x, z>) for a psd matrix sigma (p, p).

        With sigma = V V^T it is exp(<S_l x, S_m z>), S_l x = kron(V[l], x).

        Examples
        --------
        >>> import numpy as np
        >>> kernel = TransformableKernel.exponential([[1.0, 0.0], [0.0, 2.0]])
        >>> np.log(kernel.blocks(np.ones((1, 3)))[0, 0]).round(6)
        array([[3., 0.],
               [0., 6.]])
        """
        return cls(
            ExponentialDot(),
            [_ScaledCopies(row) for row in psd_factor(frozen_array(sigma, "sigma", 2), "sigma")],
        )

    @classmethod
    def coordinate_gaussian(cls, n_outputs: int, gamma: float = 1.0) -> TransformableKernel:
        """Kernel exp(-gamma (x_s - z_t)^2) over coordinates s, t; inputs have as many columns as outputs.

        Examples
        --------
        >>> import numpy as np
        >>> kernel = TransformableKernel.coordinate_gaussian(2)
        >>> kernel.blocks(np.array([[0.0, 1.0]]))[0, 0].round(4)
        array([[1.    , 0.3679],
               [0.3679, 1.    ]])
        """
        check_integer("n_outputs", n_outputs, low=1)
        check_positive("gamma", gamma)
        return cls("rbf", list(np.eye(n_outputs)[:, None, :]), gamma=gamma)

    @property
    def guaranteed_psd(self) -> bool:
        """Whether theory promises a psd Gram matrix: k is known to be psd."""
        return is_guaranteed_psd(self.kernel, self.params)

    def _transformed(self, X: Array) -> Array:
        """Points after every map, shape (n, p, d')."""
        mapped = (S(X) if callable(S) else X @ S.T for S in self.maps)
        return np.stack([as_points(own, "maps(X)") for own in mapped], axis=1)

    def _between(self, A: Array, B: Array) -> Array:
        (n, p, d), t = A.shape, len(B)
        K = scalar_gram(self.kernel, A.reshape(n * p, d), B.reshape(t * p, d), self.params)
        return K.reshape(n, p, t, p).swapaxes(1, 2)  # (n, t, p, p)

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix without structure, computed some rows at a time."""
        A = self._transformed(as_points(X))
        B = A if Z is None else self._transformed(as_points(Z, "Z"))
        return FunctionOperator(self._between, A, B, self.n_outputs)
