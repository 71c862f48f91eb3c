"""Kernels whose Gram matrix has no structure: partial traces, transformed points, vector fields."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches

from ..linalg import Array, BlockOperator, FunctionOperator, partial_trace, psd_factor
from ..parameters import check_integer, check_positive
from .base import OperatorValuedKernel, as_points, frozen_array
from .scalar import (
    ExponentialDot,
    ScalarKernel,
    check_scalar_kernel,
    feature_rows,
    is_guaranteed_psd,
    scalar_gram,
)

__all__ = ["CurlFreeKernel", "DivergenceFreeKernel", "PartialTraceKernel", "TransformableKernel"]

# One chunk of operators P(x, z) has about this many numbers (32 MB in double precision).
CHUNK_NUMBERS = 2**22


class PartialTraceKernel(OperatorValuedKernel):
    """K(x, z) = tr_K(P(phi(x), phi(z))), the trace of each m x m block of an operator on Y kron K.

    Separable kernels and their sums, transformable and entangled kernels are special cases. A
    partial-trace kernel need not be psd: `is_psd` checks a sample.

    Parameters
    ----------
    operator : callable
        ``operator(Phi, Psi)`` with features (n, m') and (t, m') gives P for all pairs, an array of
        shape (n, t, p*m, p*m) with row index ``output * m + k``; m may differ from m'.
    n_outputs : int
        Number p of outputs.
    feature_map : fitted transformer, optional
        Identity when None.
    guaranteed_psd : bool, default=False
        True if theory promises a psd kernel; then Gram matrices are not checked.

    Notes
    -----
    The operators are computed for some rows at a time. Time O(n t p^2 m) without `operator`.

    Examples
    --------
    >>> import numpy as np
    >>> def outer(Phi, Psi):  # P = kron(I_2, phi(x) phi(z)^T)
    ...     pairs = np.einsum("ia,jb->ijab", Phi, Psi)
    ...     return np.kron(np.eye(2), pairs)
    >>> kernel = PartialTraceKernel(outer, n_outputs=2)
    >>> kernel.blocks(np.array([[1.0, 2.0]]))[0, 0]
    array([[5., 0.],
           [0., 5.]])
    """

    def __init__(
        self,
        operator: Callable[[Array, Array], Array],
        n_outputs: int,
        feature_map: Any = None,
        *,
        guaranteed_psd: bool = False,
    ) -> None:
        if not callable(operator):
            raise TypeError(
                f"operator must be callable as operator(Phi, Psi), got {type(operator).__name__}."
            )
        check_integer("n_outputs", n_outputs, low=1)
        self.operator, self.feature_map = operator, feature_map
        self.n_outputs = int(n_outputs)
        self._guaranteed_psd = guaranteed_psd

    def __repr__(self) -> str:
        return f"PartialTraceKernel({self.operator!r}, n_outputs={self.n_outputs})"

    @property
    def guaranteed_psd(self) -> bool:
        """Whether the maker of this kernel promised a psd Gram matrix."""
        return self._guaranteed_psd

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix without structure, computed some rows at a time."""
        Phi = feature_rows(self.feature_map, as_points(X))
        Psi = Phi if Z is None else feature_rows(self.feature_map, as_points(Z, "Z"))
        return FunctionOperator(self._traced, Phi, Psi, self.n_outputs)

    def _traced(self, Phi: Array, Psi: Array) -> Array:
        p = self.n_outputs
        size = self._operator_size(Phi, Psi)
        step = max(1, CHUNK_NUMBERS // (len(Psi) * size**2))
        chunks = (Phi[rows] for rows in gen_batches(len(Phi), step))
        return np.concatenate(
            [partial_trace(self.operator(chunk, Psi), (p, size // p)) for chunk in chunks]
        )

    def _operator_size(self, Phi: Array, Psi: Array) -> int:
        shape = np.shape(self.operator(Phi[:1], Psi[:1]))
        square = len(shape) == 4 and shape[:2] == (1, 1) and shape[2] == shape[3]
        if not square or shape[2] % self.n_outputs:
            raise ValueError(
                f"operator(Phi, Psi) gave shape {shape} for one pair of points, but must give "
                f"(1, 1, p*m, p*m) with p = n_outputs = {self.n_outputs}."
            )
        return int(shape[2])


Map = Callable[[Array], Array] | ArrayLike


def _scaled_copies(weights: Array, X: Array) -> Array:
    """The map x -> kron(weights, x)."""
    return np.asarray(np.kron(weights, X), dtype=np.float64)


class TransformableKernel(OperatorValuedKernel):
    """K(x, z)[l, m] = k(S_l x, S_m z).

    Parameters
    ----------
    kernel : str, kernel object or callable
        Scalar kernel k on the transformed points, as for `SeparableKernel`.
    maps : sequence of p callables or matrices
        S_l: a function from points (n, d) to points (n, d'), or a matrix (d', d) applied to each
        point.
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
            raise ValueError(
                f"maps must be a list with one transformation per output, got {maps!r}"
            )
        self.kernel, self.params = kernel, dict(params)
        self.maps = tuple(
            S if callable(S) else frozen_array(np.atleast_2d(S), "maps", 2) for S in maps
        )
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
            [
                partial(_scaled_copies, row)
                for row in psd_factor(frozen_array(sigma, "sigma", 2), "sigma")
            ],
        )

    @classmethod
    def coordinate_gaussian(cls, n_outputs: int, gamma: float = 1.0) -> TransformableKernel:
        """Kernel exp(-gamma (x_s - z_t)^2) over coordinates s and t.

        The number of columns of the points is the number of outputs.

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
        return np.stack([as_points(points, "maps(X)") for points in mapped], axis=1)

    def _between(self, A: Array, B: Array) -> Array:
        (n, p, d), t = A.shape, len(B)
        K = scalar_gram(self.kernel, A.reshape(n * p, d), B.reshape(t * p, d), self.params)
        return K.reshape(n, p, t, p).swapaxes(1, 2)  # (n, t, p, p)

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix without structure, computed some rows at a time."""
        A = self._transformed(as_points(X))
        B = A if Z is None else self._transformed(as_points(Z, "Z"))
        return FunctionOperator(self._between, A, B, self.n_outputs)


class _GaussianFieldKernel(OperatorValuedKernel):
    """Base of kernels of vector fields on R^p, with as many outputs as columns."""

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
        """K(x, z) / (2 gamma exp(-gamma |d|^2)) from d d^T and |d|^2, d = x - z."""

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
                f"{name} must have one column for each of {self.n_outputs} outputs, got "
                f"{points.shape[1]}; a vector field has as many outputs as inputs."
            )
        return points


class CurlFreeKernel(_GaussianFieldKernel):
    """Kernel of gradient fields: K(x, z) = 2 gamma e^(-gamma |d|^2) (I - 2 gamma d d^T), d = x - z.

    Every function in its space is the gradient of a potential and has no curl.

    Parameters
    ----------
    n_outputs : int
        Number of outputs, and of columns of the points.
    gamma : float, default=1.0
        Parameter of exp(-gamma |d|^2). The kernel is minus the Hessian of this function.

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
    """Kernel of vector fields without divergence.

    K(x, z) = 2 gamma e^(-gamma |d|^2) ((p - 1 - 2 gamma |d|^2) I + 2 gamma d d^T), d = x - z, in p
    dimensions. Every function in its space has no divergence.

    Parameters
    ----------
    n_outputs : int
        Number of outputs, and of columns of the points; at least 2.
    gamma : float, default=1.0
        Parameter of exp(-gamma |d|^2). The kernel is H - tr(H) I with its Hessian H.

    Notes
    -----
    Time n t p^2 for blocks between n and t points.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = DivergenceFreeKernel(2, gamma=0.5)
    >>> kernel.blocks(np.zeros((1, 2)), np.array([[1.0, 0.0]]))[0, 0].round(3)
    array([[0.607, 0.   ],
           [0.   , 0.   ]])
    """

    def __init__(self, n_outputs: int, gamma: float = 1.0) -> None:
        super().__init__(n_outputs, gamma)
        if self.n_outputs < 2:
            raise ValueError(
                "n_outputs must be at least 2: on a line only constants have no divergence."
            )

    def _matrices(self, outer: Array, square: Array) -> Array:
        p = self.n_outputs
        level = (p - 1.0) - 2.0 * self.gamma * square  # (n, t)
        return np.asarray(level[..., None, None] * np.eye(p) + 2.0 * self.gamma * outer)
