"""Entangled kernels in the form of their definition: an operator U that mixes outputs and features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import Array, choi_from_kraus, kraus_from_choi, kraus_from_entangler, psd_factor
from .base import frozen_array
from .kraus import KrausKernel
from .scalar import feature_rows
from .transformable import TransformableKernel

__all__ = ["EntangledKernel"]


class EntangledKernel(KrausKernel):
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
    Psd for every U and psd T. By the Choi-Kraus theorem it is a kernel in Kraus form; its operators are
    compressed to the rank of D where that has fewer.

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
        self.U, self.T = frozen_array(U, "U", 2), frozen_array(T, "T", 2)
        size, p = len(self.U), len(self.T)
        if self.U.shape != (size, size) or size % p:
            raise ValueError(
                f"U has shape {self.U.shape}, but T of shape {self.T.shape} needs (p*m, p*m) with p = {p}."
            )
        kraus = kraus_from_entangler(self.U, self.T, size // p)
        if len(kraus) > size // p:
            kraus = min(kraus, kraus_from_choi(choi_from_kraus(kraus), p), key=len)
        super().__init__(kraus, feature_map)

    def __repr__(self) -> str:
        return f"EntangledKernel(U of shape {self.U.shape}, T of shape {self.T.shape}, {self.feature_map!r})"

    def to_kraus(self) -> KrausKernel:
        """Kraus form, by the Choi-Kraus theorem."""
        return KrausKernel(self.kraus, self.feature_map)

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


class _FeatureMapThen:
    """The map x -> S phi(x); a class, so that kernels can be pickled."""

    def __init__(self, feature_map: Any, S: Array) -> None:
        self.feature_map, self.S = feature_map, S

    def __call__(self, X: Array) -> Array:
        return feature_rows(self.feature_map, X) @ self.S.T
