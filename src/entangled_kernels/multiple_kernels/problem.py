"""Gram matrices and targets of multiple kernel learning: weighted, centred, scaled, and compressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

__all__ = ["KernelPart", "KernelsProblem", "reduce_kernels"]

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)


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

    Notes ----- Weights and the intercept are dealt with as in
    `entangled_kernels.output_kernel.reduce_problem`. Where all kernels are products of features, of fewer
    columns in all than there are rows, a QR decomposition of the features side by side gives coordinates in
    which all Gram matrices are small. Time m n^2 for Gram matrices, n d^2 for d features in all.
    """
    Y = np.array(Y, dtype=np.float64)
    n = len(Y)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    share, root = w / w.sum(), np.sqrt(w)
    mean_y = share @ Y if centred else np.zeros(Y.shape[1])
    Y = Y - mean_y
    if centred:
        # What is left of a constant target is rounding, and no structure to learn.
        Y[:, np.abs(Y).max(axis=0) <= 4 * EPS * np.abs(mean_y)] = 0.0
    Y *= root[:, None]
    prepared = [_prepare(part, share, root, centred) for part in parts]
    mean_k = np.stack([mean for _, mean in prepared])
    matrices = [matrix for matrix, _ in prepared]
    scales = np.ones(len(parts))
    if normalized:
        total = float(w.sum())
        for j, (part, matrix) in enumerate(zip(parts, matrices, strict=True)):
            trace = float(np.vdot(matrix, matrix) if part.is_features else np.trace(matrix))
            scales[j] = trace / total if trace > 0.0 else 1.0
    columns = sum(matrix.shape[1] for matrix in matrices)
    if all(part.is_features for part in parts) and columns < n:
        vectors, R = qr(np.hstack(matrices), mode="economic", check_finite=False)
        pieces = np.split(R, np.cumsum([matrix.shape[1] for matrix in matrices])[:-1], axis=1)
        kernels = np.stack([piece @ piece.T / scale for piece, scale in zip(pieces, scales, strict=True)])
        return KernelsProblem(kernels, vectors.T @ Y, vectors, Y, root, mean_y, mean_k, scales)
    kernels = np.stack(
        [
            (matrix @ matrix.T if part.is_features else matrix) / scale
            for part, matrix, scale in zip(parts, matrices, scales, strict=True)
        ]
    )
    return KernelsProblem(kernels, Y, None, Y, root, mean_y, mean_k, scales)


def _prepare(part: KernelPart, share: Array, root: Array, centred: bool) -> tuple[Array, Array]:
    """Centred and weighted features or Gram matrix, and the mean of the rows of the Gram matrix."""
    matrix = np.array(part.matrix, dtype=np.float64)
    mean = np.zeros(len(matrix))
    if part.is_features:
        if centred:
            centre = share @ matrix
            mean = matrix @ centre
            matrix -= centre
        return matrix * root[:, None], mean
    if centred:
        mean = share @ matrix
        matrix += share @ mean - mean[:, None] - mean
    matrix *= root[:, None] * root
    return matrix, mean
