"""Gram matrices and targets of multiple kernel learning: weighted, centred, scaled, and compressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, qr

from ..linalg import Array

__all__ = ["KernelPart", "KernelsProblem", "compress_kernels", "reduce_kernels", "retarget_kernels"]

EPS = float(np.finfo(np.float64).eps)
# Rows of a Gram matrix that are worked on at once.
BLOCK = 64


class KernelPart(NamedTuple):
    """A kernel on the training rows: its Gram matrix (n, n), or features (n, d) whose products it is."""

    matrix: Array
    is_features: bool = False


@dataclass(frozen=True, eq=False)
class KernelsProblem:
    """Several Gram matrices and the targets, with an intercept and weights taken care of.

    Attributes
    ----------
    kernels : ndarray of shape (m, r, r)
        Centred, weighted and scaled Gram matrices, in the coordinates of ``vectors``.
    targets : ndarray of shape (r, p)
        Centred and weighted targets in these coordinates.
    vectors : ndarray of shape (n, r) or None
        Orthonormal columns that span what any kernel can reach; None stands for the identity.
    Y : ndarray of shape (n, p)
        Centred and weighted targets.
    root_weight : ndarray of shape (n,)
    mean_y : ndarray of shape (p,)
    mean_k : ndarray of shape (m, n)
        Weighted means of the rows of the Gram matrices as they were given.
    scales : ndarray of shape (m,)
        What the Gram matrices were divided by.
    """

    kernels: Array
    targets: Array
    vectors: Array | None
    Y: Array
    root_weight: Array
    mean_y: Array
    mean_k: Array
    scales: Array

    @property
    def rest(self) -> float:
        """Squared norm of the targets that no kernel can reach."""
        return max(float(np.vdot(self.Y, self.Y)) - float(np.vdot(self.targets, self.targets)), 0.0)

    def rows(self, C: Array, alpha: float) -> Array:
        """Coefficients (n, p) of the rows as they were given, from those in the problem's coordinates."""
        if self.vectors is not None:
            C = self.vectors @ C + (self.Y - self.vectors @ self.targets) / alpha
        return np.asarray(self.root_weight[:, None] * C)


def reduce_kernels(
    parts: Sequence[KernelPart],
    Y: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    centred: bool = False,
    normalized: bool = False,
) -> KernelsProblem:
    """Prepare kernels and targets, once for all alphas and norms.

    Parameters
    ----------
    parts : sequence of KernelPart
    Y : array-like of shape (n, p)
    weight : array-like of shape (n,), optional
        Non-negative weights of the squared errors.
    centred : bool, default=False
        Whether the model has an intercept, which is not penalised.
    normalized : bool, default=False
        Whether every Gram matrix is divided by the mean of its diagonal (after centring), so that weights can
        be compared.

    Notes
    -----
    Weights and the intercept are dealt with as in `entangled_kernels.output_kernel.reduce_problem`. Where
    all kernels are products of features, of fewer columns in all than there are rows, a QR decomposition
    of the features side by side gives coordinates in which all Gram matrices are small. Time m n^2 for
    Gram matrices, n d^2 for d features in all.
    """
    Y = np.array(Y, dtype=np.float64)
    n = len(Y)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    share, root = w / w.sum(), np.sqrt(w)
    Y, mean_y = _centred_targets(Y, w, centred)
    m, width = len(parts), sum(part.matrix.shape[1] for part in parts)
    mean_k, vectors = np.zeros((m, n)), None
    features: list[Array | None] = [None] * m
    for j, part in enumerate(parts):
        if part.is_features:
            features[j], mean_k[j] = _features(part.matrix, share, root, centred)
    if all(part.is_features for part in parts) and width < n:
        known = [Phi for Phi in features if Phi is not None]
        vectors, R = qr(np.hstack(known), mode="economic", check_finite=False)
        ends = np.cumsum([part.matrix.shape[1] for part in parts])
        features = list(np.split(R, ends[:-1], axis=1))
    r = n if vectors is None else vectors.shape[1]
    kernels = np.empty((m, r, r))
    scales = np.ones(m)
    for j, (part, Phi) in enumerate(zip(parts, features, strict=True)):
        if Phi is not None:
            scales[j] = _scale(float(np.vdot(Phi, Phi)), w, normalized)
            np.matmul(Phi / scales[j], Phi.T, out=kernels[j])
            continue
        K = part.matrix
        mean_k[j] = share @ K if centred else np.zeros(n)
        shift = mean_k[j] - share @ mean_k[j]
        scales[j] = _scale(float(w @ (K.diagonal() - mean_k[j] - shift)), w, normalized)
        _write_gram(K, mean_k[j], shift, None if weight is None else root, scales[j], kernels[j])
    targets = Y if vectors is None else vectors.T @ Y
    return KernelsProblem(kernels, targets, vectors, Y, root, mean_y, mean_k, scales)


