"""Kernels in Kraus form: every kernel that is linear and completely positive in phi(x) phi(z)^T."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import (
    Array,
    BlockOperator,
    LowRankOperator,
    choi_from_kraus,
    is_ppt,
    kraus_from_choi,
    kraus_from_entangler,
    kraus_to_stacked,
    nearest_kronecker,
    negativity,
    operator_schmidt,
    partial_transpose_eigenvalues,
    psd_factor,
)
from .base import OperatorValuedKernel, as_points, frozen_array
from .diagnosis import EntanglementReport, entanglement_report
from .scalar import FeatureKernel, feature_rows
from .separable import SeparableKernel
from .unstructured import PartialTraceKernel, TransformableKernel

__all__ = ["EntangledKernel", "KrausKernel"]


class KrausKernel(OperatorValuedKernel):
    """K(x, z) = sum_i M_i phi(x) phi(z)^T M_i^T + phi(x)^T A phi(z) I_p.

    Parameters
    ----------
    kraus : array of shape (r, p, m)
        Kraus operators M_i.
    feature_map : fitted transformer, optional
        Gives the m features phi(x); identity when None.
    metric : array of shape (m, m), optional
        Psd matrix A; no such term when None.

    Attributes
    ----------
    n_outputs, n_features : int
        Numbers p of outputs and m of features.
    guaranteed_psd : bool
        True: a kernel in Kraus form is psd.

    Notes
    -----
    The kernel is fixed by the psd matrix D = kron(A, I_p) + sum_i vec(M_i) vec(M_i)^T (`choi`).
    Questions about entanglement are answered on D, in O((m p)^3) time and O((m p)^2) memory,
    whatever the sample.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = KrausKernel(np.eye(2)[None])  # K(x, z) = x z^T
    >>> kernel.blocks(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))[0, 0]
    array([[3., 4.],
           [6., 8.]])
    >>> kernel.entanglement().entangled
    True
    """

    guaranteed_psd = True

    def __init__(
        self, kraus: ArrayLike, feature_map: Any = None, metric: ArrayLike | None = None
    ) -> None:
        self.kraus = frozen_array(kraus, "kraus", 3)
        _, self.n_outputs, self.n_features = self.kraus.shape
        self.feature_map = feature_map
        self.metric = None if metric is None else frozen_array(metric, "metric", 2)
        if self.metric is not None and self.metric.shape != (self.n_features, self.n_features):
            raise ValueError(
                f"metric must be of shape {(self.n_features, self.n_features)} to match kraus of "
                f"shape {self.kraus.shape}, got shape {self.metric.shape}."
            )
        if self.metric is not None:
            psd_factor(self.metric, "metric")  # raises unless it is symmetric and psd

    def __repr__(self) -> str:
        r, p, m = self.kraus.shape
        metric = "" if self.metric is None else " + metric"
        return f"KrausKernel({r} operators of shape {(p, m)}{metric}, {self.feature_map!r})"

    @cached_property
    def choi(self) -> Array:
        """The matrix D of shape (m*p, m*p), row index ``feature * p + output``."""
        D = choi_from_kraus(self.kraus)
        if self.metric is not None:
            D = D + np.kron(self.metric, np.eye(self.n_outputs))
        D.setflags(write=False)
        return D

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix of low rank."""
        Phi = self._features(X, "X")
        Psi = Phi if Z is None else self._features(Z, "Z")
        return LowRankOperator(Phi, Psi, kraus_to_stacked(self.kraus), self.n_outputs, self.metric)

    def is_psd(self, X: ArrayLike, tol: float = 1e-9) -> bool:
        """Return True for every X: a kernel in Kraus form is psd."""
        self._features(X, "X")
        return True

    def _features(self, X: ArrayLike, name: str) -> Array:
        Phi = feature_rows(self.feature_map, as_points(X, name))
        if Phi.shape[1] != self.n_features:
            raise ValueError(
                f"{name} has {Phi.shape[1]} features after the feature map, but kraus of shape "
                f"{self.kraus.shape} needs {self.n_features}."
            )
        return Phi

    @cached_property
    def _support(self) -> tuple[Array, tuple[int, int]]:
        """D on the span of the rows of all operators, and its dimensions (m', p).

        r operators have at most r*p rows. In an orthonormal basis of their span D has the same
        trace, Schmidt values and nonzero eigenvalues of the partial transpose.
        """
        r, p, m = self.kraus.shape
        if self.metric is not None or r * p >= m:
            return self.choi, (m, p)
        _, _, basis = np.linalg.svd(self.kraus.reshape(r * p, m), full_matrices=False)
        return choi_from_kraus(self.kraus @ basis.T), (len(basis), p)

    def _state(self) -> tuple[Array, tuple[int, int]]:
        """D / trace(D) on its support, and its dimensions."""
        D, dims = self._support
        trace = float(np.trace(D))
        if not trace > 0.0:
            raise ValueError(
                "the kernel is zero, so there is nothing to say about its entanglement"
            )
        return D / trace, dims

    def is_ppt(self, tol: float = 1e-10) -> bool:
        """Whether the partial transpose of D is psd; False proves that the kernel is entangled.

        True proves nothing, except in dimensions 2 x 2 and 2 x 3.
        """
        return bool(is_ppt(*self._support, tol))

    def negativity(self) -> float:
        """Sum of the absolute negative eigenvalues of the partial transpose of D / trace(D)."""
        return float(negativity(*self._state()))

    def partial_transpose_eigenvalues(self) -> Array:
        """Eigenvalues of the partial transpose of D / trace(D), in increasing order.

        With few Kraus operators and no metric, some of the zero eigenvalues are left out.
        """
        return np.asarray(partial_transpose_eigenvalues(*self._state()))

    def schmidt_values(self) -> Array:
        """Operator-Schmidt values of D in decreasing order; one nonzero value means separable."""
        values = operator_schmidt(*self._support).values
        return np.pad(values, (0, min(self.n_features, self.n_outputs) ** 2 - len(values)))

    def nearest_separable(self) -> SeparableKernel:
        """Separable kernel phi(x)^T B phi(z) C with kron(B, C) nearest to D in Frobenius norm."""
        self._state()
        B, C = nearest_kronecker(self.choi, (self.n_features, self.n_outputs))
        scale = np.trace(B) / self.n_features
        return SeparableKernel(
            FeatureKernel(self.feature_map, (B + B.T) / (2 * scale)), scale * (C + C.T) / 2
        )

    def entanglement(self) -> EntanglementReport:
        """Report on what is proven about the entanglement of this kernel."""
        report = entanglement_report(*self._support)
        if report.dims[0] == self.n_features:
            return report
        # Features outside the span add zeros to the spectrum of the partial transpose.
        lowest = min(report.lowest_eigenvalue, 0.0)
        return replace(report, dims=(self.n_features, self.n_outputs), lowest_eigenvalue=lowest)

    def compressed(self, tol: float = 1e-12) -> KrausKernel:
        """Return the same kernel with as few Kraus operators as the rank of D, and no metric."""
        return KrausKernel(kraus_from_choi(self.choi, self.n_outputs, tol), self.feature_map)

    def to_partial_trace(self) -> PartialTraceKernel:
        """Partial-trace form of this kernel.

        P = kron(I_p, A phi(x) phi(z)^T) + sum_i kron(M_i phi(x) phi(z)^T M_i^T, e e^T), where e is
        the first unit vector of the traced space.
        """
        operator = partial(_kraus_operator, self.kraus, self.metric)
        return PartialTraceKernel(operator, self.n_outputs, self.feature_map, guaranteed_psd=True)


