"""Entangled kernels in the form of their definition: an operator U that mixes outputs and features."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..linalg import BlockOperator, kraus_from_choi, kraus_from_entangler, psd_factor
from ..linalg.kraus import choi_from_kraus
from .base import OperatorValuedKernel, frozen_array
from .diagnosis import EntanglementReport
from .kraus import KrausKernel
from .scalar import feature_rows
from .separable import SeparableKernel
from .transformable import TransformableKernel

__all__ = ["EntangledKernel"]

Array = NDArray[np.float64]


class EntangledKernel(OperatorValuedKernel):
    """K(x, z) = tr_K(U (T kron phi(x) phi(z)^T) U^T).

    Parameters
    ----------
    U : array of shape (p*m, p*m)
        Row index ``output * m + feature``. The kernel is separable when U = kron(B, C).
    T : array of shape (p, p)
        Symmetric psd.
    feature_map : fitted transformer, optional
        Gives the m features phi(x); identity when None.

    Notes
    -----
    Psd for every U and psd T. It is evaluated through its Kraus form, compressed to the rank of D where that
    has fewer operators.

    Examples
    --------
    >>> import numpy as np
    >>> swap = np.eye(4)[[0, 2, 1, 3]]  # exchanges outputs and features
    >>> kernel = EntangledKernel(swap, np.eye(2))
    >>> kernel.blocks(np.array([[1.0, 2.0]]))[0, 0]
    array([[2., 4.],
           [4., 8.]])
    >>> kernel.is_ppt()
    False
    """

    def __init__(self, U: ArrayLike, T: ArrayLike, feature_map: Any = None) -> None:
        self.U = frozen_array(U, "U", 2)
        self.T = frozen_array(T, "T", 2)
        self.feature_map = feature_map
        psd_factor(self.T)
        size, p = len(self.U), len(self.T)
        if self.U.shape != (size, size) or size % p:
            raise ValueError(
                f"U has shape {self.U.shape}, but T of shape {self.T.shape} needs (p*m, p*m) with p = {p}."
            )

    def __repr__(self) -> str:
        return f"EntangledKernel(U of shape {self.U.shape}, T of shape {self.T.shape}, {self.feature_map!r})"

    @property
    def n_outputs(self) -> int:
        """Number p of outputs."""
        return len(self.T)

    @property
    def n_features(self) -> int:
        """Number m of features."""
        return len(self.U) // len(self.T)

    @property
    def guaranteed_psd(self) -> bool:
        """True: an entangled kernel is psd."""
        return True

    @cached_property
    def _kraus_kernel(self) -> KrausKernel:
        kraus = kraus_from_entangler(self.U, self.T, self.n_features)
        if len(kraus) > self.n_features:
            compressed = kraus_from_choi(choi_from_kraus(kraus), self.n_outputs)
            kraus = compressed if len(compressed) < len(kraus) else kraus
        return KrausKernel(kraus, self.feature_map)

    def to_kraus(self) -> KrausKernel:
        """Kraus form, by the Choi-Kraus theorem."""
        return self._kraus_kernel

    def to_transformable(self) -> TransformableKernel:
        """Return the transformable form <S_l phi(x), S_m phi(z)>, for T = v v^T of rank one (as T = 11^T).

        With blocks U_lq of size m x m, S_l = sum_q v_q U_lq. A symmetric U is not needed.
        """
        V = psd_factor(self.T)
        if V.shape[1] != 1:
            raise ValueError(
                f"T must have rank one for the kernel to be transformable this way, got rank {V.shape[1]}."
            )
        p, m = self.n_outputs, self.n_features
        S = np.einsum("lkqa,q->lka", self.U.reshape(p, m, p, m), V[:, 0])  # (p, m, m)
        return TransformableKernel("linear", [_FeatureMapThen(self.feature_map, S_l) for S_l in S])

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix of low rank."""
        return self._kraus_kernel(X, Z)

    def diag(self, X: ArrayLike) -> Array:
        """Values K(x_i, x_i), shape (n, p, p)."""
        return self._kraus_kernel.diag(X)

    def is_psd(self, X: ArrayLike, tol: float = 1e-9) -> bool:
        """Return True for every X: an entangled kernel is psd."""
        return self._kraus_kernel.is_psd(X, tol)

    def is_ppt(self, tol: float = 1e-10) -> bool:
        """Whether the partial transpose of D is psd; False proves that the kernel is entangled."""
        return self._kraus_kernel.is_ppt(tol)

    def negativity(self) -> float:
        """Sum of the absolute negative eigenvalues of the partial transpose of D / trace(D)."""
        return self._kraus_kernel.negativity()

    def schmidt_values(self) -> Array:
        """Operator-Schmidt values of D in decreasing order; one nonzero value means separable."""
        return self._kraus_kernel.schmidt_values()

    def nearest_separable(self) -> SeparableKernel:
        """Separable kernel whose matrix kron(B, C) is nearest to D in Frobenius norm."""
        return self._kraus_kernel.nearest_separable()

    def entanglement(self) -> EntanglementReport:
        """Report on what is proven about the entanglement of this kernel, with a one-sentence verdict."""
        return self._kraus_kernel.entanglement()


class _FeatureMapThen:
    """The map x -> S phi(x); a class, so that kernels can be pickled."""

    def __init__(self, feature_map: Any, S: Array) -> None:
        self.feature_map, self.S = feature_map, S

    def __call__(self, X: Array) -> Array:
        return feature_rows(self.feature_map, X) @ self.S.T