def retarget_kernels(problem: KernelsProblem, Y: ArrayLike, *, centred: bool) -> KernelsProblem:
    """The problem with other targets (n, p) for the same kernels and weights, in time n p r."""
    Y, mean_y = _centred_targets(np.array(Y, dtype=np.float64), problem.root_weight**2, centred)
    targets = Y if problem.vectors is None else problem.vectors.T @ Y
    return replace(problem, targets=targets, Y=Y, mean_y=mean_y)


def compress_kernels(problem: KernelsProblem) -> KernelsProblem:
    """The same problem in coordinates that span what the sum of all Gram matrices can reach, and no more.

    Solvers that iterate on coefficients gain by it: targets that no kernel can reach have coefficients of
    their size over alpha, beside which all others are small. Time n^3 + m n^2 r for rank r.
    """
    values, U = eigh(problem.kernels.sum(axis=0), check_finite=False)
    U = U[:, values > len(values) * EPS * values[-1]]
    if U.shape[1] in (0, len(U)):
        return problem
    vectors = U if problem.vectors is None else problem.vectors @ U
    return replace(
        problem,
        kernels=np.asarray(U.T @ problem.kernels @ U),  # (m, r, r)
        targets=U.T @ problem.targets,
        vectors=vectors,
    )


def _centred_targets(Y: Array, w: Array, centred: bool) -> tuple[Array, Array]:
    """Centred and weighted targets, and their means."""
    mean = (w / w.sum()) @ Y if centred else np.zeros(Y.shape[1])
    Y = Y - mean
    if centred:
        # What is left of a constant target is rounding, and no structure to learn.
        Y[:, np.abs(Y).max(axis=0) <= 4 * EPS * np.abs(mean)] = 0.0
    return Y * np.sqrt(w)[:, None], mean


def _features(Phi: Array, share: Array, root: Array, centred: bool) -> tuple[Array, Array]:
    """Centred and weighted features, and the mean of the rows of their Gram matrix."""
    Phi = np.asarray(Phi, dtype=np.float64)
    if not centred:
        return Phi * root[:, None], np.zeros(len(Phi))
    centre = share @ Phi
    return (Phi - centre) * root[:, None], Phi @ centre


def _scale(trace: float, w: Array, normalized: bool) -> float:
    """What a Gram matrix of this trace is divided by."""
    mean = trace / float(w.sum())
    return mean if normalized and mean > 0.0 else 1.0


def _write_gram(K: Array, mean: Array, shift: Array, root: Array | None, scale: float, out: Array) -> None:
    """Write (K - mean 1^T - 1 shift^T) / scale, weighted by roots from both sides.

    By blocks of rows that stay in the cache, since passes over many large matrices are what takes the time.
    """
    for first in range(0, len(K), BLOCK):
        rows = slice(first, first + BLOCK)
        block = out[rows]
        np.subtract(K[rows], mean[rows, None], out=block)
        block -= shift
        if root is not None:
            block *= root[rows, None]
            block *= root
        block *= 1.0 / scale