def _kraus_operator(kraus: Array, metric: Array | None, Phi: Array, Psi: Array) -> Array:
    """The operator P of `KrausKernel.to_partial_trace`, shape (n, t, p*m, p*m)."""
    r, p, m = kraus.shape
    Q = kraus_to_stacked(kraus).reshape(m, p * r)
    left, right = (Phi @ Q).reshape(-1, p, r), (Psi @ Q).reshape(-1, p, r)
    P = np.zeros((len(Phi), len(Psi), p, m, p, m))
    P[:, :, :, 0, :, 0] = np.einsum("iok,jqk->ijoq", left, right, optimize=True)
    if metric is not None:
        P += np.einsum("oq,ia,jb->ijoaqb", np.eye(p), Phi @ metric, Psi, optimize=True)
    return P.reshape(len(Phi), len(Psi), p * m, p * m)


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
    Psd for every U and psd T. By the Choi-Kraus theorem it is a kernel in Kraus form; its operators
    are compressed to the rank of D where that has fewer.

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
                f"U has shape {self.U.shape}, but T of shape {self.T.shape} needs (p*m, p*m) with "
                f"p = {p}."
            )
        kraus = kraus_from_entangler(self.U, self.T, size // p)
        if len(kraus) > size // p:
            kraus = min(kraus, kraus_from_choi(choi_from_kraus(kraus), p), key=len)
        super().__init__(kraus, feature_map)

    def __repr__(self) -> str:
        shapes = f"U of shape {self.U.shape}, T of shape {self.T.shape}"
        return f"EntangledKernel({shapes}, {self.feature_map!r})"

    def to_kraus(self) -> KrausKernel:
        """Kraus form, by the Choi-Kraus theorem."""
        return KrausKernel(self.kraus, self.feature_map)

    def to_transformable(self) -> TransformableKernel:
        """Transformable form <S_l phi(x), S_m phi(z)>, for T = v v^T of rank one.

        With blocks U_lq of size m x m, S_l = sum_q v_q U_lq. U need not be symmetric.
        """
        V = psd_factor(self.T)
        if V.shape[1] != 1:
            raise ValueError(
                f"T must have rank one for this form, got rank {V.shape[1]}; to_kraus takes any T."
            )
        p, m = self.n_outputs, self.n_features
        S = np.einsum("lkqa,q->lka", self.U.reshape(p, m, p, m), V[:, 0])  # (p, m, m)
        return TransformableKernel(
            "linear", [partial(_mapped_features, self.feature_map, S_l) for S_l in S]
        )


def _mapped_features(feature_map: Any, S: Array, X: Array) -> Array:
    """Rows S phi(x_i)."""
    return feature_rows(feature_map, X) @ S.T
