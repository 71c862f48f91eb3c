"""Partial-trace kernels: the widest class, with no promise of positivity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches

from ..linalg import Array, BlockOperator, FunctionOperator, partial_trace
from ..parameters import check_integer
from .base import OperatorValuedKernel, as_points
from .scalar import feature_rows

__all__ = ["PartialTraceKernel"]

# One chunk of operators P(x, z) holds about this many numbers (32 MB in double precision).
CHUNK_NUMBERS = 2**22


class PartialTraceKernel(OperatorValuedKernel):
    """K(x, z) = tr_K(P(phi(x), phi(z))), the trace of each m x m block of an operator on Y kron K.

    The class holds separable kernels and their sums, transformable and entangled kernels. Such a kernel
    need not be psd: `is_psd` tells for a sample, and an indefinite one is a kernel of a Krein space.

    Parameters
    ----------
    operator : callable
        ``operator(Phi, Psi)`` with features (n, m') and (t, m') gives P for all pairs, an array of shape
        (n, t, p*m, p*m) with row index ``output * m + k``; m may differ from m'.
    n_outputs : int
        Number p of outputs.
    feature_map : fitted transformer, optional
        Identity when None.
    guaranteed_psd : bool, default=False
        Pass True where theory promises a psd kernel; then nothing is checked when it is used.

    Notes
    -----
    The operators are formed for some rows at a time: time O(n t p^2 m) after the call of `operator`.

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
        return np.concatenate([partial_trace(self.operator(own, Psi), (p, size // p)) for own in chunks])

    def _operator_size(self, Phi: Array, Psi: Array) -> int:
        shape = np.shape(self.operator(Phi[:1], Psi[:1]))
        if len(shape) != 4 or shape[:2] != (1, 1) or shape[2] != shape[3] or shape[2] % self.n_outputs:
            raise ValueError(
                f"operator(Phi, Psi) gave shape {shape} for one pair of points, but must give "
                f"(1, 1, p*m, p*m) with p = n_outputs = {self.n_outputs}."
            )
        return int(shape[2])
