"""Kraus operators and their Choi matrices, both ways.

An operator-valued kernel K(x, z) = sum_i M_i phi(x) phi(z)^H M_i^H is given by its Kraus operators,
an array of shape (r, p, m), or by the psd matrix D = sum_i vec(M_i) vec(M_i)^H of shape (m*p, m*p)
with row index ``feature * p + output``. The dimensions to give to the entanglement tools are ``(m,
p)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .layout import AnyArray, kraus_to_stacked, stacked_to_kraus

__all__ = [
    "choi_from_kraus",
    "kraus_from_choi",
    "kraus_from_entangler",
    "psd_factor",
    "separable_kraus",
]


def psd_factor(T: ArrayLike, name: str = "T", tol: float = 1e-12) -> AnyArray:
    """Return V of shape (p, rank) with T = V V^H, for a Hermitian psd T.

    Examples
    --------
    >>> import numpy as np
    >>> psd_factor(np.ones((2, 2))).shape
    (2, 1)
    """
    array = np.asarray(T)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}.")
    V, kept = _scaled_eigenvectors(array, name, tol)
    return V[:, kept]


def _scaled_eigenvectors(A: AnyArray, name: str, tol: float) -> tuple[AnyArray, AnyArray]:
    """V (..., p, p) with A = V V^H for Hermitian psd A, and which columns (..., p) are not zero."""
    if not np.allclose(
        A, A.conj().swapaxes(-1, -2), rtol=0.0, atol=1e-8 * np.abs(A).max(initial=0.0)
    ):
        raise ValueError(
            f"{name} must be symmetric (Hermitian when complex); "
            f"pass ({name} + {name}.conj().T) / 2."
        )
    eigenvalues, vectors = np.linalg.eigh(A)
    scale = np.maximum(
        np.abs(eigenvalues).max(axis=-1, keepdims=True, initial=0.0), np.finfo(float).tiny
    )
    if np.any(eigenvalues < -1e-8 * scale):
        raise ValueError(
            f"{name} must be positive semidefinite, but has eigenvalue {eigenvalues.min():.3g}; "
            "clip its eigenvalues at zero, or use PartialTraceKernel, which may be indefinite."
        )
    kept = eigenvalues > tol * scale
    return vectors * np.sqrt(np.where(kept, eigenvalues, 0.0))[..., None, :], kept


def choi_from_kraus(kraus: ArrayLike) -> AnyArray:
    """Choi matrix D = sum_i vec(M_i) vec(M_i)^H of Kraus operators.

    Parameters
    ----------
    kraus : array of shape (..., r, p, m)
        Kraus operators, or a stack of sets of them.

    Returns
    -------
    array of shape (..., m*p, m*p)
        Row index ``feature * p + output``.

    Examples
    --------
    >>> import numpy as np
    >>> choi_from_kraus(np.eye(2)[None]).astype(int)
    array([[1, 0, 0, 1],
           [0, 0, 0, 0],
           [0, 0, 0, 0],
           [1, 0, 0, 1]])
    """
    array = np.asarray(kraus)
    if array.ndim < 3:
        raise ValueError(
            f"kraus must have shape (..., r, p, m), got {array.shape}; add a leading axis."
        )
    Q = kraus_to_stacked(array)
    return np.asarray(Q @ Q.conj().swapaxes(-1, -2))


def kraus_from_choi(D: ArrayLike, n_outputs: int, tol: float = 1e-12) -> AnyArray:
    """Kraus operators of a psd Choi matrix, as few as its rank.

    Parameters
    ----------
    D : array of shape (..., m*p, m*p)
        Hermitian psd, row index ``feature * p + output``.
    n_outputs : int
        Number of outputs p.
    tol : float, default=1e-12
        Eigenvalues below ``tol`` times the largest are dropped.

    Returns
    -------
    array of shape (..., r, p, m)
        Orthogonal operators in decreasing order. r is the rank, for a stack the largest rank in it.

    Examples
    --------
    >>> import numpy as np
    >>> kraus = kraus_from_choi(np.eye(6), n_outputs=2)
    >>> kraus.shape
    (6, 2, 3)
    >>> np.allclose(choi_from_kraus(kraus), np.eye(6))
    True
    """
    array = np.asarray(D)
    size = array.shape[-1] if array.ndim >= 2 else 0
    if array.ndim < 2 or array.shape[-2] != size or n_outputs < 1 or size % n_outputs:
        raise ValueError(
            f"D has shape {array.shape}, but n_outputs={n_outputs} needs (..., m*p, m*p) "
            "with p = n_outputs dividing its size."
        )
    Q, kept = _scaled_eigenvectors(array, "D", tol)  # (..., m*p, m*p), (..., m*p)
    rank = max(int(kept.sum(axis=-1).max(initial=0)), 1)
    return stacked_to_kraus(Q[..., ::-1][..., :rank], n_outputs)


def kraus_from_entangler(U: ArrayLike, T: ArrayLike, n_features: int) -> AnyArray:
    """Kraus operators of the entangled kernel tr_K(U kron(T, phi(x) phi(z)^H) U^H).

    Parameters
    ----------
    U : array of shape (p*m, p*m)
        Row index ``output * m + feature``: outputs first, as in kron(T, phi phi^H).
    T : array of shape (p, p)
        Hermitian psd.
    n_features : int
        Number of features m.

    Returns
    -------
    array of shape (rank(T)*m, p, m)

    Notes
    -----
    With T = sum_t v_t v_t^H, U kron(T, phi phi^H) U^H is the sum over t of w w^H, w = U (v_t kron
    I_m) phi. Tracing out the features sums over their index k, so M_{t,k} = (I_p kron e_k)^T U (v_t
    kron I_m).

    Examples
    --------
    >>> import numpy as np
    >>> kraus_from_entangler(np.eye(6), np.eye(2), n_features=3).shape
    (6, 2, 3)
    """
    U_array = np.asarray(U)
    V = psd_factor(T)
    p, m = V.shape[0], n_features
    if U_array.shape != (p * m, p * m):
        raise ValueError(
            f"U has shape {U_array.shape}, but T of shape {(p, p)} and n_features={m} need "
            f"{(p * m, p * m)}."
        )
    U4 = U_array.reshape(p, m, p, m)
    kraus = np.einsum("okqa,qt->tkoa", U4, V, optimize=True)  # (rank, m, p, m)
    return np.reshape(kraus, (-1, p, m))


def separable_kraus(T: ArrayLike, n_features: int) -> AnyArray:
    """Kraus operators t_j e_k^T of the kernel <phi(x), phi(z)> T, with T = sum_j t_j t_j^H.

    Returns
    -------
    array of shape (rank(T)*m, p, m)

    Examples
    --------
    >>> import numpy as np
    >>> D = choi_from_kraus(separable_kraus(np.ones((2, 2)), n_features=3))
    >>> np.allclose(D, np.kron(np.eye(3), np.ones((2, 2))))
    True
    """
    V = psd_factor(T)
    kraus = np.einsum("pj,ka->jkpa", V, np.eye(n_features))  # (rank, m, p, m)
    return np.reshape(kraus, (-1, len(V), n_features))
