"""Exact reductions: the smallest coordinates in which a kernel can be learned and a ridge problem solved."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd

from .alignment import Alignment
from .learned import LearnedKernel
from .linalg import principal_axes, rank_tolerance, stacked_to_kraus
from .moments import Moments

__all__ = ["CompressedRows", "Problem", "along_axes", "compress_rows", "reduce_moments"]

Array = NDArray[np.float64]

# Tables of more numbers than this are not turned to their principal axes.
_LARGEST_TURNED = 2**22
# Axes shorter than this share of the longest are worth the turn.
_SHORT = 1e-3


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """Rows in orthonormal bases of few columns; a basis of None changes nothing.

    The original features are ``first_phi + Phi @ features.T``, the targets ``first_y + Y @ outputs.T``;
    unless ``outputs`` spans only those that the features reach. Then ``norms``, those of the targets' scatter
    V and its trace, and ``target_scatter``, the diagonal of V, are given where they are needed.
    """

    Phi: Array
    Y: Array
    features: Array | None
    outputs: Array | None
    first_phi: Array
    first_y: Array
    norms: tuple[float, float] | None = None
    target_scatter: Array | None = None


def compress_rows(Phi: Array, Y: Array, *, centred: bool) -> CompressedRows:
    """Rotate wide tables so that neither has more columns than are needed to hold its n rows exactly.

    Where the mean does not matter, rows are taken relative to the first one, which makes constant columns
    exactly zero. Where it does, the basis of the outputs also spans the vector of ones, which the paper's
    centring of the whole Gram matrix singles out.

    Time n^2 (m + p), memory n (m + p); nothing of size m^2 or p^2 is formed when m, p > n.
    """
    n, features, outputs = len(Phi), None, None
    first_phi, first_y = np.zeros(Phi.shape[1]), np.zeros(Y.shape[1])
    if Phi.shape[1] > n:
        if centred:
            first_phi = np.asarray(Phi[0], dtype=np.float64)
        features, triangle = qr((Phi - first_phi).T, mode="economic")
        Phi = triangle.T
    if Y.shape[1] > n + 1:
        if centred:
            first_y = np.asarray(Y[0], dtype=np.float64)
        spanning = np.vstack([Y - first_y, np.zeros_like(first_y) if centred else np.ones_like(first_y)])
        outputs, triangle = qr(spanning.T, mode="economic")
        Y = triangle.T[:n]
    return CompressedRows(Phi, Y, features, outputs, first_phi, first_y)


def along_axes(rows: CompressedRows, weight: Array | None = None, *, centred: bool) -> CompressedRows:
    """Turn features to their principal axes, where these are of very different lengths.

    Second moments are exact to rounding of the product of two columns' lengths. In most coordinates that is
    rounding of the longest axis, squared, which blurs all axes more than seven digits shorter; kernels with
    a fast decay have many, and a small alpha sees them. Along the axes each one keeps its own rounding.
    Axes too short to be told from zero in the rows themselves are left out. Original columns that differ
    that much already are left as they are, and so are large tables. Rows of zero weight have no say.

    Time n m^2.
    """
    m = rows.Phi.shape[1]
    if rows.Phi.size > _LARGEST_TURNED or m < 2:
        return rows
    Phi = np.asarray(rows.Phi, dtype=np.float64)
    counted = Phi if weight is None else Phi[weight > 0.0]
    centre = np.zeros(m)
    if centred and len(counted) > 0:
        # Relative to a row, so that constant columns are exactly zero.
        centre = counted[0] + np.mean(counted - counted[0], axis=0)
    counted = counted - centre
    lengths = np.linalg.norm(counted, axis=0)
    graded = rows.features is None and np.any((lengths > 0.0) & (lengths < _SHORT * lengths.max()))
    if graded or not lengths.any():
        return rows
    _, spread, axes = svd(qr(counted, mode="r")[0][:m], full_matrices=False)
    keep = spread > rank_tolerance(m) * spread[0]
    if spread[keep][-1] >= _SHORT * spread[0]:
        return rows
    axes = axes[keep].T
    features, first_phi = axes, centre
    if rows.features is not None:
        features, first_phi = rows.features @ axes, rows.first_phi + rows.features @ centre
    return replace(rows, Phi=(Phi - centre) @ axes, features=features, first_phi=first_phi)


@dataclass(frozen=True, eq=False)
class Problem:
    """Learning problem in coordinates where the features are uncorrelated and nothing is redundant.

    Attributes
    ----------
    centred : bool
        Whether the model has an intercept, so that everything is about the mean of each column.
    n_features, n_outputs : int
        m and p of the original rows.
    features : ndarray of shape (m, m')
        Orthonormal basis of the range of the features' second moments, in the coordinates of the moments;
        after `restored`, in those of the original rows.
    outputs : ndarray of shape (p, k)
        Orthonormal basis of the outputs that the features say anything about, likewise.
    scale : ndarray of shape (m',)
        The features' second moments in these coordinates, positive: their matrix is diag(scale).
    targets : ndarray of shape (m', k)
        Second moments of features with targets.
    whitened : Alignment
        The objective as a function of sqrt(scale) * Q, where the features' second moments are the identity.
    mean_phi, mean_y : ndarray of shape (m,) and (p,)
        Means of the columns about which everything is taken; zero without an intercept.
    n_samples, weight : int and float
        Number of rows and their total weight.
    target_scatter : ndarray of shape (p,)
        Second moment of each target.
    """

    centred: bool
    n_features: int
    n_outputs: int
    features: Array
    outputs: Array
    scale: Array
    targets: Array
    whitened: Alignment
    mean_phi: Array
    mean_y: Array
    n_samples: int
    weight: float
    target_scatter: Array

    def restored(self, rows: CompressedRows, moments: Moments) -> Problem:
        """The same problem with bases and means in the coordinates of the rows before compression."""
        problem = self
        if rows.features is not None:
            mean_phi = self.mean_phi @ rows.features.T + rows.first_phi
            problem = replace(problem, features=rows.features @ self.features, mean_phi=mean_phi)
        if rows.outputs is not None:
            scatter = rows.target_scatter
            if scatter is None:
                V = (moments.centred() if self.centred else moments.uncentred()).V
                scatter = np.einsum("ok,ok->o", rows.outputs @ V, rows.outputs)
            problem = replace(
                problem,
                outputs=rows.outputs @ self.outputs,
                mean_y=self.mean_y @ rows.outputs.T + rows.first_y,
                target_scatter=scatter,
            )
        return problem

    def with_mix(self, mix: float) -> Problem:
        """The same problem with another weight of the full alignment."""
        return replace(self, whitened=self.whitened.with_mix(mix))

    @property
    def full_rank(self) -> int:
        """Largest Kraus rank that can matter, m' * k."""
        return self.targets.size

    def whiten(self, Q: Array) -> Array:
        """Q (m', k, r) in the coordinates of the whitened objective."""
        return np.sqrt(self.scale)[:, None, None] * Q

    def alignment_terms(self, kernel: LearnedKernel) -> tuple[float, float]:
        """Partial-trace and full alignment of a kernel in reduced coordinates."""
        root = np.sqrt(self.scale)
        return self.whitened.terms(self.whiten(kernel.Q), root[:, None] * kernel.metric() * root)

    def finished(self, kernel: LearnedKernel, shrinkage: float) -> LearnedKernel:
        """A learned kernel shrunk towards the plain one, and scaled to the trace of its Gram matrix."""
        kernel = kernel.shrunk(shrinkage, self.n_features, self.n_outputs)
        trace = kernel.gram_trace(self.scale, self.n_outputs)
        if trace == 0.0:
            return kernel
        return kernel.scaled(self.n_outputs * float(self.scale.sum()) / trace)

    def squared_residuals(self, coef: Array) -> Array:
        """Weighted sum of squared residuals of each original output, for coefficients (m', k)."""
        explained = coef.T @ (2.0 * self.targets - self.scale[:, None] * coef)  # (k, k)
        gained = np.einsum("ok,kl,ol->o", self.outputs, explained, self.outputs, optimize=True)
        rounding = np.finfo(float).eps * self.target_scatter
        return np.asarray(np.maximum(self.target_scatter - gained, rounding))

    def expand_coef(self, coef: Array) -> Array:
        """Coefficients (m', k) as (p, m) of the original features and outputs."""
        return self.outputs @ coef.T @ self.features.T

    def expand_kraus(self, Q: Array) -> Array:
        """Kraus operators (r, p, m) of the original features and outputs."""
        m, k, r = Q.shape
        kraus = self.outputs @ stacked_to_kraus(Q.reshape(m * k, r), k) @ self.features.T  # (r, p, m)
        return np.ascontiguousarray(kraus)

    def expand_metric(self, kernel: LearnedKernel) -> Array | None:
        """identity * I + L L^T in the original features, (m, m), or None when both are absent."""
        if kernel.identity == 0.0 and kernel.L.shape[1] == 0:
            return None
        L = self.features @ kernel.L
        metric: Array = L @ L.T
        metric[np.diag_indices_from(metric)] += kernel.identity
        return metric


def reduce_moments(
    moments: Moments, *, centred: bool, mix: float, rows: CompressedRows | None = None
) -> Problem:
    """Rotate features to the range of their second moments, outputs to what the features can reach.

    Parameters
    ----------
    moments : Moments
    centred : bool
        Whether the model has an intercept: then everything is about the mean of each column.
    mix : float
        Weight of the full alignment in the objective.
    rows : CompressedRows, optional
        Where the moments are those of compressed rows; the problem stays in their coordinates.

    Notes
    -----
    With C = F diag(scale) F^T the second moments of the features and B those with the targets, the optimum
    of the alignment and every ridge solution lie in range(C) kron rowspace(B). Without an intercept the
    output space also takes in the mean of the targets and the vector of ones, which the paper's centring
    brings in; kernels are then sought on that space.

    Time m^3 + m^2 p, once.
    """
    features_in, outputs_in = (None, None) if rows is None else (rows.features, rows.outputs)
    m = moments.n_features if features_in is None else len(features_in)
    p = moments.n_outputs if outputs_in is None else len(outputs_in)
    ones = np.ones(p) if outputs_in is None else outputs_in.sum(axis=0)
    working = moments.centred() if centred else moments.uncentred()

    scale, features = principal_axes(
        moments.C, None if centred else np.sqrt(moments.weight) * moments.mean_phi
    )
    targets = features.T @ working.B  # (m', p)

    unit = np.sqrt(np.diag(working.V))
    unit[unit == 0.0] = 1.0
    spanning = targets / np.sqrt(scale)[:, None]
    if not centred:
        length = np.sqrt(np.trace(working.V) / p)
        spanning = np.vstack([spanning, np.sqrt(moments.weight) * moments.mean_y, length * ones])
    outputs = _row_space(spanning, unit, compressed=outputs_in is not None)

    norms = None if rows is None else rows.norms
    objective = Alignment.from_moments(moments, mix, centred=centred, ones=ones, n_outputs=p, norms=norms)
    whitener = features / np.sqrt(scale)
    return Problem(
        centred=centred,
        n_features=m,
        n_outputs=p,
        features=features,
        outputs=outputs,
        scale=scale,
        targets=targets @ outputs,
        whitened=objective.transformed(whitener, outputs, whitened=centred),
        mean_phi=moments.mean_phi if centred else np.zeros(moments.n_features),
        mean_y=moments.mean_y if centred else np.zeros(moments.n_outputs),
        n_samples=moments.n_samples,
        weight=moments.weight,
        target_scatter=np.diag(working.V),
    )


def _row_space(rows: Array, unit: Array, *, compressed: bool) -> Array:
    """Orthonormal basis (p, k) of the row space: the identity when it is everything, else principal axes.

    Rank is decided with every output in its own ``unit`` and every row at unit length, so that none is lost
    for being small. Any basis would do, but solvers may start from its axes, and the principal ones do not
    depend on the coordinates that rows were compressed to.
    """
    p = rows.shape[1]
    scaled = rows / unit
    length = np.linalg.norm(scaled, axis=1)
    scaled = scaled[length > 0.0] / length[length > 0.0, None]
    if scaled.size == 0:
        return np.zeros((p, 0))
    _, values, directions = svd(scaled, full_matrices=False)
    rank = int(np.sum(values > np.finfo(float).eps * max(rows.shape) * values[0]))
    if rank == p and not compressed:
        return np.eye(p)
    basis = qr((directions[:rank] * unit).T, mode="economic")[0]
    return np.asarray(basis @ svd(rows @ basis, full_matrices=False)[2].T)
